"""The Redfish driver against OpenStack's emulator, in a virtual environment of its own.

Skipped where the emulator cannot be installed. It has no sessions: Basic authentication is what it leaves.
"""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.machine import PowerState
from ironbell.bmc.driver import AuthenticationError
from ironbell.bmc.redfish import RedfishTarget, connect
from ironbell.bmc.redfish.http import Endpoint
from ironbell.lab.certificates import create_certificates
from ironbell.lab.files import LabFolder
from support.skips import missing_program
from support.waiting import until

_PACKAGE = "sushy-tools==2.2.0"
_HOME = Path.home() / ".cache" / "ironbell" / _PACKAGE.replace("==", "-")
# admin / password, as htpasswd -B writes it
_HTPASSWD = "admin:$2y$05$mYl8KMwM94l4LR/sw1teIeA6P2u8gfX16e8wvT7NmGgAM5r9jgLl.\n"


def _emulator() -> Path:
    """The emulator's program, installed when it is not there yet."""
    program = _HOME / "bin" / "sushy-emulator"
    if program.exists():
        return program
    try:
        subprocess.run([sys.executable, "-m", "venv", str(_HOME)], check=True, capture_output=True, timeout=60)
        install = [str(_HOME / "bin" / "pip"), "install", "-q", "--retries", "0", "--timeout", "15", _PACKAGE]
        subprocess.run(install, check=True, capture_output=True, timeout=180)
    except (subprocess.SubprocessError, OSError) as error:
        missing_program(f"{_PACKAGE}: {error}")
    return program


@dataclass
class Emulator:
    """Where it listens, and the authority that signed its certificate."""

    port: int
    authority: str

    def target(self, password: str = "password", system: str = "") -> RedfishTarget:  # noqa: S107
        return RedfishTarget(Endpoint("127.0.0.1", self.port, "admin", password, ca_certificate=self.authority), system)


@pytest.fixture
async def emulator(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Emulator]:
    program = await asyncio.to_thread(_emulator)
    folder = LabFolder(tmp_path)
    create_certificates(folder)
    (tmp_path / "htpasswd").write_text(_HTPASSWD)
    (tmp_path / "emulator.conf").write_text(
        f"SUSHY_EMULATOR_AUTH_FILE = {str(tmp_path / 'htpasswd')!r}\n"
        f"SUSHY_EMULATOR_STATE_DIR = {str(tmp_path)!r}\n"
        "SUSHY_EMULATOR_FAKE_DRIVER = True\n"
    )
    arguments = ["--fake", "--config", str(tmp_path / "emulator.conf"), "-i", "127.0.0.1", "-p", str(unused_tcp_port)]
    arguments += ["--ssl-certificate", str(folder.certificate), "--ssl-key", str(folder.key)]
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(str(program), *arguments, stdout=log, stderr=log, cwd=tmp_path)
    try:
        await _until_it_listens(process, unused_tcp_port, tmp_path / "log")
        yield Emulator(unused_tcp_port, folder.authority.read_text())
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _until_it_listens(process: asyncio.subprocess.Process, port: int, log: Path) -> None:
    async def listens() -> bool:
        if process.returncode is not None:
            pytest.fail(f"the emulator ended: {log.read_text()[-500:]}")
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        await writer.wait_closed()
        return True

    await until(listens, ignored=(OSError,))


async def _system_name(emulator: Emulator) -> str:
    authorization = "Basic " + base64.b64encode(b"admin:password").decode()
    async with aiohttp.ClientSession(headers={"Authorization": authorization}) as session:
        base = f"https://127.0.0.1:{emulator.port}"
        async with session.get(f"{base}/redfish/v1/Systems", ssl=False) as response:
            path = (await response.json())["Members"][0]["@odata.id"]
        async with session.get(base + path, ssl=False) as response:
            return str((await response.json())["Name"])


async def test_power_boot_device_and_media_of_the_emulator(emulator: Emulator) -> None:
    driver = await connect(emulator.target(system=await _system_name(emulator)))

    async def is_off() -> bool:
        return await driver.power_state() is PowerState.OFF

    async def is_on() -> bool:
        return await driver.power_state() is PowerState.ON

    try:
        await driver.set_power(PowerAction.OFF)
        await until(is_off)
        await driver.set_boot_device("pxe", persistent=False, efi=True)
        await driver.set_power(PowerAction.ON)
        await until(is_on)
        await driver.set_power(PowerAction.CYCLE)
    finally:
        await driver.close()


async def test_the_inventory_of_the_emulator(emulator: Emulator) -> None:
    driver = await connect(emulator.target(system=await _system_name(emulator)))
    try:
        found = await driver.inventory()
    finally:
        await driver.close()
    # its pretended systems have neither processors nor memory; what is there is read, and the rest does no harm
    assert found.bmc is not None
    assert found.bmc.status is not None
    assert found.bmc.status.health == "OK"
    assert found.cpu is not None


async def test_a_wrong_password_is_told(emulator: Emulator) -> None:
    with pytest.raises(AuthenticationError):
        await connect(emulator.target(password="wrong"))

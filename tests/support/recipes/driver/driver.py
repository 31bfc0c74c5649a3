"""IPMI, by the program `ipmitool`: power and boot device.

The password reaches the program in its environment, since anybody can read a command line.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.machine import PowerState
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.bmc.driver import AuthenticationError, UnreachableError, UnsupportedError

PORT: Final = 623
TIMEOUT_S: Final = 20.0
_COMMANDS: Final[Mapping[PowerAction, str]] = {
    PowerAction.ON: "on",
    PowerAction.OFF: "off",
    PowerAction.SOFT: "soft",
    PowerAction.CYCLE: "cycle",
    PowerAction.RESET: "reset",
}


@dataclass(frozen=True)
class IpmiTarget:
    """A BMC, and how to log in."""

    host: str
    port: int
    username: str
    password: str


async def connect(target: IpmiTarget) -> IpmiDriver:
    """Open a session, which for IPMI is one command that succeeds. Cancellation point.

    Raises:
        BmcError: the BMC does not respond, or rejects the password.
    """
    driver = IpmiDriver(target)
    await driver.power_state()
    return driver


class IpmiDriver:
    """Runs `ipmitool` for each operation; satisfies `driver.Driver`."""

    def __init__(self, target: IpmiTarget) -> None:
        self._target = target

    async def power_state(self) -> PowerState:
        output = await self._run("chassis", "power", "status")
        return PowerState.ON if output.strip().endswith("on") else PowerState.OFF

    async def set_power(self, command: PowerAction) -> None:
        if command not in _COMMANDS:
            raise UnsupportedError(f"{self._target.host}: ipmitool has no command for power {command.value}")
        await self._run("chassis", "power", _COMMANDS[command])

    async def set_boot_device(self, device: str, *, persistent: bool, efi: bool) -> None:
        options = [name for name, is_set in (("persistent", persistent), ("efiboot", efi)) if is_set]
        await self._run("chassis", "bootdev", device, *([f"options={','.join(options)}"] if options else []))

    async def insert_media(self, url: str, *, kind: str) -> None:
        raise UnsupportedError(f"{self._target.host}: IPMI has no virtual media; {kind} {url} was not inserted")

    async def eject_media(self, *, kind: str) -> None:
        """Do nothing: there are no virtual media."""

    async def inventory(self) -> Inventory:
        return Inventory()

    async def close(self) -> None:
        """Do nothing: each command has its own session."""

    async def _run(self, *command: str) -> str:
        target = self._target
        words = ("-I", "lanplus", "-H", target.host, "-p", str(target.port), "-U", target.username, "-E", *command)
        process = await asyncio.create_subprocess_exec(
            "ipmitool",
            *words,
            env={**os.environ, "IPMI_PASSWORD": target.password},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(TIMEOUT_S):
                output, errors = await process.communicate()
        except TimeoutError:
            raise UnreachableError(f"{target.host}: no response within {TIMEOUT_S:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            message = errors.decode(errors="replace").strip()
            error = AuthenticationError if "password" in message else UnreachableError
            raise error(f"{target.host}: {message}")
        return output.decode(errors="replace")

"""The IPMI driver by way of a bmc Machine's connection, with a program in place of ipmitool that keeps one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.connection import Connection, IpmitoolOptions, ProviderOptions
from ironbell.api.bmc.machine import PowerState
from ironbell.bmc.driver import AuthenticationError
from ironbell.contract.servers.ineffective import of_connection
from ironbell.controllers.rufio.connect import connect
from ironbell.controllers.rufio.operation import SetBootDevice, SetPower
from ironbell.controllers.rufio.secret import Credentials
from ironbell.provisioner.bmc_address import address_of

IPMITOOL = """#!/bin/sh
[ "$IPMI_PASSWORD" = secret ] || { echo "RAKP 2 HMAC is invalid: password" >&2; exit 1; }
cd "$(dirname "$0")"
shift 9
echo "$*" >>commands
case "$*" in
    "chassis power status") echo "Chassis Power is $(cat power 2>/dev/null || echo off)" ;;
    "chassis power on" | "chassis power off") echo "$3" >power ;;
esac
"""
CONNECTION = Connection(
    host="192.0.2.7", insecure_tls=True, provider_options=ProviderOptions(ipmitool=IpmitoolOptions(port=6230))
)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ipmitool").write_text(IPMITOOL)
    (tmp_path / "ipmitool").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


async def test_a_connection_with_options_of_ipmitool_is_served_by_it(machine: Path) -> None:
    session = await connect(CONNECTION, Credentials("admin", "secret"))
    assert await session.power_state() is PowerState.OFF
    await session.operate(SetPower(PowerAction.ON))
    assert await session.power_state() is PowerState.ON
    await session.operate(SetBootDevice("pxe", persistent=False, efi_boot=True))
    assert (machine / "commands").read_text().splitlines()[-1] == "chassis bootdev pxe options=efiboot"
    await session.close()


async def test_a_wrong_password_is_reported() -> None:
    with pytest.raises(AuthenticationError, match=r"192\.0\.2\.7"):
        await connect(CONNECTION, Credentials("admin", "wrong"))


def test_its_options_have_an_effect_and_its_port_belongs_to_the_address() -> None:
    assert of_connection(CONNECTION) == []
    assert address_of(CONNECTION) == "192.0.2.7:6230"

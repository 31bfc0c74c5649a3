from __future__ import annotations

import socket
from typing import Any

import pytest

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.connection import Connection, HomeAssistantOptions, ProviderOptions, RedfishOptions, RpcOptions
from ironbell.api.bmc.machine import PowerState
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.bmc import driver as bmc
from ironbell.bmc.driver import BmcError, BmcProblem
from ironbell.controllers.rufio.connect import DriverSession, connect
from ironbell.controllers.rufio.operation import Operation, SetBootDevice, SetMedia, SetPower
from ironbell.controllers.rufio.secret import Credentials


class FakeDriver:
    """Notes calls, or fails all of them."""

    def __init__(self, error: bmc.BmcError | None = None) -> None:
        self.error = error
        self.calls: list[Any] = []

    def note(self, *call: Any) -> None:
        if self.error is not None:
            raise self.error
        self.calls.append(call)

    async def power_state(self) -> bmc.PowerState:
        self.note("power_state")
        return bmc.PowerState.ON

    async def set_power(self, command: PowerAction) -> None:
        self.note("set_power", command.value)

    async def set_boot_device(self, device: str, *, persistent: bool, efi: bool) -> None:
        self.note("set_boot_device", device, persistent, efi)

    async def insert_media(self, url: str, *, kind: str) -> None:
        self.note("insert_media", url, kind)

    async def eject_media(self, *, kind: str) -> None:
        self.note("eject_media", kind)

    async def inventory(self) -> Inventory:
        self.note("inventory")
        return Inventory()

    async def close(self) -> None:
        self.note("close")


@pytest.mark.parametrize(
    "host",
    [
        "https://10.0.0.1",
        "10.0.0.1:8443",
        "bmc:443",
        "no such host",
        "bmc/redfish",
        "",
        "a" * 64,
        "a..b",
        ".".join("a" * 63 for _ in range(5)),
    ],
)
async def test_what_is_no_host_is_refused_with_what_to_write(host: str) -> None:
    with pytest.raises(BmcError, match="is not a valid address or host name") as caught:
        await connect(Connection(host=host, insecure_tls=True), Credentials("a", "b"))
    assert caught.value.problem is BmcProblem.REJECTED


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "::1", "localhost", "LOCALHOST"])
async def test_addresses_and_names_are_hosts(host: str) -> None:
    options = ProviderOptions(redfish=RedfishOptions(port=1))
    with pytest.raises(BmcError) as caught:
        await connect(Connection(host=host, insecure_tls=True, provider_options=options), Credentials("a", "b"))
    assert caught.value.problem is BmcProblem.UNREACHABLE


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        *((SetPower(action), ("set_power", str(action))) for action in PowerAction if action != "status"),
        (SetBootDevice("pxe", persistent=True, efi_boot=False), ("set_boot_device", "pxe", True, False)),
        (SetMedia("http://a", "CD"), ("insert_media", "http://a", "CD")),
        (SetMedia("", "CD"), ("eject_media", "CD")),
    ],
)
async def test_operations_become_calls_of_the_driver(operation: Operation, call: Any) -> None:
    driver = FakeDriver()
    await DriverSession(driver).operate(operation)
    assert driver.calls == [call]


async def test_the_power_state_is_that_of_the_api() -> None:
    assert await DriverSession(FakeDriver()).power_state() is PowerState.ON


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (bmc.UnreachableError, BmcProblem.UNREACHABLE),
        (bmc.BusyError, BmcProblem.UNREACHABLE),
        (bmc.MalformedResponseError, BmcProblem.UNREACHABLE),
        (bmc.OutcomeUnknownError, BmcProblem.OUTCOME_UNKNOWN),
        (bmc.AuthenticationError, BmcProblem.AUTHENTICATION),
        (bmc.UntrustedCertificateError, BmcProblem.CERTIFICATE),
        (bmc.UnsupportedError, BmcProblem.REJECTED),
        (bmc.RejectedError, BmcProblem.REJECTED),
    ],
)
async def test_what_drivers_raise_is_sorted_by_what_can_be_done(error: type[bmc.BmcError], problem: BmcProblem) -> None:
    session = DriverSession(FakeDriver(error("10.0.0.1: no")))
    for call in (session.power_state(), session.operate(SetPower(PowerAction.ON)), session.close()):
        with pytest.raises(BmcError, match=r"10\.0\.0\.1: no") as found:
            await call
        assert found.value.problem is problem


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (ProviderOptions(rpc=RpcOptions(consumer_url="http://a")), "rpc"),
        (ProviderOptions(homeassistant=HomeAssistantOptions(switch_entity_id="a")), "homeassistant"),
    ],
)
async def test_a_driver_that_is_not_there_is_refused_by_name(options: ProviderOptions, name: str) -> None:
    connection = Connection(host="h", insecure_tls=True, provider_options=options)
    with pytest.raises(BmcError, match=name) as found:
        await connect(connection, Credentials())
    assert found.value.problem is BmcProblem.REJECTED


async def test_a_bmc_that_is_not_there_is_unreachable() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        options = ProviderOptions(redfish=RedfishOptions(port=closed.getsockname()[1]))
        connection = Connection(host="127.0.0.1", insecure_tls=True, provider_options=options)
        with pytest.raises(BmcError) as found:
            await connect(connection, Credentials("admin", "hunter2"))
    assert found.value.problem is BmcProblem.UNREACHABLE
    assert "hunter2" not in found.value.message

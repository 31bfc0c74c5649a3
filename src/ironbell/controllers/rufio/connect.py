"""Opens a session with the driver that a connection selects (`contract.servers.bmc_service`).

A connection that names one of the exclusive drivers is rejected with that name; Redfish is
not tried instead.

Source: tinkerbell/tinkerbell: rufio/internal/controller/client.go.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from ironbell.api.bmc.connection import Connection, RedfishOptions
from ironbell.api.bmc.machine import PowerState
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.bmc import driver as bmc
from ironbell.bmc import redfish
from ironbell.bmc.redfish.http import Endpoint
from ironbell.contract.servers.bmc_service import service_of
from ironbell.controllers.rufio.operation import Operation, QueryPower, SetBootDevice, SetMedia, SetPower
from ironbell.controllers.rufio.secret import Credentials

_NAME: Final = re.compile(r"[A-Za-z0-9_]([-.A-Za-z0-9_]*[A-Za-z0-9_])?\.?")

_MOST_NAME: Final = 253
_MOST_LABEL: Final = 63


async def connect(connection: Connection, credentials: Credentials) -> DriverSession:
    """Open a session. Satisfies `bmc_access.Connect`. Cancellation point.

    Raises:
        BmcError: the session cannot be opened.
    """
    options = connection.provider_options
    if options is not None and (options.rpc is not None or options.homeassistant is not None):
        name = "homeassistant" if options.homeassistant is not None else "rpc"
        message = f"spec.connection.providerOptions.{name} selects a driver that is not available; use redfish"
        raise bmc.UnsupportedError(message)
    if not _is_host(connection.host):
        message = (
            f"spec.connection.host {connection.host!r} is not a valid address or host name; write it without https://"
            " and set the port in providerOptions.redfish.port"
        )
        raise bmc.RejectedError(message)
    service = service_of(connection)
    settings = (options.redfish if options else None) or RedfishOptions()
    endpoint = Endpoint(
        host=service.host,
        port=service.port,
        username=credentials.username,
        password=credentials.password,
        insecure_tls=connection.insecure_tls,
        ca_certificate=credentials.ca_certificate,
        use_basic_auth=settings.use_basic_auth,
    )
    target = redfish.RedfishTarget(endpoint, service.system)
    return DriverSession(await redfish.connect(target))


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return _NAME.fullmatch(text) is not None and _fits(text)
    return True


def _fits(name: str) -> bool:
    """Return whether the lengths of a name and its labels are valid (RFC 1035 section 2.3.4)."""
    return len(name) <= _MOST_NAME and all(0 < len(label) <= _MOST_LABEL for label in name.removesuffix(".").split("."))


class DriverSession:
    """Adapts a driver to `bmc_access.Session`."""

    def __init__(self, driver: bmc.Driver) -> None:
        self._driver = driver

    async def power_state(self) -> PowerState:
        return await self._driver.power_state()

    async def inventory(self) -> Inventory:
        return await self._driver.inventory()

    async def close(self) -> None:
        await self._driver.close()

    async def operate(self, operation: Operation) -> None:
        if isinstance(operation, SetPower):
            await self._driver.set_power(operation.action)
        elif isinstance(operation, SetBootDevice):
            await self._driver.set_boot_device(
                operation.device, persistent=operation.persistent, efi=operation.efi_boot
            )
        elif isinstance(operation, SetMedia) and operation.url:
            await self._driver.insert_media(operation.url, kind=operation.kind)
        elif isinstance(operation, SetMedia):
            await self._driver.eject_media(kind=operation.kind)
        elif isinstance(operation, QueryPower):
            await self._driver.power_state()

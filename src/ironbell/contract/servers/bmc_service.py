"""Choice of the driver that serves a BMC's connection, and of its port. Pure.

A driver is one line in `DRIVERS`. What depends on the driver follows from `service_of`: the session that is opened and
shared, the address that the password belongs to, and the warnings about options without effect.

Source: tinkerbell/tinkerbell: rufio/internal/controller/client.go (names of drivers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.api.bmc.connection import Connection
from ironbell.base.ports import HTTPS_PORT


@dataclass(frozen=True, slots=True)
class BmcDriver:
    """A driver that a connection can select."""

    name: str
    """Its name in `providerOptions.preferredOrder`."""
    options: str
    """The field of its options in `providerOptions`."""
    port: int
    """The port of its protocol."""


@dataclass(frozen=True, slots=True)
class BmcService:
    """The service of a BMC that a connection leads to."""

    driver: BmcDriver
    host: str
    port: int
    system: str = ""
    """The system, where one service manages several."""


DRIVERS: Final = (BmcDriver("gofish", "redfish", HTTPS_PORT),)
"""In order of preference; the first one serves connections without options."""


def service_of(connection: Connection) -> BmcService:
    """Return the service of the first driver that has options in a connection, or of the first driver."""
    for driver in DRIVERS:
        options = getattr(connection.provider_options, driver.options, None)
        if options is not None:
            break
    else:
        driver, options = DRIVERS[0], None
    port = getattr(options, "port", None) or driver.port
    return BmcService(driver, connection.host, port, getattr(options, "system_name", ""))

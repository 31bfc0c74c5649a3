"""Targets of queries and operations: a BMC with its connection and the versions of its Secrets; queries and timeouts.

A target is a value: a changed connection or Secret is another target, so that a failed query is repeated at once, and a
session with old credentials is no longer used. Slow BMCs need up to 30 s for a single response.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import msgspec

from ironbell.api.bmc.connection import Connection
from ironbell.api.bmc.machine import PowerState
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.controllers.rufio.secret import references
from ironbell.kube.decision import Query
from ironbell.kube.reconciler import Cache
from ironbell.provisioner.bmc_address import Pin

TURN_TIMEOUT_S: Final = 60.0
"""Waiting for other calls to the same BMC."""
CONNECT_TIMEOUT_S: Final = 60.0
"""A login, and the first requests of a driver."""
CALL_TIMEOUT_S: Final = 75.0
"""One query or operation, including the requests that a driver sends before it."""
INVENTORY_CALL_TIMEOUT_S: Final = 300.0
"""The inventory of a server, which takes dozens of requests."""
CLOSE_TIMEOUT_S: Final = 5.0
USE_TIMEOUT_S: Final = TURN_TIMEOUT_S + CALL_TIMEOUT_S + CONNECT_TIMEOUT_S + CALL_TIMEOUT_S
"""A call in all, including the second attempt after the session had expired."""
INVENTORY_TIMEOUT_S: Final = TURN_TIMEOUT_S + CONNECT_TIMEOUT_S + 2 * INVENTORY_CALL_TIMEOUT_S
EFFECT_TIMEOUT_S: Final = USE_TIMEOUT_S + 15.0
"""A little more, so that the outcome can be stored."""

_decoder = msgspec.json.Decoder(Connection)


@dataclass(frozen=True, slots=True)
class Target:
    """A BMC as one connection reaches it."""

    namespace: str
    """Namespace of Secrets that the connection names without one."""
    encoded: str = field(repr=False)
    """The connection as JSON, which is hashable. It may hold static headers, which can be secret."""
    secrets: tuple[str, ...] = ()
    """resourceVersions of the Secrets; empty for a Secret that does not exist."""
    pin: Pin | None = None
    """The address to which the password may be sent; None if it is not recorded."""

    @property
    def connection(self) -> Connection:
        return _decoder.decode(self.encoded)


@dataclass(frozen=True, slots=True)
class PowerOf(Query[PowerState]):
    """The power state of a server. A reconciler ignores results that are older than its object."""

    subject: ClassVar[str] = "the power state"

    target: Target


@dataclass(frozen=True, slots=True)
class InventoryOf(Query[Inventory]):
    """The hardware of a server."""

    subject: ClassVar[str] = "the inventory of the server"

    target: Target
    uid: str
    """UID of the bmc Machine. A reconciler ignores results that are older than its object."""


def target_of(connection: Connection, namespace: str, cache: Cache, pin: Pin | None = None) -> Target:
    """The target of a connection, with the cached versions of its Secrets; its password is sent to `pin` only."""
    secrets = [cache.get(SECRET_METADATA, *key) for key in references(connection, namespace)]
    versions = tuple(secret.metadata.resource_version if secret is not None else "" for secret in secrets)
    return Target(namespace, msgspec.json.encode(connection).decode(), versions, pin)


def secret_keys(connection: Connection | None, namespace: str) -> Sequence[str]:
    """Index values of an object with a connection, by which changed Secrets find it."""
    return ["/".join(key) for key in references(connection, namespace)] if connection is not None else []

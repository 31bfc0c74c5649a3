"""Which BMC is meant, with which connection and which version of its Secrets; and the question for its power state.

A target is a value: another connection or a corrected Secret makes another target, so that a question that failed is
asked anew at once, and a session that was opened with old credentials is not used any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from ironbell.api.bmc.connection import Connection
from ironbell.api.bmc.machine import PowerState
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.controllers.rufio.secret import references
from ironbell.kube.decision import Query
from ironbell.kube.reconciler import Cache
from ironbell.provisioner.bmc_address import Pin

_decoder = msgspec.json.Decoder(Connection)


@dataclass(frozen=True, slots=True)
class Target:
    """One BMC as one connection reaches it."""

    namespace: str
    """Where Secrets are that the connection names without a namespace."""
    encoded: str = field(repr=False)
    """The connection as JSON: hashable. It may hold static headers, which are nobody's business."""
    secrets: tuple[str, ...] = ()
    """resourceVersions of the Secrets, empty for one that does not exist."""
    pin: Pin | None = None
    """Where the password may be sent; None if that is not recorded."""

    @property
    def connection(self) -> Connection:
        return _decoder.decode(self.encoded)


@dataclass(frozen=True, slots=True)
class PowerOf(Query[PowerState]):
    """The power state of the machine behind a BMC. Who asks accepts no answer from before its own object existed."""

    subject: ClassVar[str] = "the power state"

    target: Target


@dataclass(frozen=True, slots=True)
class InventoryOf(Query[Inventory]):
    """The parts of the machine behind a BMC."""

    subject: ClassVar[str] = "the inventory of the server"

    target: Target
    uid: str
    """Of the bmc Machine. Who asks accepts no answer from before its own object existed."""


def target_of(connection: Connection, namespace: str, cache: Cache, pin: Pin | None = None) -> Target:
    """The target of a connection, as the caches know its Secrets; `pin` is where its password may be sent."""
    secrets = [cache.get(SECRET_METADATA, *key) for key in references(connection, namespace)]
    versions = tuple(secret.metadata.resource_version if secret is not None else "" for secret in secrets)
    return Target(namespace, msgspec.json.encode(connection).decode(), versions, pin)


def secret_keys(connection: Connection | None, namespace: str) -> Sequence[str]:
    """Index values under which an object with a connection is found when a Secret changes."""
    return ["/".join(key) for key in references(connection, namespace)] if connection is not None else []

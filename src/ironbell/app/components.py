"""The parts of Ironbell that run by themselves on a cluster: their names, and what each may do with the API.

Names are the field's newer ones; the older ones are understood. A group stands for all its members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import chain

from ironbell.app.systems import SYSTEMS
from ironbell.app.wire.config import SMEE, TINK_SERVER, TOOTLES
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.access import READ, Grant, PolicyRule, PolicyRules, may, policy_rules
from ironbell.contract.system import System


def _events() -> Grant:
    from ironbell.api.core.event import EVENT

    return may(EVENT, "create", "patch")


def _boot_permissions() -> list[Grant]:
    from ironbell.api.tinkerbell import HARDWARE

    # Which fields of a Hardware: app.write_rules. Admission rejects all others.
    return [may(HARDWARE, *READ), may(HARDWARE, "patch"), _events()]


def _metadata_permissions() -> list[Grant]:
    from ironbell.api.tinkerbell import HARDWARE, WORKFLOW

    return [may(HARDWARE, *READ), may(HARDWARE, "patch"), may(WORKFLOW, *READ), _events()]


def _workflow_permissions() -> list[Grant]:
    from ironbell.api.tinkerbell import HARDWARE, WORKFLOW

    reads = [may(HARDWARE, *READ), may(HARDWARE, "patch"), may(WORKFLOW, *READ)]
    return [*reads, may(WORKFLOW, "patch", status=True)]


class UnknownComponentError(IronbellError):
    """A word names no component."""

    reason = "UnknownComponent"
    retry = Retry.NEVER


class Role(Enum):
    """Ways in which components run."""

    CONTROLLERS = "controllers"
    """One replica at a time works; it speaks to the API alone (and to BMCs)."""
    SERVER = "server"
    """Every replica works; it speaks to machines."""


@dataclass(frozen=True)
class Component:
    """One component."""

    name: str
    summary: str
    role: Role
    aliases: tuple[str, ...] = ()
    system: System | None = field(default=None, compare=False)
    """The system whose controllers it runs; None for a server."""
    permissions: Callable[[], Sequence[Grant]] = list
    """Permissions of a server at the API; a system states its own."""

    @cached_property
    def rules(self) -> PolicyRules:
        """Permissions of the component at the API."""
        if self.system is None:
            return policy_rules(self.permissions())
        permissions = self.system.permissions.load()
        written = chain.from_iterable(permissions.writes.values())
        return [*permissions.reads, *permissions.reviews, *written, *policy_rules([_events()])]


def _component(system: System) -> Component:
    return Component(system.name, system.summary, Role.CONTROLLERS, system.aliases, system)


COMPONENTS = (
    *map(_component, SYSTEMS),
    Component(
        SMEE,
        "DHCP, TFTP, iPXE scripts and the in-memory OS over HTTP.",
        Role.SERVER,
        ("boots",),
        permissions=_boot_permissions,
    ),
    Component(
        TOOTLES,
        "Metadata and user data of machines over HTTP.",
        Role.SERVER,
        ("hegel",),
        permissions=_metadata_permissions,
    ),
    Component(
        TINK_SERVER,
        "The workflow service, which serves actions to agents over gRPC.",
        Role.SERVER,
        permissions=_workflow_permissions,
    ),
)
GROUPS = {"controllers": Role.CONTROLLERS, "wire": Role.SERVER}
"""A group's name, and whose it is."""


def members(word: str) -> tuple[Component, ...]:
    """The components that a word means.

    Raises:
        UnknownComponentError: none.
    """
    if word in GROUPS:
        return tuple(component for component in COMPONENTS if component.role is GROUPS[word])
    for component in COMPONENTS:
        if word in {component.name, *component.aliases}:
            return (component,)
    known = ", ".join([*(component.name for component in COMPONENTS), *GROUPS])
    raise UnknownComponentError(f"{word!r} is not a component; known components: {known}")


def components_named(words: Iterable[str]) -> tuple[Component, ...]:
    """All that the words mean, each once, in a fixed order.

    Raises:
        UnknownComponentError: a word means none.
    """
    names = {component.name for word in words for component in members(word)}
    return tuple(component for component in COMPONENTS if component.name in names)


def rules_of(components: Iterable[Component]) -> PolicyRules:
    """The union of what components may do, each rule once."""
    rules: list[PolicyRule] = []
    for rule in chain.from_iterable(component.rules for component in components):
        if rule not in rules:
            rules.append(rule)
    return rules

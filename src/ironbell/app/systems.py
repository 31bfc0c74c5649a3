"""All controller systems of Ironbell. Everything else about them is derived from this list.

A new system is one folder below `controllers` and one line here (docs/contributing).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from ironbell.contract.system import Definitions, Lazy, System

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ironbell.kube.decision import AnyKind

_FOLDERS: Final = (
    "tink",
    "rufio",
    "capi",
    "kubeadm",
    "capt",
    "ipam",
)
"""Folders below `controllers`, in the order of all lists of systems; the module `system` of each defines its own."""
SYSTEMS: Final[tuple[System, ...]] = tuple(
    system for folder in _FOLDERS for system in import_module(f"ironbell.controllers.{folder}.system").SYSTEMS
)

_INVENTORY: Final[Lazy[Sequence[AnyKind]]] = Lazy("ironbell.api.clusterctl", "KINDS")
"""Kinds that clusterctl reads, whatever providers run."""
_GROUPS: Final = (
    "tinkerbell.org",
    "bmc.tinkerbell.org",
    "cluster.x-k8s.io",
    "bootstrap.cluster.x-k8s.io",
    "controlplane.cluster.x-k8s.io",
    "addons.cluster.x-k8s.io",
    "ipam.cluster.x-k8s.io",
    "runtime.cluster.x-k8s.io",
    "clusterctl.cluster.x-k8s.io",
    "infrastructure.cluster.x-k8s.io",
)
"""The order of API groups in lists; others follow."""


def systems_without(names: Collection[str]) -> list[System]:
    """All systems but those that are left out."""
    return [system for system in SYSTEMS if system.name not in names]


def answered_by(system: System) -> list[System]:
    """The systems whose kinds' webhooks a system's process answers."""
    return [other for other in SYSTEMS if other.admission is not None and other.answering == system.name]


def answers_webhooks(system: System) -> bool:
    """Return whether a system's process answers any webhooks."""
    return system.answers_engine_webhooks or bool(answered_by(system))


def converted_in(systems: Iterable[System]) -> frozenset[str]:
    """Names of the definitions whose objects these systems convert."""
    return frozenset[str]().union(*(system.converted for system in systems))


def kinds_of(systems: Iterable[System], *, inventory: bool = False) -> list[AnyKind]:
    """Import the kinds that systems define, and with `inventory` those of clusterctl's inventory of providers; in the
    order of their groups."""
    kinds = [kind for system in systems for kind in system.load_kinds()]
    kinds += _INVENTORY.load() if inventory else ()
    return sorted(kinds, key=lambda kind: _GROUPS.index(kind.group) if kind.group in _GROUPS else len(_GROUPS))


def all_kinds() -> list[AnyKind]:
    """Import all kinds that Ironbell defines; Kubernetes' own need no definitions."""
    return kinds_of(SYSTEMS, inventory=True)


def engine_kinds() -> list[AnyKind]:
    """Import the kinds that servers for machines need, whatever controllers run."""
    return kinds_of(system for system in SYSTEMS if system.definitions is Definitions.ALWAYS)

"""Installations come in waves: so many servers of a rack are powered on and fetch their image at the same time. Pure.

An owner's rack is the failure domain of its server, or else the switch that the server is connected to. Those that
have begun count for an hour, so that servers that never come up do not keep the others; of those that wait, who has
waited longest goes first. A BMC does one Job at a time without this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from ironbell.api.meta import Resource
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.paused import PAUSED
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.lifecycle.names import INSTALL_ATTEMPT, INSTALL_BEGUN, RACK, State
from ironbell.provisioner.lifecycle.owner import OwnerKind
from ironbell.provisioner.lifecycle.queue import queue_order
from ironbell.provisioner.node_images import IMAGE_REASONS

COUNTS_S: Final = 3600.0
"""As long as the default template gives the image to be written."""
_SWITCH: Final = "ironbell.dev/switch"
_PAST: Final = frozenset({State.BOOTING, State.RUNNING, State.FAILED})
_STANDS: Final = frozenset({"HardwareHeld", "HardwareNotConfirmed", "HardwareUnusable", *IMAGE_REASONS})
"""Reasons of owners that will not begin, and stand in nobody's way."""


def rack_of(hardware: Hardware, failure_domain_label: str) -> str:
    """Return a server's rack as `LABEL=VALUE`; empty if it is not known."""
    labels = hardware.metadata.labels
    found = (name for name in (failure_domain_label, _SWITCH) if name and labels.get(name))
    return next((f"{name}={labels[name]}" for name in found), "")


@dataclass(frozen=True, slots=True)
class Wave:
    """What goes on in an owner's rack beside it."""

    rack: str = ""
    begun: tuple[str, ...] = ()
    """When each of those was begun that are not through yet."""
    before: int = 0
    """Of those that have not begun, how many go first."""

    def waits(self, at_once: int, now: datetime) -> str:
        """Return why the owner does not begin yet; empty if it may. `at_once` 0 is no bound."""
        begun = sum(_counts(since, now) for since in self.begun)
        if not self.rack or not at_once or begun + self.before < at_once:
            return ""
        label, _, value = self.rack.partition("=")
        where = f"{label.rpartition('/')[2]} {value}"
        more = f", and {self.before} go first" if self.before else ""
        return f"waits for its turn: {begun} of {where} are being powered on{more}"


NO_WAVE: Final = Wave()
"""Of an owner whose rack is not known, or that has begun."""


@dataclass(frozen=True)
class Waves:
    """The waves of one kind of owner."""

    owners: OwnerKind

    @cached_property
    def in_rack(self) -> Index[Any]:
        """Owners that are being installed, or are about to be, by rack."""
        return Index(self.owners.kind, "rack", self._racks)

    def of(self, cache: Cache, obj: Any) -> Wave:
        """Return the wave of an owner that has not begun."""
        rack = obj.metadata.annotations.get(RACK, "")
        if not rack or self.owners.status_of(obj).is_ready or _has_begun(obj):
            return NO_WAVE
        others = [other for other in cache.indexed(self.in_rack, rack) if other.key != obj.key]
        begun = tuple(other.metadata.annotations.get(INSTALL_BEGUN, "") for other in others if _has_begun(other))
        order = queue_order(obj)
        return Wave(rack, begun, sum(not _has_begun(other) and queue_order(other) < order for other in others))

    def left(self, old: Any, new: Any) -> bool:
        """Return whether an owner takes part in no wave any more."""
        return old is not None and bool(self._racks(old)) and (new is None or not self._racks(new))

    def next(self, obj: Any, cache: Cache) -> Iterable[Key]:
        """Return who may begin in an owner's place."""
        for rack in self._racks(obj):
            waiting = [one for one in cache.indexed(self.in_rack, rack) if not _has_begun(one) and one.key != obj.key]
            if waiting:
                yield min(waiting, key=queue_order).key

    def _racks(self, obj: Any) -> list[str]:
        rack, status = obj.metadata.annotations.get(RACK), self.owners.status_of(obj)
        if not rack or status.is_ready or is_deleting(obj) or status.phase in _PAST:
            return []
        ready = find_condition(status.conditions, "Ready")
        stands = is_true(status.conditions, PAUSED) or (ready is not None and ready.reason in _STANDS)
        return [] if stands else [rack]


def _counts(begun: str, now: datetime) -> bool:
    try:
        return (now - parse_rfc3339(begun)).total_seconds() < COUNTS_S
    except ValueError:
        return False


def _has_begun(obj: Resource) -> bool:
    return INSTALL_ATTEMPT in obj.metadata.annotations

"""Installations come in waves: so many servers of a rack are powered on and fetch their image at the same time. Pure.

A machine's rack is the failure domain of its server, or else the switch that the server is connected to. Those that
have begun count for an hour, so that servers that never come up do not keep the others; of those that wait, who has
waited longest goes first. A BMC does one Job at a time without this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.paused import PAUSED
from ironbell.controllers.capt.conditions import READY
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.lifecycle.names import INSTALL_ATTEMPT, INSTALL_BEGUN, RACK, WANTED_SINCE, State
from ironbell.provisioner.node_images import IMAGE_REASONS

COUNTS_S: Final = 3600.0
"""As long as the default template gives the image to be written."""
_SWITCH: Final = "ironbell.dev/switch"
_PAST: Final = frozenset({State.BOOTING, State.RUNNING, State.FAILED})
_STANDS: Final = frozenset({"HardwareHeld", "HardwareNotConfirmed", "HardwareUnusable", *IMAGE_REASONS})
"""Reasons of machines that will not begin, and stand in nobody's way."""


def rack_of(hardware: Hardware, infrastructure: TinkerbellCluster) -> str:
    """`LABEL=VALUE`; empty if it is not known."""
    labels = hardware.metadata.labels
    found = (name for name in (infrastructure.spec.failure_domain_label, _SWITCH) if name and labels.get(name))
    return next((f"{name}={labels[name]}" for name in found), "")


def _to_install(obj: TinkerbellMachine) -> list[str]:
    rack = obj.metadata.annotations.get(RACK)
    if not rack or obj.status.ready or is_deleting(obj) or obj.status.instance_state in _PAST:
        return []
    ready = find_condition(obj.status.conditions, READY)
    stands = is_true(obj.status.conditions, PAUSED) or (ready is not None and ready.reason in _STANDS)
    return [] if stands else [rack]


IN_RACK: Final = Index(TINKERBELL_MACHINE, "capt-rack", _to_install)
"""Machines that are being installed, or are about to be, by rack."""


@dataclass(frozen=True, slots=True)
class Wave:
    """What goes on in a machine's rack beside it."""

    rack: str = ""
    begun: tuple[str, ...] = ()
    """When each of those was begun that are not through yet."""
    before: int = 0
    """Of those that have not begun, how many go first."""

    def waits(self, at_once: int, now: datetime) -> str:
        """Why the machine does not begin yet; empty if it may. `at_once` 0 is no bound."""
        begun = sum(_counts(one, now) for one in self.begun)
        if not self.rack or not at_once or begun + self.before < at_once:
            return ""
        label, _, value = self.rack.partition("=")
        where = f"{label.rpartition('/')[2]} {value}"
        more = f", and {self.before} go first" if self.before else ""
        return f"waits for its turn: {begun} of {where} are being powered on{more}"


NOTHING: Final = Wave()
"""Of a machine whose rack is not known, or that has begun."""


def wave_of(cache: Cache, obj: TinkerbellMachine) -> Wave:
    """The wave of a machine that has not begun."""
    rack = obj.metadata.annotations.get(RACK, "")
    if not rack or obj.status.ready or _has_begun(obj):
        return NOTHING
    others = [one for one in cache.indexed(IN_RACK, rack) if one.key != obj.key]
    begun = tuple(one.metadata.annotations.get(INSTALL_BEGUN, "") for one in others if _has_begun(one))
    return Wave(rack, begun, sum(not _has_begun(one) and _order(one) < _order(obj) for one in others))


def _counts(begun: str, now: datetime) -> bool:
    try:
        return (now - parse_rfc3339(begun)).total_seconds() < COUNTS_S
    except ValueError:
        return False


def leaves(old: TinkerbellMachine | None, new: TinkerbellMachine | None) -> bool:
    """Whether a machine takes part in no wave any more."""
    return old is not None and bool(_to_install(old)) and (new is None or not _to_install(new))


def next_in(obj: TinkerbellMachine, cache: Cache) -> Iterable[Key]:
    """Who may begin in its place."""
    for rack in _to_install(obj):
        waiting = [one for one in cache.indexed(IN_RACK, rack) if not _has_begun(one) and one.key != obj.key]
        if waiting:
            yield min(waiting, key=_order).key


def _has_begun(obj: TinkerbellMachine) -> bool:
    return INSTALL_ATTEMPT in obj.metadata.annotations


def _order(obj: TinkerbellMachine) -> tuple[str, Key]:
    return obj.metadata.annotations.get(WANTED_SINCE, "~"), obj.key

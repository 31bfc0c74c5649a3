"""Waves: the limit of servers of a rack that are powered on at the same time to be installed, wiped or restarted. Pure.

An owner's rack is the failure domain of its server, or else the switch that the server is connected to. Work that needs
the rack's power and network is counted: an installation until its image is written, a wipe until the agent has started
it, a power cycle until it has completed. Each is counted for an hour at most, so that servers that never boot do not
block the others. Of the owners of one kind, the one that has waited longest is next. Controllers of different kinds
that start at the same moment may exceed the limit, because each observes only work that has started. A BMC runs one Job
at a time in any case.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from ironbell.api.bmc.job import JOB, Job
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.clusters.paused import PAUSED
from ironbell.contract.servers.inventory_labels import SWITCH
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.disks import has_started
from ironbell.provisioner.lifecycle.created import TERMINAL, has_finished, wipe_name
from ironbell.provisioner.lifecycle.names import INSTALL_ATTEMPT, INSTALL_BEGUN, RACK, WIPE_ATTEMPT, State
from ironbell.provisioner.lifecycle.owner import OwnerKind
from ironbell.provisioner.lifecycle.queue import queue_order
from ironbell.provisioner.node_images import IMAGE_REASONS

COUNTS_S: Final = 3600.0
"""Time for which work is counted: the timeout of the default template for writing the image."""
RECHECK_S: Final = 300.0
"""Interval at which an owner checks whether it is next, even if no event woke it."""
_BOOTED_PHASES: Final = frozenset({State.BOOTING, State.RUNNING, State.FAILED})
_BLOCKED_REASONS: Final = frozenset({"HardwareHeld", "HardwareNotConfirmed", "HardwareUnusable", *IMAGE_REASONS})
"""Reasons of owners that will not start, and block no others."""
_NO_WIPE_REASONS: Final = frozenset(
    {
        *("Wiped", "NotWiped", "InvalidWipePolicy", "KeepDisksUnknown"),
        *("TemplateNotFound", "ForeignTemplate", "ForeignWorkflow"),
    }
)
"""Reasons of owners that release their server without a wipe, or without one yet."""


def rack_of(hardware: Hardware, failure_domain_label: str) -> str:
    """Return a server's rack as `LABEL=VALUE`; empty if it is not known."""
    labels = hardware.metadata.labels
    known = (name for name in (failure_domain_label, SWITCH) if name and labels.get(name))
    return next((f"{name}={labels[name]}" for name in known), "")


def _rack_of_workflow(workflow: Workflow) -> list[str]:
    annotations = workflow.metadata.annotations
    if RACK not in annotations or workflow.status.state in TERMINAL or is_deleting(workflow):
        return []
    is_wipe = INSTALL_BEGUN not in annotations
    return [] if is_wipe and has_started(workflow) else [annotations[RACK]]


def _rack_of_job(job: Job) -> list[str]:
    rack = job.metadata.annotations.get(RACK)
    return [rack] if rack and not has_finished(job) and not is_deleting(job) else []


WORKFLOWS_IN_RACK: Final[Index[Workflow]] = Index(WORKFLOW, "rack", _rack_of_workflow)
"""Running installations and wipes of all owners, by rack."""
JOBS_IN_RACK: Final[Index[Job]] = Index(JOB, "rack", _rack_of_job)
"""Running power cycles, by rack."""
IN_RACK: Final = (WORKFLOWS_IN_RACK, JOBS_IN_RACK)


def work_in_rack(cache: Cache, rack: str) -> dict[Key, str]:
    """Return the start times of running work in a rack, by server; of power cycles, by Job."""
    begun = {job.key: job.metadata.creation_timestamp or "" for job in cache.indexed(JOBS_IN_RACK, rack)}
    for workflow in cache.indexed(WORKFLOWS_IN_RACK, rack):
        server = (workflow.metadata.namespace, workflow.spec.hardware_ref)
        begun[server] = workflow.metadata.creation_timestamp or ""
    return begun


def work_finished(old: Workflow | Job | None, new: Workflow | Job | None) -> bool:
    """Return whether a Workflow or a Job is no longer counted in its rack."""
    return bool(_racks_of(old)) and not _racks_of(new)


def rack_of_work(work: Workflow | Job) -> str:
    """Return the rack in which a Workflow or a Job is or was counted; empty for others."""
    return work.metadata.annotations.get(RACK, "")


def _racks_of(work: Workflow | Job | None) -> list[str]:
    if work is None:
        return []
    return _rack_of_job(work) if isinstance(work, Job) else _rack_of_workflow(work)


@dataclass(frozen=True, slots=True)
class Wave:
    """The other work in a server's rack."""

    rack: str = ""
    begun: tuple[str, ...] = ()
    """Start times of running work."""
    ahead: int = 0
    """Number of installations that have not started and precede the server."""
    wipes_before: tuple[str, ...] = ()
    """Times since which wipes that precede the server wait for their start; they are counted for an hour as well."""

    def waits(self, at_once: int, now: datetime) -> str:
        """The reason why the server is not powered on yet; empty if it may be. `at_once` is the limit, 0 for none."""
        begun = sum(_counts(since, now) for since in self.begun)
        ahead = self.ahead + sum(_counts(since, now) for since in self.wipes_before)
        if not self.rack or not at_once or begun + ahead < at_once:
            return ""
        label, _, value = self.rack.partition("=")
        where = f"{label.rpartition('/')[2]} {value}"
        more = f", and {ahead} precede it" if ahead else ""
        servers = "1 server of" if begun == 1 else f"{begun} servers of"
        return f"Waiting for the rack: {servers} {where} {'is' if begun == 1 else 'are'} being powered on{more}."


NO_WAVE: Final = Wave()
"""The wave of a server whose rack is unknown, or without work to start."""


@dataclass(frozen=True)
class Waves:
    """The waves of one kind of owner."""

    owners: OwnerKind

    @cached_property
    def in_rack(self) -> Index[Any]:
        """Owners whose servers are being installed or wiped, or are about to be, by rack."""
        return Index(self.owners.kind, "rack", self._racks)

    def of(self, cache: Cache, obj: Any) -> Wave:
        """Return the wave of an owner whose work has not started."""
        rack, own = obj.metadata.annotations.get(RACK, ""), self.owners.status_of(obj)
        if not rack or (own.is_ready and not is_deleting(obj)) or self._has_begun(cache, obj):
            return NO_WAVE
        begun, ahead, wipes, order = work_in_rack(cache, rack), 0, [], _order(obj)
        for other in cache.indexed(self.in_rack, rack):
            if other.key == obj.key:
                continue
            if not self._has_begun(cache, other):
                ahead += not is_deleting(other) and _order(other) < order
                wipes += [other.metadata.deletion_timestamp] if is_deleting(other) and _order(other) < order else []
            elif not is_deleting(other):
                server = self.owners.status_of(other).server or other.key
                begun[server] = other.metadata.annotations.get(INSTALL_BEGUN, "")
        begun.pop(own.server or obj.key, None)
        return Wave(rack, tuple(begun.values()), ahead, tuple(wipes))

    def left(self, old: Any, new: Any) -> bool:
        """Return whether an owner is no longer counted in a wave."""
        return old is not None and bool(self._racks(old)) and (new is None or not self._racks(new))

    def next(self, obj: Any, cache: Cache) -> Iterable[Key]:
        """Return the owners that may start in an owner's place."""
        for rack in self._racks(obj):
            yield from self._next(cache, rack, obj.key)

    def next_after(self, work: Workflow | Job, cache: Cache) -> Iterable[Key]:
        """Return the owners that may start once a Workflow or a Job is no longer counted."""
        return self._next(cache, rack_of_work(work), ("", ""))

    def _next(self, cache: Cache, rack: str, excluded: Key) -> list[Key]:
        owners = cache.indexed(self.in_rack, rack) if rack else ()
        waiting = [obj for obj in owners if obj.key != excluded and not self._has_begun(cache, obj)]
        return [min(waiting, key=_order).key] if waiting else []

    def _racks(self, obj: Any) -> list[str]:
        rack, status = obj.metadata.annotations.get(RACK), self.owners.status_of(obj)
        ready = find_condition(status.conditions, "Ready")
        reason = ready.reason if ready is not None else ""
        if not rack or reason in _BLOCKED_REASONS or is_true(status.conditions, PAUSED):
            return []
        if is_deleting(obj):
            is_counted = (
                status.server is not None and status.phase != State.POWERING_OFF and reason not in _NO_WIPE_REASONS
            )
        else:
            is_counted = not status.is_ready and status.phase not in _BOOTED_PHASES
        return [rack] if is_counted else []

    def _has_begun(self, cache: Cache, obj: Any) -> bool:
        """Return whether its installation was started, or its wipe if it releases its server."""
        annotations, server = obj.metadata.annotations, self.owners.status_of(obj).server
        if not is_deleting(obj):
            return INSTALL_ATTEMPT in annotations
        is_begun = server is not None and cache.get(WORKFLOW, server[0], wipe_name(obj)) is not None
        return WIPE_ATTEMPT in annotations or is_begun


def _order(obj: Any) -> tuple[str, Key]:
    """Sort key of owners, by the time since which they wait."""
    return obj.metadata.deletion_timestamp or queue_order(obj)[0], obj.key


def _counts(begun: str, now: datetime) -> bool:
    try:
        return (now - parse_rfc3339(begun)).total_seconds() < COUNTS_S
    except ValueError:
        return False

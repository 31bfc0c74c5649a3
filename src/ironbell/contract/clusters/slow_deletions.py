"""Machines whose deletion takes long, and why, as they and their owners report it. Pure.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller_status.go,
core/reconcilers/machine/machine_controller_status.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from ironbell.api.cluster.machine import Machine
from ironbell.base.clock import parse_rfc3339
from ironbell.base.listing import listed
from ironbell.kube.conditions import find_condition
from ironbell.kube.finalizers import is_deleting

STALE_AFTER: Final = timedelta(minutes=15)
"""Time after which a deletion is reported to take long."""
_DRAINS_LONG: Final = timedelta(minutes=5)
_DRAINING: Final = "DrainingNode"
_CAUSES: Final = (
    ("cannot evict pod as it would violate the pod's disruption budget.", "PodDisruptionBudgets"),
    ("deletionTimestamp set, but still not removed from the Node", "Pods not terminating"),
    ("failed to evict Pod", "Pod eviction errors"),
    ("waiting for completion", "Pods not completed yet"),
)
"""Texts in the message of a drain, each with the likely cause of the delay."""


def stale_message(machines: Iterable[Machine], now: datetime) -> str:
    """The message that Machines take long to be deleted, with the likely causes; empty if none does."""
    stale = [machine for machine in machines if _since(machine.metadata.deletion_timestamp, now) > STALE_AFTER]
    if not stale:
        return ""
    subject = "Machine {} is" if len(stale) == 1 else "Machines {} are"
    names = listed(sorted(machine.metadata.name for machine in stale))
    return f"{subject.format(names)} in deletion since more than 15m{_likely_causes(map(_of, stale), now)}"


def delay_causes(reason: str, message: str, drain_started: str | None, now: datetime) -> str:
    """The end of a sentence about a slow deletion: its likely causes; empty if none is known.

    Args:
        reason: of the Machine's condition Deleting.
        message: of the Machine's condition Deleting.
        drain_started: when the drain of the Machine's Node began.
        now: the time.
    """
    return _likely_causes([(reason, message, drain_started)], now)


def next_stale_s(machines: Iterable[Machine], now: datetime) -> float | None:
    """Seconds until the next Machine has been in deletion for long; None if there is none."""
    waits = [STALE_AFTER - _since(m.metadata.deletion_timestamp, now) for m in machines if is_deleting(m)]
    ahead = [wait.total_seconds() for wait in waits if wait >= timedelta(0)]
    return min(ahead) + 1.0 if ahead else None


def _of(machine: Machine) -> tuple[str, str, str | None]:
    condition, deletion = find_condition(machine.status.conditions, "Deleting"), machine.status.deletion
    if condition is None or condition.status != "True" or deletion is None:
        return "", "", None
    return condition.reason, condition.message, deletion.node_drain_start_time


def _likely_causes(drains: Iterable[tuple[str, str, str | None]], now: datetime) -> str:
    texts = [text for reason, text, since in drains if reason == _DRAINING and _since(since, now) > _DRAINS_LONG]
    causes = [cause for mark, cause in _CAUSES if any(mark in text for text in texts)]
    return f", delay likely due to {', '.join(causes)}" if causes else ""


def _since(moment: str | None, now: datetime) -> timedelta:
    return now - parse_rfc3339(moment) if moment else timedelta(0)

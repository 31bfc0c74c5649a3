"""What owners of Machines say about them: which are well, which are stuck, which versions they run.

Source: kubernetes-sigs/cluster-api: util/collections/machine_filters.go, internal/util/version/version.go,
core/reconcilers/machineset/machineset_controller_status.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from ironbell.api.cluster.common import StatusVersion
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_UPDATE_IN_PROGRESS
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.clusters.versions import sort_key
from ironbell.kube.conditions import find_condition
from ironbell.kube.finalizers import is_deleting

STALE_AFTER: Final = timedelta(minutes=15)
"""How long a Machine may be in deletion before its owner says so."""
_DRAINS_LONG: Final = timedelta(minutes=5)
_YOUNG: Final = timedelta(seconds=10)
_DELAYS: Final = (
    ("cannot evict pod as it would violate the pod's disruption budget.", "PodDisruptionBudgets"),
    ("deletionTimestamp set, but still not removed from the Node", "Pods not terminating"),
    ("failed to evict Pod", "Pod eviction errors"),
    ("waiting for completion", "Pods not completed yet"),
)
_NAMES_SHOWN: Final = 3


def status_of(machine: Machine, condition_type: str) -> str:
    """The status of a condition, empty if it is not there."""
    for condition in machine.status.conditions:
        if condition.type == condition_type:
            return condition.status
    return ""


def is_true(machine: Machine, condition_type: str) -> bool:
    return status_of(machine, condition_type) == "True"


def is_false(machine: Machine, condition_type: str) -> bool:
    return status_of(machine, condition_type) == "False"


def has_node(machine: Machine) -> bool:
    """Whether its Node was found."""
    return bool(machine.status.node_ref.name)


def is_unhealthy(machine: Machine) -> bool:
    """Whether a health check found something wrong."""
    return is_false(machine, "HealthCheckSucceeded")


def is_to_be_remediated(machine: Machine) -> bool:
    """Whether its owner is to replace it."""
    return is_unhealthy(machine) and is_false(machine, "OwnerRemediated")


def is_updating(machine: Machine) -> bool:
    """Whether it is being changed in place."""
    return ANNOTATION_UPDATE_IN_PROGRESS in machine.metadata.annotations


def counts_for_up_to_date(machine: Machine, now: datetime) -> bool:
    """Whether UpToDate is expected of it: very young Machines do not say it yet."""
    created = machine.metadata.creation_timestamp
    if status_of(machine, "UpToDate"):
        return True
    return created is not None and now - parse_rfc3339(created) > _YOUNG


def younger_until_s(machines: Iterable[Machine], now: datetime) -> float | None:
    """Seconds until the first of the Machines is expected to say UpToDate; None when none is so young."""
    waiting = [
        (parse_rfc3339(machine.metadata.creation_timestamp) + _YOUNG - now).total_seconds()
        for machine in machines
        if machine.metadata.creation_timestamp and not counts_for_up_to_date(machine, now)
    ]
    return max(min(waiting), 0.0) + 0.1 if waiting else None


def named(names: Iterable[str], shown: int = _NAMES_SHOWN) -> str:
    """Names in order, the first few of them."""
    ordered = sorted(names)
    more = [f"... ({len(ordered) - shown} more)"] if len(ordered) > shown else []
    return ", ".join([*ordered[:shown], *more])


def unhealthy_message(machines: Iterable[Machine], who: str) -> str:
    """That Machines are not healthy and nobody will replace them; empty when all are well."""
    names = [machine.metadata.name for machine in machines if is_unhealthy(machine)]
    if not names:
        return ""
    subject = "Machine {} is" if len(names) == 1 else "Machines {} are"
    return f"{subject.format(named(names))} not healthy (not to be remediated{who})"


def stale_message(machines: Iterable[Machine], now: datetime) -> str:
    """That Machines take long to go, with what likely holds them; empty when none does."""
    stale = [machine for machine in machines if _since(machine.metadata.deletion_timestamp, now) > STALE_AFTER]
    if not stale:
        return ""
    subject = "Machine {} is" if len(stale) == 1 else "Machines {} are"
    message = subject.format(named(machine.metadata.name for machine in stale)) + " in deletion since more than 15m"
    texts = [_drain_message(machine, now) for machine in stale]
    reasons = [reason for mark, reason in _DELAYS if any(mark in text for text in texts)]
    return f"{message}, delay likely due to {', '.join(reasons)}" if reasons else message


def next_stale_s(machines: Iterable[Machine], now: datetime) -> float | None:
    """Seconds until another Machine has been in deletion for long; None when none will."""
    waits = [STALE_AFTER - _since(m.metadata.deletion_timestamp, now) for m in machines if is_deleting(m)]
    ahead = [wait.total_seconds() for wait in waits if wait >= timedelta(0)]
    return min(ahead) + 1.0 if ahead else None


def versions_of(machines: Sequence[Machine]) -> list[StatusVersion]:
    """How many Machines run which version; what the kubelet reports goes before what is asked for."""
    counts: dict[str, int] = {}
    for machine in sorted(machines, key=lambda m: (m.metadata.creation_timestamp or "", m.metadata.name)):
        info = machine.status.node_info
        version = (info.kubelet_version if info is not None else "") or machine.spec.version
        if version:
            counts[version] = counts.get(version, 0) + 1
    return _ordered(counts)


def joined_versions(versions: Iterable[StatusVersion]) -> list[StatusVersion]:
    """Counts of several objects, by version."""
    counts: dict[str, int] = {}
    for one in versions:
        if one.version:
            counts[one.version] = counts.get(one.version, 0) + (one.replicas or 0)
    return _ordered(counts)


def _ordered(counts: dict[str, int]) -> list[StatusVersion]:
    return [StatusVersion(version=version, replicas=counts[version]) for version in sorted(counts, key=sort_key)]


def _since(moment: str | None, now: datetime) -> timedelta:
    return now - parse_rfc3339(moment) if moment else timedelta(0)


def _drain_message(machine: Machine, now: datetime) -> str:
    """What the Machine says of a drain that takes long."""
    found = find_condition(machine.status.conditions, "Deleting")
    deletion = machine.status.deletion
    if found is None or found.status != "True" or found.reason != "DrainingNode" or deletion is None:
        return ""
    return found.message if _since(deletion.node_drain_start_time, now) > _DRAINS_LONG else ""

"""Remediation of unhealthy Machines: which Machine is replaced, when, and how often. Pure.

A Machine is remediated by deleting it; scaling up creates its replacement. The data of the attempt are copied from an
annotation of the KubeadmControlPlane to one of the replacement, so that retries can be counted.

Machines are remediated one at a time. But if the deletion of a Machine is blocked, because etcd would lose quorum while
the member on an unhealthy Machine does not run, the unhealthy Machine is deleted first. Upstream waits forever.

Unlike upstream, a control plane with external etcd is remediated as well: upstream requires a list of members, which
does not exist there.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/remediation.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_REMEDIATION_FOR, ANNOTATION_REMEDIATION_IN_PROGRESS
from ironbell.base.clock import rfc3339
from ironbell.codec.durations import seconds_text
from ironbell.controllers.kubeadm.controlplane.machines.preflight import pending_topology_version
from ironbell.controllers.kubeadm.controlplane.machines.quorum import components_survive, etcd_forecast
from ironbell.controllers.kubeadm.controlplane.machines.selection import to_remediate
from ironbell.controllers.kubeadm.controlplane.model import (
    ControlPlane,
    created,
    has_node,
    is_deleting,
    is_unhealthy,
    moment,
)
from ironbell.controllers.kubeadm.controlplane.names import ANNOTATION_HOOK

DEFERRED: Final = "RemediationDeferred"
IMPOSSIBLE: Final = "CannotBeRemediated"
MACHINE_DELETING: Final = "MachineDeleting"

_CANNOT: Final = "can't remediate this machine"
_MIN_HEALTHY: Final = timedelta(hours=1)


class RemediationData(msgspec.Struct, frozen=True, rename="camel"):
    """The record of a remediation."""

    machine: str = ""
    timestamp: str = ""
    retry_count: int = 0

    def text(self) -> str:
        """Return the value of the annotation."""
        return msgspec.json.encode(self).decode()


def remediation_data(text: str) -> RemediationData | None:
    """Parse the value of an annotation; None if it is not valid, as if it was not set."""
    try:
        return msgspec.json.decode(text, type=RemediationData)
    except msgspec.DecodeError:
        return None


@dataclass(frozen=True, slots=True)
class Remediate:
    """The decision to delete a Machine now, and to record this."""

    machine: Machine
    data: RemediationData


@dataclass(frozen=True, slots=True)
class Hold:
    """The decision not to remediate a Machine now, with reason and message of its condition OwnerRemediated."""

    machine: Machine
    reason: str
    message: str
    again: datetime | None = None
    """Time of the next attempt."""


def is_stale(plane: ControlPlane) -> bool:
    """Return whether the remediation in progress has completed: its replacement exists, or the Machine recovered."""
    text = plane.kcp.metadata.annotations.get(ANNOTATION_REMEDIATION_IN_PROGRESS)
    if text is None:
        return False
    data = remediation_data(text)
    since = moment(data.timestamp) if data is not None else None
    if data is None or since is None:
        return True
    recovered = [m for m in plane.machines if m.metadata.name == data.machine and not is_deleting(m)]
    if recovered and recovered[0] not in plane.to_be_remediated:
        return True
    return any(created(machine) > since or _replaces(machine, data) for machine in plane.machines)


def _replaces(machine: Machine, data: RemediationData) -> bool:
    """Return whether a Machine was created as the replacement. Its annotation shows this if times are too coarse."""
    recorded = remediation_data(machine.metadata.annotations.get(ANNOTATION_REMEDIATION_FOR, ""))
    return recorded == data and machine.metadata.name != data.machine


def _begun(plane: ControlPlane) -> Remediate | None:
    """Return the remediation in progress if its Machine was not deleted yet, which happens after a crash."""
    data = remediation_data(plane.kcp.metadata.annotations.get(ANNOTATION_REMEDIATION_IN_PROGRESS, ""))
    machines = [m for m in plane.to_be_remediated if data is not None and m.metadata.name == data.machine]
    return Remediate(machines[0], data) if data is not None and machines and not is_deleting(machines[0]) else None


def decide_remediation(plane: ControlPlane, now: datetime) -> Remediate | Hold | None:
    """Return the decision about unhealthy Machines; None if there are none, or a remediation is in progress."""
    candidates = plane.to_be_remediated
    if not candidates:
        return None
    machine = to_remediate(plane, candidates)
    begun = None
    if ANNOTATION_REMEDIATION_IN_PROGRESS in plane.kcp.metadata.annotations and not is_stale(plane):
        begun = _begun(plane)
        if begun is None:
            return None
        machine = begun.machine
    if is_deleting(machine):
        return None
    if pending := pending_topology_version(plane.cluster, plane.kcp.spec.version):
        message = (
            f"can't remediate while waiting for a version upgrade to {pending} to be propagated from "
            "Cluster.spec.topology"
        )
        return _hold(machine, DEFERRED, message)
    data = _next_try(plane, machine, now) if begun is None else begun.data
    if isinstance(data, Hold):
        return data
    if plane.initialized and (held := _held(plane, machine)) is not None:
        return held
    return Remediate(machine, data)


def _hold(machine: Machine, reason: str, message: str, again: datetime | None = None) -> Hold:
    return Hold(machine, reason, f"KubeadmControlPlane {message}", again)


def _next_try(plane: ControlPlane, machine: Machine, now: datetime) -> RemediationData | Hold:
    first = RemediationData(machine.metadata.name, rfc3339(now), 0)
    last = remediation_data(machine.metadata.annotations.get(ANNOTATION_REMEDIATION_FOR, ""))
    since = moment(last.timestamp) if last is not None else None
    if last is None or since is None:
        return first
    limits = plane.kcp.spec.remediation
    if now >= since + _seconds(limits.min_healthy_period_seconds, _MIN_HEALTHY):
        return first
    retry_period = _seconds(limits.retry_period_seconds, timedelta())
    if now < since + retry_period:
        period = seconds_text(int(retry_period.total_seconds()))
        failed = f"the operation already failed in the latest {period} (RetryPeriodSeconds)"
        return _hold(machine, DEFERRED, f"{_CANNOT} because {failed}", since + retry_period)
    if limits.max_retry is not None and last.retry_count >= limits.max_retry:
        failed = f"the operation already failed {limits.max_retry} times (MaxRetry)"
        return _hold(machine, IMPOSSIBLE, f"{_CANNOT} because {failed}")
    return RemediationData(machine.metadata.name, rfc3339(now), last.retry_count + 1)


def _held(plane: ControlPlane, machine: Machine) -> Hold | None:
    if len(plane.machines) <= 1:
        return _hold(machine, IMPOSSIBLE, "can't remediate if current replicas are less or equal to 1")
    if any(not has_node(other) and not is_unhealthy(other) for other in plane.machines):
        message = "waiting for control plane Machine provisioning to complete before triggering remediation"
        return _hold(machine, DEFERRED, message)
    if plane.deleting_machines and not hinders(plane, machine):
        message = "waiting for control plane Machine deletion to complete before triggering remediation"
        return _hold(machine, DEFERRED, message)
    if plane.etcd_managed and (plane.inside.etcd is None or not plane.inside.etcd.members or plane.inside.nodes_error):
        return Hold(machine, DEFERRED, "Failed to check etcd cluster health before remediation")
    if not _is_safe(plane, machine):
        message = (
            "can't remediate this Machine because this could result in loosing Kubernetes control plane components or "
            "in etcd quorum loss"
        )
        return _hold(machine, IMPOSSIBLE, message)
    return None


def hinders(plane: ControlPlane, machine: Machine) -> bool:
    """Return whether the etcd member of an unhealthy Machine blocks the deletion of other Machines."""
    view, member = plane.inside.etcd, plane.member_name(machine)
    if not plane.etcd_managed or view is None or not member or view.named(member) is None:
        return False
    health = plane.member_health() | {member: False}
    waiting = [m for m in plane.deleting_machines if ANNOTATION_HOOK in m.metadata.annotations]
    return any(
        not is_unhealthy(deleted)
        and not etcd_forecast(view.members, view.alarms, health, without=plane.member_name(deleted)).safe
        for deleted in waiting
    )


def _is_safe(plane: ControlPlane, machine: Machine) -> bool:
    if not components_survive(plane.healthy_components(), without=machine.metadata.name):
        return False
    view = plane.inside.etcd
    member = plane.member_name(machine)
    # if its member is not known, nothing more can be checked here; the hook checks again
    if not plane.etcd_managed or view is None or not member:
        return True
    return etcd_forecast(view.members, view.alarms, plane.member_health(), without=member).safe


def _seconds(value: int | None, default: timedelta) -> timedelta:
    return default if value is None else timedelta(seconds=value)


def last_remediation(plane: ControlPlane) -> RemediationData | None:
    """Return the remediation for `status.lastRemediation`: the one in progress, or else the latest."""
    if text := plane.kcp.metadata.annotations.get(ANNOTATION_REMEDIATION_IN_PROGRESS):
        return remediation_data(text)
    return _latest(m.metadata.annotations.get(ANNOTATION_REMEDIATION_FOR, "") for m in plane.machines)


def _latest(texts: Iterable[str]) -> RemediationData | None:
    known = [data for data in (remediation_data(text) for text in texts) if data is not None]
    return max(known, key=lambda data: data.timestamp, default=None)

"""The status of a KubeadmControlPlane: numbers of replicas, versions and both sets of conditions. Pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/status.go,
internal/util/version/version.go (VersionsFromMachines).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from ironbell.api.cluster.common import StatusVersion
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.controlplane.kubeadmcontrolplane import (
    KubeadmControlPlane,
    KubeadmControlPlaneDeprecatedStatus,
    KubeadmControlPlaneInitializationStatus,
    KubeadmControlPlaneStatus,
    KubeadmControlPlaneV1Beta1DeprecatedStatus,
    LastRemediationStatus,
)
from ironbell.api.meta import Condition
from ironbell.contract.clusters.versions import sort_key
from ironbell.contract.conditions import Reasons, owned
from ironbell.contract.conditions import aggregate as aggregated
from ironbell.contract.conditions.legacy import (
    LegacyCondition,
    LegacySource,
    find_legacy,
    legacy_aggregate,
    legacy_conditions,
    legacy_summary,
    set_legacy,
)
from ironbell.controllers.kubeadm.controlplane.conditions.assess import Assessed, with_legacy_mark, with_mark
from ironbell.controllers.kubeadm.controlplane.conditions.available import available
from ironbell.controllers.kubeadm.controlplane.conditions.marks import ERROR, INFO, LegacyMark, Mark
from ironbell.controllers.kubeadm.controlplane.conditions.progress import (
    creation_obstacles,
    not_remediated,
    resized,
    rolling_out,
    scaling_down,
    scaling_up,
    spec_up_to_date,
)
from ironbell.controllers.kubeadm.controlplane.machines.creating import Failed
from ironbell.controllers.kubeadm.controlplane.machines.preflight import PASSED, Preflight
from ironbell.controllers.kubeadm.controlplane.machines.remediation import last_remediation
from ironbell.controllers.kubeadm.controlplane.model import (
    ControlPlane,
    condition,
    condition_true,
    created,
    is_unhealthy,
)
from ironbell.controllers.kubeadm.controlplane.names import (
    MACHINE_AVAILABLE,
    MACHINE_READY,
    ConditionType,
    LegacyType,
    MachineCondition,
)
from ironbell.kube.conditions import find_condition

_NEW_MACHINE: Final = timedelta(seconds=10)
_SUMMARIZED: Final = (
    LegacyType.MACHINES_CREATED,
    LegacyType.MACHINES_SPEC_UP_TO_DATE,
    LegacyType.RESIZED,
    LegacyType.MACHINES_READY,
    LegacyType.AVAILABLE,
    LegacyType.CERTIFICATES_AVAILABLE,
)


@dataclass(frozen=True)
class Report:
    """The results of a reconciliation, besides the conditions of Machines."""

    preflight: Preflight = PASSED
    template_missing: bool = False
    certificates: Mark | None = None
    """None leaves the condition unchanged."""
    certificates_failed: bool = False
    """Whether an attempt to create certificates failed."""
    deleting: Mark = field(default_factory=lambda: Mark("False", "NotDeleting"))
    has_kubeadm_config: bool = False
    failed: Failed | None = None
    """The failure of the last attempt to create a Machine."""
    initializes: bool = False
    """Whether the first Machine is being created."""
    complete: bool = True
    """Whether the whole spec was reconciled, so that its generation is observed."""


def status_of(assessed: Assessed, report: Report, now: datetime) -> KubeadmControlPlaneStatus:
    """Return the new status."""
    plane = _with_marks(assessed, report, now)
    kcp, machines = plane.kcp, plane.machines
    conditions = kcp.status.conditions
    generation = kcp.metadata.generation
    for type_, mark in _progress(plane, report, now).items():
        conditions = with_mark(conditions, type_, mark, now=now, generation=generation)
    plane = replace(plane, kcp=_with(kcp, conditions=conditions))
    if not assessed.keeps or plane.deleting or find_condition(conditions, ConditionType.AVAILABLE) is None:
        obstacles = creation_obstacles(plane, template_missing=report.template_missing, failed=report.failed)
        mark = available(plane, matching=assessed.matching, now=now, obstacles=obstacles)
        conditions = with_mark(conditions, ConditionType.AVAILABLE, mark, now=now, generation=generation)
    versions = versions_of(machines)
    remediation = last_remediation(plane)
    return msgspec.structs.replace(
        plane.kcp.status,
        conditions=conditions,
        selector=f"cluster.x-k8s.io/cluster-name={plane.cluster.metadata.name},cluster.x-k8s.io/control-plane",
        replicas=len(machines),
        ready_replicas=sum(condition_true(machine, MACHINE_READY) for machine in machines),
        available_replicas=sum(condition_true(machine, MACHINE_AVAILABLE) for machine in machines),
        up_to_date_replicas=sum(condition_true(machine, MachineCondition.UP_TO_DATE) for machine in machines),
        versions=versions,
        version=versions[0].version if versions else kcp.status.version,
        observed_generation=generation if report.complete else kcp.status.observed_generation,
        last_remediation=(
            kcp.status.last_remediation
            if remediation is None
            else LastRemediationStatus(
                machine=remediation.machine, time=remediation.timestamp, retry_count=remediation.retry_count
            )
        ),
        deprecated=_deprecated(plane, assessed, report, now),
    )


def versions_of(machines: Sequence[Machine]) -> list[StatusVersion]:
    """Return the Kubernetes versions of the Machines, the oldest first: those of their nodes, else the desired ones."""
    versions = [
        (machine.status.node_info.kubelet_version if machine.status.node_info is not None else "")
        or machine.spec.version
        for machine in machines
    ]
    counts = Counter(version for version in versions if version)
    return [StatusVersion(version=version, replicas=counts[version]) for version in sorted(counts, key=sort_key)]


def _with(kcp: KubeadmControlPlane, *, conditions: list[Condition]) -> KubeadmControlPlane:
    return msgspec.structs.replace(kcp, status=msgspec.structs.replace(kcp.status, conditions=conditions))


def _with_marks(assessed: Assessed, report: Report, now: datetime) -> ControlPlane:
    """Return the control plane with its conditions about health, certificates and initialization."""
    plane = assessed.plane
    kcp, generation = plane.kcp, plane.kcp.metadata.generation
    if report.has_kubeadm_config and not plane.initialized and not _is_only_machine_deleted(plane):
        initialization = KubeadmControlPlaneInitializationStatus(control_plane_initialized=True)
        kcp = msgspec.structs.replace(kcp, status=msgspec.structs.replace(kcp.status, initialization=initialization))
    plane = replace(plane, kcp=kcp)
    marks = dict(assessed.marks)
    marks[ConditionType.INITIALIZED] = (
        Mark("True", "Initialized") if plane.initialized else Mark("False", "NotInitialized")
    )
    if report.certificates is not None:
        marks[ConditionType.CERTIFICATES_AVAILABLE] = report.certificates
    conditions = kcp.status.conditions
    for type_, mark in marks.items():
        conditions = with_mark(conditions, type_, mark, now=now, generation=generation)
    return replace(plane, kcp=_with(kcp, conditions=conditions))


def _is_only_machine_deleted(plane: ControlPlane) -> bool:
    """Return whether the only Machine is or will be deleted: then it does not matter that kubeadm completed there."""
    if len(plane.machines) != 1:
        return False
    machine = plane.machines[0]
    return machine in plane.to_be_remediated or machine.metadata.deletion_timestamp is not None


def _progress(plane: ControlPlane, report: Report, now: datetime) -> dict[ConditionType, Mark]:
    machines = plane.machines
    known = [m for m in machines if condition(m, MachineCondition.UP_TO_DATE) or now - created(m) > _NEW_MACHINE]
    return {
        ConditionType.ROLLING_OUT: rolling_out(machines),
        ConditionType.SCALING_UP: scaling_up(
            plane, report.preflight, template_missing=report.template_missing, failed=report.failed
        ),
        ConditionType.SCALING_DOWN: scaling_down(plane, report.preflight, now),
        ConditionType.MACHINES_READY: _all(machines, MACHINE_READY, "Ready"),
        ConditionType.MACHINES_UP_TO_DATE: _all(known, MachineCondition.UP_TO_DATE, "UpToDate"),
        ConditionType.REMEDIATING: _remediating(plane),
        ConditionType.DELETING: report.deleting,
    }


def _all(machines: Sequence[Machine], type_: str, word: str) -> Mark:
    if not machines:
        return Mark("True", "NoReplicas")
    reasons = Reasons(issue=f"Not{word}", unknown=f"{word}Unknown", info=word)
    ready = aggregated([owned(MACHINE.kind, machine) for machine in machines], type_, reason=reasons)
    return Mark(ready.status, ready.reason, ready.message)


def _remediating(plane: ControlPlane) -> Mark:
    candidates = plane.to_be_remediated
    if not candidates:
        return not_remediated([machine for machine in plane.machines if is_unhealthy(machine)])
    sources = [owned(MACHINE.kind, machine) for machine in candidates]
    return Mark("True", "Remediating", aggregated(sources, MachineCondition.OWNER_REMEDIATED).message)


def _deprecated(
    plane: ControlPlane, assessed: Assessed, report: Report, now: datetime
) -> KubeadmControlPlaneDeprecatedStatus:
    deprecated = plane.kcp.status.deprecated or KubeadmControlPlaneDeprecatedStatus()
    old = deprecated.v1beta1 or KubeadmControlPlaneV1Beta1DeprecatedStatus()
    conditions: list[LegacyCondition] = list(legacy_conditions(plane.kcp))
    for type_, mark in _legacy_marks(plane, assessed, report, conditions).items():
        conditions = with_legacy_mark(conditions, type_, mark, now=now)
    sources = [LegacySource(MACHINE.kind, m.metadata.name, legacy_conditions(m)) for m in plane.machines]
    ready = legacy_aggregate(sources, LegacyType.MACHINES_READY, name_source=True, step_counter=False)
    conditions = set_legacy(conditions, ready, now=now)
    conditions = set_legacy(conditions, legacy_summary(conditions, types=_SUMMARIZED), now=now)
    ready_nodes = old.ready_replicas if assessed.keeps else sum(_is_ready(plane, name) for name in plane.inside.nodes)
    new = msgspec.structs.replace(
        old,
        conditions=conditions,
        updated_replicas=len(plane.up_to_date),
        ready_replicas=ready_nodes,
        unavailable_replicas=len(plane.machines) - ready_nodes,
    )
    return msgspec.structs.replace(deprecated, v1beta1=new)


def _is_ready(plane: ControlPlane, node: str) -> bool:
    ready = plane.inside.nodes[node].condition("Ready")
    return ready is not None and ready.status == "True"


def _legacy_marks(
    plane: ControlPlane, assessed: Assessed, report: Report, conditions: Sequence[LegacyCondition]
) -> dict[LegacyType, LegacyMark]:
    marks = dict(assessed.legacy)
    if report.certificates is not None and (report.certificates.status != "Unknown" or report.certificates_failed):
        marks[LegacyType.CERTIFICATES_AVAILABLE] = _legacy_certificates(report.certificates)
    if plane.deleting:
        marks[LegacyType.RESIZED] = LegacyMark("False", INFO, "Deleting", _legacy_deleting(report.deleting))
        return marks
    ready = sum(condition_true(machine, MACHINE_READY) for machine in plane.machines)
    if (size := resized(plane, ready)) is not None:
        marks[LegacyType.RESIZED] = size
    if report.failed is not None:
        marks[LegacyType.MACHINES_CREATED] = LegacyMark("False", ERROR, report.failed.reason, report.failed.message)
    elif len(plane.machines) >= plane.desired:
        marks[LegacyType.MACHINES_CREATED] = LegacyMark("True")
    known = find_legacy(conditions, LegacyType.MACHINES_SPEC_UP_TO_DATE) is not None
    if (spec := spec_up_to_date(plane, known=known)) is not None:
        marks[LegacyType.MACHINES_SPEC_UP_TO_DATE] = spec
    if report.has_kubeadm_config:
        marks[LegacyType.AVAILABLE] = LegacyMark("True")
    elif report.initializes:
        marks[LegacyType.AVAILABLE] = LegacyMark("False", INFO, "WaitingForKubeadmInit")
    return marks


def _legacy_certificates(mark: Mark) -> LegacyMark:
    if mark.status == "True":
        return LegacyMark("True")
    return LegacyMark("False", "Error", "CertificatesGenerationFailed", mark.message)


def _legacy_deleting(mark: Mark) -> str:
    return "Waiting for worker nodes to be deleted first" if mark.reason == "WaitingForWorkersDeletion" else ""

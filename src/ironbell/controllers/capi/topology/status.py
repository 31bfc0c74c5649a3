"""The status of a Cluster about its topology: the condition TopologyReconciled, and the steps of an upgrade.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/status.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ironbell.api.cluster.cluster import Cluster, ClusterReplicasStatus
from ironbell.api.cluster.common import StatusUpgradePlanVersion
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.base.listing import listed
from ironbell.contract.clusters.paused import has_paused_annotation
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import ERROR, INFO, legacy_false, legacy_true
from ironbell.controllers.capi.topology.desired.versions import Versions, WorkerVersions
from ironbell.controllers.capi.topology.plain import kind_of
from ironbell.kube.decision import Fields
from ironbell.kube.draft import replace

TOPOLOGY_RECONCILED: Final = "TopologyReconciled"
SUCCEEDED: Final = "ReconcileSucceeded"
FAILED: Final = "ReconcileFailed"
CLASS_NOT_RECONCILED: Final = "ClusterClassNotReconciled"
PAUSED: Final = "Paused"
DELETING: Final = "Deleting"
UPGRADING: Final = "ClusterUpgrading"
DEPLOYMENTS_DEFERRED: Final = "MachineDeploymentsUpgradeDeferred"
POOLS_DEFERRED: Final = "MachinePoolsUpgradeDeferred"
_LEGACY_FAILED: Final = "TopologyReconcileFailed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The condition TopologyReconciled, without its type."""

    reason: str
    message: str = ""

    @property
    def is_true(self) -> bool:
        return self.reason == SUCCEEDED


def paused(cluster: Cluster) -> Outcome:
    """The outcome for a paused Cluster, with the reason why it is paused."""
    reasons = ["Cluster spec.paused is set to true"] if cluster.spec.paused else []
    if has_paused_annotation(cluster):
        reasons.append("Cluster has the cluster.x-k8s.io/paused annotation")
    return Outcome(PAUSED, ", ".join(reasons))


def of_versions(cluster: Cluster, versions: Versions, plane: Fields) -> Outcome:
    """The outcome for these versions: success, or an upgrade with all that it waits for."""
    if not versions.is_upgrading:
        return Outcome(SUCCEEDED)
    lines = [f"Cluster is upgrading to {cluster.spec.topology.version}", *_lines(versions, kind_of(plane))]
    return Outcome(_reason(versions), "\n  * ".join(lines))


def report(draft: ConditionsDraft[Cluster], outcome: Outcome, *, versions: Versions | None = None) -> None:
    """Set the condition, and wait unless it is true. Without `versions` the steps are left unchanged."""
    draft.set(TOPOLOGY_RECONCILED, "True" if outcome.is_true else "False", outcome.reason, outcome.message)
    draft.put_legacy(_legacy(outcome))
    if not outcome.is_true:
        draft.wait(outcome.reason, outcome.message)
    if versions is not None:
        of_workers = versions.pools.steps or versions.deployments.steps
        control_plane = _with_steps(draft.status.control_plane, versions.control_plane.steps)
        workers = _with_steps(draft.status.workers, of_workers)
        draft.status = replace(draft.status, control_plane=control_plane, workers=workers)


def _with_steps(held: ClusterReplicasStatus | None, steps: Sequence[str]) -> ClusterReplicasStatus | None:
    plan = [StatusUpgradePlanVersion(version=step) for step in steps]
    status = replace(held or ClusterReplicasStatus(), upgrade_plan=plan)
    return None if status == ClusterReplicasStatus() else status


def _legacy(outcome: Outcome) -> LegacyCondition:
    if outcome.is_true:
        return legacy_true(TOPOLOGY_RECONCILED)
    if outcome.reason == FAILED:
        return legacy_false(TOPOLOGY_RECONCILED, _LEGACY_FAILED, ERROR, outcome.message)
    return legacy_false(TOPOLOGY_RECONCILED, outcome.reason, INFO, outcome.message)


def _reason(versions: Versions) -> str:
    plane = versions.control_plane
    if plane.is_starting or plane.is_upgrading:
        return UPGRADING
    for workers, reason in ((versions.deployments, DEPLOYMENTS_DEFERRED), (versions.pools, POOLS_DEFERRED)):
        if workers.deferred - workers.upgrading and not workers.upgrading and not workers.pending - workers.deferred:
            return reason
    return UPGRADING


def _lines(versions: Versions, plane_kind: str) -> Iterator[str]:
    plane = versions.control_plane
    if plane.is_starting or plane.is_upgrading:
        yield f"{plane_kind} upgrading to version {plane.version}{_still(plane.steps, plane.version)}"
    elif plane.steps:
        yield f"{plane_kind} pending upgrade to version {', '.join(plane.steps)}"
    yield from _worker_lines(versions.deployments, "MachineDeployment", plane.version)
    yield from _worker_lines(versions.pools, "MachinePool", plane.version)


def _worker_lines(workers: WorkerVersions, kind: str, version: str) -> Iterator[str]:
    deferred = workers.deferred - workers.upgrading
    pending = workers.pending - workers.upgrading - deferred
    if workers.upgrading:
        yield f"{_named(kind, workers.upgrading)} upgrading to version {version}{_still(workers.steps, version)}"
    if pending and workers.steps:
        yield f"{_named(kind, pending)} pending upgrade to version {', '.join(workers.steps)}"
    if deferred:
        yield (
            f"{_named(kind, deferred)} upgrade to version {version} deferred using"
            f" {'' if kind == 'MachineDeployment' else 'topology.cluster.x-k8s.io/'}defer-upgrade or"
            " hold-upgrade-sequence annotations"
        )
    if workers.not_created:
        yield f"{_named(kind, workers.not_created)} creation deferred while control plane upgrade is in progress"


def _still(steps: Sequence[str], version: str) -> str:
    rest = [step for step in steps if step != version]
    return f" ({', '.join(rest)} pending)" if rest else ""


def _named(kind: str, names: frozenset[str]) -> str:
    ordered = sorted(names)
    if len(ordered) == 1:
        return f"{kind} {ordered[0]}"
    return f"{kind}s {listed(ordered)}"

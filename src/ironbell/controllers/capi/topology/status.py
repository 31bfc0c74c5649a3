"""The status of a Cluster about its topology: the condition TopologyReconciled, and the steps of an upgrade.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/status.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.meta import Condition, to_builtin
from ironbell.contract.clusters.paused import has_paused_annotation
from ironbell.contract.conditions import conditions_of, set_condition
from ironbell.contract.conditions.legacy import (
    ERROR,
    INFO,
    legacy_conditions,
    legacy_false,
    legacy_true,
    set_legacy,
)
from ironbell.controllers.capi.topology.desired.versions import Versions, WorkerVersions
from ironbell.controllers.capi.topology.plain import kind_of, put
from ironbell.kube.decision import Fields, MergePatch, patch_status
from ironbell.kube.patches import diff

TOPOLOGY_RECONCILED: Final = "TopologyReconciled"
SUCCEEDED: Final = "ReconcileSucceeded"
FAILED: Final = "ReconcileFailed"
CLASS_NOT_RECONCILED: Final = "ClusterClassNotReconciled"
PAUSED: Final = "Paused"
DELETING: Final = "Deleting"
UPGRADING: Final = "ClusterUpgrading"
DEPLOYMENTS_DEFERRED: Final = "MachineDeploymentsUpgradeDeferred"
POOLS_DEFERRED: Final = "MachinePoolsUpgradeDeferred"
_SHOWN_NAMES: Final = 3
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


def change(cluster: Cluster, outcome: Outcome, now: datetime, *, versions: Versions | None = None) -> MergePatch | None:
    """The patch of the Cluster's status; None if nothing changes. Without `versions` the steps are left unchanged."""
    status: Fields = to_builtin(cluster.status)
    condition = Condition(
        type=TOPOLOGY_RECONCILED,
        status="True" if outcome.is_true else "False",
        reason=outcome.reason,
        message=outcome.message,
    )
    conditions = set_condition(conditions_of(cluster), condition, now=now, generation=cluster.metadata.generation)
    legacy = set_legacy(legacy_conditions(cluster), _legacy(outcome), now=now)
    new = put(status, to_builtin(conditions), ("conditions",))
    new = put(new, to_builtin(legacy), ("deprecated", "v1beta1", "conditions"))
    if versions is not None:
        of_workers = versions.pools.steps or versions.deployments.steps
        for name, steps in (("controlPlane", versions.control_plane.steps), ("workers", of_workers)):
            new = _with_steps(new, name, steps)
    body = diff(status, new)
    return patch_status(CLUSTER, cluster, body) if body else None


def _with_steps(status: Fields, name: str, steps: Sequence[str]) -> Fields:
    held = status.get(name) or {}
    rest = {key: value for key, value in held.items() if key != "upgradePlan"}
    if steps:
        return put(status, {**rest, "upgradePlan": [{"version": step} for step in steps]}, (name,))
    if rest:
        return put(status, rest, (name,))
    return {key: value for key, value in status.items() if key != name}


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
    shown = ", ".join(ordered[:_SHOWN_NAMES])
    more = len(ordered) - _SHOWN_NAMES
    return f"{kind}s {shown}, ... ({more} more)" if more > 0 else f"{kind}s {shown}"

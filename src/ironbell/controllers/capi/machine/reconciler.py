"""The controller of Machines: from a bootstrap config and a host to a Node, and through their deletion.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.contract.clusters.external import external_watch
from ironbell.contract.clusters.paused import PAUSED, is_paused, paused_condition
from ironbell.controllers.capi.machine import externals, node, node_conditions, observed, status, upkeep
from ironbell.controllers.capi.machine.deletion import steps
from ironbell.controllers.capi.machine.draft import Draft
from ironbell.controllers.capi.machine.names import CONTROLLER, MachineCondition, Reason
from ironbell.controllers.capi.machine.node_metadata import Synced
from ironbell.controllers.capi.machine.observed import Observed
from ironbell.kube.decision import Decision, Key
from ironbell.kube.reconciler import Cache, Declaration

NOTHING_MORE: Final = Synced()


@dataclass(frozen=True)
class MachineReconciler:
    """Reconciles a Machine from its creation to its deletion."""

    synced: Synced = NOTHING_MORE
    """Labels and annotations that are copied to Nodes besides the usual ones."""
    name: str = CONTROLLER
    declaration: ClassVar[Declaration[Machine]] = Declaration(
        MACHINE,
        watches=observed.WATCHES,
        indexes=observed.INDEXES,
        dynamic=(external_watch(MACHINE),),
        own=observed.OWN,
        looked_up=observed.PROVIDERS,
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return observed.observe(cache, key)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft, cluster = Draft(observed.machine, now), observed.cluster
        if cluster is None and not draft.is_deleting:
            return _without_cluster(draft)
        paused = cluster is not None and cluster.spec.paused is True
        pause = paused_condition(MACHINE.kind, observed.machine, cluster_paused=paused)
        if is_paused(observed.machine, cluster_paused=paused):
            draft.put(pause)
            draft.wait(PAUSED, pause.message)
            return draft.decision()
        upkeep.belong(draft, cluster)
        if cluster is not None:
            self._reconcile(draft, observed, cluster)
        if observed.deletion is not None:
            steps.reconcile(draft, observed.deletion, observed.infrastructure, observed.bootstrap)
        draft.put(pause)
        status.conclude(draft, observed)
        return draft.decision()

    def _reconcile(self, draft: Draft, observed: Observed, cluster: Cluster) -> None:
        bootstrap, host = observed.bootstrap, observed.infrastructure
        if bootstrap is not None:
            externals.reconcile_bootstrap(draft, bootstrap, cluster)
        externals.reconcile_infrastructure(draft, host, cluster)
        known = node.reconcile(draft, observed.facts, cluster)
        if known.node is not None:
            outdated = node.is_outdated(observed.machine_set, observed.machine_deployment)
            at = observed.facts.cluster
            node.update(draft, known.node, host, cluster=at, synced=self.synced, outdated=outdated)
        upkeep.record_certificate_expiry(draft, bootstrap.obj if bootstrap is not None else None)
        node_conditions.set_node_conditions(draft, known, observed.facts, host, cluster)


def _without_cluster(draft: Draft) -> Decision:
    message = f"Cluster {draft.metadata.namespace}/{draft.spec.cluster_name} does not exist"
    draft.set(MachineCondition.READY, "Unknown", Reason.INTERNAL_ERROR, message)
    draft.wait("ClusterNotFound", message)
    return draft.decision()

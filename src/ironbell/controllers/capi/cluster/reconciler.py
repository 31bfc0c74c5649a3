"""The controller of Clusters: aggregates the reports of providers, counts the Machines, and deletes clusters in order.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ironbell.api.cluster import (
    CLUSTER,
    CLUSTER_CLASS,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_POOL,
    MACHINE_SET,
)
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import FINALIZER_CLUSTER
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.contract.clusters.paused import is_paused
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.clusters.secrets import Purpose, secret_name
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.owners import owner_reference
from ironbell.controllers.capi.cluster import conditions, deletion, endpoint, status
from ironbell.controllers.capi.cluster.kubeconfig import KUBECONFIG, TIMEOUT_S, KubeconfigArguments
from ironbell.controllers.capi.cluster.observed import (
    OWN,
    PROVIDERS,
    ROLL_UP_S,
    TEMPLATE_KINDS,
    Observed,
    counted,
    is_first_node,
    observe,
    of_member,
)
from ironbell.controllers.capi.cluster.references import (
    Progress,
    claimed,
    events,
    lost,
    progress,
)
from ironbell.controllers.capi.indexes import (
    MACHINE_DEPLOYMENTS_OF_CLUSTER,
    MACHINE_POOLS_OF_CLUSTER,
    MACHINE_SETS_OF_CLUSTER,
    MACHINES_OF_CLUSTER,
)
from ironbell.controllers.capi.machines import younger_until_s
from ironbell.kube.decision import Decision, Effect, Key, Need, Waiting
from ironbell.kube.draft import replace
from ironbell.kube.finalizers import add_finalizer, is_deleting
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Declaration, Watch, read_by
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, Connection


class ClusterReconciler:
    """Reports a Cluster's status, and deletes the cluster in order."""

    name = "capi-cluster"
    declaration = Declaration(
        CLUSTER,
        watches=(
            *(
                Watch(kind, of_member, changed(is_deleting))
                for kind in (MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, MACHINE_POOL)
            ),
            Watch(MACHINE, of_member, is_first_node),
            Watch(MACHINE, of_member, changed(counted), delay_s=ROLL_UP_S, reporting=True),
            *(
                Watch(kind, of_member, delay_s=ROLL_UP_S, reporting=True)
                for kind in (MACHINE_SET, MACHINE_DEPLOYMENT, MACHINE_POOL)
            ),
            Watch(CLUSTER, endpoint.waiting, endpoint.is_released),
            read_by(CLUSTER_CLASS),
            read_by(SECRET_METADATA),
            DEFINITIONS,
        ),
        indexes=(
            MACHINES_OF_CLUSTER,
            MACHINE_SETS_OF_CLUSTER,
            MACHINE_DEPLOYMENTS_OF_CLUSTER,
            MACHINE_POOLS_OF_CLUSTER,
            BY_GROUP_KIND,
            TEMPLATE_KINDS,
            endpoint.BY_ENDPOINT,
            endpoint.WAITING_FOR_ENDPOINT,
        ),
        own=OWN,
        looked_up=PROVIDERS,
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return observe(cache, key)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        cluster = observed.cluster
        draft = ConditionsDraft(CLUSTER, cluster, now)
        draft.first.append(add_finalizer(CLUSTER, cluster, FINALIZER_CLUSTER))
        if is_paused(cluster, cluster_paused=bool(cluster.spec.paused)):
            draft.put(conditions.paused(observed))
            draft.wait("Paused", "the Cluster is paused")
        elif draft.is_deleting:
            _delete(draft, observed, progress(observed))
        else:
            _reconcile(draft, observed, progress(observed))
        return draft.decision()


def _delete(draft: ConditionsDraft[Cluster], observed: Observed, reached: Progress) -> None:
    step = deletion.step(observed)
    status.report(draft, observed, reached, conditions.deleting(observed, step.reason, step.message))
    draft.last += step.actions
    draft.need(_connection(observed))
    if not step.is_last:
        draft.wait(step.reason, step.message)


def _reconcile(draft: ConditionsDraft[Cluster], observed: Observed, reached: Progress) -> None:
    known = draft.spec.control_plane_endpoint
    if reached.has_endpoint and not (known.host and known.port):
        draft.spec = replace(draft.spec, control_plane_endpoint=reached.endpoint)
    status.report(draft, observed, reached, conditions.deleting(observed))
    draft.last += [*claimed(observed), *events(observed, reached), _kubeconfig(observed, reached)]
    draft.need(_connection(observed))
    draft.waiting = _waiting(observed, reached)
    descendants = observed.descendants
    machines = [*descendants.control_plane_machines, *descendants.counted_workers]
    draft.requeue_after(younger_until_s(machines, draft.now))
    state = observed.connection.value if observed.connection is not None else None
    if state is not None and not state.healthy and state.last_probe_success is not None:
        left = (state.last_probe_success + conditions.GRACE - draft.now).total_seconds()
        draft.requeue_after(left + 1.0 if left >= 0 else None)


def _connection(observed: Observed) -> Need[Any]:
    return Need(Connection(ClusterKey.of(observed.cluster)), PUSHED_S)


def _kubeconfig(observed: Observed, reached: Progress) -> Effect | None:
    """Create the kubeconfig if no control plane object does it."""
    cluster = observed.cluster
    is_own_task = observed.control_plane is None and not observed.has_topology
    if not is_own_task or observed.has_kubeconfig or not observed.has_authority or not reached.has_endpoint:
        return None
    host = reached.endpoint.host
    server = f"https://{f'[{host}]' if ':' in host else host}:{reached.endpoint.port}"
    return Effect(
        KUBECONFIG,
        KubeconfigArguments(cluster.key, server, owner_reference(CLUSTER, cluster)),
        timeout_s=TIMEOUT_S,
    )


def _waiting(observed: Observed, reached: Progress) -> Waiting | None:
    """The first reason for waiting; None if there is none."""
    initialization = observed.cluster.status.initialization
    if observed.endpoint_owner is not None:
        return Waiting(endpoint.IN_USE, endpoint.message(observed.cluster, observed.endpoint_owner))
    for external, once, flag in (
        (observed.infrastructure, bool(initialization.infrastructure_provisioned), "provisioned"),
        (observed.control_plane, bool(initialization.control_plane_initialized), "initialized"),
    ):
        if reason := lost(external, once=once, flag=flag):
            return Waiting("ReferencedObjectDeleted", reason)
        if external is not None and not external.exists:
            return Waiting("ReferencedObjectMissing", str(external))
    if observed.has_topology and observed.infrastructure is None:
        return Waiting("WaitingForTopology", "the topology has not created the cluster's objects yet")
    if not reached.infrastructure_provisioned:
        return Waiting("WaitingForInfrastructure", f"{observed.infrastructure} is not provisioned")
    if not reached.has_endpoint:
        return Waiting("WaitingForEndpoint", "no provider has reported the cluster's endpoint yet")
    if not reached.control_plane_initialized:
        return Waiting("WaitingForControlPlane", "the control plane is not initialized")
    needs_key = observed.control_plane is None and not (observed.has_kubeconfig or observed.has_authority)
    if needs_key and not observed.has_topology:
        name = secret_name(observed.cluster.metadata.name, Purpose.CLUSTER_CA)
        return Waiting("WaitingForAuthority", f"Secret {name} with the cluster's authority does not exist")
    return None

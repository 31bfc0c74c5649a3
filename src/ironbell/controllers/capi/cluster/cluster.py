"""The controller of Clusters: brings together what providers say, counts what there is, and takes everything down.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster.
"""

from __future__ import annotations

from dataclasses import replace
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
from ironbell.api.cluster.names import FINALIZER_CLUSTER
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.contract.cluster_secrets import Purpose, secret_name
from ironbell.contract.owners import owner_reference
from ironbell.contract.paused import is_paused
from ironbell.contract.references import BY_GROUP_KIND, DEFINITIONS
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
    endpoint_noted,
    lost,
    progress,
    told,
    with_endpoint,
)
from ironbell.controllers.capi.indexes import (
    MACHINE_DEPLOYMENTS_OF_CLUSTER,
    MACHINE_POOLS_OF_CLUSTER,
    MACHINE_SETS_OF_CLUSTER,
    MACHINES_OF_CLUSTER,
)
from ironbell.controllers.capi.machines import younger_until_s
from ironbell.controllers.capi.names import CLUSTER_CONTROLLER
from ironbell.kube.decision import Action, Decision, Effect, Key, Need, Waiting, do
from ironbell.kube.finalizers import add_finalizer, is_deleting
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Declaration, Watch, read_by
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.questions import PUSHED_S, Connection


class ClusterReconciler:
    """Keeps a Cluster's status, and takes the cluster down in order."""

    name = CLUSTER_CONTROLLER
    declaration = Declaration(
        CLUSTER,
        watches=(
            *(
                Watch(kind, of_member, changed(is_deleting))
                for kind in (MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, MACHINE_POOL)
            ),
            Watch(MACHINE, of_member, is_first_node),
            Watch(MACHINE, of_member, changed(counted), delay_s=ROLL_UP_S, tells=True),
            *(
                Watch(kind, of_member, delay_s=ROLL_UP_S, tells=True)
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
        added = add_finalizer(CLUSTER, cluster, FINALIZER_CLUSTER)
        decision = self._decide(observed, now)
        return decision if added is None else replace(decision, actions=(added, *decision.actions))

    def _decide(self, observed: Observed, now: datetime) -> Decision:
        cluster = observed.cluster
        if is_paused(cluster, cluster_paused=bool(cluster.spec.paused)):
            why = Waiting("Paused", "the Cluster is paused")
            return do(status.pause_change(observed, now), waiting=why)
        reached = progress(observed)
        if is_deleting(cluster):
            return _deleting(observed, reached, now)
        return _normal(observed, reached, now)


def _deleting(observed: Observed, reached: Progress, now: datetime) -> Decision:
    step = deletion.step(observed)
    said = conditions.deleting(observed, step.reason, step.message)
    actions: list[Action | None] = [*status.status_change(observed, reached, said, now), *step.actions]
    waiting = None if step.is_last else Waiting(step.reason, step.message)
    return do(*actions, needs=[_connection(observed)], waiting=waiting)


def _normal(observed: Observed, reached: Progress, now: datetime) -> Decision:
    taken_over = endpoint_noted(observed.cluster, reached)
    noted = observed if taken_over is None else with_endpoint(observed, reached)
    actions: list[Action | None] = [
        taken_over,
        *status.status_change(noted, reached, conditions.deleting(noted), now),
        *claimed(observed),
        *told(observed, reached),
        _kubeconfig(observed, reached),
    ]
    return do(
        *actions,
        needs=[_connection(observed)],
        waiting=_waiting(observed, reached),
        requeue_after_s=_look_again_s(observed, now),
    )


def _connection(observed: Observed) -> Need[Any]:
    return Need(Connection(ClusterKey.of(observed.cluster)), PUSHED_S)


def _kubeconfig(observed: Observed, reached: Progress) -> Effect | None:
    """Made here only where no control plane object is there to make it."""
    cluster = observed.cluster
    is_ours = observed.control_plane is None and not observed.has_topology
    if not is_ours or observed.has_kubeconfig or not observed.has_authority or not reached.has_endpoint:
        return None
    host = reached.endpoint.host
    server = f"https://{f'[{host}]' if ':' in host else host}:{reached.endpoint.port}"
    return Effect(
        KUBECONFIG,
        KubeconfigArguments(cluster.key, server, owner_reference(CLUSTER, cluster)),
        timeout_s=TIMEOUT_S,
    )


def _waiting(observed: Observed, reached: Progress) -> Waiting | None:
    """What the cluster waits for, the first thing first."""
    before = observed.cluster.status.initialization
    if observed.endpoint_owner is not None:
        return Waiting(endpoint.IN_USE, endpoint.message(observed.cluster, observed.endpoint_owner))
    for external, once, how in (
        (observed.infrastructure, bool(before.infrastructure_provisioned), "provisioned"),
        (observed.control_plane, bool(before.control_plane_initialized), "initialized"),
    ):
        if why := lost(external, once=once, how=how):
            return Waiting("ReferencedObjectDeleted", why)
        if external is not None and not external.is_found:
            return Waiting("ReferencedObjectMissing", str(external))
    if observed.has_topology and observed.infrastructure is None:
        return Waiting("WaitingForTopology", "the topology has not made the cluster's objects yet")
    if not reached.infrastructure_provisioned:
        return Waiting("WaitingForInfrastructure", f"{observed.infrastructure} is not provisioned")
    if not reached.has_endpoint:
        return Waiting("WaitingForEndpoint", "no provider names the cluster's endpoint yet")
    if not reached.control_plane_initialized:
        return Waiting("WaitingForControlPlane", "the control plane is not initialized")
    needs_key = observed.control_plane is None and not (observed.has_kubeconfig or observed.has_authority)
    if needs_key and not observed.has_topology:
        name = secret_name(observed.cluster.metadata.name, Purpose.CLUSTER_CA)
        return Waiting("WaitingForAuthority", f"Secret {name} with the cluster's authority does not exist")
    return None


def _look_again_s(observed: Observed, now: datetime) -> float | None:
    there = observed.descendants
    moments = [younger_until_s([*there.control_plane_machines, *there.counted_workers], now)]
    state = observed.connection.value if observed.connection is not None else None
    if state is not None and not state.healthy and state.last_probe_success is not None:
        left = (state.last_probe_success + conditions.GRACE - now).total_seconds()
        moments.append(left + 1.0 if left >= 0 else None)
    return min((moment for moment in moments if moment is not None), default=None)

"""DevCluster: the endpoint of a cluster's API, by the provider contract.

Source: kubernetes-sigs/cluster-api: test/infrastructure/docker/internal/controllers/backends/inmemory/
inmemorycluster_backend.go; docs/book/src/developer/providers/contracts/infra-cluster.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from typing import Any, Final

import msgspec

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import ANNOTATION_DELETE_FOR_MOVE
from ironbell.api.meta import Condition
from ironbell.contract.clusters.paused import is_paused, paused_condition
from ironbell.kube import finalizers, patches
from ironbell.kube.conditions import set_condition
from ironbell.kube.decision import Action, Decision, Effect, Key, Need, do, patch, wait
from ironbell.kube.reconciler import Cache, Declaration, Performers, Watch
from ironbell.lab.sim.cluster.cluster import Endpoint, Place, PlaceQuery
from ironbell.lab.sim.provider.kinds import (
    DEV_CLUSTER,
    FAULT,
    DevCluster,
    DevClusterStatus,
    FailureDomain,
    Initialization,
)
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S

FINALIZER: Final = "devcluster.infrastructure.cluster.x-k8s.io"
REMOVE: Final = "remove-cluster"
SET_DOWN: Final = "set-down"
NAME: Final = "simulation-devcluster"


@dataclass(frozen=True, slots=True)
class RemoveCluster:
    """End a cluster's API."""

    cluster: Key


@dataclass(frozen=True, slots=True)
class SetDown:
    """Make a cluster's API unreachable, or reachable again."""

    cluster: Key
    down: bool


@dataclass(frozen=True, slots=True)
class Observed:
    """A DevCluster, with its Cluster and the address of its API."""

    obj: DevCluster
    cluster: Cluster | None
    place: Place | None


class DevClusterReconciler:
    """Gives a cluster its endpoint."""

    name = NAME
    declaration = Declaration(
        DEV_CLUSTER, watches=(Watch(CLUSTER, lambda cluster, _cache: _infrastructure_keys(cluster)),)
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        obj = cache.get(DEV_CLUSTER, *key)
        if obj is None:
            return None
        owner = next((owner for owner in obj.metadata.owner_references if owner.kind == CLUSTER.kind), None)
        cluster = cache.get(CLUSTER, key[0], owner.name) if owner is not None else None
        fact = cache.fact(PlaceQuery(ClusterKey.of(cluster)), PUSHED_S) if cluster is not None else None
        return Observed(obj, cluster, fact.value if fact is not None else None)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        obj, cluster = observed.obj, observed.cluster
        cluster_paused = cluster is not None and bool(cluster.spec.paused)
        if finalizers.is_deleting(obj) and not is_paused(obj, cluster_paused=cluster_paused):
            return _deleted(obj)
        if cluster is None:
            return wait("WaitingForOwner", "the Cluster has not set its owner reference yet")
        pause = paused_condition(DEV_CLUSTER.kind, obj, cluster_paused=cluster_paused)
        if is_paused(obj, cluster_paused=cluster_paused):
            status = msgspec.structs.replace(obj.status, conditions=_conditions(obj, [pause], now))
            return wait("Paused", pause.message, patches.status_change(DEV_CLUSTER, obj, obj.status, status))
        needs = [Need(PlaceQuery(ClusterKey.of(cluster)), max_age_s=PUSHED_S)]
        if observed.place is None:
            finalizer = finalizers.add_finalizer(DEV_CLUSTER, obj, FINALIZER)
            return wait("WaitingForEndpoint", "waiting for the endpoint of the API", finalizer, needs=needs)
        if not finalizers.has_finalizer(obj, FINALIZER):
            return do(finalizers.add_finalizer(DEV_CLUSTER, obj, FINALIZER), needs=needs)
        down = obj.metadata.annotations.get(FAULT) == "down"
        query = PlaceQuery(ClusterKey.of(cluster))
        changes = down != observed.place.down
        effect = Effect(SET_DOWN, SetDown(cluster.key, down), outdates=(query,)) if changes else None
        return do(_endpoint(obj, observed.place.endpoint), _provisioned(obj, pause, now), effect, needs=needs)


def performers(
    remove: Callable[[Key], Awaitable[None]], set_down: Callable[[Key, bool], Awaitable[None]]
) -> Performers:
    """The functions that carry out the effects."""

    async def perform(arguments: RemoveCluster) -> Sequence[Action]:
        await remove(arguments.cluster)
        return ()

    async def perform_down(arguments: SetDown) -> Sequence[Action]:
        await set_down(arguments.cluster, arguments.down)
        return ()

    return {REMOVE: perform, SET_DOWN: perform_down}


def _infrastructure_keys(cluster: Cluster) -> list[Key]:
    reference = cluster.spec.infrastructure_ref
    return [(cluster.metadata.namespace, reference.name)] if reference.kind == DEV_CLUSTER.kind else []


def _deleted(obj: DevCluster) -> Decision:
    if ANNOTATION_DELETE_FOR_MOVE in obj.metadata.annotations:
        return wait("Moved", "another management cluster has the cluster now")
    owners = [owner for owner in obj.metadata.owner_references if owner.kind == CLUSTER.kind]
    effects = [Effect(REMOVE, RemoveCluster((obj.metadata.namespace, owner.name))) for owner in owners]
    finalizer = finalizers.remove_finalizer(DEV_CLUSTER, obj, FINALIZER)
    return do(*effects, finalizer) if finalizer is not None else do()


def _endpoint(obj: DevCluster, endpoint: Endpoint) -> Action | None:
    held = obj.spec.control_plane_endpoint
    if (held.host, held.port) == (endpoint.host, endpoint.port):
        return None
    fields = {"host": endpoint.host, "port": endpoint.port}
    return patch(DEV_CLUSTER, obj, {"spec": {"controlPlaneEndpoint": fields}})


def _provisioned(obj: DevCluster, pause: Condition, now: datetime) -> Action | None:
    ready = Condition(type="Ready", status="True", reason="Ready", observed_generation=obj.metadata.generation)
    status = DevClusterStatus(
        conditions=_conditions(obj, [ready, pause], now),
        initialization=Initialization(provisioned=True),
        ready=True,
        failure_domains=_failure_domains(obj),
    )
    return patches.status_change(DEV_CLUSTER, obj, obj.status, status)


def _failure_domains(obj: DevCluster) -> list[FailureDomain]:
    backend = obj.spec.backend
    chosen = backend.in_memory or backend.docker
    return sorted(chosen.failure_domains, key=lambda domain: domain.name) if chosen is not None else []


def _conditions(obj: DevCluster, changes: Sequence[Condition], now: datetime) -> list[Any]:
    return reduce(partial(set_condition, now=now), changes, list(obj.status.conditions))

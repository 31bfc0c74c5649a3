"""The owner of an endpoint. Two clusters with the same host and port would join each other's Machines.

The endpoint belongs to the Cluster with the most progress, and among equals to the older one. Any other Cluster reports
the owner, and its installation does not start before the owner is deleted or has another endpoint.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.infrastructure import InfrastructureCluster
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Key
from ironbell.kube.reconciler import Cache, Index

IN_USE: Final = "EndpointInUse"
"""Reason of InfrastructureReady."""


def _place(host: str, port: int) -> str:
    return f"{host.lower().rstrip('.')} {port}" if host and port else ""


def _own_place(cluster: Cluster) -> str:
    endpoint = cluster.spec.control_plane_endpoint
    return _place(endpoint.host, endpoint.port)


def _waits(cluster: Cluster) -> bool:
    condition = find_condition(cluster.status.conditions, "InfrastructureReady")
    return condition is not None and condition.reason == IN_USE


BY_ENDPOINT: Final[Index[Cluster]] = Index(
    CLUSTER, "capi-endpoint", lambda cluster: [place] if (place := _own_place(cluster)) else []
)
WAITING_FOR_ENDPOINT: Final[Index[Cluster]] = Index(
    CLUSTER, "capi-endpoint-in-use", lambda cluster: ["waiting"] if _waits(cluster) else []
)
"""Clusters whose endpoint belongs to another one: few, if any."""


def owner(
    cache: Cache, cluster: Cluster, infrastructure: External | None, control_plane: External | None
) -> Cluster | None:
    """Return the other Cluster that the endpoint of this one belongs to; None if there is no such Cluster.

    A control plane that has been initialized has proven that the endpoint is its own.
    """
    place = _own_place(cluster) or _announced(infrastructure, control_plane)
    if not place or cluster.status.initialization.control_plane_initialized:
        return None
    others = [other for other in cache.indexed(BY_ENDPOINT, place) if other.metadata.uid != cluster.metadata.uid]
    first = min([*others, cluster], key=_precedence)
    return None if first is cluster else first


def is_released(old: Cluster | None, new: Cluster | None) -> bool:
    """Return whether an endpoint that belonged to a Cluster can belong to another one now."""
    old_place, new_place = (_own_place(cluster) if cluster is not None else "" for cluster in (old, new))
    return bool(old_place) and old_place != new_place


def waiting(_released: Cluster, cache: Cache) -> Iterable[Key]:
    """Keys of the Clusters that wait for an endpoint."""
    return [cluster.key for cluster in cache.indexed(WAITING_FOR_ENDPOINT, "waiting")]


def message(cluster: Cluster, owner: Cluster) -> str:
    """The message of a Cluster whose endpoint belongs to another Cluster."""
    endpoint = owner.spec.control_plane_endpoint
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"Endpoint {host}:{endpoint.port} belongs to Cluster {'/'.join(owner.key)}. {remedy(cluster)}."


def remedy(cluster: Cluster) -> str:
    """The remedy for a Cluster whose endpoint belongs to another Cluster, without a full stop."""
    kind = cluster.spec.infrastructure_ref.kind
    where = f"the Cluster and its {kind}" if kind else "the Cluster"
    return f"Set another spec.controlPlaneEndpoint on {where}, or delete the other Cluster"


def _announced(infrastructure: External | None, control_plane: External | None) -> str:
    """The endpoint that a provider reports and that the Cluster does not have yet."""
    for external, reader in ((infrastructure, InfrastructureCluster), (control_plane, ControlPlane)):
        if external is not None and external.exists:
            endpoint = reader.of(external).endpoint
            if place := _place(endpoint.host, endpoint.port):
                return place
    return ""


def _precedence(cluster: Cluster) -> tuple[bool, bool, str, Key]:
    done = cluster.status.initialization
    return (
        not done.control_plane_initialized,
        not done.infrastructure_provisioned,
        cluster.metadata.creation_timestamp or "",
        cluster.key,
    )

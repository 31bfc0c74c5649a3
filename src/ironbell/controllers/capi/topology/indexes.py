"""Indexes of the objects of a topology."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import (
    LABEL_CLUSTER_NAME,
    LABEL_DEPLOYMENT_NAME,
    LABEL_TOPOLOGY_DEPLOYMENT_NAME,
    LABEL_TOPOLOGY_OWNED,
)
from ironbell.api.meta import Resource
from ironbell.kube.reconciler import Index


def joined(namespace: str, *names: str) -> str:
    """An index value."""
    return "/".join((namespace, *names))


def is_owned(obj: Resource) -> bool:
    """Return whether a topology created the object."""
    return LABEL_TOPOLOGY_OWNED in obj.metadata.labels


def class_key(cluster: Cluster) -> tuple[str, str]:
    """Namespace and name of the Cluster's class; the name is empty if it has no topology."""
    reference = cluster.spec.topology.class_ref
    return (reference.namespace or cluster.metadata.namespace, reference.name)


def _by_labels(*labels: str) -> Callable[[Resource], list[str]]:
    def keys(obj: Resource) -> list[str]:
        texts = obj.metadata.labels
        if not is_owned(obj) or any(not texts.get(label) for label in labels):
            return []
        return [joined(obj.metadata.namespace, *(texts[label] for label in labels))]

    return keys


def _class_keys(cluster: Cluster) -> list[str]:
    namespace, name = class_key(cluster)
    return [joined(namespace, name)] if name else []


CLUSTERS_BY_CLASS: Final = Index(CLUSTER, "topology-class", _class_keys)
DEPLOYMENTS: Final = Index(MACHINE_DEPLOYMENT, "topology-cluster", _by_labels(LABEL_CLUSTER_NAME))
POOLS: Final = Index(MACHINE_POOL, "topology-cluster", _by_labels(LABEL_CLUSTER_NAME))
MACHINES: Final = Index(MACHINE, "topology-deployment", _by_labels(LABEL_CLUSTER_NAME, LABEL_TOPOLOGY_DEPLOYMENT_NAME))
MACHINE_SETS: Final = Index(MACHINE_SET, "topology-deployment", _by_labels(LABEL_DEPLOYMENT_NAME))

"""Pause: controllers skip an object, or all objects of a cluster, or create no Machines for it any more.

Source: kubernetes-sigs/cluster-api: util/paused/paused.go, util/annotations/helpers.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import ANNOTATION_MANAGED_BY, ANNOTATION_PAUSED
from ironbell.api.meta import Condition, Resource
from ironbell.kube.finalizers import is_deleting


def creation_stopped(cluster: Cluster) -> str:
    """Return why no Machine is created for this Cluster any more, or "" if Machines may be created.

    Workers are deleted before the control plane, which takes its time: a count of Machines in the meantime would
    claim servers that nobody uses.
    """
    if not is_deleting(cluster):
        return ""
    return f"Cluster {'/'.join(cluster.key)} is being deleted: no Machine is created any more"


ANNOTATION_PIVOT_PAUSED: Final = "ironbell.dev/pivot-paused"
"""On an object that a pivot has paused, and on its copy: which pivot. What was paused before does not have it."""
PAUSED: Final = "Paused"
NOT_PAUSED: Final = "NotPaused"


def has_paused_annotation(obj: Resource) -> bool:
    """Return whether the object itself is paused, whatever the annotation's value."""
    return ANNOTATION_PAUSED in obj.metadata.annotations


def is_externally_managed(obj: Resource) -> bool:
    """Return whether an external system manages this object."""
    return ANNOTATION_MANAGED_BY in obj.metadata.annotations


def is_paused(obj: Resource, *, cluster_paused: bool = False) -> bool:
    """Return whether controllers skip the object; `cluster_paused` is its Cluster's `spec.paused`."""
    return cluster_paused or has_paused_annotation(obj)


def paused_condition(kind: str, obj: Resource, *, cluster_paused: bool = False) -> Condition:
    """Return the object's condition `Paused`; its time is set when it is merged into the others."""
    causes = []
    if cluster_paused:
        causes.append("Cluster spec.paused is set to true")
    if has_paused_annotation(obj):
        causes.append(f"{kind} has the {ANNOTATION_PAUSED} annotation")
    return Condition(
        type=PAUSED,
        status="True" if causes else "False",
        reason=PAUSED if causes else NOT_PAUSED,
        message=", ".join(causes),
        observed_generation=obj.metadata.generation,
    )

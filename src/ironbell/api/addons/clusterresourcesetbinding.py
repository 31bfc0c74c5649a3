"""ClusterResourceSetBinding: which objects were put into one cluster.

Source: kubernetes-sigs/cluster-api: api/addons/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Schema, Text63, Text253, Text256, Time, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class ResourceBinding(Model, frozen=True):
    """Result of applying the manifests of one ConfigMap or Secret."""

    schema_ = Schema(required=("applied",))

    name: Text253 = required(str)
    kind: Annotated[str, Schema(enum=("Secret", "ConfigMap"))] = required(str)
    hash: Text256 = ""
    last_applied_time: Time = None
    applied: bool | None = None


class ResourceSetBinding(Model, frozen=True):
    """Resources that were applied to the cluster for one ClusterResourceSet."""

    cluster_resource_set_name: Text253 = required(str)
    resources: Annotated[list[ResourceBinding], Schema(max_items=100, list_type="atomic")] = []


class ClusterResourceSetBindingSpec(Model, frozen=True):
    """The cluster, and what was put into it."""

    bindings: Annotated[list[ResourceSetBinding], Schema(max_items=100, list_type="atomic")] = []
    cluster_name: Text63 = required(str)


class ClusterResourceSetBinding(Resource, frozen=True):
    """Objects that were applied to one cluster."""

    spec: ClusterResourceSetBindingSpec = required(ClusterResourceSetBindingSpec)


CLUSTER_RESOURCE_SET_BINDING: Kind[ClusterResourceSetBinding] = Kind(
    group="addons.cluster.x-k8s.io",
    version="v1beta2",
    kind="ClusterResourceSetBinding",
    plural="clusterresourcesetbindings",
    model=ClusterResourceSetBinding,
    categories=("cluster-api",),
    columns=(
        Column("Cluster", ".spec.clusterName"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.addons",
)

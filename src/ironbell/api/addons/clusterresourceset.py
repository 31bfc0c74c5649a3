"""ClusterResourceSet: objects that are put into clusters.

Source: kubernetes-sigs/cluster-api: api/addons/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.cluster.deprecated import DeprecatedConditionsStatus
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Int64, Schema, Text253, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, LabelSelector, Model, Resource


class ResourceRef(Model, frozen=True):
    """A ConfigMap or Secret with manifests."""

    name: Text253 = required(str)
    kind: Annotated[str, Schema(enum=("Secret", "ConfigMap"))] = required(str)


class ClusterResourceSetSpec(Model, frozen=True):
    """Desired state of a ClusterResourceSet: objects, and the clusters that they are applied to."""

    cluster_selector: LabelSelector = required(LabelSelector)
    resources: Annotated[list[ResourceRef], Schema(min_items=1, max_items=100, list_type="atomic")] = required(list)
    strategy: Annotated[str, Schema(enum=("ApplyOnce", "Reconcile"))] = ""


class ClusterResourceSetStatus(Model, frozen=True):
    """Observed state of a ClusterResourceSet."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    observed_generation: Annotated[Int64, Schema(minimum=1)] = 0
    deprecated: DeprecatedConditionsStatus | None = None


class ClusterResourceSet(Resource, frozen=True):
    """Objects that are put into clusters."""

    spec: ClusterResourceSetSpec = required(ClusterResourceSetSpec)
    status: ClusterResourceSetStatus = ClusterResourceSetStatus()


CLUSTER_RESOURCE_SET: Kind[ClusterResourceSet] = Kind(
    group="addons.cluster.x-k8s.io",
    version="v1beta2",
    kind="ClusterResourceSet",
    plural="clusterresourcesets",
    model=ClusterResourceSet,
    categories=("cluster-api",),
    columns=(
        Column("Applied", '.status.conditions[?(@.type=="ResourcesApplied")].status'),
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    has_status=True,
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.addons",
)

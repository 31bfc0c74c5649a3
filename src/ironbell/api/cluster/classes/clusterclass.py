"""ClusterClass: a template of clusters.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.cluster.classes.controlplane import ControlPlaneClass
from ironbell.api.cluster.classes.patches import ClusterClassPatch
from ironbell.api.cluster.classes.references import ClassNamingSpec
from ironbell.api.cluster.classes.variables import ClusterClassVariable, VariableSchema
from ironbell.api.cluster.classes.workers import WorkersClass
from ironbell.api.cluster.common import ConditionGates, TemplateMetadata, TemplateReference
from ironbell.api.cluster.deprecated import DeprecatedConditionsStatus
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Int64, Schema, Text256, Text512, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, Model, Resource


class InfrastructureClass(Model, frozen=True):
    """Template of the infrastructure cluster."""

    template_ref: TemplateReference = required(TemplateReference)
    naming: ClassNamingSpec = ClassNamingSpec()


class ClusterClassUpgradeExternal(Model, frozen=True):
    """The runtime extension that plans upgrades."""

    schema_ = Schema(min_properties=1)

    generate_upgrade_plan_extension: Text512 = ""


class ClusterClassUpgrade(Model, frozen=True):
    """Upgrade of clusters."""

    schema_ = Schema(min_properties=1)

    external: ClusterClassUpgradeExternal = ClusterClassUpgradeExternal()


class ClusterClassSpec(Model, frozen=True):
    """The parts that clusters are made of, and what may differ between them."""

    availability_gates: ConditionGates = []
    infrastructure: InfrastructureClass = required(InfrastructureClass)
    control_plane: ControlPlaneClass = required(ControlPlaneClass)
    workers: WorkersClass = WorkersClass()
    variables: Annotated[list[ClusterClassVariable], Schema(min_items=1, max_items=1000, list_type="atomic")] = []
    patches: Annotated[list[ClusterClassPatch], Schema(min_items=1, max_items=1000, list_type="atomic")] = []
    upgrade: ClusterClassUpgrade = ClusterClassUpgrade()
    kubernetes_versions: Annotated[list[Text256], Schema(min_items=1, max_items=100, list_type="atomic")] = []


class ClusterClassStatusVariableDefinition(Model, frozen=True):
    """One definition of a variable."""

    schema_ = Schema(required=("required",))

    from_: Text256 = required(str)
    required_: bool | None = None
    deprecated_v1beta1_metadata: TemplateMetadata = TemplateMetadata()
    schema: VariableSchema = required(VariableSchema)


class ClusterClassStatusVariable(Model, frozen=True):
    """A variable, and where it is defined."""

    name: Text256 = required(str)
    definitions_conflict: bool | None = None
    definitions: Annotated[
        list[ClusterClassStatusVariableDefinition], Schema(min_items=1, max_items=100, list_type="atomic")
    ] = required(list)


class ClusterClassStatus(Model, frozen=True):
    """Observed state of the class."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    variables: Annotated[list[ClusterClassStatusVariable], Schema(max_items=1000, list_type="atomic")] = []
    observed_generation: Annotated[Int64, Schema(minimum=1)] = 0
    deprecated: DeprecatedConditionsStatus | None = None


class ClusterClass(Resource, frozen=True):
    """A template of clusters."""

    spec: ClusterClassSpec = required(ClusterClassSpec)
    status: ClusterClassStatus = ClusterClassStatus()


CLUSTER_CLASS: Kind[ClusterClass] = Kind(
    group="cluster.x-k8s.io",
    version="v1beta2",
    kind="ClusterClass",
    plural="clusterclasses",
    model=ClusterClass,
    short_names=("cc",),
    categories=("cluster-api",),
    columns=(
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Variables Ready", '.status.conditions[?(@.type=="VariablesReady")].status'),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    has_status=True,
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.cluster",
)

"""KubeadmConfig: how kubeadm makes a machine a Node.

Source: kubernetes-sigs/cluster-api: api/bootstrap/kubeadm/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.bootstrap.clusterconfiguration import ClusterConfiguration
from ironbell.api.bootstrap.init import InitConfiguration
from ironbell.api.bootstrap.join import JoinConfiguration
from ironbell.api.bootstrap.machineconfig import DiskSetup, File, Format, IgnitionSpec, Ntp, User
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.names import BOOTSTRAP_KUBEADM_LABELS
from ironbell.api.crd.markers import Int32, Int64, Schema, Text253, Text256, Text512, Text10240
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, Model, Resource


class KubeadmConfigSpec(Model, frozen=True):
    """Configuration of kubeadm and of the machine around it."""

    schema_ = Schema(min_properties=1)

    cluster_configuration: ClusterConfiguration = ClusterConfiguration()
    init_configuration: InitConfiguration = InitConfiguration()
    join_configuration: JoinConfiguration = JoinConfiguration()
    files: Annotated[list[File], Schema(min_items=1, max_items=200, list_type="atomic")] = []
    disk_setup: DiskSetup = DiskSetup()
    mounts: Annotated[
        list[Annotated[list[Text512], Schema(min_items=1, max_items=100)]],
        Schema(min_items=1, max_items=100, list_type="atomic"),
    ] = []
    boot_commands: Annotated[list[Text10240], Schema(min_items=1, max_items=1000, list_type="atomic")] = []
    pre_kubeadm_commands: Annotated[list[Text10240], Schema(min_items=1, max_items=1000, list_type="atomic")] = []
    post_kubeadm_commands: Annotated[list[Text10240], Schema(min_items=1, max_items=1000, list_type="atomic")] = []
    users: Annotated[list[User], Schema(min_items=1, max_items=100, list_type="atomic")] = []
    ntp: Ntp = Ntp()
    format: Annotated[str, Schema(enum=tuple(Format))] = ""
    verbosity: Int32 | None = None
    ignition: IgnitionSpec = IgnitionSpec()


class KubeadmConfigInitializationStatus(Model, frozen=True):
    """Initialization of the KubeadmConfig: whether the bootstrap data was created; once true it stays true."""

    schema_ = Schema(min_properties=1)

    data_secret_created: bool | None = None


class KubeadmConfigV1Beta1DeprecatedStatus(Model, frozen=True):
    """Fields of the status in version v1beta1 that later versions do not have."""

    conditions: list[LegacyCondition] = []
    failure_reason: Text256 = ""
    failure_message: Text10240 = ""


class KubeadmConfigDeprecatedStatus(Model, frozen=True):
    """Status fields of older versions."""

    v1beta1: KubeadmConfigV1Beta1DeprecatedStatus | None = None


class KubeadmConfigStatus(Model, frozen=True):
    """Observed state: whether the bootstrap data exists."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    initialization: KubeadmConfigInitializationStatus = KubeadmConfigInitializationStatus()
    data_secret_name: Text253 = ""
    observed_generation: Annotated[Int64, Schema(minimum=1)] = 0
    deprecated: KubeadmConfigDeprecatedStatus | None = None


class KubeadmConfig(Resource, frozen=True):
    """Configuration with which kubeadm makes a machine a Node."""

    spec: KubeadmConfigSpec = KubeadmConfigSpec()
    status: KubeadmConfigStatus = KubeadmConfigStatus()


KUBEADM_CONFIG: Kind[KubeadmConfig] = Kind(
    group="bootstrap.cluster.x-k8s.io",
    version="v1beta2",
    kind="KubeadmConfig",
    plural="kubeadmconfigs",
    model=KubeadmConfig,
    categories=("cluster-api",),
    columns=(
        Column("Cluster", ".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']"),
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Data secret created", ".status.initialization.dataSecretCreated"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    has_status=True,
    crd_labels=BOOTSTRAP_KUBEADM_LABELS,
    older_versions="ironbell.api.bootstrap",
)

"""kubeadm's ClusterConfiguration: what all control plane machines share.

Source: kubernetes-sigs/cluster-api: api/bootstrap/kubeadm/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import field

from ironbell.api.bootstrap.env import EnvVar
from ironbell.api.bootstrap.kubeadm import Arg
from ironbell.api.crd.markers import Int32, Rule, Schema, Text253, Text256, Text512, required
from ironbell.api.meta import Model


class EncryptionAlgorithmType(StrEnum):
    """Algorithms of the keys that kubeadm makes."""

    ECDSA_P256 = "ECDSA-P256"
    ECDSA_P384 = "ECDSA-P384"
    RSA_2048 = "RSA-2048"
    RSA_3072 = "RSA-3072"
    RSA_4096 = "RSA-4096"


ExtraArgs = Annotated[
    list[Arg],
    Schema(
        min_items=1,
        max_items=100,
        rules=(Rule("self.all(x, self.exists_one(y, x.name == y.name))", "extraArgs name must be unique"),),
        list_type="map",
        list_map_keys=("name", "value"),
    ),
]


class LocalEtcd(Model, frozen=True):
    """An etcd member on each control plane machine."""

    schema_ = Schema(min_properties=1)

    image_repository: Text512 = ""
    image_tag: Text256 = ""
    data_dir: Text512 = ""
    extra_args: ExtraArgs = []
    extra_envs: Annotated[list[EnvVar] | None, Schema(min_items=1, max_items=100, list_type="atomic")] = None
    server_cert_sa_ns: Annotated[list[Text253], Schema(min_items=1, max_items=100, list_type="atomic")] = field(
        default_factory=list, name="serverCertSANs"
    )
    peer_cert_sa_ns: Annotated[list[Text253], Schema(min_items=1, max_items=100, list_type="atomic")] = field(
        default_factory=list, name="peerCertSANs"
    )


class ExternalEtcd(Model, frozen=True):
    """An etcd cluster that is not kubeadm's."""

    endpoints: Annotated[list[Text512], Schema(min_items=1, max_items=50, list_type="atomic")] = required(list)
    ca_file: Text512 = required(str)
    cert_file: Text512 = required(str)
    key_file: Text512 = required(str)


class Etcd(Model, frozen=True):
    """Location of etcd: on the control plane machines, or elsewhere."""

    schema_ = Schema(min_properties=1)

    local: LocalEtcd = LocalEtcd()
    external: ExternalEtcd = ExternalEtcd()


class HostPathMount(Model, frozen=True):
    """A file or folder of the machine, mounted into a component."""

    name: Text512 = required(str)
    host_path: Text512 = required(str)
    mount_path: Text512 = required(str)
    read_only: bool | None = None
    path_type: str = ""


class ApiServer(Model, frozen=True):
    """Settings of the API server."""

    schema_ = Schema(min_properties=1)

    extra_args: ExtraArgs = []
    extra_volumes: Annotated[list[HostPathMount], Schema(min_items=1, max_items=100, list_type="atomic")] = []
    extra_envs: Annotated[list[EnvVar] | None, Schema(min_items=1, max_items=100, list_type="atomic")] = None
    cert_sa_ns: Annotated[list[Text253], Schema(min_items=1, max_items=100, list_type="atomic")] = field(
        default_factory=list, name="certSANs"
    )


class ControlPlaneComponent(Model, frozen=True):
    """Settings of the controller manager or of the scheduler."""

    schema_ = Schema(min_properties=1)

    extra_args: ExtraArgs = []
    extra_volumes: Annotated[list[HostPathMount], Schema(min_items=1, max_items=100, list_type="atomic")] = []
    extra_envs: Annotated[list[EnvVar] | None, Schema(min_items=1, max_items=100, list_type="atomic")] = None


class Dns(Model, frozen=True):
    """The image of CoreDNS."""

    schema_ = Schema(min_properties=1)

    image_repository: Text512 = ""
    image_tag: Text256 = ""


class ClusterConfiguration(Model, frozen=True):
    """Configuration that all control plane machines share (kubeadm's ClusterConfiguration)."""

    schema_ = Schema(min_properties=1)

    etcd: Etcd = Etcd()
    control_plane_endpoint: Text512 = ""
    api_server: ApiServer = ApiServer()
    controller_manager: ControlPlaneComponent = ControlPlaneComponent()
    scheduler: ControlPlaneComponent = ControlPlaneComponent()
    dns: Dns = Dns()
    certificates_dir: Text512 = ""
    image_repository: Text512 = ""
    feature_gates: dict[str, bool] = {}
    certificate_validity_period_days: Annotated[Int32, Schema(minimum=1, maximum=1095)] = 0
    ca_certificate_validity_period_days: Annotated[Int32, Schema(minimum=1, maximum=36500)] = 0
    encryption_algorithm: Annotated[str, Schema(enum=tuple(EncryptionAlgorithmType))] = ""

"""Types that kubeadm's configurations share.

Source: kubernetes-sigs/cluster-api: api/bootstrap/kubeadm/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ironbell.api.crd.markers import Int32, Rule, Schema, Text253, Text256, Text512, Time, required
from ironbell.api.meta import Model


class Arg(Model, frozen=True):
    """One command line argument, without leading dashes."""

    schema_ = Schema(required=("value",))

    name: Text256 = required(str)
    value: Annotated[str | None, Schema(min_length=0, max_length=1024)] = None


class BootstrapToken(Model, frozen=True):
    """A token that machines join with."""

    token: Annotated[str, Schema(min_length=1, max_length=23)] = required(str)
    description: Text512 = ""
    ttl_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    expires: Time = None
    usages: Annotated[list[Text256], Schema(min_items=1, max_items=100, list_type="atomic")] = []
    groups: Annotated[list[Text256], Schema(min_items=1, max_items=100, list_type="atomic")] = []


class Taint(Model, frozen=True):
    """A taint that the kubelet registers with."""

    key: str = required(str)
    value: str = ""
    effect: str = required(str)
    time_added: Time = None


class NodeRegistrationOptions(Model, frozen=True):
    """Registration of the machine as a Node."""

    schema_ = Schema(min_properties=1)

    name: Text253 = ""
    cri_socket: Text512 = ""
    taints: Annotated[list[Taint] | None, Schema(min_items=0, max_items=100)] = None
    kubelet_extra_args: Annotated[
        list[Arg],
        Schema(
            min_items=1,
            max_items=100,
            rules=(Rule("self.all(x, self.exists_one(y, x.name == y.name))", "kubeletExtraArgs name must be unique"),),
            list_type="map",
            list_map_keys=("name", "value"),
        ),
    ] = []
    ignore_preflight_errors: Annotated[list[Text512], Schema(min_items=1, max_items=50, list_type="atomic")] = []
    image_pull_policy: Annotated[str, Schema(enum=("Always", "IfNotPresent", "Never"))] = ""
    image_pull_serial: bool | None = None


class ApiEndpoint(Model, frozen=True):
    """Address and port of this machine's API server."""

    schema_ = Schema(min_properties=1)

    advertise_address: Annotated[str, Schema(min_length=1, max_length=39)] = ""
    bind_port: Annotated[Int32, Schema(minimum=1)] = 0


class Patches(Model, frozen=True):
    """A folder with patches of kubeadm's static Pods."""

    schema_ = Schema(min_properties=1)

    directory: Text512 = ""


class Timeouts(Model, frozen=True):
    """Timeouts of kubeadm."""

    schema_ = Schema(min_properties=1)

    control_plane_component_health_check_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    kubelet_health_check_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    kubernetes_api_call_seconds: Annotated[Int32 | None, Schema(minimum=0)] = field(
        default=None, name="kubernetesAPICallSeconds"
    )
    etcd_api_call_seconds: Annotated[Int32 | None, Schema(minimum=0)] = field(default=None, name="etcdAPICallSeconds")
    tls_bootstrap_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    discovery_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None

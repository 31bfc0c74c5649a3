"""The kubeadm bootstrap and control plane providers of Cluster API as systems."""

from __future__ import annotations

from typing import Final

from ironbell.contract.system import Definitions, Lazy, Option, Provider, System

_CONTROLLERS: Final = "ironbell.controllers.kubeadm.controllers"
_BOOTSTRAP_KINDS: Final = frozenset(
    {"kubeadmconfigs.bootstrap.cluster.x-k8s.io", "kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io"}
)
_CONTROL_PLANES: Final = "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"
_CONTROL_PLANE_KINDS: Final = frozenset({_CONTROL_PLANES, "kubeadmcontrolplanetemplates.controlplane.cluster.x-k8s.io"})
_VERSION: Final = "v1.14.2"


SYSTEMS: Final = (
    System(
        "kubeadm-bootstrap",
        "KubeadmConfigs: the bootstrap data that turn machines into nodes at their first boot.",
        (Lazy("ironbell.api.bootstrap", "KINDS"),),
        Lazy(_CONTROLLERS, "BOOTSTRAP"),
        Lazy(_CONTROLLERS, "create_bootstrap_controllers"),
        aliases=("cabpk", "capi-kubeadm-bootstrap"),
        definitions=Definitions.WITH_WEBHOOKS,
        admission=Lazy("ironbell.controllers.kubeadm.admission.kubeadmconfig", "ADMISSION"),
        admitted=_BOOTSTRAP_KINDS,
        converted=_BOOTSTRAP_KINDS,
        webhooks_of="cluster-api",
        provider=Provider("bootstrap-kubeadm", "kubeadm", "BootstrapProvider", _VERSION),
        options=(
            Option(
                "--bootstrap-token-ttl",
                "token_ttl_s",
                "kubeadm-bootstrap: lifetime of a join token without renewal.",
                type="seconds",
                default="15m",
                show_default=True,
            ),
        ),
        read_settings=Lazy("ironbell.controllers.kubeadm.config.tokens", "read_settings"),
    ),
    System(
        "kubeadm-control-plane",
        "KubeadmControlPlanes: the Machines of control planes, their etcd, upgrades and certificates.",
        (Lazy("ironbell.api.controlplane", "KINDS"),),
        Lazy(_CONTROLLERS, "CONTROL_PLANE"),
        Lazy(_CONTROLLERS, "create_control_plane_controllers"),
        aliases=("cacpk", "kcp", "capi-kubeadm-control-plane"),
        definitions=Definitions.WITH_WEBHOOKS,
        admission=Lazy("ironbell.controllers.kubeadm.admission.kubeadmcontrolplane", "ADMISSION"),
        admitted=_CONTROL_PLANE_KINDS,
        converted=_CONTROL_PLANE_KINDS,
        scale_checked=frozenset({_CONTROL_PLANES}),
        webhooks_of="cluster-api",
        provider=Provider("control-plane-kubeadm", "kubeadm", "ControlPlaneProvider", _VERSION),
    ),
)

"""Both versions of KubeadmConfig; a KubeadmControlPlane has its spec inside.

Source: kubernetes-sigs/cluster-api: api/bootstrap/kubeadm/v1beta1/conversion.go, bootstrap/kubeadm/webhooks/conversion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.conversion.paths import MISSING, Body, Path, objects, path, put, take, value_at
from ironbell.api.conversion.rules import (
    Rule,
    Target,
    dropped,
    flag,
    for_each,
    from_seconds,
    seconds,
    to_seconds,
    within,
)
from ironbell.api.conversion.status import FAILURE, Status, initialized


@dataclass(frozen=True, slots=True)
class _Arguments:
    """Command line arguments: by name in the older version, a sorted list in the stored one."""

    at: Path

    def up(self, body: Body, kept: Body | None) -> None:
        arguments = value_at(body, self.at)
        if isinstance(arguments, dict):
            put(body, self.at, [{"name": name, "value": arguments[name]} for name in sorted(arguments)])

    def down(self, body: Body, target: Target) -> None:
        arguments = value_at(body, self.at)
        if isinstance(arguments, list):
            named: dict[str, Any] = {
                argument["name"]: argument.get("value", "") for argument in objects(arguments) if "name" in argument
            }
            put(body, self.at, named)


_API_SERVER_TIMEOUT: Final = path("clusterConfiguration.apiServer.timeoutForControlPlane")
_DISCOVERY_TIMEOUT: Final = path("joinConfiguration.discovery.timeout")
_INIT_TIMEOUTS: Final = path("initConfiguration.timeouts")
_JOIN_TIMEOUTS: Final = path("joinConfiguration.timeouts")
_CONTROL_PLANE: Final = "controlPlaneComponentHealthCheckSeconds"
_TLS_BOOTSTRAP: Final = "tlsBootstrapSeconds"


class _Timeouts:
    """Two time limits of kubeadm, which the older version has elsewhere; it does not have the others."""

    def up(self, body: Body, kept: Body | None) -> None:
        for at in (_INIT_TIMEOUTS, _JOIN_TIMEOUTS):
            stored = value_at(kept, at)
            if isinstance(stored, dict) and stored:
                put(body, at, dict(stored))
        control_plane = take(body, _API_SERVER_TIMEOUT)
        discovery = take(body, _DISCOVERY_TIMEOUT)
        limit = MISSING if control_plane in (MISSING, None) else to_seconds(control_plane)
        if limit is not MISSING:
            put(body, (*_INIT_TIMEOUTS, _CONTROL_PLANE), limit)
            put(body, (*_JOIN_TIMEOUTS, _CONTROL_PLANE), limit)
        if discovery not in (MISSING, None):
            if limit is MISSING:
                take(body, (*_JOIN_TIMEOUTS, _CONTROL_PLANE))
            put(body, (*_JOIN_TIMEOUTS, _TLS_BOOTSTRAP), to_seconds(discovery))

    def down(self, body: Body, target: Target) -> None:
        first, other = take(body, _INIT_TIMEOUTS), take(body, _JOIN_TIMEOUTS)
        control_plane, bootstrap = value_at(first, (_CONTROL_PLANE,)), value_at(other, (_TLS_BOOTSTRAP,))
        if control_plane is not MISSING:
            put(body, _API_SERVER_TIMEOUT, from_seconds(control_plane))
        if bootstrap is not MISSING:
            put(body, _DISCOVERY_TIMEOUT, from_seconds(bootstrap))


class _Layout:
    """The layout of a disk as one partition: always present in the older version, while the stored version has
    either that or a list of partitions."""

    def up(self, body: Body, kept: Body | None) -> None:
        if body.get("layout"):
            return
        if body.get("diskLayout"):
            body.pop("layout", None)
        else:
            body["layout"] = False

    def down(self, body: Body, target: Target) -> None:
        body.setdefault("layout", False)


_VOLUMES: Final = for_each("extraVolumes", flag("readOnly"), key="hostPath")
_TYPE: Final = dropped("apiVersion", "kind")
_NODE: Final = _Arguments(path("nodeRegistration.kubeletExtraArgs"))

KUBEADM_CONFIG_SPEC: Final[tuple[Rule, ...]] = (
    _Timeouts(),
    within(
        "clusterConfiguration",
        *_TYPE,
        *dropped("clusterName", "kubernetesVersion", "networking"),
        *(
            within(part, _Arguments(("extraArgs",)), _VOLUMES)
            for part in ("apiServer", "controllerManager", "scheduler")
        ),
        _Arguments(path("etcd.local.extraArgs")),
    ),
    within("initConfiguration", *_TYPE, _NODE, for_each("bootstrapTokens", seconds("ttl", "ttlSeconds"))),
    within(
        "joinConfiguration",
        *_TYPE,
        _NODE,
        within("discovery.bootstrapToken", flag("unsafeSkipCAVerification")),
        within("discovery.file.kubeConfig.cluster", flag("insecureSkipTLSVerify")),
        within("discovery.file.kubeConfig.user.exec", flag("provideClusterInfo")),
    ),
    *dropped("useExperimentalRetryJoin"),
    for_each("files", flag("append"), key="path"),
    for_each("diskSetup.partitions", _Layout()),
    within("ignition.containerLinuxConfig", flag("strict")),
)

KUBEADM_CONFIG: Final[tuple[Rule, ...]] = (
    within("spec", *KUBEADM_CONFIG_SPEC),
    Status(FAILURE, always=True),
    initialized("ready", "dataSecretCreated"),
)

KUBEADM_CONFIG_TEMPLATE: Final[tuple[Rule, ...]] = (within("spec.template.spec", *KUBEADM_CONFIG_SPEC),)

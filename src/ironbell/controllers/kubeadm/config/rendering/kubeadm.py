"""kubeadm's configuration documents, written from the fields of the KubeadmConfig API.

Which version of kubeadm's API a machine reads follows from its Kubernetes version. The documents equal upstream's byte
for byte: keys sorted, and of the empty fields exactly those printed that kubeadm's types print.

Upstream begins with Kubernetes 1.22. Before that kubeadm reads v1beta2, which is v1beta3 without a few fields.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/pkg/types (utils.go; upstreamv1beta3, upstreamv1beta4: types.go,
conversion.go); kubernetes/kubernetes: cmd/kubeadm/app/apis/kubeadm/v1beta4/types.go, and at v1.22 v1beta2/types.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import goyaml
from ironbell.codec.durations import seconds_text
from ironbell.kube.decision import Fields

V1BETA2: Final = "kubeadm.k8s.io/v1beta2"
V1BETA3: Final = "kubeadm.k8s.io/v1beta3"
V1BETA4: Final = "kubeadm.k8s.io/v1beta4"
OLDEST: Final = (1, 15)
SINCE_V1BETA3: Final = (1, 22)
SINCE_V1BETA4: Final = (1, 31)

Spec: TypeAlias = Mapping[str, Any]
"""A part of a KubeadmConfig's spec (v1beta2), in plain data."""


class UnsupportedVersionError(IronbellError):
    """kubeadm of this Kubernetes version is not supported."""

    reason, retry = "UnsupportedVersion", Retry.NEVER


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts about the cluster from other objects, for the ClusterConfiguration."""

    name: str
    kubernetes_version: str = ""
    control_plane_endpoint: str = ""
    dns_domain: str = ""
    service_subnet: str = ""
    pod_subnet: str = ""


def kubeadm_api(version: tuple[int, ...]) -> str:
    """Return the version of kubeadm's API for the major and minor Kubernetes version.

    Raises:
        UnsupportedVersionError: the version is older than 1.15.
    """
    if version[:2] < OLDEST:
        raise UnsupportedVersionError(
            f"spec.version v{'.'.join(map(str, version))} is not supported: the oldest supported version is v1.15"
        )
    if version[:2] < SINCE_V1BETA3:
        return V1BETA2
    return V1BETA3 if version[:2] < SINCE_V1BETA4 else V1BETA4


def cluster_configuration(spec: Spec, facts: ClusterFacts, init: Spec, api: str) -> str:
    """Return the ClusterConfiguration document.

    Args:
        spec: `clusterConfiguration`.
        facts: the facts from other objects.
        init: `initConfiguration`, which has the timeout that v1beta3 keeps here.
        api: the version to write.
    """
    is_new = api == V1BETA4
    networking = {
        "dnsDomain": facts.dns_domain,
        "podSubnet": facts.pod_subnet,
        "serviceSubnet": facts.service_subnet,
    }
    document: Fields = {
        "apiServer": _component(spec.get("apiServer", {}), is_new)
        | _set(spec.get("apiServer", {}), "certSANs")
        | ({} if is_new else _timeout_for_control_plane(init)),
        "controllerManager": _component(spec.get("controllerManager", {}), is_new),
        "dns": _set(spec.get("dns", {}), "imageRepository", "imageTag"),
        "etcd": _etcd(spec.get("etcd", {}), is_new),
        "networking": {key: value for key, value in networking.items() if value},
        "scheduler": _component(spec.get("scheduler", {}), is_new),
        **_set(spec, "certificatesDir", "controlPlaneEndpoint", "featureGates", "imageRepository"),
    }
    named = {"clusterName": facts.name, "kubernetesVersion": facts.kubernetes_version}
    document |= {key: value for key, value in named.items() if value}
    if not document.get("controlPlaneEndpoint") and facts.control_plane_endpoint:
        document["controlPlaneEndpoint"] = facts.control_plane_endpoint
    if is_new:
        document |= {"proxy": {}, **_set(spec, "encryptionAlgorithm")}
        for name in ("certificateValidityPeriod", "caCertificateValidityPeriod"):
            if spec.get(f"{name}Days"):
                document[name] = seconds_text(spec[f"{name}Days"] * 86400)
    return _written(document, "ClusterConfiguration", api)


def init_configuration(spec: Spec, api: str) -> str:
    """Return the InitConfiguration document from `initConfiguration`."""
    document: Fields = {
        "localAPIEndpoint": _endpoint(spec.get("localAPIEndpoint", {})),
        "nodeRegistration": _node_registration(spec.get("nodeRegistration", {}), api),
        **_since_v1beta3(spec, api, "skipPhases", "patches"),
    }
    if spec.get("bootstrapTokens"):
        document["bootstrapTokens"] = [_bootstrap_token(token) for token in spec["bootstrapTokens"]]
    if api == V1BETA4 and spec.get("timeouts"):
        document["timeouts"] = _timeouts(spec["timeouts"])
    return _written(document, "InitConfiguration", api)


def join_configuration(spec: Spec, api: str) -> str:
    """Return the JoinConfiguration document from `joinConfiguration`."""
    document: Fields = {
        "discovery": _discovery(spec.get("discovery", {})),
        "nodeRegistration": _node_registration(spec.get("nodeRegistration", {}), api),
        **_set(spec, "caCertPath"),
        **_since_v1beta3(spec, api, "skipPhases", "patches"),
    }
    timeouts: Spec = spec.get("timeouts", {})
    if spec.get("controlPlane") is not None:
        document["controlPlane"] = {"localAPIEndpoint": _endpoint(spec["controlPlane"].get("localAPIEndpoint", {}))}
    if api == V1BETA4 and timeouts:
        document["timeouts"] = _timeouts(timeouts)
    if api != V1BETA4 and timeouts.get("tlsBootstrapSeconds") is not None:
        document["discovery"]["timeout"] = seconds_text(timeouts["tlsBootstrapSeconds"])
    return _written(document, "JoinConfiguration", api)


def _written(document: Fields, kind: str, api: str) -> str:
    return goyaml.dump({"apiVersion": api, "kind": kind, **document}, go_exact=True)


def _set(spec: Spec, *names: str) -> Fields:
    """Return the fields of these names that are not empty."""
    return {name: spec[name] for name in names if spec.get(name)}


def _since_v1beta3(spec: Spec, api: str, *names: str) -> Fields:
    """Return the fields of these names, which earlier versions of kubeadm do not have."""
    return {} if api == V1BETA2 else _set(spec, *names)


def _component(spec: Spec, is_new: bool) -> Fields:
    return {
        **_args(spec, "extraArgs", is_new),
        **(_listed(spec, "extraEnvs", _env) if is_new else {}),
        **_listed(spec, "extraVolumes", _volume),
    }


def _listed(spec: Spec, name: str, convert: Callable[[Spec], Fields]) -> Fields:
    return {name: [convert(item) for item in spec[name]]} if spec.get(name) else {}


def _args(spec: Spec, name: str, is_new: bool) -> Fields:
    """Return arguments: a list that may repeat a name, or v1beta3's map, in which the last value is used."""
    args = spec.get(name)
    if not args:
        return {}
    if is_new:
        return {name: [{"name": arg.get("name", ""), "value": arg.get("value") or ""} for arg in args]}
    return {name: {arg.get("name", ""): arg.get("value") or "" for arg in args}}


def _env(env: Spec) -> Fields:
    return {"name": env.get("name", ""), **_set(env, "value", "valueFrom")}


def _volume(volume: Spec) -> Fields:
    always = {name: volume.get(name, "") for name in ("name", "hostPath", "mountPath")}
    return {**always, **_set(volume, "readOnly", "pathType")}


def _timeout_for_control_plane(init: Spec) -> Fields:
    seconds = init.get("timeouts", {}).get("controlPlaneComponentHealthCheckSeconds")
    return {} if seconds is None else {"timeoutForControlPlane": seconds_text(seconds)}


def _etcd(spec: Spec, is_new: bool) -> Fields:
    etcd: Fields = {}
    if local := spec.get("local"):
        etcd["local"] = {
            "dataDir": local.get("dataDir", ""),
            **_set(local, "imageRepository", "imageTag", "serverCertSANs", "peerCertSANs"),
            **_args(local, "extraArgs", is_new),
            **(_listed(local, "extraEnvs", _env) if is_new else {}),
        }
    if external := spec.get("external"):
        etcd["external"] = {
            "endpoints": external.get("endpoints"),
            **{name: external.get(name, "") for name in ("caFile", "certFile", "keyFile")},
        }
    return etcd


def _endpoint(spec: Spec) -> Fields:
    return _set(spec, "advertiseAddress", "bindPort")


def _node_registration(spec: Spec, api: str) -> Fields:
    """Return the registration. `taints` is always set: null leaves them to kubeadm, an empty list means none."""
    taints, is_new = spec.get("taints"), api == V1BETA4
    serial = spec.get("imagePullSerial")
    return {
        "taints": None if taints is None else [_taint(taint) for taint in taints],
        **_set(spec, "name", "criSocket", "ignorePreflightErrors"),
        **_since_v1beta3(spec, api, "imagePullPolicy"),
        **_args(spec, "kubeletExtraArgs", is_new),
        **({"imagePullSerial": serial} if is_new and serial is not None else {}),
    }


def _taint(taint: Spec) -> Fields:
    return {"key": taint.get("key", ""), "effect": taint.get("effect", ""), **_set(taint, "value", "timeAdded")}


def _bootstrap_token(token: Spec) -> Fields:
    seconds = token.get("ttlSeconds")
    return {
        "token": token.get("token") or None,
        **_set(token, "description", "expires", "usages", "groups"),
        **({} if seconds is None else {"ttl": seconds_text(seconds)}),
    }


def _discovery(spec: Spec) -> Fields:
    discovery = _set(spec, "tlsBootstrapToken")
    if token := spec.get("bootstrapToken"):
        discovery["bootstrapToken"] = {
            "token": token.get("token", ""),
            **_set(token, "apiServerEndpoint", "caCertHashes", "unsafeSkipCAVerification"),
        }
    if file := spec.get("file"):
        discovery["file"] = {"kubeConfigPath": file.get("kubeConfigPath", "")}
    return discovery


def _timeouts(spec: Spec) -> Fields:
    return {name.removesuffix("Seconds"): seconds_text(seconds) for name, seconds in spec.items()}

"""The ConfigMap `kubeadm-config` of a workload cluster, which is updated before Machines are replaced. Pure.

`kubeadm join` configures the next Machine from it. The document is read in any version of kubeadm's API, and is written
in that of the new Kubernetes version if its content changes.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/workload_cluster.go (UpdateClusterConfiguration),
controlplane/kubeadm/reconcilers/kubeadmcontrolplane/update.go (which fields).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import goyaml
from ironbell.codec.durations import DurationError, parse_seconds
from ironbell.controllers.kubeadm.config.rendering.kubeadm import (
    V1BETA2,
    V1BETA3,
    V1BETA4,
    ClusterFacts,
    cluster_configuration,
    kubeadm_api,
)
from ironbell.controllers.kubeadm.controlplane.machines.configspec import feature_gates
from ironbell.kube.decision import Fields

_READ: Final = (V1BETA2, V1BETA3, V1BETA4)
_COMPONENTS: Final = ("apiServer", "controllerManager", "scheduler")


class KubeadmConfigError(IronbellError):
    """`kubeadm-config` of a workload cluster cannot be read."""

    reason, retry = "KubeadmConfigUnreadable", Retry.BACKOFF


@dataclass(frozen=True, slots=True)
class _Document:
    spec: Fields
    facts: ClusterFacts
    init: Fields
    """The timeout that v1beta3 keeps here."""


def upgraded(text: str, desired: Fields, version: tuple[int, int, int]) -> str:
    """Return the document for an upgrade; the same text if nothing changes.

    Args:
        text: the current document.
        desired: `spec.kubeadmConfigSpec.clusterConfiguration`; if it is empty, only the version is set.
        version: the new Kubernetes version.

    Raises:
        KubeadmConfigError: the document cannot be read.
    """
    document = _read(text)
    spec = document.spec if not desired else _managed(document.spec, desired, version)
    facts = replace(document.facts, kubernetes_version=f"v{'.'.join(map(str, version))}")
    return _write(text, document, replace(document, spec=spec, facts=facts), version)


def with_dns(text: str, dns: Fields, version: tuple[int, int, int]) -> str:
    """Return the document with another image of CoreDNS; the same text if nothing changes.

    Raises:
        KubeadmConfigError: the document cannot be read.
    """
    document = _read(text)
    spec = {**document.spec, "dns": {name: dns[name] for name in ("imageRepository", "imageTag") if dns.get(name)}}
    return _write(text, document, replace(document, spec=_without_empty(spec)), version)


def _managed(current: Fields, desired: Fields, version: tuple[int, int, int]) -> Fields:
    spec = {**current, **{name: desired.get(name, {}) for name in _COMPONENTS}}
    if desired.get("imageRepository"):
        spec["imageRepository"] = desired["imageRepository"]
    for name in ("certificateValidityPeriodDays", "encryptionAlgorithm"):
        spec[name] = desired.get(name)
    # replaced as a whole, so that a gate that the user removed is removed
    spec["featureGates"] = feature_gates(desired, version)
    etcd = desired.get("etcd") or {}
    kind = "external" if etcd.get("external") else "local"
    spec["etcd"] = {kind: etcd.get(kind) or {}}
    return dict(_without_empty(spec))


def _write(text: str, old: _Document, new: _Document, version: tuple[int, int, int]) -> str:
    if _without_empty(old.spec) == _without_empty(new.spec) and old.facts == new.facts:
        return text
    return cluster_configuration(new.spec, new.facts, new.init, kubeadm_api(version))


def _read(text: str) -> _Document:
    try:
        document = goyaml.load(text)
    except goyaml.YamlError as error:
        raise KubeadmConfigError(f"ClusterConfiguration of kubeadm-config is not valid YAML: {error}") from None
    if not isinstance(document, dict) or document.get("apiVersion") not in _READ:
        raise KubeadmConfigError(
            f"ClusterConfiguration of kubeadm-config is not in one of {', '.join(_READ)}; run kubeadm config migrate"
        )
    spec: Fields = {
        name: document[name]
        for name in ("certificatesDir", "featureGates", "imageRepository", "encryptionAlgorithm", "dns")
        if document.get(name)
    }
    for name in _COMPONENTS:
        spec[name] = _component(document.get(name) or {})
    etcd = document.get("etcd") or {}
    spec["etcd"] = {kind: _component(etcd[kind] or {}) for kind in ("local", "external") if etcd.get(kind) is not None}
    for name in ("certificateValidityPeriod", "caCertificateValidityPeriod"):
        if document.get(name):
            spec[f"{name}Days"] = _seconds(str(document[name])) // 86400
    timeout = (document.get("apiServer") or {}).get("timeoutForControlPlane")
    init = {"timeouts": {"controlPlaneComponentHealthCheckSeconds": _seconds(str(timeout))}} if timeout else {}
    return _Document(_without_empty(spec), _facts(document), init)


def _facts(document: Mapping[str, Any]) -> ClusterFacts:
    networking = document.get("networking") or {}
    return ClusterFacts(
        name=str(document.get("clusterName") or ""),
        kubernetes_version=str(document.get("kubernetesVersion") or ""),
        control_plane_endpoint=str(document.get("controlPlaneEndpoint") or ""),
        dns_domain=str(networking.get("dnsDomain") or ""),
        service_subnet=str(networking.get("serviceSubnet") or ""),
        pod_subnet=str(networking.get("podSubnet") or ""),
    )


def _component(section: Mapping[str, Any]) -> Fields:
    result = {name: value for name, value in section.items() if name != "timeoutForControlPlane"}
    args = result.get("extraArgs")
    if isinstance(args, dict):
        result["extraArgs"] = [{"name": name, "value": value} for name, value in sorted(args.items())]
    return result


def _seconds(text: str) -> int:
    try:
        return int(parse_seconds(text)) if text else 0
    except DurationError as error:
        message = f"ClusterConfiguration of kubeadm-config has a duration {text!r} that is not valid"
        raise KubeadmConfigError(message) from error


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        inner = {name: _without_empty(item) for name, item in value.items()}
        return {name: item for name, item in inner.items() if item not in (None, "", [], {})}
    return value

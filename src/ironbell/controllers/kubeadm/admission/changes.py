"""The fields of a KubeadmControlPlane that may change after its creation.

A change of the other fields would require a new cluster: the folder of certificates, the endpoint, the lifetime of the
authority. The allowed paths are upstream's; `*` means everything below.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/webhooks/admission/kubeadmcontrolplane.go (ValidateUpdate).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ironbell.kube.decision import Fields
from ironbell.kube.patches import diff

_CLUSTER: Final = ("spec", "kubeadmConfigSpec", "clusterConfiguration")
_INIT: Final = ("spec", "kubeadmConfigSpec", "initConfiguration")
_JOIN: Final = ("spec", "kubeadmConfigSpec", "joinConfiguration")
_CONFIG: Final = ("spec", "kubeadmConfigSpec")
_MACHINE: Final = ("spec", "machineTemplate")


def _below(prefix: Sequence[str], *names: str) -> list[tuple[str, ...]]:
    """Return the paths of these fields, and of everything below them."""
    return [path for name in names for path in ((*prefix, name), (*prefix, name, "*"))]


def _only(prefix: Sequence[str], *names: str) -> list[tuple[str, ...]]:
    return [(*prefix, name) for name in names]


ALLOWED: Final[Sequence[tuple[str, ...]]] = (
    ("metadata", "*"),
    *_below(_CLUSTER, "etcd", "dns", "featureGates", "apiServer", "controllerManager", "scheduler"),
    *_only(_CLUSTER, "imageRepository", "certificateValidityPeriodDays", "encryptionAlgorithm"),
    *_below(_INIT, "nodeRegistration", "patches", "localAPIEndpoint", "timeouts"),
    *_only(_INIT, "skipPhases", "bootstrapTokens"),
    *_below(_JOIN, "nodeRegistration", "patches", "controlPlane", "discovery", "timeouts"),
    *_only(_JOIN, "skipPhases", "caCertPath"),
    *_below(_CONFIG, "ntp", "ignition", "diskSetup"),
    *_only(_CONFIG, "bootCommands", "preKubeadmCommands", "postKubeadmCommands", "files", "verbosity", "users"),
    *_only(_CONFIG, "format", "mounts"),
    *_below(_MACHINE, "metadata", "spec"),
    *_only(("spec",), "replicas", "version"),
    *_below(("spec",), "remediation", "machineNaming", "rollout"),
)


def rejected_changes(old: Fields, new: Fields) -> Iterator[tuple[str, ...]]:
    """Yield the paths that change although they must not."""
    for path in sorted(_changed((), diff(_watched(old), _watched(new)))):
        if not any(_matches(allowed, path) for allowed in ALLOWED):
            yield path


def _watched(obj: Fields) -> Fields:
    """Return the object without its status, which is a subresource, and without empty fields."""
    return {name: _filled(value) for name, value in obj.items() if name in ("metadata", "spec")}


def _filled(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _filled(item) for name, item in value.items()}
    return {name: item for name, item in inner.items() if item not in (None, "", [], {})}


def _changed(path: tuple[str, ...], patch: Fields) -> Iterator[tuple[str, ...]]:
    for name, value in patch.items():
        if isinstance(value, dict):
            yield from _changed((*path, name), value)
        else:
            yield (*path, name)


def _matches(allowed: Sequence[str], path: Sequence[str]) -> bool:
    for index, name in enumerate(path):
        if index >= len(allowed):
            return False
        if allowed[index] == "*":
            return True
        if name != allowed[index]:
            return False
    return len(path) >= len(allowed)

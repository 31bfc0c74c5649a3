"""The desired KubeadmConfig of a control plane's Machine, and its comparison with the current one. Pure.

Both work on plain data in the API's form. Absent and empty values are equal, except for the taints of a node
registration, which kubeadm distinguishes.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/desiredstate/desired_state.go,
controlplane/kubeadm/pkg/filters.go.
"""

from __future__ import annotations

from typing import Any, Final

from ironbell.kube.decision import Fields

KUBELET_LOCAL_MODE: Final = "ControlPlaneKubeletLocalMode"
"""Feature gate of kubeadm: a kubelet connects only to the API server on its own host."""
_LOCAL_MODE_SINCE: Final = (1, 31)
_LOCAL_MODE_UNTIL: Final = (1, 36)


def desired_spec(spec: Fields, version: tuple[int, int, int], *, joins: bool) -> Fields:
    """Return the spec of a new Machine's KubeadmConfig, from `spec.kubeadmConfigSpec`.

    Args:
        spec: the control plane's `kubeadmConfigSpec`.
        version: the Kubernetes version, as major, minor, patch.
        joins: whether the Machine joins; else it is the first.
    """
    result = {**spec}
    if joins:
        # clusterConfiguration is kept, because it states whether etcd is external
        result.pop("initConfiguration", None)
        join = result.get("joinConfiguration", {})
        result["joinConfiguration"] = {**join, "controlPlane": join.get("controlPlane") or {}}
    else:
        result.pop("joinConfiguration", None)
    gates = feature_gates(result.get("clusterConfiguration", {}), version)
    if gates:
        result["clusterConfiguration"] = {**result.get("clusterConfiguration", {}), "featureGates": gates}
    return result


def feature_gates(cluster_configuration: Fields, version: tuple[int, int, int]) -> dict[str, bool]:
    """Return kubeadm's feature gates, with the local mode for the versions that have it, unless the user has set it."""
    gates = dict(cluster_configuration.get("featureGates") or {})
    if _LOCAL_MODE_SINCE <= version[:2] < _LOCAL_MODE_UNTIL:
        gates.setdefault(KUBELET_LOCAL_MODE, True)
    return gates


def is_join(spec: Fields) -> bool:
    """Return whether a KubeadmConfig is for joining.

    Other sections do not show this: a health check timeout of v1beta1 is converted into `joinConfiguration` as well.
    """
    join = spec.get("joinConfiguration") or {}
    if join.get("controlPlane") is not None:
        return True
    return bool((join.get("nodeRegistration") or {}).get("kubeletExtraArgs"))


def is_up_to_date(current: Fields, control_plane_spec: Fields, version: tuple[int, int, int]) -> bool:
    """Return whether a new Machine would get an equivalent KubeadmConfig.

    The first Machine was created with `initConfiguration`. It is compared as if it had joined, so that it need not be
    replaced if both sections are alike; if they are not, it is compared with the KubeadmConfig of a first Machine.
    """
    if _comparable(_as_join(current), current) == _comparable(
        desired_spec(control_plane_spec, version, joins=True), current
    ):
        return True
    if is_join(current):
        return False
    first = desired_spec(control_plane_spec, version, joins=False)
    return _comparable(current, current) == _comparable(first, current)


def _as_join(current: Fields) -> Fields:
    if is_join(current):
        return current
    init = current.get("initConfiguration") or {}
    join = {name: init[name] for name in ("timeouts", "patches", "skipPhases", "nodeRegistration") if name in init} | {
        "controlPlane": {"localAPIEndpoint": init.get("localAPIEndpoint") or {}}
    }
    rest = {name: value for name, value in current.items() if name != "initConfiguration"}
    return {**rest, "joinConfiguration": join}


def _comparable(spec: Fields, current: Fields) -> Fields:
    """Return a spec without the fields that need no new Machine, and with the defaults that earlier versions set."""
    result = _compacted(spec)
    cluster = dict(result.get("clusterConfiguration", {}))
    # written by the bootstrap controller; changed in the running cluster
    for name in ("controlPlaneEndpoint", "dns"):
        cluster.pop(name, None)
    result["clusterConfiguration"] = cluster
    for section in ("initConfiguration", "joinConfiguration"):
        result[section] = _comparable_section(result.get(section, {}))
    if not is_join(current):
        # the first Machine cannot have this field
        result["joinConfiguration"].pop("caCertPath", None)
    result.setdefault("format", "cloud-config")
    return dict(_compacted(result))


def _comparable_section(section: Fields) -> Fields:
    result = {name: value for name, value in section.items() if name != "discovery"}
    timeouts = dict(result.get("timeouts", {}))
    timeouts.pop("controlPlaneComponentHealthCheckSeconds", None)
    result["timeouts"] = timeouts
    registration = dict(result.get("nodeRegistration", {}))
    registration.setdefault("imagePullPolicy", "IfNotPresent")
    result["nodeRegistration"] = registration
    return result


def _compacted(value: Any) -> Any:
    """Return a value without empty text, lists, objects and nulls; zero and false are values."""
    if isinstance(value, dict):
        inner = {name: _compacted(item) for name, item in value.items()}
        return {name: item for name, item in inner.items() if name == "taints" or item not in (None, "", [], {})}
    if isinstance(value, list):
        return [_compacted(item) for item in value]
    return value

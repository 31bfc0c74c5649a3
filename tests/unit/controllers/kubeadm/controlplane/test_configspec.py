"""What KubeadmConfig a Machine gets, and which changes ask for another Machine."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ironbell.controllers.kubeadm.controlplane.machines.configspec import (
    KUBELET_LOCAL_MODE,
    desired_spec,
    feature_gates,
    is_join,
    is_up_to_date,
)

V = (1, 33, 2)
SPEC: dict[str, Any] = {
    "clusterConfiguration": {"apiServer": {"extraArgs": [{"name": "v", "value": "2"}]}},
    "initConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "x", "value": "1"}]}},
    "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "x", "value": "1"}]}},
    "files": [{"path": "/etc/a", "content": "1"}],
}


def changed(path: str, value: Any) -> dict[str, Any]:
    spec = copy.deepcopy(SPEC)
    inner = spec
    *way, last = path.split(".")
    for name in way:
        inner = inner.setdefault(name, {})
    if value is None:
        inner.pop(last, None)
    else:
        inner[last] = value
    return spec


def test_the_first_machine_inits_and_others_join() -> None:
    first, other = desired_spec(SPEC, V, joins=False), desired_spec(SPEC, V, joins=True)
    assert "joinConfiguration" not in first
    assert "initConfiguration" not in other
    assert other["joinConfiguration"]["controlPlane"] == {}
    assert (is_join(first), is_join(other)) == (False, True)
    assert SPEC["joinConfiguration"].get("controlPlane") is None


@pytest.mark.parametrize(
    ("version", "user", "gates"),
    [
        ((1, 30, 9), None, {}),
        ((1, 31, 0), None, {KUBELET_LOCAL_MODE: True}),
        ((1, 35, 4), {"Other": False}, {"Other": False, KUBELET_LOCAL_MODE: True}),
        ((1, 33, 0), {KUBELET_LOCAL_MODE: False}, {KUBELET_LOCAL_MODE: False}),
        ((1, 36, 0), None, {}),
    ],
)
def test_the_local_mode_of_kubelets_is_set_while_kubeadm_knows_it(
    version: tuple[int, int, int], user: dict[str, bool] | None, gates: dict[str, bool]
) -> None:
    assert feature_gates({"featureGates": user} if user else {}, version) == gates


@pytest.mark.parametrize("joins", [False, True])
def test_a_new_machine_is_up_to_date(joins: bool) -> None:
    assert is_up_to_date(desired_spec(SPEC, V, joins=joins), SPEC, V)


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        ("clusterConfiguration.dns", {"imageTag": "v1.12.0"}, True),
        ("clusterConfiguration.apiServer.certSANs", ["a"], False),
        ("clusterConfiguration.apiServer.extraVolumes", [], True),
        ("clusterConfiguration.featureGates", {KUBELET_LOCAL_MODE: True}, True),
        ("clusterConfiguration.featureGates", {KUBELET_LOCAL_MODE: False}, False),
        ("files", [], False),
        ("users", [], True),
        ("format", "cloud-config", True),
        ("format", "ignition", False),
        ("ntp", {"servers": []}, True),
        ("preKubeadmCommands", ["true"], False),
    ],
)
def test_only_what_matters_to_a_node_asks_for_another(joins: bool, path: str, value: Any, same: bool) -> None:
    assert is_up_to_date(desired_spec(SPEC, V, joins=joins), changed(path, value), V) is same


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        ("joinConfiguration.discovery", {"tlsBootstrapToken": "t"}, True),
        ("joinConfiguration.timeouts", {"controlPlaneComponentHealthCheckSeconds": 9}, True),
        ("joinConfiguration.timeouts", {"tlsBootstrapSeconds": 9}, False),
        ("joinConfiguration.nodeRegistration.taints", [], False),
        ("joinConfiguration.nodeRegistration.imagePullPolicy", "IfNotPresent", True),
        ("joinConfiguration.caCertPath", "/p", False),
        ("initConfiguration.nodeRegistration.name", "n", True),
    ],
)
def test_a_machine_that_joined_is_compared_with_joining(path: str, value: Any, same: bool) -> None:
    assert is_up_to_date(desired_spec(SPEC, V, joins=True), changed(path, value), V) is same


def test_the_first_machine_is_compared_as_if_it_had_joined_or_as_the_first() -> None:
    first = desired_spec(SPEC, V, joins=False)
    assert is_up_to_date(first, changed("joinConfiguration.caCertPath", "/p"), V)
    # its own section is as it was: no reason to replace it because joining is configured otherwise
    assert is_up_to_date(first, changed("joinConfiguration.nodeRegistration.taints", []), V)
    both = changed("joinConfiguration.nodeRegistration.taints", [])
    both["initConfiguration"]["nodeRegistration"]["taints"] = []
    assert not is_up_to_date(first, both, V)
    # what it has equals what one that joins would get
    assert is_up_to_date(first, changed("initConfiguration.nodeRegistration.name", "n"), V)


def test_what_the_bootstrap_controller_writes_is_no_difference() -> None:
    joined = desired_spec(SPEC, V, joins=True)
    joined["clusterConfiguration"] = {**joined["clusterConfiguration"], "controlPlaneEndpoint": "a:6443"}
    joined["joinConfiguration"] = {**joined["joinConfiguration"], "discovery": {"bootstrapToken": {"token": "a.b"}}}
    assert is_up_to_date(joined, SPEC, V)


def test_another_local_endpoint_asks_for_another_machine() -> None:
    endpoint = {"controlPlane": {"localAPIEndpoint": {"bindPort": 7443}}}
    assert not is_up_to_date(
        desired_spec(SPEC, V, joins=True),
        changed("joinConfiguration", {**SPEC["joinConfiguration"], **endpoint}),
        V,
    )

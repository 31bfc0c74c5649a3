"""What is filled in and refused when a KubeadmControlPlane is written."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ironbell.controllers.kubeadm.admission.kubeadmcontrolplane import default, validate, validate_template

PLANE: dict[str, Any] = {
    "metadata": {"name": "cp", "namespace": "default"},
    "spec": {
        "replicas": 3,
        "version": "v1.33.1",
        "machineTemplate": {"spec": {"infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}}},
        "kubeadmConfigSpec": {
            "clusterConfiguration": {"certificatesDir": "/c", "dns": {"imageTag": "v1.11.1"}},
            "initConfiguration": {"nodeRegistration": {"name": "a"}},
        },
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
    },
}


def changed(path: str, value: Any, obj: dict[str, Any] | None = None) -> dict[str, Any]:
    result = copy.deepcopy(obj or PLANE)
    inner = result
    *way, last = path.split(".")
    for name in way:
        inner = inner.setdefault(name, {})
    if value is None:
        inner.pop(last, None)
    else:
        inner[last] = value
    return result


def told(new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(problem) for problem in validate(new, old)]


def test_a_good_one_passes_and_may_be_written_again() -> None:
    assert told(PLANE) == []
    assert told(PLANE, PLANE) == []


def test_defaults_are_one_machine_a_version_with_v_and_one_machine_more() -> None:
    spec = default({"spec": {"version": "1.33.1"}}, None)["spec"]
    assert spec == {
        "replicas": 1,
        "version": "v1.33.1",
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
    }
    kept = default(changed("spec.rollout.strategy.rollingUpdate.maxSurge", 0), None)["spec"]["rollout"]["strategy"]
    assert kept["rollingUpdate"] == {"maxSurge": 0}


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("spec.replicas", 0, "spec.replicas: Forbidden: cannot be less than or equal to 0"),
        ("spec.replicas", 2, "spec.replicas: Forbidden: cannot be an even number when etcd is stacked"),
        ("spec.replicas", None, "spec.replicas: Required value: is required"),
        ("spec.version", "1.33.1", 'spec.version: Invalid value: "1.33.1": must start with v'),
        ("spec.version", "v1.33", 'spec.version: Invalid value: "v1.33": must be a valid semantic version'),
        (
            "spec.machineTemplate.spec.infrastructureRef.name",
            None,
            'spec.machineTemplate.infrastructure.name: Invalid value: "": cannot be empty',
        ),
        (
            "spec.rollout.strategy.rollingUpdate.maxSurge",
            2,
            "spec.rollout.strategy.rollingUpdate.maxSurge: Required value: value must be 1 or 0",
        ),
        (
            "spec.machineNaming",
            {"template": "{{ .cluster.name }}"},
            (
                'spec.machineNaming.template: Invalid value: "{{ .cluster.name }}": '
                "invalid template, {{ .random }} is missing"
            ),
        ),
        (
            "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag",
            "a b",
            "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag: Forbidden: tag a b is invalid",
        ),
        (
            "spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays",
            4000,
            (
                "spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays: Invalid value: 4000: "
                "must be less than or equal to the default value of caCertificateValidityPeriodDays (3650)"
            ),
        ),
        (
            "spec.machineTemplate.spec.taints",
            [{"key": "node.kubernetes.io/x", "effect": "NoSchedule"}],
            (
                'spec.machineTemplate.spec.taints[0].key: Invalid value: "node.kubernetes.io/x": taint key must not '
                "have the prefix node.kubernetes.io/, except for node.kubernetes.io/out-of-service"
            ),
        ),
    ],
)
def test_what_is_wrong_is_named(path: str, value: Any, problem: str) -> None:
    assert problem in told(changed(path, value))


def test_fewer_than_three_machines_cannot_be_replaced_without_one_more() -> None:
    small = changed("spec.replicas", 1)
    surge = "spec.rollout.strategy.rollingUpdate.maxSurge"
    assert told(changed(surge, 0, small)) == [
        (
            "spec.rollout.strategy.rollingUpdate: Required value: when KubeadmControlPlane is configured to scale-in, "
            "replica count needs to be at least 3"
        )
    ]
    assert told(changed(surge, 0)) == []


def test_external_etcd_allows_even_numbers_and_cannot_be_switched() -> None:
    external = "spec.kubeadmConfigSpec.clusterConfiguration.etcd"
    outside = changed(external, {"external": {"endpoints": ["https://a:2379"]}})
    assert told(changed("spec.replicas", 2, outside)) == []
    assert any("cannot change between external and local etcd" in line for line in told(outside, PLANE))
    both = changed(f"{external}.local", {"dataDir": "/e"}, outside)
    assert any("cannot have both external and local etcd" in line for line in told(both))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.labels", {"a": "b"}),
        ("spec.replicas", 5),
        ("spec.machineTemplate.spec.infrastructureRef.name", "other"),
        ("spec.machineTemplate.metadata", {"labels": {"a": "b"}}),
        ("spec.kubeadmConfigSpec.clusterConfiguration.apiServer", {"certSANs": ["a"]}),
        ("spec.kubeadmConfigSpec.clusterConfiguration.featureGates", {"A": True}),
        ("spec.kubeadmConfigSpec.clusterConfiguration.encryptionAlgorithm", "ECDSA-P256"),
        ("spec.kubeadmConfigSpec.initConfiguration.nodeRegistration.name", "b"),
        ("spec.kubeadmConfigSpec.initConfiguration.patches", {"directory": "/p"}),
        ("spec.kubeadmConfigSpec.initConfiguration.skipPhases", ["x"]),
        ("spec.kubeadmConfigSpec.joinConfiguration", {"discovery": {"tlsBootstrapToken": "t"}}),
        ("spec.kubeadmConfigSpec.files", [{"path": "/a", "content": "b"}]),
        ("spec.kubeadmConfigSpec.ntp", {"servers": ["a"]}),
        ("spec.kubeadmConfigSpec.diskSetup", {}),
        ("spec.remediation", {"maxRetry": 3}),
        ("spec.rollout.after", "2026-01-01T00:00:00Z"),
        ("status", {"replicas": 3}),
    ],
)
def test_these_may_change(path: str, value: Any) -> None:
    assert told(changed(path, value), PLANE) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.kubeadmConfigSpec.clusterConfiguration.certificatesDir", "/d"),
        ("spec.kubeadmConfigSpec.clusterConfiguration.controlPlaneEndpoint", "a:6443"),
        ("spec.kubeadmConfigSpec.clusterConfiguration.caCertificateValidityPeriodDays", 100),
        ("spec.kubeadmConfigSpec.joinConfiguration.unknown", "x"),
    ],
)
def test_these_may_not(path: str, value: Any) -> None:
    assert f"{path}: Forbidden: cannot be modified" in told(changed(path, value), PLANE)


@pytest.mark.parametrize(
    ("version", "refused"), [("v1.34.9", False), ("v1.35.0", True), ("v1.32.0", False), ("v2.0.0", True)]
)
def test_versions_rise_by_one_minor_at_most(version: str, refused: bool) -> None:
    problems = told(changed("spec.version", version), PLANE)
    message = f"spec.version: Forbidden: cannot update Kubernetes version from v1.33.1 to {version}"
    assert (message in problems) is refused


@pytest.mark.parametrize(("tag", "refused"), [("v1.12.0", False), ("v1.11.1", False), ("v1.10.0", True)])
def test_coredns_is_only_raised_unless_it_is_left_alone(tag: str, refused: bool) -> None:
    path = "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag"
    new = changed(path, tag)
    assert any("cannot migrate CoreDNS" in line for line in told(new, PLANE)) is refused
    skipped = changed("metadata.annotations", {"controlplane.cluster.x-k8s.io/skip-coredns": ""}, new)
    assert not any("cannot migrate CoreDNS" in line for line in told(skipped, PLANE))


def test_the_spec_of_a_template_never_changes() -> None:
    old = {"spec": {"template": {"spec": {"kubeadmConfigSpec": {"format": "cloud-config"}}}}}
    same = {"spec": {"template": {"spec": {"kubeadmConfigSpec": {}}}}}
    other = {"spec": {"template": {"spec": {"kubeadmConfigSpec": {"format": "ignition"}}}}}
    assert validate_template(same, None) == []
    assert validate_template(same, old) == []
    assert [problem.path for problem in validate_template(other, old)] == ["spec.template.spec"]

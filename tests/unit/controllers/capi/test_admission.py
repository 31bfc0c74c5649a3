"""Defaults and validation of Clusters and sets of Machines."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.contract.admission import FieldProblem
from ironbell.controllers.capi.admission import cluster, clusterresourceset, machinedeployment, machinepool, machineset
from ironbell.kube.patches import apply

MIN, MAX = (f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{end}-size" for end in ("min", "max"))


def machines(**spec: Any) -> dict[str, Any]:
    """A MachineSet, MachineDeployment or MachinePool."""
    template = {
        "spec": {
            "clusterName": "prod",
            "version": "1.34.0",
            "bootstrap": {"configRef": {"kind": "T", "name": "t", "apiGroup": "g"}},
            "infrastructureRef": {"kind": "I", "name": "i", "apiGroup": "h"},
        }
    }
    return {
        "metadata": {"name": "workers", "namespace": "d"},
        "spec": {"clusterName": "prod", "template": template, **spec},
    }


def texts(problems: list[FieldProblem]) -> list[str]:
    return [str(problem) for problem in problems]


def test_a_machine_set_is_completed() -> None:
    given = machines()

    defaulted = machineset.default(given, None)

    assert given == machines()
    assert defaulted["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "prod"}
    assert defaulted["spec"]["replicas"] == 1
    assert defaulted["spec"]["selector"] == {"matchLabels": {"cluster.x-k8s.io/set-name": "workers"}}
    assert defaulted["spec"]["template"]["metadata"]["labels"] == {"cluster.x-k8s.io/set-name": "workers"}
    assert defaulted["spec"]["template"]["spec"]["version"] == "v1.34.0"
    assert machineset.validate(defaulted, None) == []
    assert machineset.default(defaulted, defaulted) == defaulted


def test_a_machine_deployment_is_completed() -> None:
    defaulted = machinedeployment.default(machines(), None)

    labels = {"cluster.x-k8s.io/cluster-name": "prod", "cluster.x-k8s.io/deployment-name": "workers"}
    assert defaulted["spec"]["selector"]["matchLabels"] == labels
    assert defaulted["spec"]["template"]["metadata"]["labels"] == labels
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    assert defaulted["spec"]["rollout"]["strategy"] == rolling
    assert machinedeployment.validate(defaulted, None) == []
    on_delete = machinedeployment.default(machines(rollout={"strategy": {"type": "OnDelete"}}), None)
    assert on_delete["spec"]["rollout"]["strategy"] == {"type": "OnDelete"}


def test_a_machine_pool_is_completed() -> None:
    defaulted = machinepool.default(machines(), None)

    assert defaulted["spec"]["template"]["spec"]["deletion"] == {"nodeDeletionTimeoutSeconds": 10}
    assert defaulted["spec"]["replicas"] == 1
    assert machinepool.validate(defaulted, None) == []
    tainted = apply(defaulted, {"spec": {"template": {"spec": {"taints": [{"key": "a"}]}}}})
    assert texts(machinepool.validate(tainted, None)) == [
        "spec.taints: Forbidden: taints feature for MachinePools is not yet implemented"
    ]


@pytest.mark.parametrize(
    ("given", "old_object", "expected"),
    [(None, None, 3), (None, 2, 3), (None, 5, 5), (None, 9, 7), (4, 9, 4), (0, None, 0)],
)
def test_an_autoscalers_bounds_are_kept_to(given: int | None, old_object: int | None, expected: int) -> None:
    new = machines(**({} if given is None else {"replicas": given}))
    new["metadata"]["annotations"] = {MIN: "3", MAX: "7"}
    old = machines(replicas=old_object) if old_object is not None else None

    assert machineset.default(new, old)["spec"]["replicas"] == expected


def test_bounds_that_cannot_be_read_are_rejected() -> None:
    new = machines()
    new["metadata"]["annotations"] = {MIN: "few", MAX: "7"}

    defaulted = machineset.default(new, None)

    assert texts(machineset.validate(defaulted, None)) == [
        f'metadata.annotations[{MIN}]: Invalid value: "few": must be a whole number'
    ]


FAULTS: list[tuple[dict[str, Any], str]] = [
    (
        {"spec": {"template": {"spec": {"bootstrap": {"configRef": None}}}}},
        (
            "spec.template.spec.bootstrap: Required value: expected either"
            " spec.template.spec.bootstrap.dataSecretName or"
            " spec.template.spec.bootstrap.configRef to be populated"
        ),
    ),
    (
        {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
        (
            'spec.template.metadata.labels: Invalid value: {"cluster.x-k8s.io/set-name":"workers"}: must match'
            ' spec.selector "a=b,cluster.x-k8s.io/set-name=workers"'
        ),
    ),
    (
        {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}},
        "spec.selector: Invalid value",
    ),
    (
        {"spec": {"clusterName": "other"}},
        (
            'spec.clusterName: Invalid value: "other": spec.clusterName and'
            " spec.template.spec.clusterName must be set to"
            " the same value"
        ),
    ),
    (
        {"spec": {"template": {"spec": {"version": "vnext"}}}},
        'spec.template.spec.version: Invalid value: "vnext": must be a valid semantic version',
    ),
    (
        {"spec": {"machineNaming": {"template": "fixed"}}},
        'spec.machineNaming.template: Invalid value: "fixed": invalid template, {{ .random }} is missing',
    ),
    (
        {"spec": {"machineNaming": {"template": "{{ .machineSet.nam }}-{{ .random }}"}}},
        'spec.machineNaming.template: Invalid value: "{{ .machineSet.nam }}-{{ .random }}": invalid template:',
    ),
    (
        {"spec": {"machineNaming": {"template": "UP_{{ .random }}"}}},
        'spec.machineNaming.template: Invalid value: "UP_{{ .random }}": invalid template, generated names',
    ),
    (
        {"spec": {"template": {"spec": {"taints": [{"key": "node.cluster.x-k8s.io/uninitialized"}]}}}},
        (
            'spec.template.spec.taints[0].key: Invalid value: "node.cluster.x-k8s.io/uninitialized": taint key is not'
            " allowed"
        ),
    ),
    (
        {"spec": {"template": {"spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}}}},
        (
            'spec.template.spec.taints[0].key: Invalid value: "node.kubernetes.io/not-ready": taint key'
            " must not have the"
            " prefix node.kubernetes.io/"
        ),
    ),
    (
        {"spec": {"template": {"spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane"}]}}}},
        (
            'spec.template.spec.taints[0].key: Invalid value: "node-role.kubernetes.io/control-plane":'
            " taint is not allowed"
            " for worker Machines"
        ),
    ),
    (
        {"spec": {"template": {"metadata": {"labels": {"bad key": "x"}}}}},
        'spec.template.metadata.labels: Invalid value: "bad key": ',
    ),
    (
        {"metadata": {"annotations": {"machineset.cluster.x-k8s.io/skip-preflight-checks": "Luck, All"}}},
        (
            "metadata.annotations.machineset.cluster.x-k8s.io/skip-preflight-checks: Invalid value:"
            ' ["Luck"]: skipped preflight check(s) must be among: All, ControlPlaneIsStable'
        ),
    ),
]


@pytest.mark.parametrize(("change", "expected"), FAULTS, ids=[text.partition(":")[0] for _, text in FAULTS])
def test_faults_of_a_machine_set(change: dict[str, Any], expected: str) -> None:
    good = machineset.default(machines(), None)

    problems = texts(machineset.validate(apply(good, change), None))

    assert len(problems) == 1
    assert problems[0].startswith(expected)


@pytest.mark.parametrize("kind", [machineset, machinedeployment, machinepool])
def test_a_cluster_name_does_not_change(kind: Any) -> None:
    old = kind.default(machines(), None)
    other = {"spec": {"clusterName": "other", "template": {"spec": {"clusterName": "other"}}}}

    assert texts(kind.validate(apply(old, other), old)) == ["spec.clusterName: Forbidden: field is immutable"]


@pytest.mark.parametrize(
    ("rollout", "expected"),
    [
        (
            {"maxSurge": 0, "maxUnavailable": 0},
            'spec.rollout.strategy.rollingUpdate: Invalid value: "0": maxUnavailable and maxSurge cannot both be 0',
        ),
        (
            {"maxSurge": "lots", "maxUnavailable": 0},
            (
                'spec.rollout.strategy.rollingUpdate.maxSurge: Invalid value: "lots": must be either an int or a'
                ' percentage: "lots" is neither a whole number nor a percentage such as 25%'
            ),
        ),
    ],
)
def test_faults_of_a_rollout(rollout: dict[str, Any], expected: str) -> None:
    defaulted = machinedeployment.default(machines(rollout={"strategy": {"rollingUpdate": rollout}}), None)

    assert texts(machinedeployment.validate(defaulted, None)) == [expected]


def test_a_name_that_is_not_a_label_value_is_rejected() -> None:
    defaulted = machinedeployment.default({**machines(), "metadata": {"name": "n" * 64}}, None)

    assert next(problem.path for problem in machinedeployment.validate(defaulted, None)) == "metadata.name"


INFRASTRUCTURE = {"kind": "I", "name": "i", "apiGroup": "g"}


@pytest.mark.parametrize(
    ("spec", "old", "expected"),
    [
        ({"infrastructureRef": INFRASTRUCTURE}, None, []),
        (
            {},
            None,
            ["spec: Forbidden: one of spec.controlPlaneRef, spec.infrastructureRef or spec.topology must be set"],
        ),
        (
            {"controlPlaneRef": INFRASTRUCTURE},
            {"infrastructureRef": INFRASTRUCTURE},
            ["spec.infrastructureRef: Forbidden: cannot be removed"],
        ),
        (
            {"infrastructureRef": INFRASTRUCTURE},
            {"controlPlaneRef": INFRASTRUCTURE, "infrastructureRef": INFRASTRUCTURE},
            ["spec.controlPlaneRef: Forbidden: cannot be removed"],
        ),
        (
            {"infrastructureRef": INFRASTRUCTURE},
            {"topology": {"classRef": {"name": "c"}, "version": "v1.34.0"}},
            ["spec.topology: Forbidden: cannot be removed from an existing Cluster"],
        ),
        (
            {
                "infrastructureRef": INFRASTRUCTURE,
                "clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/8", "fd00::/48", "10.0.0.0"]}},
            },
            None,
            ['spec.clusterNetwork.pods.cidrBlocks[2]: Invalid value: "10.0.0.0": invalid CIDR address: 10.0.0.0'],
        ),
    ],
)
def test_faults_of_a_cluster(spec: dict[str, Any], old: dict[str, Any] | None, expected: list[str]) -> None:
    old_object = None if old is None else {"metadata": {"name": "prod"}, "spec": old}

    assert texts(cluster.validate({"metadata": {"name": "prod"}, "spec": spec}, old_object)) == expected


def test_a_topologys_version_gets_its_v() -> None:
    given = {"metadata": {"name": "prod"}, "spec": {"topology": {"version": "1.34.0"}}}

    assert cluster.default(given, None)["spec"]["topology"]["version"] == "v1.34.0"


def test_resource_sets() -> None:
    given = {"metadata": {"name": "cni"}, "spec": {"clusterSelector": {"matchLabels": {"cni": "x"}}}}
    defaulted = clusterresourceset.default(given, None)
    assert defaulted["spec"]["strategy"] == "ApplyOnce"
    assert clusterresourceset.validate(defaulted, None) == []
    changed = apply(defaulted, {"spec": {"strategy": "Reconcile", "clusterSelector": {"matchLabels": {"cni": "y"}}}})
    assert [problem.path for problem in clusterresourceset.validate(changed, defaulted)] == [
        "spec.strategy",
        "spec.clusterSelector",
    ]
    empty = apply(defaulted, {"spec": {"clusterSelector": None}})
    assert texts(clusterresourceset.validate(empty, None)) == [
        "spec.clusterSelector: Invalid value: {}: selector must not be empty"
    ]
    binding = {"metadata": {"name": "prod"}, "spec": {"clusterName": "prod"}}
    other = apply(binding, {"spec": {"clusterName": "other"}})
    assert clusterresourceset.validate_binding(binding, None) == []
    assert [problem.path for problem in clusterresourceset.validate_binding(other, binding)] == ["spec.clusterName"]


@pytest.mark.parametrize("rules", [machineset, machinedeployment])
@pytest.mark.parametrize("selector", [1, "a", ["b"], True])
def test_selectors_of_another_type_are_left_to_the_schema(rules: Any, selector: Any) -> None:
    filled = rules.default({"metadata": {"name": "m"}, "spec": {"clusterName": "c", "selector": selector}}, None)
    assert filled["spec"]["selector"] == selector

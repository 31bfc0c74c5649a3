"""Defaults and validation of Machines, health checks and drain rules."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.contract.admission import FieldProblem
from ironbell.controllers.capi.admission import machine, machinedrainrule, machinehealthcheck
from ironbell.kube.patches import apply

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
MOST = "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo"
OTHER = '{"matchLabels":{"pool":"p","cluster.x-k8s.io/cluster-name":"other"}}'
ONE_CLUSTER = "cannot specify a cluster selector other than the one specified by ClusterName"
NO_ORDER = 'order must not be set if drain behavior is "Skip" or "WaitCompleted"'


def texts(problems: list[FieldProblem]) -> list[str]:
    return [str(problem) for problem in problems]


def a_machine(change: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    spec = {
        "clusterName": "prod",
        "version": "1.34.0",
        "bootstrap": {"configRef": {"kind": "C", "name": "c", "apiGroup": "g"}},
        "infrastructureRef": {"kind": "I", "name": "i", "apiGroup": "h"},
    }
    changed: dict[str, Any] = apply(
        {"metadata": {"name": "m", "namespace": "d", **metadata}, "spec": spec}, change or {}
    )
    return changed


def test_a_machine_is_completed() -> None:
    given = a_machine()
    changed = machine.default(given, None)
    assert given == a_machine()
    assert changed["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "prod"}
    assert changed["spec"]["version"] == "v1.34.0"
    assert changed["spec"]["deletion"] == {"nodeDeletionTimeoutSeconds": 10}
    assert machine.validate(changed, None) == []
    assert machine.default(changed, changed) == changed
    kept = a_machine({"spec": {"deletion": {"nodeDeletionTimeoutSeconds": 0}}})
    assert machine.default(kept, None)["spec"]["deletion"] == {"nodeDeletionTimeoutSeconds": 0}


def test_a_machine_without_its_clusters_name_takes_it_from_the_label() -> None:
    given = a_machine({"spec": {"clusterName": None}}, labels={"cluster.x-k8s.io/cluster-name": "prod"})
    assert "clusterName" not in given["spec"]
    assert machine.default(given, None)["spec"]["clusterName"] == "prod"
    assert "clusterName" not in machine.default(a_machine({"spec": {"clusterName": None}}), None)["spec"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"spec": {"bootstrap": {"configRef": None}}}, f"spec.bootstrap: Required value: {machine.NO_BOOTSTRAP}"),
        ({"spec": {"clusterName": "other"}}, "spec.clusterName: Forbidden: field is immutable"),
        ({"spec": {"version": "v1.x"}}, 'spec.version: Invalid value: "v1.x": must be a valid semantic version'),
        (
            {"spec": {"taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]}},
            'spec.taints[0].key: Invalid value: "node.cluster.x-k8s.io/uninitialized": taint key is not allowed',
        ),
        (
            {"spec": {"taints": [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]}},
            f'spec.taints[0].key: Invalid value: "{CONTROL_PLANE}": taint is not allowed for worker Machines',
        ),
    ],
)
def test_invalid_machines(change: dict[str, Any], problem: str) -> None:
    old = machine.default(a_machine(), None)
    assert texts(machine.validate(apply(old, change), old)) == [problem]


@pytest.mark.parametrize(
    ("metadata", "change"),
    [
        ({}, {"spec": {"bootstrap": {"configRef": None, "dataSecretName": ""}}}),
        ({"labels": {"cluster.x-k8s.io/pool-name": "p"}}, {"spec": {"bootstrap": {"configRef": None}}}),
        (
            {"ownerReferences": [{"apiVersion": "x/v1", "kind": "MachinePool", "name": "p", "uid": "u"}]},
            {"spec": {"bootstrap": {"configRef": None}}},
        ),
        (
            {"labels": {"cluster.x-k8s.io/control-plane": ""}},
            {"spec": {"taints": [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]}},
        ),
    ],
)
def test_valid_machines(metadata: dict[str, Any], change: dict[str, Any]) -> None:
    assert machine.validate(machine.default(a_machine(change, **metadata), None), None) == []


def check(change: dict[str, Any] | None = None) -> dict[str, Any]:
    spec = {"clusterName": "prod", "selector": {"matchLabels": {"pool": "p"}}}
    changed: dict[str, Any] = apply({"metadata": {"name": "c", "namespace": "d"}, "spec": spec}, change or {})
    return changed


def test_a_health_check_is_completed() -> None:
    changed = machinehealthcheck.default(check(), None)
    assert changed["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "prod"}
    assert changed["spec"]["checks"] == {"nodeStartupTimeoutSeconds": 600}
    assert machinehealthcheck.validate(changed, None) == []
    assert machinehealthcheck.default(changed, changed) == changed
    off = check({"spec": {"checks": {"nodeStartupTimeoutSeconds": 0}}})
    assert machinehealthcheck.default(off, None)["spec"]["checks"] == {"nodeStartupTimeoutSeconds": 0}
    assert machinehealthcheck.validate(off, None) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"selector": {"matchLabels": None}}, "spec.selector: Required value: selector must not be empty"),
        (
            {"selector": {"matchLabels": {"cluster.x-k8s.io/cluster-name": "other"}}},
            f"spec.selector: Invalid value: {OTHER}: {ONE_CLUSTER}",
        ),
        ({"clusterName": "other"}, "spec.clusterName: Forbidden: field is immutable"),
        (
            {"checks": {"nodeStartupTimeoutSeconds": 29}},
            "spec.checks.nodeStartupTimeoutSeconds: Invalid value: 29: must be at least 30s",
        ),
        (
            {"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "few"}}},
            f'{MOST}: Invalid value: "few": must be either an int or a percentage',
        ),
    ],
)
def test_invalid_health_checks(change: dict[str, Any], problem: str) -> None:
    old = machinehealthcheck.default(check(), None)
    assert texts(machinehealthcheck.validate(apply(old, {"spec": change}), old)) == [problem]


@pytest.mark.parametrize("most", [0, 3, "40%", "0%"])
def test_limits_of_a_health_check(most: int | str) -> None:
    given = check({"spec": {"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": most}}}})
    assert machinehealthcheck.validate(given, None) == []


NEAR = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
NEAR_TEXT = '{"matchExpressions":[{"key":"a","operator":"Near"}]}: "Near" is not a valid label selector operator'


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"drain": {"behavior": "Drain", "order": 5}}, []),
        ({"drain": {"behavior": "Skip"}}, []),
        (
            {"drain": {"behavior": "Skip", "order": 0}},
            [f"spec.drain.order: Invalid value: 0: {NO_ORDER}"],
        ),
        (
            {
                "drain": {"behavior": "Drain"},
                "machines": [{"selector": NEAR}, {"clusterSelector": NEAR}],
                "pods": [{"namespaceSelector": NEAR, "selector": {}}],
            },
            [
                f"spec.machines[0].selector: Invalid value: {NEAR_TEXT}",
                f"spec.machines[1].clusterSelector: Invalid value: {NEAR_TEXT}",
                f"spec.pods[0].namespaceSelector: Invalid value: {NEAR_TEXT}",
            ],
        ),
    ],
)
def test_drain_rules(spec: dict[str, Any], problems: list[str]) -> None:
    rule = {"metadata": {"name": "r", "namespace": "d"}, "spec": spec}
    assert texts(machinedrainrule.validate(rule, None)) == problems

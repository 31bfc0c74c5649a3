"""Is a Machine healthy?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machinehealthcheck import (
    MachineHealthCheckChecks,
    MachineHealthCheckRemediationTriggerIf,
)
from ironbell.api.core.node import NodeCondition
from ironbell.base.clock import rfc3339
from ironbell.controllers.capi.machinehealthcheck.checks import (
    Diagnosis,
    Health,
    HealthChecker,
    Target,
    duration,
    message,
)
from ironbell.controllers.capi.machinehealthcheck.limits import allowance
from ironbell.workload.queries import NodeView

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)


def condition(kind: str, status: str = "True", since: datetime = LONG_AGO, reason: str = "R") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": rfc3339(since)}


def cluster(**since: datetime) -> Cluster:
    since = {"ControlPlaneInitialized": LONG_AGO, "InfrastructureReady": LONG_AGO, **since}
    conditions = [condition(kind, since=moment) for kind, moment in since.items()]
    body = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {}, "status": {"conditions": conditions}}
    return CLUSTER.decode(msgspec.json.encode(body))


def machine(*conditions: dict[str, str], node: str = "", created: datetime = LONG_AGO, **metadata: Any) -> Machine:
    meta = {"name": "m", "namespace": "ns", "creationTimestamp": rfc3339(created), **metadata}
    status: dict[str, Any] = {"conditions": list(conditions)} | ({"nodeRef": {"name": node}} if node else {})
    return MACHINE.decode(msgspec.json.encode({"metadata": meta, "spec": {"clusterName": "c"}, "status": status}))


def checks(startup_s: int | None = None, **lists: Any) -> MachineHealthCheckChecks:
    startup = {} if startup_s is None else {"nodeStartupTimeoutSeconds": startup_s}
    return msgspec.convert({**startup, **lists}, MachineHealthCheckChecks)


def diagnose(target: Target, around: Cluster, checks: MachineHealthCheckChecks, now: datetime) -> Diagnosis:
    return HealthChecker.of(around, checks, now).diagnose(target)


READY = condition("InfrastructureReady")
NODE = NodeView("n")


def ago(**by: float) -> datetime:
    return NOW - timedelta(**by)


@pytest.mark.parametrize(
    ("subject", "around", "startup_s", "expected"),
    [
        # the host has been ready for long
        (machine(READY), cluster(), None, "Node failed to report startup in 10m0s"),
        (machine(READY), cluster(), 3600, "Node failed to report startup in 1h0m0s"),
        (machine(READY), cluster(), 0, None),
        # it has not been ready for long, or is not ready at all
        (machine(condition("InfrastructureReady", since=ago(minutes=9))), cluster(), None, timedelta(seconds=61)),
        (machine(condition("InfrastructureReady", "False")), cluster(), 30, None),
        (machine(), cluster(), 30, None),
        # the cluster is younger than the host
        (machine(READY), cluster(ControlPlaneInitialized=ago(minutes=1)), None, timedelta(seconds=541)),
        (machine(READY), cluster(InfrastructureReady=ago(minutes=2)), None, timedelta(seconds=481)),
        (machine(READY, created=ago(seconds=1)), cluster(), None, timedelta(seconds=600)),
    ],
)
def test_time_for_a_node_to_come(
    subject: Machine, around: Cluster, startup_s: int | None, expected: str | timedelta | None
) -> None:
    result = diagnose(Target(subject), around, checks(startup_s), NOW)
    if isinstance(expected, str):
        assert (result.health, result.reason, result.causes) == (Health.UNHEALTHY, "NodeStartupTimeout", (expected,))
    else:
        assert result == Diagnosis(Health.NEITHER, check_in=expected)


def test_a_node_that_joined_and_is_not_written_down_yet_is_no_late_one() -> None:
    result = diagnose(Target(machine(READY), has_joined=True), cluster(), checks(), NOW)
    assert result == Diagnosis(Health.NEITHER)


def test_a_lost_connection_that_came_back_begins_the_time_anew() -> None:
    checker = HealthChecker.of(cluster(), checks(), NOW, restored=ago(minutes=1))
    assert checker.diagnose(Target(machine(READY))) == Diagnosis(Health.NEITHER, check_in=timedelta(seconds=541))


@pytest.mark.parametrize(
    ("kind", "reason", "is_seen", "unhealthy"),
    [
        ("NodeReady", "NodeReadyUnknown", True, True),
        ("NodeReady", "ConnectionDown", True, False),
        ("NodeReady", "NodeReadyUnknown", False, False),
        ("EtcdMemberHealthy", "ConnectionDown", False, False),
        ("EtcdMemberHealthy", "InspectionFailed", False, False),
        ("HostChecked", "DiskBroken", False, True),
    ],
)
def test_a_lost_connection_does_not_turn_a_machine_unhealthy(
    kind: str, reason: str, is_seen: bool, unhealthy: bool
) -> None:
    subject = machine(READY, condition(kind, "Unknown", reason=reason), node="n")
    looked = checks(unhealthyMachineConditions=[{"type": kind, "status": "Unknown", "timeoutSeconds": 300}])
    result = diagnose(Target(subject, NODE if is_seen else None, is_seen=is_seen), cluster(), looked, NOW)
    assert (result.health is Health.UNHEALTHY) is unhealthy


def test_without_a_connection_a_machine_keeps_its_last_reported_health() -> None:
    for reported, health in (("True", Health.HEALTHY), ("False", Health.NEITHER)):
        subject = machine(READY, condition("HealthCheckSucceeded", reported), node="n")
        assert diagnose(Target(subject, is_seen=False), cluster(), NODE_CHECKS, NOW) == Diagnosis(health)
    assert diagnose(Target(machine(READY), is_seen=False), cluster(), checks(), NOW) == Diagnosis(Health.NEITHER)


def test_a_node_that_was_deleted() -> None:
    result = diagnose(Target(machine(READY, node="n")), cluster(), checks(), NOW)
    assert (result.health, result.reason, result.causes) == (
        Health.UNHEALTHY, "NodeDeleted", ("Node n has been deleted",)
    )  # fmt: skip


def test_a_machine_that_waits_for_its_cluster_is_not_late() -> None:
    unready = [{"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 1800}]
    waiting = Target(machine(condition("InfrastructureReady", "False", since=LONG_AGO)))
    young = cluster(ControlPlaneInitialized=ago(minutes=1))
    assert diagnose(waiting, young, checks(unhealthyMachineConditions=unready), NOW) == Diagnosis(
        Health.NEITHER, check_in=timedelta(minutes=29, seconds=1)
    )


def on_node(status: str, since: datetime) -> NodeView:
    ready = NodeCondition(type="Ready", status=status, reason="Lost", last_transition_time=rfc3339(since))
    return NodeView("n", conditions=(ready,))


NODE_CHECKS = checks(unhealthyNodeConditions=[{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}])


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (on_node("True", LONG_AGO), Diagnosis(Health.HEALTHY)),
        (on_node("False", LONG_AGO), Diagnosis(Health.HEALTHY)),
        (NodeView("n"), Diagnosis(Health.HEALTHY)),
        (on_node("Unknown", ago(seconds=100)), Diagnosis(Health.NEITHER, check_in=timedelta(seconds=201))),
        (on_node("Unknown", ago(seconds=300)), Diagnosis(Health.NEITHER, check_in=timedelta(seconds=1))),
        (
            on_node("Unknown", ago(seconds=301)),
            Diagnosis(
                Health.UNHEALTHY,
                "UnhealthyNode",
                ("Condition Ready on Node is reporting status Unknown with reason Lost for more than 5m0s",),
            ),
        ),
    ],
)
def test_conditions_of_nodes(node: NodeView, expected: Diagnosis) -> None:
    assert diagnose(Target(machine(READY, node="n"), node), cluster(), NODE_CHECKS, NOW) == expected


def test_conditions_of_machines_come_first_and_causes_are_joined() -> None:
    of_machine = [{"type": "EtcdMemberHealthy", "status": "False", "timeoutSeconds": 60}]
    both = msgspec.structs.replace(NODE_CHECKS, unhealthy_machine_conditions=checks(
        unhealthyMachineConditions=of_machine).unhealthy_machine_conditions)  # fmt: skip
    subject = machine(READY, condition("EtcdMemberHealthy", "False", reason="Gone"), node="n")
    result = diagnose(Target(subject, on_node("Unknown", LONG_AGO)), cluster(), both, NOW)
    assert result.reason == "UnhealthyMachine"
    assert message(result.causes) == "\n".join(
        (
            "Health check failed:",
            "  * Condition EtcdMemberHealthy on Machine is reporting status False with reason Gone for more than 1m0s",
            "  * Condition Ready on Node is reporting status Unknown with reason Lost for more than 5m0s",
        )
    )


def test_the_annotation_takes_precedence() -> None:
    marked = machine(annotations={"cluster.x-k8s.io/remediate-machine": ""})
    not_begun = CLUSTER.decode(b'{"metadata":{"name":"c"},"spec":{}}')
    result = diagnose(Target(marked), not_begun, checks(), NOW)
    assert (result.health, result.reason) == (Health.UNHEALTHY, "HasRemediateAnnotation")
    assert message(result.causes) == (
        "Health check failed: marked for remediation via cluster.x-k8s.io/remediate-machine annotation"
    )


@pytest.mark.parametrize("missing", ["ControlPlaneInitialized", "InfrastructureReady"])
@pytest.mark.parametrize("of_control_plane", [False, True])
def test_nobody_is_judged_before_the_cluster_is_up(missing: str, of_control_plane: bool) -> None:
    labels = {"cluster.x-k8s.io/control-plane": ""} if of_control_plane else {}
    around = msgspec.structs.replace(
        cluster(),
        status=msgspec.structs.replace(
            cluster().status, conditions=[item for item in cluster().status.conditions if item.type != missing]
        ),
    )
    result = diagnose(Target(machine(READY, labels=labels)), around, checks(), NOW)
    judged = of_control_plane and missing == "ControlPlaneInitialized"
    assert result.health is (Health.UNHEALTHY if judged else Health.NEITHER)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (30, "30s"), (90, "1m30s"), (600, "10m0s"), (3600, "1h0m0s"), (3661, "1h1m1s")]
)
def test_durations_are_formatted_as_in_go(seconds: int, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("trigger", "total", "healthy", "allowed", "more"),
    [
        ({}, 3, 0, True, 0),
        ({}, 3, 3, True, 3),
        ({}, 0, 0, True, 0),
        ({"unhealthyLessThanOrEqualTo": 1}, 3, 2, True, 0),
        ({"unhealthyLessThanOrEqualTo": 1}, 3, 1, False, 0),
        ({"unhealthyLessThanOrEqualTo": 0}, 3, 3, True, 0),
        ({"unhealthyLessThanOrEqualTo": "40%"}, 9, 6, True, 0),
        ({"unhealthyLessThanOrEqualTo": "40%"}, 9, 5, False, 0),
        ({"unhealthyLessThanOrEqualTo": "lots"}, 9, 9, False, 0),
        ({"unhealthyInRange": "[1-3]"}, 9, 7, True, 1),
        ({"unhealthyInRange": "[1-3]"}, 9, 9, False, 0),
        ({"unhealthyInRange": "[1-3]"}, 9, 5, False, 0),
        ({"unhealthyInRange": "[3-5]", "unhealthyLessThanOrEqualTo": 1}, 9, 5, True, 1),
    ],
)
def test_limits(trigger: dict[str, Any], total: int, healthy: int, allowed: bool, more: int) -> None:
    limits = msgspec.convert(trigger, MachineHealthCheckRemediationTriggerIf)
    result = allowance(limits, total=total, healthy=healthy, reported=total - healthy)
    assert (result.allowed, result.more) == (allowed, more)


def test_the_message_about_a_limit_has_the_numbers() -> None:
    most = msgspec.convert({"unhealthyLessThanOrEqualTo": "40%"}, MachineHealthCheckRemediationTriggerIf)
    assert allowance(most, total=4, healthy=2, reported=1).message == (
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy"
        " (total: 4, unhealthy: 1, maxUnhealthy: 40%)"
    )
    within = msgspec.convert({"unhealthyInRange": "[3-5]"}, MachineHealthCheckRemediationTriggerIf)
    assert allowance(within, total=4, healthy=2, reported=2).message == (
        "Remediation is not allowed, the number of not started or unhealthy machines does not fall within the range"
        " (total: 4, unhealthy: 2, unhealthyRange: [3-5])"
    )


FAILED = {**condition("BootstrapSucceeded", "False", since=NOW), "message": "kubeadm join failed"}


def test_a_reported_failure_of_the_bootstrap_is_not_waited_for() -> None:
    result = diagnose(Target(machine(FAILED)), cluster(), checks(), NOW)
    assert result == Diagnosis(Health.UNHEALTHY, "BootstrapFailed", ("Bootstrap failed: kubeadm join failed",))


def test_the_first_machine_of_a_control_plane_is_checked_before_the_cluster_is_initialized() -> None:
    conditions = [condition("InfrastructureReady")]
    body = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {}, "status": {"conditions": conditions}}
    around = CLUSTER.decode(msgspec.json.encode(body))
    first = machine(FAILED, labels={"cluster.x-k8s.io/control-plane": ""})
    assert diagnose(Target(first), around, checks(), NOW).health is Health.UNHEALTHY
    assert diagnose(Target(machine(FAILED)), around, checks(), NOW).health is Health.NEITHER


@pytest.mark.parametrize("target", [Target(machine(FAILED, node="n"), NODE), Target(machine(FAILED), has_joined=True)])
def test_the_checks_of_a_node_decide_if_it_exists(target: Target) -> None:
    assert diagnose(target, cluster(), checks(), NOW).health is not Health.UNHEALTHY

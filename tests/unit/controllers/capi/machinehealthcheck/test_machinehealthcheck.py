"""Unhealthy Machines: marked, remediated while they are few, and left alone when nothing is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machinehealthcheck import MACHINE_HEALTH_CHECK, MachineHealthCheck
from ironbell.api.core.node import NodeCondition
from ironbell.api.meta import to_builtin
from ironbell.api.unstructured import dynamic_kind
from ironbell.controllers.capi.machinehealthcheck.reconciler import (
    MACHINES_AT_ONCE,
    MachineHealthCheckReconciler,
)
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Fields
from ironbell.kube.testing import World
from ironbell.kube.testing.crash import crash_check
from ironbell.workload.access import NotConnected
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import AllNodes, Connection, ConnectionState, NodeByName, NodeView
from support.capi.machines import NODE_FINE

REBOOT = dynamic_kind("remediation.example.io", "v1", "Reboot", "reboots")
REBOOT_TEMPLATE = dynamic_kind("remediation.example.io", "v1", "RebootTemplate", "reboottemplates")
TEMPLATE_REF = {"kind": "RebootTemplate", "name": "r", "apiVersion": "remediation.example.io/v1"}
LOST = [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]


@dataclass
class Nodes:
    """The nodes of the workload cluster."""

    views: dict[str, NodeView] = field(default_factory=dict)
    connected: bool = True
    restored: datetime | None = None
    unseen: set[str] = field(default_factory=set)
    """Nodes that joined after the list was read."""
    unanswered: set[str] = field(default_factory=set)
    """Nodes whose query is not answered."""


def all_nodes(world: World, _query: AllNodes) -> tuple[NodeView, ...]:
    if not world.outside.connected:
        raise NotConnected(ClusterKey("ns", "c", "u"), last_error="timed out")
    return tuple(view for name, view in world.outside.views.items() if name not in world.outside.unseen)


def node_by_name(world: World, query: NodeByName) -> NodeView | None:
    if not world.outside.connected or query.name in world.outside.unanswered:
        raise NotConnected(ClusterKey("ns", "c", "u"), last_error="timed out")
    return cast("NodeView | None", world.outside.views.get(query.name))


def connection(world: World, _query: Connection) -> ConnectionState:
    return ConnectionState(connected=world.outside.connected, error="timed out", restored=world.outside.restored)


def since(kind: str, status: str = "True") -> Fields:
    return {
        "type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2025-12-01T00:00:00Z"
    }  # fmt: skip


def world_with(machines: int, *, spec: Fields | None = None, cluster: Fields | None = None) -> World:
    world = World(outside=Nodes(), resolvers={AllNodes: all_nodes, NodeByName: node_by_name, Connection: connection})
    for kind in (REBOOT, REBOOT_TEMPLATE):
        world.define(kind, {"cluster.x-k8s.io/v1beta2": "v1"})
    status = {"conditions": [since("ControlPlaneInitialized"), since("InfrastructureReady")]}
    world.add(CLUSTER, {"metadata": {"name": "c", "namespace": "ns"}, "spec": cluster or {}, "status": status})
    for number in range(machines):
        add_machine(world, f"m{number}")
    check = {
        "clusterName": "c",
        "selector": {"matchLabels": {"pool": "p"}},
        "checks": {"unhealthyNodeConditions": LOST},
        **(spec or {}),
    }
    world.add(MACHINE_HEALTH_CHECK, {"metadata": {"name": "mhc", "namespace": "ns"}, "spec": check})
    return world


def add_machine(world: World, name: str, **metadata: Any) -> Machine:
    labels = {"cluster.x-k8s.io/cluster-name": "c", "pool": "p", **metadata.pop("labels", {})}
    world.outside.views[name] = NodeView(name, conditions=NODE_FINE)
    return world.add(
        MACHINE,
        {
            "metadata": {"name": name, "namespace": "ns", "labels": labels, **metadata},
            "spec": {"clusterName": "c"},
            "status": {"nodeRef": {"name": name}, "conditions": [since("InfrastructureReady")]},
        },
    )


def lose(world: World, *names: str) -> None:
    """Nothing has been heard of these nodes for long."""
    for name in names:
        lost = NodeCondition(type="Ready", status="Unknown", reason="Lost", last_transition_time="2025-12-31T00:00:00Z")
        world.outside.views[name] = NodeView(name, conditions=(lost,))


def settle(world: World, horizon_s: float = 0.0) -> MachineHealthCheck:
    world.facts.clear()
    # a cluster that does not answer is queried again every second
    world.settle(MachineHealthCheckReconciler(), horizon_s=horizon_s, max_rounds=200 + 3 * int(horizon_s))
    return world.require(MACHINE_HEALTH_CHECK, "ns", "mhc")


def reported(world: World, kind: str, name: str = "m0") -> tuple[str, str, str] | None:
    result = find_condition(world.require(MACHINE, "ns", name).status.conditions, kind)
    return None if result is None else (result.status, result.reason, result.message)


def older(obj: Machine | MachineHealthCheck) -> Sequence[tuple[str, str, str, str]]:
    deprecated = obj.status.deprecated
    assert deprecated is not None
    assert deprecated.v1beta1 is not None
    return [
        (condition.type, condition.status, condition.severity, condition.reason)
        for condition in deprecated.v1beta1.conditions
    ]


def test_a_node_that_joined_after_the_list_does_not_count_as_deleted() -> None:
    world = world_with(3)
    world.outside.unseen = {"m0"}
    check = settle(world)
    assert check.status.current_healthy == 3
    assert reported(world, "HealthCheckSucceeded", "m0") == reported(world, "HealthCheckSucceeded", "m1")
    del world.outside.views["m0"]
    settle(world)
    result = reported(world, "HealthCheckSucceeded", "m0")
    assert result is not None
    assert result[:2] == ("False", "NodeDeleted")


def test_the_first_node_does_not_count_as_deleted_before_a_query() -> None:
    world = world_with(0)
    add_machine(world, "m0", labels={"cluster.x-k8s.io/control-plane": ""})
    cluster = world.require(CLUSTER, "ns", "c")
    world.set_status(CLUSTER, cluster, {"conditions": [since("InfrastructureReady")]})
    check = settle(world)
    assert reported(world, "HealthCheckSucceeded") is None
    assert reported(world, "OwnerRemediated") is None
    assert check.status.current_healthy == 0


def test_healthy_machines_are_marked_and_counted() -> None:
    world = world_with(3)
    add_machine(world, "other", labels={"pool": "q"})
    check = settle(world)
    status = check.status
    assert (status.expected_machines, status.current_healthy, status.remediations_allowed) == (3, 3, 3)
    assert status.targets == ["m0", "m1", "m2"]
    assert status.observed_generation == check.metadata.generation
    assert reported(world, "HealthCheckSucceeded") == ("True", "HealthCheckSucceeded", "")
    assert reported(world, "HealthCheckSucceeded", "other") is None
    assert [(owner.kind, owner.name) for owner in check.metadata.owner_references] == [("Cluster", "c")]
    assert check.metadata.labels == {"cluster.x-k8s.io/cluster-name": "c"}
    allowed = find_condition(status.conditions, "RemediationAllowed")
    assert allowed is not None
    assert allowed.status == "True"
    version = world.api.version
    settle(world)
    assert world.api.version == version


def test_an_unhealthy_machine_is_handed_to_its_owner() -> None:
    world = world_with(3)
    lose(world, "m0")
    check = settle(world)
    cause = "Condition Ready on Node is reporting status Unknown with reason Lost for more than 5m0s"
    assert reported(world, "HealthCheckSucceeded") == ("False", "UnhealthyNode", f"Health check failed:\n  * {cause}")
    assert reported(world, "OwnerRemediated") == ("False", "WaitingForRemediation", "Waiting for remediation")
    assert older(world.require(MACHINE, "ns", "m0")) == [
        ("HealthCheckSucceeded", "False", "Warning", "UnhealthyNode"),
        ("OwnerRemediated", "False", "Warning", "WaitingForRemediation"),
    ]
    assert check.status.current_healthy == 2
    assert [event.reason for event in world.emitted] == ["MachineMarkedUnhealthy"]
    assert reported(world, "OwnerRemediated", "m1") is None


def test_a_remediation_under_way_is_not_started_again() -> None:
    world = world_with(1)
    lose(world, "m0")
    settle(world)
    machine = world.require(MACHINE, "ns", "m0")
    running = {**since("OwnerRemediated", "False"), "reason": "Remediating"}
    world.set_status(MACHINE, machine, {"conditions": [since("InfrastructureReady"), running]})
    settle(world)
    result = reported(world, "OwnerRemediated")
    assert result is not None
    assert result[1] == "Remediating"


def test_a_machine_that_recovers_is_well_again() -> None:
    world = world_with(1)
    lose(world, "m0")
    settle(world)
    world.outside.views["m0"] = NodeView("m0", conditions=NODE_FINE)
    settle(world)
    assert reported(world, "HealthCheckSucceeded") == ("True", "HealthCheckSucceeded", "")


def test_too_many_are_marked_but_not_remediated() -> None:
    world = world_with(4, spec={"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "40%"}}})
    lose(world, "m0", "m1")
    check = settle(world)
    message = (
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy"
        " (total: 4, unhealthy: 2, maxUnhealthy: 40%)"
    )
    result = find_condition(check.status.conditions, "RemediationAllowed")
    assert result is not None
    assert (result.status, result.reason, result.message) == ("False", "TooManyUnhealthy", message)
    assert ("RemediationAllowed", "False", "Warning", "TooManyUnhealthy") in older(check)
    assert reported(world, "HealthCheckSucceeded") is not None
    assert reported(world, "OwnerRemediated") is None
    assert check.status.remediations_allowed == 0
    restricted = [event for event in world.emitted if event.reason == "RemediationRestricted"]
    assert [event.message for event in restricted] == [message]


def test_machines_that_may_become_unhealthy_count_against_the_limit() -> None:
    world = world_with(3, spec={"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": 1}}})
    lose(world, "m0")
    late = NodeCondition(type="Ready", status="Unknown", reason="Lost", last_transition_time="2026-01-01T00:00:00Z")
    world.outside.views["m1"] = NodeView("m1", conditions=(late,))
    check = settle(world)
    assert check.status.current_healthy == 1
    assert reported(world, "OwnerRemediated") is None
    settle(world, horizon_s=400)
    assert reported(world, "HealthCheckSucceeded", "m1") is not None


def test_a_node_that_never_joins_times_out() -> None:
    world = world_with(1, spec={"checks": {"nodeStartupTimeoutSeconds": 600}})
    machine = world.require(MACHINE, "ns", "m0")
    fresh = {**since("InfrastructureReady"), "lastTransitionTime": "2026-01-01T00:00:00Z"}
    world.set_status(MACHINE, machine, {"nodeRef": None, "conditions": [fresh]})
    settle(world)
    assert reported(world, "HealthCheckSucceeded") is None
    settle(world, horizon_s=605)
    result = reported(world, "HealthCheckSucceeded")
    assert result is not None
    assert result[1:] == ("NodeStartupTimeout", "Health check failed:\n  * Node failed to report startup in 10m0s")


def test_a_cluster_that_does_not_answer_leaves_machines_healthy() -> None:
    world = world_with(2)
    settle(world)
    lose(world, "m0")
    world.outside.connected = False
    version = world.api.version
    settle(world)
    assert world.api.version == version


def test_checks_that_need_no_node_continue_without_a_connection() -> None:
    waiting = {"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 600}
    world = world_with(4, spec={
        "checks": {"unhealthyNodeConditions": LOST, "unhealthyMachineConditions": [waiting]},
        "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "50%"}},
    })  # fmt: skip
    settle(world)
    lose(world, "m2", "m3")
    world.outside.connected = False
    marked = world.require(MACHINE, "ns", "m0")
    world.change(MACHINE, marked, {"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}})
    broken = world.require(MACHINE, "ns", "m1")
    kept = [item for item in conditions_of(broken) if item["type"] == "HealthCheckSucceeded"]
    just = {**since("InfrastructureReady", "False"), "lastTransitionTime": "2026-01-01T00:00:00Z"}
    world.set_status(MACHINE, broken, {"nodeRef": {"name": "m1"}, "conditions": [*kept, just]})
    check = settle(world)
    result = reported(world, "HealthCheckSucceeded", "m0")
    assert result is not None
    assert result[:2] == ("False", "HasRemediateAnnotation")
    assert reported(world, "OwnerRemediated", "m0") is not None
    assert reported(world, "HealthCheckSucceeded", "m1") == ("True", "HealthCheckSucceeded", "")
    check = settle(world, horizon_s=605)
    result = reported(world, "HealthCheckSucceeded", "m1")
    assert result is not None
    assert result[:2] == ("False", "UnhealthyMachine")
    assert reported(world, "OwnerRemediated", "m1") is not None
    for name in ("m2", "m3"):
        assert reported(world, "HealthCheckSucceeded", name) == ("True", "HealthCheckSucceeded", "")
        assert reported(world, "OwnerRemediated", name) is None
    assert (check.status.expected_machines, check.status.current_healthy) == (4, 2)


def test_a_node_that_cannot_be_seen_is_waited_for_and_its_time_begins_anew_with_the_connection() -> None:
    world = world_with(1, spec={"checks": {"nodeStartupTimeoutSeconds": 600}})
    machine = world.require(MACHINE, "ns", "m0")
    world.set_status(MACHINE, machine, {"nodeRef": None, "conditions": [since("InfrastructureReady")]})
    world.outside.connected = False
    settle(world, horizon_s=900)
    assert reported(world, "HealthCheckSucceeded") is None
    world.outside.connected, world.outside.restored = True, world.clock.now()
    settle(world, horizon_s=590)
    assert reported(world, "HealthCheckSucceeded") is None
    settle(world, horizon_s=605)
    result = reported(world, "HealthCheckSucceeded")
    assert result is not None
    assert result[1] == "NodeStartupTimeout"


def test_a_failed_query_for_one_node_does_not_affect_other_machines() -> None:
    world = world_with(3)
    settle(world)
    lose(world, "m1")
    del world.outside.views["m0"]
    world.outside.unanswered = {"m0"}
    settle(world)
    assert reported(world, "HealthCheckSucceeded", "m0") == ("True", "HealthCheckSucceeded", "")
    result = reported(world, "HealthCheckSucceeded", "m1")
    assert result is not None
    assert result[1] == "UnhealthyNode"


def conditions_of(machine: Machine) -> list[Fields]:
    return cast("list[Fields]", to_builtin(machine.status.conditions))


def test_paused_and_skipped_machines_are_no_targets() -> None:
    world = world_with(1)
    for name, annotation in (("p", "cluster.x-k8s.io/paused"), ("s", "cluster.x-k8s.io/skip-remediation")):
        add_machine(world, name, annotations={annotation: ""})
    lose(world, "p", "s")
    check = settle(world)
    assert check.status.targets == ["m0"]
    assert reported(world, "HealthCheckSucceeded", "p") is None


def test_a_paused_cluster_pauses_the_check() -> None:
    world = world_with(1, cluster={"paused": True})
    lose(world, "m0")
    check = settle(world)
    assert [(condition.type, condition.status) for condition in check.status.conditions] == [("Paused", "True")]
    assert check.metadata.owner_references == []
    assert reported(world, "HealthCheckSucceeded") is None


def external(world: World) -> None:
    template = {"template": {"metadata": {"labels": {"x": "y"}}, "spec": {"strategy": {"retries": 2}}}}
    world.add(REBOOT_TEMPLATE, {"metadata": {"name": "r", "namespace": "ns"}, "spec": template})


def test_somebody_else_remediates_by_a_template() -> None:
    world = world_with(3, spec={
        "checks": {"unhealthyNodeConditions": LOST}, "remediation": {"templateRef": TEMPLATE_REF}
    })  # fmt: skip
    external(world)
    lose(world, "m0", "m1")
    settle(world)
    for name in ("m0", "m1"):
        request = world.require(REBOOT, "ns", name)
        assert request.body["spec"] == {"strategy": {"retries": 2}}
        owners = [(owner.kind, owner.name, owner.controller) for owner in request.metadata.owner_references]
        assert owners == [("Machine", name, None)]
        assert request.metadata.labels == {"x": "y", "cluster.x-k8s.io/cluster-name": "c"}
        assert reported(world, "ExternallyRemediated", name) == ("False", "WaitingForRemediation", "")
        assert reported(world, "OwnerRemediated", name) is None
    assert reported(world, "HealthCheckSucceeded", "m2") == ("True", "HealthCheckSucceeded", "")
    world.outside.views["m0"] = NodeView("m0", conditions=NODE_FINE)
    settle(world)
    assert world.get(REBOOT, "ns", "m0") is None
    assert world.get(REBOOT, "ns", "m1") is not None


def test_a_missing_template_is_named() -> None:
    world = world_with(1, spec={
        "checks": {"unhealthyNodeConditions": LOST}, "remediation": {"templateRef": TEMPLATE_REF}
    })  # fmt: skip
    lose(world, "m0")
    check = settle(world)
    assert reported(world, "ExternallyRemediated") == (
        "False",
        "RemediationTemplateNotFound",
        "Error retrieving remediation template RebootTemplate ns/r does not exist",
    )
    missing = ("ExternalRemediationTemplateAvailable", "False", "Error", "ExternalRemediationTemplateNotFound")
    assert missing in older(check)
    external(world)
    settle(world)
    assert world.get(REBOOT, "ns", "m0") is not None


def test_it_survives_being_killed_anywhere() -> None:
    world = world_with(3, spec={
        "checks": {"unhealthyNodeConditions": LOST}, "remediation": {"templateRef": TEMPLATE_REF}
    })  # fmt: skip
    external(world)
    lose(world, "m0")
    crash_check(MachineHealthCheckReconciler(), world)


def test_many_machines_are_written_a_few_at_a_time() -> None:
    world = world_with(MACHINES_AT_ONCE + 20)
    reconciler = MachineHealthCheckReconciler()
    world.facts.clear()
    world.settle(reconciler, max_rounds=1000)
    marked = [
        machine
        for machine in world.list(MACHINE, "ns")
        if find_condition(machine.status.conditions, "HealthCheckSucceeded") is not None
    ]
    assert len(marked) == MACHINES_AT_ONCE + 20

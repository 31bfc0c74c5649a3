"""The deletion of a Machine: its order, and what holds it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.cluster.machinedrainrule import MACHINE_DRAIN_RULE
from ironbell.api.core.node import NodeCondition
from ironbell.controllers.capi.machine.drain.pods import PodView
from ironbell.controllers.capi.machine.drain.volumes import VolumesOfNode, VolumeView
from ironbell.kube.decision import Fields
from ironbell.kube.reconciler import Unsynced
from ironbell.kube.testing.crash import crash_check
from ironbell.kube.testing.world import NotSettledError, World
from ironbell.workload.queries import ConnectionState
from support.capi.machines import (
    BUDGET,
    CONFIG,
    CONTROL_PLANE,
    HOST,
    NAMESPACE,
    NODE_FINE,
    PROVIDER_ID,
    Scene,
    node,
    reference,
    running,
    scene,
)

PRE_DRAIN = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"
PRE_TERMINATE = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/etcd"
FINALIZER = {"metadata": {"finalizers": ["example.io/provider"]}}


def pod(name: str, **changes: Any) -> PodView:
    return PodView("shop", name, f"u-{name}", **changes)


def released(world: World, kind: Any, name: str) -> None:
    """A provider is through with its object."""
    world.change(kind, world.require(kind, NAMESPACE, name), {"metadata": {"finalizers": None}})


def held(**arguments: Any) -> Scene:
    """A Machine that runs, whose host and bootstrap config are not deleted at once."""
    case = running(**arguments)
    for kind, name in ((HOST, "h1"), (CONFIG, "b1")):
        case.world.change(kind, case.world.require(kind, NAMESPACE, name), FINALIZER)
    return case


def stage(case: Scene) -> str:
    return case.told("Deleting")[1]


def test_order_of_a_deletion() -> None:
    case = held()
    case.there.pods["m1"] = [pod("a"), pod("b")]
    case.delete()
    case.settle()
    assert case.there.log == ["cordon m1", "evict a", "evict b"]
    assert case.told("Deleting") == ("True", "WaitingForInfrastructureDeletion", "Waiting for Host to be deleted")
    assert case.machine.status.phase == "Deleting"
    assert case.world.require(HOST, NAMESPACE, "h1").metadata.deletion_timestamp is not None
    assert case.world.require(CONFIG, NAMESPACE, "b1").metadata.deletion_timestamp is None
    released(case.world, HOST, "h1")
    case.settle()
    assert case.told("Deleting") == ("True", "WaitingForBootstrapDeletion", "Waiting for Config to be deleted")
    assert case.told("InfrastructureReady") == ("False", "ObjectDeleted", "Host has been deleted")
    assert case.legacy("InfrastructureReady")[2] == "Deleted"
    assert case.there.nodes
    released(case.world, CONFIG, "b1")
    case.settle()
    assert not case.exists
    assert case.there.log[-1] == "delete m1"
    assert [event.reason for event in case.world.emitted] == ["SuccessfulDrainNode", "NodeVolumesDetached"]


def test_a_deleted_cluster_is_not_drained_but_its_hooks_hold() -> None:
    case = held(annotations={PRE_DRAIN: "", PRE_TERMINATE: "kcp"})
    case.there.pods["m1"] = [pod("a")]
    case.world.change(CLUSTER, case.cluster, {"metadata": {"finalizers": ["x"]}})
    case.world.remove(CLUSTER, case.cluster)
    case.delete()
    case.settle()
    assert case.there.log == []
    assert case.told("Deleting") == (
        "True",
        "WaitingForPreTerminateHook",
        f"Waiting for pre-terminate hooks to succeed (hooks: {PRE_TERMINATE})",
    )
    assert case.world.require(HOST, NAMESPACE, "h1").metadata.deletion_timestamp is None
    case.world.change(MACHINE, case.machine, {"metadata": {"annotations": {PRE_TERMINATE: None}}})
    for kind, name in ((HOST, "h1"), (CONFIG, "b1")):
        released(case.world, kind, name)
    case.settle()
    assert not case.exists
    assert case.there.log == []


def without_control_plane(case: Scene) -> None:
    case.world.remove(MACHINE, case.world.require(MACHINE, NAMESPACE, "cp1"))


def with_plane(case: Scene, **fields: Any) -> None:
    case.world.add(
        CONTROL_PLANE, {"metadata": {"name": "p", "namespace": NAMESPACE, **FINALIZER["metadata"]}, **fields}
    )
    case.world.change(CLUSTER, case.cluster, {"spec": {"controlPlaneRef": reference(CONTROL_PLANE, "p")}})


def with_deleted_plane(case: Scene) -> None:
    with_plane(case)
    case.world.remove(CONTROL_PLANE, case.world.require(CONTROL_PLANE, NAMESPACE, "p"))


def with_plane_elsewhere(case: Scene) -> None:
    without_control_plane(case)
    with_plane(case, status={"externalManagedControlPlane": True})


def with_plane_missing(case: Scene) -> None:
    case.world.change(CLUSTER, case.cluster, {"spec": {"controlPlaneRef": reference(CONTROL_PLANE, "gone")}})


@pytest.mark.parametrize(
    ("happens", "drained"),
    [
        (lambda _case: None, True),
        (without_control_plane, False),
        (with_plane, True),
        (with_deleted_plane, False),
        (with_plane_elsewhere, True),
        (with_plane_missing, True),
    ],
)
def test_when_nodes_are_drained(happens: Any, drained: bool) -> None:
    case = running()
    case.there.pods["m1"] = [pod("a")]
    happens(case)
    case.delete()
    case.settle()
    assert not case.exists
    assert ("evict a" in case.there.log) is drained
    assert ("delete m1" in case.there.log) is drained


def test_a_machine_without_a_node_is_deleted_at_once() -> None:
    case = scene()
    case.add_host()
    case.add_config()
    case.settle()
    case.delete()
    case.settle()
    assert not case.exists
    assert case.world.get(HOST, NAMESPACE, "h1") is None


def test_a_node_that_came_at_last_is_still_drained() -> None:
    case = scene()
    case.add_host()
    case.add_config()
    case.data_is_there()
    case.settle()
    case.host_is_made()
    case.there.nodes["late"] = node("late")
    case.there.pods["late"] = [pod("a")]
    case.delete()
    case.settle()
    assert not case.exists
    assert case.there.log[-2:] == ["evict a", "delete late"]


def test_pre_drain_hooks_hold_before_anything_is_done() -> None:
    case = held(annotations={PRE_DRAIN: "", "pre-drain.delete.hook.machine.cluster.x-k8s.io": ""})
    case.there.pods["m1"] = [pod("a")]
    case.delete()
    case.settle()
    hooks = f"pre-drain.delete.hook.machine.cluster.x-k8s.io,{PRE_DRAIN}"
    assert case.told("Deleting") == (
        "True", "WaitingForPreDrainHook", f"Waiting for pre-drain hooks to succeed (hooks: {hooks})"
    )  # fmt: skip
    assert case.legacy("PreDrainDeleteHookSucceeded") == ("False", "Info", "WaitingExternalHook", "")
    assert case.machine.status.deletion is not None
    assert case.machine.status.deletion.wait_for_pre_drain_hook_start_time == "2026-01-01T00:00:00Z"
    assert case.there.log == []


def test_a_budget_holds_the_drain_until_it_allows() -> None:
    case = held()
    case.there.pods["m1"] = [pod("a"), pod("b")]
    case.there.protected = {"b"}
    case.delete()
    case.settle()
    assert case.told("Deleting") == (
        "True",
        "DrainingNode",
        "Drain not completed yet (started at 2026-01-01T00:00:00Z):\n* Pod shop/b: c" + BUDGET[1:],
    )
    assert case.legacy("DrainingSucceeded")[:3] == ("False", "Info", "Draining")
    assert case.world.require(HOST, NAMESPACE, "h1").metadata.deletion_timestamp is None
    assert case.there.log.count("evict b") == 1
    case.world.settle(case.reconciler, horizon_s=12)
    assert case.there.log.count("evict b") == 1
    case.world.settle(case.reconciler, horizon_s=12)
    assert case.there.log.count("evict b") == 2
    case.there.protected.clear()
    case.world.settle(case.reconciler, horizon_s=25)
    assert stage(case) == "WaitingForInfrastructureDeletion"
    assert case.legacy("DrainingSucceeded")[0] == "True"


def test_a_long_drain_reports_its_likely_cause() -> None:
    case = held()
    case.there.pods["m1"] = [pod("a"), pod("b", deletion=case.world.now())]
    case.there.protected = {"a"}
    case.delete()
    case.settle()
    assert "stage: DrainingNode" in case.told("Ready")[2]
    case.later(minutes=16)
    case.settle()
    assert case.told("Ready")[2].startswith(
        "* Deleting: Machine deletion in progress since more than 15m, stage: DrainingNode,"
        " delay likely due to PodDisruptionBudgets, Pods not terminating"
    )


def test_pods_of_higher_orders_wait_for_pods_of_lower_orders() -> None:
    case = held()
    drain = {"behavior": "Drain", "order": 5}
    late = [{"selector": {"matchLabels": {"tier": "db"}}}]
    case.world.add(
        MACHINE_DRAIN_RULE,
        {"metadata": {"name": "db-last", "namespace": NAMESPACE}, "spec": {"drain": drain, "pods": late}},
    )
    case.there.pods["m1"] = [pod("db", labels={"tier": "db"}), pod("web")]
    case.there.lingering = {"web"}
    case.delete()
    case.settle()
    assert case.there.log == ["cordon m1", "evict web"]
    assert case.told("Deleting")[2].splitlines()[1:] == [
        "* Pod shop/web: deletionTimestamp set, but still not removed from the Node",
        "After above Pods have been removed from the Node, the following Pods will be evicted: shop/db",
    ]
    case.there.pods["m1"] = [pod("db", labels={"tier": "db"})]
    case.settle()
    assert case.there.log[-1] == "evict db"


def test_daemons_and_static_pods_stay() -> None:
    case = held()
    case.there.pods["m1"] = [pod("proxy", of_daemon_set=True), pod("etcd", mirror=True)]
    case.delete()
    case.settle()
    assert case.there.log == ["cordon m1"]
    assert stage(case) == "WaitingForInfrastructureDeletion"


def test_an_unreachable_node_is_drained_with_little_grace_and_its_volumes_are_not_waited_for() -> None:
    case = held()
    lost = (NodeCondition(type="Ready", status="Unknown"), *NODE_FINE[1:])
    case.there.nodes["m1"] = replace(case.there.nodes["m1"], conditions=lost)
    case.there.pods["m1"] = [pod("a")]
    case.there.lingering = {"a"}
    case.there.volumes["m1"] = VolumesOfNode(("kubernetes.io/csi/d^1",))
    case.delete()
    case.settle(horizon_s=30)
    evictions = [effect.arguments for effect in case.world.performed if effect.performer == "evict-pods"]
    assert [arguments.grace_s for arguments in evictions] == [1]
    assert stage(case) == "WaitingForInfrastructureDeletion"


@pytest.mark.parametrize(
    ("spec", "annotations"),
    [
        ({"deletion": {"nodeDrainTimeoutSeconds": 60}}, {}),
        ({}, {"machine.cluster.x-k8s.io/exclude-node-draining": ""}),
    ],
)
def test_a_drain_ends_by_its_time_or_is_left_out(spec: Fields, annotations: dict[str, str]) -> None:
    case = held(annotations=annotations, **spec)
    case.there.pods["m1"] = [pod("a")]
    case.there.protected = {"a"}
    case.delete()
    case.settle()
    assert stage(case) == ("DrainingNode" if spec else "WaitingForInfrastructureDeletion")
    case.settle(horizon_s=65)
    assert stage(case) == "WaitingForInfrastructureDeletion"


def test_attached_volumes_are_waited_for() -> None:
    case = held(deletion={"nodeVolumeDetachTimeoutSeconds": 120})
    data = VolumeView("pv", "kubernetes.io/csi/d^1", "shop/data")
    case.there.volumes["m1"] = VolumesOfNode((data.attached_name,), ("pv",), (data,))
    case.delete()
    case.settle()
    assert stage(case) == "WaitingForVolumeDetach"
    assert case.told("Deleting")[2].splitlines() == [
        "Waiting for Node volumes to be detached (started at 2026-01-01T00:00:00Z)",
        "* PersistentVolumeClaims: shop/data",
    ]
    assert case.legacy("VolumeDetachSucceeded")[2] == "WaitingForVolumeDetach"
    case.settle(horizon_s=125)
    assert stage(case) == "WaitingForInfrastructureDeletion"


def test_volumes_of_pods_that_stay_do_not_hold() -> None:
    case = held()
    data = VolumeView("pv", "kubernetes.io/csi/d^1", "shop/data")
    case.there.volumes["m1"] = VolumesOfNode((), ("pv",), (data,))
    case.there.pods["m1"] = [pod("daemon", of_daemon_set=True, claims=("data",))]
    case.delete()
    case.settle()
    assert stage(case) == "WaitingForInfrastructureDeletion"


def test_a_cluster_that_does_not_answer_holds_the_drain_and_is_reported() -> None:
    case = held(deletion={"nodeDrainTimeoutSeconds": 10, "nodeVolumeDetachTimeoutSeconds": 10})
    case.there.state = ConnectionState(connected=False, error="timed out")
    case.delete()
    case.settle()
    assert case.told("Deleting")[1:] == (
        "DrainingNode", "Error draining Node: no connection to cluster ns/c1: timed out"
    )  # fmt: skip
    assert case.legacy("DrainingSucceeded")[:3] == ("False", "Warning", "DrainingFailed")
    assert [event.reason for event in case.world.emitted] == ["FailedDrainNode"]
    case.settle(horizon_s=25)
    assert stage(case) == "WaitingForInfrastructureDeletion"


def test_a_rule_that_cannot_be_read_is_named() -> None:
    case = held()
    bad = [{"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]
    case.world.add(
        MACHINE_DRAIN_RULE,
        {"metadata": {"name": "bad", "namespace": NAMESPACE}, "spec": {"drain": {"behavior": "Skip"}, "pods": bad}},
    )
    case.there.pods["m1"] = [pod("a")]
    case.delete()
    case.settle()
    assert "invalid selectors in MachineDrainRule bad" in case.told("Deleting")[2]


@pytest.mark.parametrize(("limit_s", "is_deleted"), [(None, False), (0, False), (10, True)])
def test_a_node_that_cannot_be_deleted_holds_for_its_time(limit_s: int | None, is_deleted: bool) -> None:
    case = running(**({} if limit_s is None else {"deletion": {"nodeDeletionTimeoutSeconds": limit_s}}))
    case.there.broken = "refused"
    case.delete(wait_s=15)
    if is_deleted:
        case.settle()
        assert case.there.log[-1] == "give up m1"
    else:
        with pytest.raises(NotSettledError):
            case.settle()
        assert case.told("Deleting")[1:] == ("DeletingNode", "Deleting Node m1")
    assert case.exists is not is_deleted


def test_an_object_that_cannot_be_read_yet_does_not_count_as_deleted() -> None:
    case = held(annotations={PRE_TERMINATE: ""})
    case.there.pods["m1"] = [pod("a")]
    case.world.unsynced[HOST.collection] = Unsynced(HOST, "hosts is forbidden")
    case.delete()
    case.settle()
    assert case.told("Deleting")[1:] == (
        "Deleting", "Deletion started: Host ns/h1 cannot be read yet: hosts is forbidden"
    )  # fmt: skip
    assert case.there.log == []
    del case.world.unsynced[HOST.collection]
    case.settle()
    assert case.there.log == ["cordon m1", "evict a"]
    assert stage(case) == "WaitingForPreTerminateHook"


def test_a_host_of_a_kind_that_cannot_be_read_holds_a_deletion_without_a_node_too() -> None:
    case = held()
    case.world.change(CLUSTER, case.cluster, {"metadata": {"finalizers": ["x"]}})
    case.world.remove(CLUSTER, case.cluster)
    case.world.unsynced[HOST.collection] = Unsynced(HOST)
    case.delete()
    case.settle()
    assert stage(case) == "WaitingForInfrastructureDeletion"
    assert case.exists


def test_a_machine_can_be_deleted_without_its_cluster() -> None:
    case = running()
    case.world.remove(CLUSTER, case.cluster)
    case.delete()
    case.settle()
    assert not case.exists


@pytest.mark.parametrize("annotations", [{}, {PRE_TERMINATE: ""}])
def test_a_deletion_survives_being_killed_anywhere(annotations: dict[str, str]) -> None:
    case = running(annotations=annotations)
    case.there.pods["m1"] = [pod("a"), pod("b", of_daemon_set=True)]
    case.delete()
    end = crash_check(case.reconciler, case.world, outside=lambda state: sorted(state.nodes))
    assert (end.get(MACHINE, NAMESPACE, "m1") is None) is not bool(annotations)


def without_node() -> Scene:
    """A Machine with a provisioned host and without a Node."""
    case = scene()
    case.add_host()
    case.add_config()
    case.data_is_there()
    case.host_is_made()
    case.settle()
    return case


def test_a_node_that_joined_since_the_last_decision_is_drained() -> None:
    case = without_node()
    case.later(seconds=30)
    case.there.nodes["m1"] = node()
    case.there.pods["m1"] = [pod("a")]
    case.delete(wait_s=1)
    case.world.settle(case.reconciler)
    assert case.there.log[:2] == ["cordon m1", "evict a"]


def test_a_node_that_joins_while_its_host_is_being_deleted_is_deleted() -> None:
    case = without_node()
    case.world.change(HOST, case.world.require(HOST, NAMESPACE, "h1"), FINALIZER)
    case.delete(wait_s=1)
    case.world.settle(case.reconciler)
    assert stage(case) == "WaitingForInfrastructureDeletion"
    case.there.nodes["m1"] = node()
    released(case.world, HOST, "h1")
    case.world.settle(case.reconciler, horizon_s=5)
    assert not case.exists
    assert case.there.log == ["delete m1"]


def test_a_node_that_joins_while_its_host_that_was_never_ready_is_being_deleted_is_deleted() -> None:
    """The host's provider ID, by which the Node is known, goes with the host."""
    case = scene()
    case.add_host(spec={"providerID": PROVIDER_ID})
    case.world.change(HOST, case.world.require(HOST, NAMESPACE, "h1"), FINALIZER)
    case.add_config()
    case.data_is_there()
    case.settle()
    assert not case.machine.spec.provider_id
    case.delete(wait_s=1)
    case.world.settle(case.reconciler)
    assert stage(case) == "WaitingForInfrastructureDeletion"
    case.there.nodes["m1"] = node()
    released(case.world, HOST, "h1")
    case.world.settle(case.reconciler, horizon_s=5)
    assert not case.exists
    assert case.there.log == ["delete m1"]


def test_a_machine_without_a_node_is_deleted_right_after_its_host() -> None:
    case = without_node()
    case.delete(wait_s=1)
    started = case.world.now()
    case.world.settle(case.reconciler, horizon_s=5)
    assert not case.exists
    assert (case.world.now() - started).total_seconds() <= 5


def test_a_cluster_that_does_not_answer_holds_no_machine_without_a_node() -> None:
    case = without_node()
    case.there.state = ConnectionState(connected=False, error="timed out")
    case.delete(wait_s=1)
    case.settle(horizon_s=5)
    assert not case.exists
    assert case.there.log == []

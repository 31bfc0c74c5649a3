"""A Machine that goes: in which order, what holds it, and what does not."""

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
from support.machines import (
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
    """A Machine that runs, whose host and bootstrap config take their time to go."""
    found = running(**arguments)
    for kind, name in ((HOST, "h1"), (CONFIG, "b1")):
        found.world.change(kind, found.world.require(kind, NAMESPACE, name), FINALIZER)
    return found


def stage(found: Scene) -> str:
    return found.told("Deleting")[1]


def test_order_of_a_deletion() -> None:
    found = held()
    found.there.pods["m1"] = [pod("a"), pod("b")]
    found.delete()
    found.settle()
    assert found.there.log == ["cordon m1", "evict a", "evict b"]
    assert found.told("Deleting") == ("True", "WaitingForInfrastructureDeletion", "Waiting for Host to be deleted")
    assert found.machine.status.phase == "Deleting"
    assert found.world.require(HOST, NAMESPACE, "h1").metadata.deletion_timestamp is not None
    assert found.world.require(CONFIG, NAMESPACE, "b1").metadata.deletion_timestamp is None
    released(found.world, HOST, "h1")
    found.settle()
    assert found.told("Deleting") == ("True", "WaitingForBootstrapDeletion", "Waiting for Config to be deleted")
    assert found.told("InfrastructureReady") == ("False", "ObjectDeleted", "Host has been deleted")
    assert found.legacy("InfrastructureReady")[2] == "Deleted"
    assert found.there.nodes
    released(found.world, CONFIG, "b1")
    found.settle()
    assert not found.exists
    assert found.there.log[-1] == "delete m1"
    assert [event.reason for event in found.world.emitted] == ["SuccessfulDrainNode", "NodeVolumesDetached"]


def test_a_cluster_that_goes_is_not_drained_but_its_hooks_hold() -> None:
    found = held(annotations={PRE_DRAIN: "", PRE_TERMINATE: "kcp"})
    found.there.pods["m1"] = [pod("a")]
    found.world.change(CLUSTER, found.cluster, {"metadata": {"finalizers": ["x"]}})
    found.world.remove(CLUSTER, found.cluster)
    found.delete()
    found.settle()
    assert found.there.log == []
    assert found.told("Deleting") == (
        "True",
        "WaitingForPreTerminateHook",
        f"Waiting for pre-terminate hooks to succeed (hooks: {PRE_TERMINATE})",
    )
    assert found.world.require(HOST, NAMESPACE, "h1").metadata.deletion_timestamp is None
    found.world.change(MACHINE, found.machine, {"metadata": {"annotations": {PRE_TERMINATE: None}}})
    for kind, name in ((HOST, "h1"), (CONFIG, "b1")):
        released(found.world, kind, name)
    found.settle()
    assert not found.exists
    assert found.there.log == []


def without_control_plane(found: Scene) -> None:
    found.world.remove(MACHINE, found.world.require(MACHINE, NAMESPACE, "cp1"))


def with_plane(found: Scene, **fields: Any) -> None:
    found.world.add(
        CONTROL_PLANE, {"metadata": {"name": "p", "namespace": NAMESPACE, **FINALIZER["metadata"]}, **fields}
    )
    found.world.change(CLUSTER, found.cluster, {"spec": {"controlPlaneRef": reference(CONTROL_PLANE, "p")}})


def with_plane_that_goes(found: Scene) -> None:
    with_plane(found)
    found.world.remove(CONTROL_PLANE, found.world.require(CONTROL_PLANE, NAMESPACE, "p"))


def with_plane_elsewhere(found: Scene) -> None:
    without_control_plane(found)
    with_plane(found, status={"externalManagedControlPlane": True})


def with_plane_missing(found: Scene) -> None:
    found.world.change(CLUSTER, found.cluster, {"spec": {"controlPlaneRef": reference(CONTROL_PLANE, "gone")}})


@pytest.mark.parametrize(
    ("happens", "drained"),
    [
        (lambda _found: None, True),
        (without_control_plane, False),
        (with_plane, True),
        (with_plane_that_goes, False),
        (with_plane_elsewhere, True),
        (with_plane_missing, True),
    ],
)
def test_when_nodes_are_drained(happens: Any, drained: bool) -> None:
    found = running()
    found.there.pods["m1"] = [pod("a")]
    happens(found)
    found.delete()
    found.settle()
    assert not found.exists
    assert ("evict a" in found.there.log) is drained
    assert ("delete m1" in found.there.log) is drained


def test_a_machine_without_a_node_goes_at_once() -> None:
    found = scene()
    found.add_host()
    found.add_config()
    found.settle()
    found.delete()
    found.settle()
    assert not found.exists
    assert found.world.get(HOST, NAMESPACE, "h1") is None


def test_a_node_that_came_at_last_is_still_drained() -> None:
    found = scene()
    found.add_host()
    found.add_config()
    found.data_is_there()
    found.settle()
    found.host_is_made()
    found.there.nodes["late"] = node("late")
    found.there.pods["late"] = [pod("a")]
    found.delete()
    found.settle()
    assert not found.exists
    assert found.there.log[-2:] == ["evict a", "delete late"]


def test_pre_drain_hooks_hold_before_anything_is_done() -> None:
    found = held(annotations={PRE_DRAIN: "", "pre-drain.delete.hook.machine.cluster.x-k8s.io": ""})
    found.there.pods["m1"] = [pod("a")]
    found.delete()
    found.settle()
    hooks = f"pre-drain.delete.hook.machine.cluster.x-k8s.io,{PRE_DRAIN}"
    assert found.told("Deleting") == (
        "True", "WaitingForPreDrainHook", f"Waiting for pre-drain hooks to succeed (hooks: {hooks})"
    )  # fmt: skip
    assert found.legacy("PreDrainDeleteHookSucceeded") == ("False", "Info", "WaitingExternalHook", "")
    assert found.machine.status.deletion is not None
    assert found.machine.status.deletion.wait_for_pre_drain_hook_start_time == "2026-01-01T00:00:00Z"
    assert found.there.log == []


def test_a_budget_holds_the_drain_until_it_allows() -> None:
    found = held()
    found.there.pods["m1"] = [pod("a"), pod("b")]
    found.there.protected = {"b"}
    found.delete()
    found.settle()
    assert found.told("Deleting") == (
        "True",
        "DrainingNode",
        "Drain not completed yet (started at 2026-01-01T00:00:00Z):\n* Pod shop/b: c" + BUDGET[1:],
    )
    assert found.legacy("DrainingSucceeded")[:3] == ("False", "Info", "Draining")
    assert found.world.require(HOST, NAMESPACE, "h1").metadata.deletion_timestamp is None
    assert found.there.log.count("evict b") == 1
    found.world.settle(found.reconciler, horizon_s=12)
    assert found.there.log.count("evict b") == 1
    found.world.settle(found.reconciler, horizon_s=12)
    assert found.there.log.count("evict b") == 2
    found.there.protected.clear()
    found.world.settle(found.reconciler, horizon_s=25)
    assert stage(found) == "WaitingForInfrastructureDeletion"
    assert found.legacy("DrainingSucceeded")[0] == "True"


def test_a_long_drain_says_what_likely_holds_it() -> None:
    found = held()
    found.there.pods["m1"] = [pod("a"), pod("b", deletion=found.world.now())]
    found.there.protected = {"a"}
    found.delete()
    found.settle()
    assert "stage: DrainingNode" in found.told("Ready")[2]
    found.later(minutes=16)
    found.settle()
    assert found.told("Ready")[2].startswith(
        "* Deleting: Machine deletion in progress since more than 15m, stage: DrainingNode,"
        " delay likely due to PodDisruptionBudgets, Pods not terminating"
    )


def test_pods_of_higher_orders_wait_for_those_of_lower_ones() -> None:
    found = held()
    drain = {"behavior": "Drain", "order": 5}
    late = [{"selector": {"matchLabels": {"tier": "db"}}}]
    found.world.add(
        MACHINE_DRAIN_RULE,
        {"metadata": {"name": "db-last", "namespace": NAMESPACE}, "spec": {"drain": drain, "pods": late}},
    )
    found.there.pods["m1"] = [pod("db", labels={"tier": "db"}), pod("web")]
    found.there.lingering = {"web"}
    found.delete()
    found.settle()
    assert found.there.log == ["cordon m1", "evict web"]
    assert found.told("Deleting")[2].splitlines()[1:] == [
        "* Pod shop/web: deletionTimestamp set, but still not removed from the Node",
        "After above Pods have been removed from the Node, the following Pods will be evicted: shop/db",
    ]
    found.there.pods["m1"] = [pod("db", labels={"tier": "db"})]
    found.settle()
    assert found.there.log[-1] == "evict db"


def test_daemons_and_static_pods_stay() -> None:
    found = held()
    found.there.pods["m1"] = [pod("proxy", of_daemon_set=True), pod("etcd", mirror=True)]
    found.delete()
    found.settle()
    assert found.there.log == ["cordon m1"]
    assert stage(found) == "WaitingForInfrastructureDeletion"


def test_an_unreachable_node_is_drained_with_little_grace_and_its_volumes_are_not_waited_for() -> None:
    found = held()
    lost = (NodeCondition(type="Ready", status="Unknown"), *NODE_FINE[1:])
    found.there.nodes["m1"] = replace(found.there.nodes["m1"], conditions=lost)
    found.there.pods["m1"] = [pod("a")]
    found.there.lingering = {"a"}
    found.there.volumes["m1"] = VolumesOfNode(("kubernetes.io/csi/d^1",))
    found.delete()
    found.settle(horizon_s=30)
    evictions = [effect.arguments for effect in found.world.performed if effect.performer == "evict-pods"]
    assert [arguments.grace_s for arguments in evictions] == [1]
    assert stage(found) == "WaitingForInfrastructureDeletion"


@pytest.mark.parametrize(
    ("spec", "annotations"),
    [
        ({"deletion": {"nodeDrainTimeoutSeconds": 60}}, {}),
        ({}, {"machine.cluster.x-k8s.io/exclude-node-draining": ""}),
    ],
)
def test_a_drain_ends_by_its_time_or_is_left_out(spec: Fields, annotations: dict[str, str]) -> None:
    found = held(annotations=annotations, **spec)
    found.there.pods["m1"] = [pod("a")]
    found.there.protected = {"a"}
    found.delete()
    found.settle()
    assert stage(found) == ("DrainingNode" if spec else "WaitingForInfrastructureDeletion")
    found.settle(horizon_s=65)
    assert stage(found) == "WaitingForInfrastructureDeletion"


def test_attached_volumes_are_waited_for() -> None:
    found = held(deletion={"nodeVolumeDetachTimeoutSeconds": 120})
    data = VolumeView("pv", "kubernetes.io/csi/d^1", "shop/data")
    found.there.volumes["m1"] = VolumesOfNode((data.attached_name,), ("pv",), (data,))
    found.delete()
    found.settle()
    assert stage(found) == "WaitingForVolumeDetach"
    assert found.told("Deleting")[2].splitlines() == [
        "Waiting for Node volumes to be detached (started at 2026-01-01T00:00:00Z)",
        "* PersistentVolumeClaims: shop/data",
    ]
    assert found.legacy("VolumeDetachSucceeded")[2] == "WaitingForVolumeDetach"
    found.settle(horizon_s=125)
    assert stage(found) == "WaitingForInfrastructureDeletion"


def test_volumes_of_pods_that_stay_do_not_hold() -> None:
    found = held()
    data = VolumeView("pv", "kubernetes.io/csi/d^1", "shop/data")
    found.there.volumes["m1"] = VolumesOfNode((), ("pv",), (data,))
    found.there.pods["m1"] = [pod("daemon", of_daemon_set=True, claims=("data",))]
    found.delete()
    found.settle()
    assert stage(found) == "WaitingForInfrastructureDeletion"


def test_a_cluster_that_does_not_answer_holds_the_drain_and_says_so() -> None:
    found = held(deletion={"nodeDrainTimeoutSeconds": 10, "nodeVolumeDetachTimeoutSeconds": 10})
    found.there.state = ConnectionState(connected=False, error="timed out")
    found.delete()
    found.settle()
    assert found.told("Deleting")[1:] == (
        "DrainingNode", "Error draining Node: no connection to cluster ns/c1: timed out"
    )  # fmt: skip
    assert found.legacy("DrainingSucceeded")[:3] == ("False", "Warning", "DrainingFailed")
    assert [event.reason for event in found.world.emitted] == ["FailedDrainNode"]
    found.settle(horizon_s=25)
    assert stage(found) == "WaitingForInfrastructureDeletion"


def test_a_rule_that_cannot_be_read_is_named() -> None:
    found = held()
    bad = [{"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]
    found.world.add(
        MACHINE_DRAIN_RULE,
        {"metadata": {"name": "bad", "namespace": NAMESPACE}, "spec": {"drain": {"behavior": "Skip"}, "pods": bad}},
    )
    found.there.pods["m1"] = [pod("a")]
    found.delete()
    found.settle()
    assert "invalid selectors in MachineDrainRule bad" in found.told("Deleting")[2]


@pytest.mark.parametrize(("limit_s", "gone"), [(None, False), (0, False), (10, True)])
def test_a_node_that_cannot_be_deleted_holds_for_its_time(limit_s: int | None, gone: bool) -> None:
    found = running(**({} if limit_s is None else {"deletion": {"nodeDeletionTimeoutSeconds": limit_s}}))
    found.there.broken = "refused"
    found.delete(wait_s=15)
    if gone:
        found.settle()
        assert found.there.log[-1] == "give up m1"
    else:
        with pytest.raises(NotSettledError):
            found.settle()
        assert found.told("Deleting")[1:] == ("DeletingNode", "Deleting Node m1")
    assert found.exists is not gone


def test_what_cannot_be_read_yet_is_not_taken_for_gone() -> None:
    found = held(annotations={PRE_TERMINATE: ""})
    found.there.pods["m1"] = [pod("a")]
    found.world.unsynced[HOST.collection] = Unsynced(HOST, "hosts is forbidden")
    found.delete()
    found.settle()
    assert found.told("Deleting")[1:] == (
        "Deleting", "Deletion started: Host ns/h1 cannot be read yet: hosts is forbidden"
    )  # fmt: skip
    assert found.there.log == []
    del found.world.unsynced[HOST.collection]
    found.settle()
    assert found.there.log == ["cordon m1", "evict a"]
    assert stage(found) == "WaitingForPreTerminateHook"


def test_a_host_of_a_kind_that_cannot_be_read_holds_a_deletion_without_a_node_too() -> None:
    found = held()
    found.world.change(CLUSTER, found.cluster, {"metadata": {"finalizers": ["x"]}})
    found.world.remove(CLUSTER, found.cluster)
    found.world.unsynced[HOST.collection] = Unsynced(HOST)
    found.delete()
    found.settle()
    assert stage(found) == "WaitingForInfrastructureDeletion"
    assert found.exists


def test_a_machine_whose_cluster_is_gone_can_go() -> None:
    found = running()
    found.world.remove(CLUSTER, found.cluster)
    found.delete()
    found.settle()
    assert not found.exists


@pytest.mark.parametrize("annotations", [{}, {PRE_TERMINATE: ""}])
def test_a_deletion_survives_being_killed_anywhere(annotations: dict[str, str]) -> None:
    found = running(annotations=annotations)
    found.there.pods["m1"] = [pod("a"), pod("b", of_daemon_set=True)]
    found.delete()
    end = crash_check(found.reconciler, found.world, outside=lambda there: sorted(there.nodes))
    assert (end.get(MACHINE, NAMESPACE, "m1") is None) is not bool(annotations)


def without_node() -> Scene:
    """A Machine whose host is made, and whose Node has not come yet."""
    found = scene()
    found.add_host()
    found.add_config()
    found.data_is_there()
    found.host_is_made()
    found.settle()
    return found


def test_a_node_that_came_since_the_last_look_is_drained() -> None:
    found = without_node()
    found.later(seconds=30)
    found.there.nodes["m1"] = node()
    found.there.pods["m1"] = [pod("a")]
    found.delete(wait_s=1)
    found.world.settle(found.reconciler)
    assert found.there.log[:2] == ["cordon m1", "evict a"]


def test_a_node_that_joins_while_its_host_goes_is_deleted() -> None:
    found = without_node()
    found.world.change(HOST, found.world.require(HOST, NAMESPACE, "h1"), FINALIZER)
    found.delete(wait_s=1)
    found.world.settle(found.reconciler)
    assert stage(found) == "WaitingForInfrastructureDeletion"
    found.there.nodes["m1"] = node()
    released(found.world, HOST, "h1")
    found.world.settle(found.reconciler, horizon_s=5)
    assert not found.exists
    assert found.there.log == ["delete m1"]


def test_a_node_that_joins_while_its_host_goes_that_was_never_ready_is_deleted() -> None:
    """The host's provider ID, by which the Node is known, goes with the host."""
    found = scene()
    found.add_host(spec={"providerID": PROVIDER_ID})
    found.world.change(HOST, found.world.require(HOST, NAMESPACE, "h1"), FINALIZER)
    found.add_config()
    found.data_is_there()
    found.settle()
    assert not found.machine.spec.provider_id
    found.delete(wait_s=1)
    found.world.settle(found.reconciler)
    assert stage(found) == "WaitingForInfrastructureDeletion"
    found.there.nodes["m1"] = node()
    released(found.world, HOST, "h1")
    found.world.settle(found.reconciler, horizon_s=5)
    assert not found.exists
    assert found.there.log == ["delete m1"]


def test_a_machine_without_a_node_is_gone_a_moment_after_its_host() -> None:
    found = without_node()
    found.delete(wait_s=1)
    started = found.world.now()
    found.world.settle(found.reconciler, horizon_s=5)
    assert not found.exists
    assert (found.world.now() - started).total_seconds() <= 5


def test_a_cluster_that_does_not_answer_holds_no_machine_without_a_node() -> None:
    found = without_node()
    found.there.state = ConnectionState(connected=False, error="timed out")
    found.delete(wait_s=1)
    found.settle(horizon_s=5)
    assert not found.exists
    assert found.there.log == []

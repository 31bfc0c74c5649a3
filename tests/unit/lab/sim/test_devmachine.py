"""The simulated provider's controllers: decisions over objects, without a simulation behind them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.kube.decision import Action
from ironbell.kube.testing import World, crash_check
from ironbell.lab.sim.cluster.cluster import Endpoint, Place, PlaceQuery
from ironbell.lab.sim.cluster.host import HostPlan, HostQuery, HostState
from ironbell.lab.sim.provider.devcluster import REMOVE, SET_DOWN, DevClusterReconciler, RemoveCluster, SetDown
from ironbell.lab.sim.provider.devmachine import LOSE, POWER_ON, RELEASE, DevMachineReconciler, Lose, Release
from ironbell.lab.sim.provider.kinds import DEV_CLUSTER, DEV_MACHINE, FAULT, DevCluster, DevMachine
from ironbell.lab.sim.timing import Timing, duration_s


@dataclass
class Hosts:
    plans: dict[str, HostPlan] = field(default_factory=dict)
    state: HostState = field(default_factory=HostState)
    removed: list[tuple[str, str]] = field(default_factory=list)
    down: bool = False


def power_on(world: World, plan: HostPlan) -> list[Action]:
    world.outside.plans.setdefault(plan.uid, plan)
    return []


def release(world: World, arguments: Release) -> list[Action]:
    world.outside.plans.pop(arguments.uid, None)
    return []


def remove(world: World, arguments: RemoveCluster) -> list[Action]:
    world.outside.removed.append(arguments.cluster)
    return []


def lose(world: World, arguments: Lose) -> list[Action]:
    world.outside.state = replace(world.outside.state, dead=True)
    return []


def set_down(world: World, arguments: SetDown) -> list[Action]:
    world.outside.down = arguments.down
    return []


def host(world: World, query: HostQuery) -> HostState | None:
    return world.outside.state if query.uid in world.outside.plans else None


def place(world: World, _query: PlaceQuery) -> Place:
    return Place(Endpoint("one.n.sim", 6443), world.outside.down)


def a_world(*, provisioned: bool = True, data: str = "m-data", **cluster: Any) -> World:
    world = World(
        outside=Hosts(),
        performers={POWER_ON: power_on, RELEASE: release, REMOVE: remove, LOSE: lose, SET_DOWN: set_down},
        resolvers={
            HostQuery: host,
            PlaceQuery: lambda world, _query: Place(Endpoint("one.n.sim", 6443), world.outside.down),
        },
    )
    spec = {"infrastructureRef": {"kind": "DevCluster", "name": "one", "apiGroup": DEV_CLUSTER.group}, **cluster}
    world.add(
        CLUSTER,
        {
            "metadata": {"namespace": "n", "name": "one"},
            "spec": spec,
            "status": {"initialization": {"infrastructureProvisioned": provisioned}},
        },
    )
    world.add(
        MACHINE,
        {
            "metadata": {
                "namespace": "n",
                "name": "m",
                "labels": {"cluster.x-k8s.io/cluster-name": "one", "cluster.x-k8s.io/control-plane": ""},
            },
            "spec": {
                "clusterName": "one",
                "version": "v1.34.0",
                "failureDomain": "fd1",
                "bootstrap": {"dataSecretName": data} if data else {},
                "infrastructureRef": {"kind": "DevMachine", "name": "m", "apiGroup": DEV_MACHINE.group},
            },
        },
    )
    return world


def owner(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": "u", "controller": True}


def dev_machine(world: World, **metadata: Any) -> DevMachine:
    vm = {"provisioning": {"startupDuration": "1m30s", "startupJitter": "0.2"}}
    return world.add(
        DEV_MACHINE,
        {
            "metadata": {
                "namespace": "n",
                "name": "m",
                "labels": {"cluster.x-k8s.io/cluster-name": "one"},
                "ownerReferences": [owner("Machine", "m")],
                **metadata,
            },
            "spec": {"backend": {"inMemory": {"vm": vm}}},
        },
    )


def dev_cluster(world: World) -> DevCluster:
    return world.add(
        DEV_CLUSTER,
        {
            "metadata": {"namespace": "n", "name": "one", "ownerReferences": [owner("Cluster", "one")]},
            "spec": {"backend": {"docker": {"failureDomains": [{"name": "fd2"}, {"name": "fd1"}]}}},
        },
    )


def conditions(obj: DevMachine | DevCluster) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in obj.status.conditions}


def test_a_machine_is_powered_on_once_and_becomes_ready() -> None:
    world = a_world()
    dev_machine(world)
    world.settle(DevMachineReconciler())
    obj = world.require(DEV_MACHINE, "n", "m")
    (plan,) = world.outside.plans.values()
    assert (plan.cluster, plan.secret, plan.version) == (("n", "one"), ("n", "m-data"), "v1.34.0")
    assert plan.control_plane
    assert plan.vm == Timing(90, 0.2)
    assert conditions(obj)["VMProvisioned"] == ("False", "WaitingForStartupTimeout")
    assert not obj.status.initialization.provisioned

    world.outside.state = HostState(running=True)
    world.facts.clear()
    world.settle(DevMachineReconciler())
    obj = world.require(DEV_MACHINE, "n", "m")
    assert obj.spec.provider_id == "in-memory://m"
    assert obj.status.initialization.provisioned
    assert obj.status.failure_domain == "fd1"
    assert conditions(obj)["NodeProvisioned"] == ("False", "WaitingForStartupTimeout")

    world.outside.state = HostState(running=True, joined=True, node="m")
    world.facts.clear()
    end = crash_check(DevMachineReconciler(), world)
    obj = end.require(DEV_MACHINE, "n", "m")
    names = ("Ready", "VMProvisioned", "NodeProvisioned", "EtcdProvisioned", "APIServerProvisioned")
    assert {name: conditions(obj)[name][0] for name in names} == dict.fromkeys(names, "True")


def test_a_bootstrap_that_failed_is_said_with_its_words() -> None:
    world = a_world()
    dev_machine(world)
    world.outside.state = HostState(running=True, error="kubeadm: token has expired")
    end = crash_check(DevMachineReconciler(), world)
    obj = end.require(DEV_MACHINE, "n", "m")
    assert conditions(obj)["NodeProvisioned"] == ("False", "BootstrapFailed")
    assert conditions(obj)["BootstrapSucceeded"] == ("False", "BootstrapFailed")
    (ready,) = (one for one in obj.status.conditions if one.type == "Ready")
    assert "* NodeProvisioned: kubeadm: token has expired" in ready.message


def test_it_says_what_it_waits_for() -> None:
    for world, reason in (
        (a_world(provisioned=False), "WaitingForClusterInfrastructureReady"),
        (a_world(data=""), "WaitingForBootstrapData"),
    ):
        dev_machine(world)
        end = crash_check(DevMachineReconciler(), world)
        obj = end.require(DEV_MACHINE, "n", "m")
        assert conditions(obj)["VMProvisioned"] == ("False", reason)
        assert not end.outside.plans


def test_faults_can_be_asked_for_by_annotation() -> None:
    for text, check in (
        ("never-boots", lambda fault: fault.never_boots),
        ("slow", lambda fault: fault.slow_boot_s == 600),
        ("bootstrap-fails", lambda fault: fault.kubeadm_fails),
    ):
        world = a_world()
        dev_machine(world, annotations={FAULT: text})
        world.settle(DevMachineReconciler())
        (plan,) = world.outside.plans.values()
        assert check(plan.fault)


def test_a_machine_may_die_and_an_api_go_down_by_annotation() -> None:
    world = a_world()
    dev_machine(world, annotations={FAULT: "dies"})
    world.outside.state = HostState(running=True, joined=True, node="m")
    end = crash_check(DevMachineReconciler(), world, outside=lambda hosts: hosts.state)
    assert end.outside.state.dead
    world = a_world()
    obj = dev_cluster(world)
    obj = world.change(DEV_CLUSTER, obj, {"metadata": {"annotations": {FAULT: "down"}}})
    world.settle(DevClusterReconciler())
    assert world.outside.down
    world.change(DEV_CLUSTER, world.require(DEV_CLUSTER, "n", "one"), {"metadata": {"annotations": None}})
    world.settle(DevClusterReconciler())
    assert not world.outside.down


def test_a_deleted_machine_is_released_before_it_goes() -> None:
    world = a_world()
    dev_machine(world)
    world.settle(DevMachineReconciler())
    world.remove(DEV_MACHINE, world.require(DEV_MACHINE, "n", "m"))
    end = crash_check(DevMachineReconciler(), world, outside=lambda hosts: dict(hosts.plans))
    assert end.get(DEV_MACHINE, "n", "m") is None
    assert not end.outside.plans


def test_what_moves_away_is_not_released() -> None:
    world = a_world()
    dev_machine(world)
    world.settle(DevMachineReconciler())
    paused = world.copy()
    paused.change(CLUSTER, paused.require(CLUSTER, "n", "one"), {"spec": {"paused": True}})
    world.change(
        DEV_MACHINE,
        world.require(DEV_MACHINE, "n", "m"),
        {"metadata": {"annotations": {"clusterctl.cluster.x-k8s.io/delete-for-move": ""}}},
    )
    for one in (paused, world):
        one.remove(DEV_MACHINE, one.require(DEV_MACHINE, "n", "m"))
        one.settle(DevMachineReconciler())
        assert one.outside.plans
        assert one.require(DEV_MACHINE, "n", "m").metadata.finalizers
    paused.remove(MACHINE, paused.require(MACHINE, "n", "m"))  # seen before the end of what it owns
    paused.settle(DevMachineReconciler())
    assert paused.outside.plans


def test_a_paused_cluster_leaves_machines_alone() -> None:
    world = a_world(paused=True)
    dev_machine(world)
    end = crash_check(DevMachineReconciler(), world)
    assert conditions(end.require(DEV_MACHINE, "n", "m")) == {"Paused": ("True", "Paused")}
    assert not end.outside.plans


def test_a_cluster_gets_an_endpoint_and_failure_domains() -> None:
    world = a_world()
    dev_cluster(world)
    end = crash_check(DevClusterReconciler(), world)
    obj = end.require(DEV_CLUSTER, "n", "one")
    assert (obj.spec.control_plane_endpoint.host, obj.spec.control_plane_endpoint.port) == ("one.n.sim", 6443)
    assert obj.status.initialization.provisioned
    assert [domain.name for domain in obj.status.failure_domains] == ["fd1", "fd2"]
    assert conditions(obj)["Ready"] == ("True", "Ready")
    end.remove(DEV_CLUSTER, obj)
    end.settle(DevClusterReconciler())
    assert end.get(DEV_CLUSTER, "n", "one") is None
    assert end.outside.removed == [("n", "one")]


def test_durations_are_gos() -> None:
    texts = ("10s", "1m30s", "500ms", "1.5h", "", "soon", "10")
    assert [duration_s(text) for text in texts] == [10, 90, 0.5, 5400, 0, 0, 0]

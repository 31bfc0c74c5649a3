"""Nodes that do not know which machine they are: which of them are told, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core.node import NodeAddress, NodeCondition
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.clock import rfc3339
from ironbell.kube.testing import World
from ironbell.provisioner.lifecycle.installing import GIVE_USER_DATA
from ironbell.provisioner.lifecycle.nodes import GRACE_S
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.nodes import SET_PROVIDER_ID, NodeNow, SetProviderId
from ironbell.workload.queries import NodeView
from support.servers.captscene import MACHINES, Engine, add_machine, give, hardware, scene


class Cluster:
    """The nodes of a workload cluster, what was asked of it, and what was told to it."""

    def __init__(self, world: World, **node: Any) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.asked: list[str] = []
        self.told: list[SetProviderId] = []
        world.performers = {GIVE_USER_DATA: give, SET_PROVIDER_ID: self.tell}
        world.resolvers = {**world.resolvers, NodeNow: self.answer}
        interface = hardware(world).spec.interfaces[0].dhcp
        assert interface is not None
        assert interface.ip is not None
        address = NodeAddress(type="InternalIP", address=interface.ip.address)
        ready = NodeCondition(type="Ready", status="False")
        fields = {"name": "s0", "uid": "n", "addresses": (address,), "conditions": (ready,), **node}
        self.nodes[fields["name"]] = NodeView(**fields)

    def answer(self, _world: World, asked: NodeNow) -> NodeView | None:
        self.asked.append(asked.name)
        return self.nodes.get(asked.name)

    def tell(self, _world: World, arguments: SetProviderId) -> list[Any]:
        self.told.append(arguments)
        self.nodes[arguments.node] = replace(self.nodes[arguments.node], provider_id=arguments.provider_id)
        return []


def installed(**node: Any) -> tuple[World, Cluster]:
    world = scene(Engine())
    cluster = Cluster(world, **node)
    add_machine(world)
    return world, cluster


@pytest.mark.parametrize("name", ["s0", "m"])
def test_the_node_of_the_servers_name_and_address_is_told_its_provider_id(name: str) -> None:
    world, cluster = installed(name=name)
    world.settle(MACHINES, horizon_s=GRACE_S + 5)
    assert cluster.told == [SetProviderId(ClusterKey("default", "prod", "uid-1"), name, "n", "tinkerbell://default/s0")]


def test_a_host_name_with_a_domain_is_found_with_and_without_it() -> None:
    for name in ("node-7.example.org", "node-7"):
        world, cluster = installed(name=name)
        instance = {"id": "instance-s0", "hostname": "Node-7.example.org"}
        world.change(HARDWARE, hardware(world), {"spec": {"metadata": {"instance": instance}}})
        world.settle(MACHINES, horizon_s=GRACE_S + 5)
        assert [one.node for one in cluster.told] == [name]


def test_nobody_is_asked_while_nodes_come_by_themselves() -> None:
    world, cluster = installed()
    world.settle(MACHINES, horizon_s=GRACE_S - 5)
    assert cluster.asked == []
    world.set_status(MACHINE, world.require(MACHINE, "default", "m"), {"nodeRef": {"name": "s0"}})
    world.settle(MACHINES, horizon_s=3600)
    assert cluster.asked == []
    assert cluster.told == []


def test_a_control_plane_that_is_not_initialized_is_not_asked() -> None:
    world, cluster = installed()
    prod = world.require(CLUSTER, "default", "prod")
    reference = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "prod"}
    prod = world.change(CLUSTER, prod, {"spec": {"controlPlaneRef": reference}})
    world.settle(MACHINES, horizon_s=3600)
    assert cluster.asked == []
    began = {"type": "ControlPlaneInitialized", "status": "True", "lastTransitionTime": rfc3339(world.now())}
    status = {"initialization": {"controlPlaneInitialized": True}, "conditions": [began]}
    world.set_status(CLUSTER, prod, status)
    world.settle(MACHINES, horizon_s=GRACE_S - 5)
    assert cluster.asked == []
    world.settle(MACHINES, horizon_s=GRACE_S + 5)
    assert [one.node for one in cluster.told] == ["s0"]


@pytest.mark.parametrize(
    "node",
    [
        {"provider_id": "tinkerbell://default/other"},
        {"addresses": (NodeAddress(type="InternalIP", address="192.0.2.254"),)},
        {"addresses": ()},
        {"conditions": (NodeCondition(type="Ready", status="Unknown"),)},
        {"conditions": ()},
        {"deleting": True},
        {"name": "stranger"},
    ],
    ids=["has one", "other address", "no address", "dead kubelet", "never reported", "goes", "other name"],
)
def test_any_other_node_is_left_alone(node: dict[str, Any]) -> None:
    world, cluster = installed(**node)
    world.settle(MACHINES, horizon_s=4 * 3600)
    assert cluster.told == []
    assert 2 <= cluster.asked.count("s0") <= 30, "more and more seldom"

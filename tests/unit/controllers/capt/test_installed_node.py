"""When the machine of an installed server is ready: by a report, or by a Node whose kubelet reports; never without."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core.node import NodeAddress, NodeCondition
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.clock import rfc3339
from ironbell.base.errors import IronbellError
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_UP
from ironbell.kube.testing import World
from ironbell.provisioner.lifecycle.names import REPORT_TIMEOUT
from ironbell.workload.queries import NodeByName, NodeByProviderId, NodeView
from support.servers.captscene import MACHINES, Engine, add_machine, get, hardware, said, scene

ITS = "tinkerbell://default/s0"


class Workload:
    """The Nodes of the machine's cluster."""

    def __init__(self, world: World) -> None:
        self.nodes: list[NodeView] = []
        self.is_down = False
        world.resolvers = {**world.resolvers, NodeByName: self.by_name, NodeByProviderId: self.by_id}

    def by_name(self, _world: World, asked: NodeByName) -> NodeView | None:
        self._answers()
        return next((node for node in self.nodes if node.name == asked.name), None)

    def by_id(self, _world: World, asked: NodeByProviderId) -> tuple[NodeView, ...]:
        self._answers()
        return tuple(node for node in self.nodes if node.provider_id == asked.provider_id)

    def _answers(self) -> None:
        if self.is_down:
            raise IronbellError("connection refused")


def node(world: World, **changes: Any) -> NodeView:
    """One that joined this moment, is not Ready yet, and was told its provider ID."""
    now = rfc3339(world.now())
    ready = NodeCondition(type="Ready", status="False", last_heartbeat_time=now, last_transition_time=now)
    fields = {"name": "any", "uid": "n", "provider_id": ITS, "creation_timestamp": now, "conditions": (ready,)}
    return NodeView(**(fields | changes))


def address_of(world: World) -> tuple[NodeAddress, ...]:
    dhcp = hardware(world).spec.interfaces[0].dhcp
    assert dhcp is not None
    assert dhcp.ip is not None
    return (NodeAddress(type="InternalIP", address=dhcp.ip.address),)


def booting(**annotations: str) -> tuple[World, Workload]:
    """A machine that was installed, and whose template has no report."""
    world = scene(Engine(reports=False))
    workload = Workload(world)
    add_machine(world, metadata={"annotations": annotations})
    world.settle(MACHINES)
    return world, workload


def is_ready(world: World) -> bool:
    return bool(get(world).status.ready)


def later(world: World, workload: Workload, **changes: Any) -> None:
    """The Node comes: its cluster pushes new answers."""
    workload.nodes.append(node(world, **changes))
    world.facts.clear()
    world.settle(MACHINES)


def test_it_waits_for_a_report_or_a_node() -> None:
    world, _ = booting()
    assert not is_ready(world)
    assert said(get(world)) == (
        "False",
        "Booting",
        "Installed. Waiting for the operating system's first report or its Node (times out after 900 s).",
    )


def test_a_node_with_the_servers_provider_id_is_enough() -> None:
    world, workload = booting()
    world.settle(MACHINES, horizon_s=100)
    assert not is_ready(world)
    later(world, workload)
    assert is_ready(world)
    assert "Node any runs on the server, and its kubelet reports." in [event.message for event in world.emitted]


def test_a_report_proves_nothing_where_commands_follow_kubeadm() -> None:
    """cloud-init reports the result of the last command, and kubeadm was not the last."""
    world, workload = booting()
    after = "  - kubeadm join && echo success > /run/cluster-api/bootstrap-success.complete\n  - echo done\n"
    world.change(HARDWARE, hardware(world), {"spec": {"userData": f"#cloud-config\nruncmd:\n{after}"}})
    up = {"metadata": {"annotations": {INSTALLED_SYSTEM_UP: rfc3339(world.now())}}}
    world.change(HARDWARE, hardware(world), up)
    world.settle(MACHINES, horizon_s=100)
    assert said(get(world)) == (
        "False",
        "Booting",
        (
            "Installed. Waiting for its Node (times out after 900 s). The system reports success whether kubeadm has "
            "succeeded or not, because postKubeadmCommands follow it."
        ),
    )
    silent = world.copy()
    later(world, workload)
    assert is_ready(world)
    silent.settle(MACHINES, horizon_s=900)
    assert said(get(silent), "BootstrapSucceeded")[:2] == ("False", "NoReport")


def test_so_is_one_with_its_name_and_address() -> None:
    world, workload = booting()
    later(world, workload, name="s0", provider_id="", addresses=address_of(world))
    assert is_ready(world)


@pytest.mark.parametrize(
    "changes",
    [
        {"provider_id": "tinkerbell://default/other", "name": "s0"},
        {"provider_id": "", "name": "s0"},
        {"provider_id": "", "name": "s0", "addresses": (NodeAddress(type="InternalIP", address="192.0.2.254"),)},
        {"conditions": (NodeCondition(type="Ready", status="Unknown"),)},
        {"conditions": ()},
        {"deleting": True},
    ],
    ids=["other server", "no address", "other address", "silent kubelet", "never reported", "is being deleted"],
)
def test_no_other_node_is(changes: dict[str, Any]) -> None:
    world, workload = booting()
    later(world, workload, **changes)
    world.settle(MACHINES, horizon_s=800)
    assert not is_ready(world)


def test_nor_is_the_node_of_an_earlier_installation() -> None:
    world, workload = booting()
    before = rfc3339(world.now() - timedelta(minutes=3))
    ready = NodeCondition(type="Ready", status="True", last_heartbeat_time=before, last_transition_time=before)
    later(world, workload, creation_timestamp=before, conditions=(ready,))
    assert not is_ready(world)


def test_a_wrong_clock_of_the_server_only_delays() -> None:
    world, workload = booting()
    wrong = rfc3339(world.now() - timedelta(days=900))
    ready = NodeCondition(type="Ready", status="True", last_heartbeat_time=wrong, last_transition_time=wrong)
    later(world, workload, creation_timestamp=wrong, conditions=(ready,))
    assert not is_ready(world)
    world.settle(MACHINES, horizon_s=301)
    assert is_ready(world)


def test_without_report_and_node_the_bootstrap_has_failed() -> None:
    world, workload = booting()
    world.settle(MACHINES, horizon_s=901)
    assert not is_ready(world)
    why = (
        "Server s0 was installed, but its operating system did not report within 900 s, and its cluster has no Node "
        "for it. Check the server's console. Delete the Machine to try again, or raise annotation "
        "ironbell.dev/report-timeout-seconds."
    )
    assert said(get(world)) == ("False", "NoReport", why)
    assert said(get(world), "BootstrapSucceeded") == ("False", "NoReport", why)
    assert [event.reason for event in world.emitted].count("BootstrapFailed") == 1
    later(world, workload)
    assert is_ready(world)
    assert said(get(world), "BootstrapSucceeded")[0] == "True"


def test_a_late_report_counts() -> None:
    world, _ = booting()
    world.settle(MACHINES, horizon_s=901)
    up = {"metadata": {"annotations": {INSTALLED_SYSTEM_UP: rfc3339(world.now())}}}
    world.change(HARDWARE, hardware(world), up)
    world.settle(MACHINES)
    assert is_ready(world)


def test_the_first_of_a_control_plane_has_failed_although_nobody_can_be_asked() -> None:
    world = scene(Engine(reports=False))
    Workload(world).is_down = True
    add_machine(world, metadata={"annotations": {REPORT_TIMEOUT: "20"}})
    machine = world.require(MACHINE, "default", "m")
    world.change(MACHINE, machine, {"metadata": {"labels": {"cluster.x-k8s.io/control-plane": ""}}})
    world.settle(MACHINES, horizon_s=21)
    assert said(get(world), "BootstrapSucceeded")[:2] == ("False", "NoReport")


def test_a_worker_has_not_while_nobody_can_be_asked() -> None:
    world = scene(Engine(reports=False))
    Workload(world).is_down = True
    add_machine(world, metadata={"annotations": {REPORT_TIMEOUT: "20"}})
    world.settle(MACHINES, horizon_s=60)
    assert not is_ready(world)
    status, reason, message = said(get(world))
    assert (status, reason) == ("False", "NoReport")
    assert message.endswith("and its cluster cannot be queried for its Node (connection refused).")
    assert all(one.type != "BootstrapSucceeded" for one in get(world).status.conditions)


def test_who_says_so_waits_for_neither() -> None:
    world, _ = booting(**{REPORT_TIMEOUT: "0"})
    assert is_ready(world)


def test_the_cluster_is_not_asked_before_the_server_is_installed() -> None:
    world = scene(Engine(""))
    asked: list[Any] = []
    world.resolvers = {**world.resolvers, NodeByProviderId: lambda _world, it: asked.append(it) or ()}
    add_machine(world)
    world.settle(MACHINES, horizon_s=60)
    assert asked == []
    assert world.require(CLUSTER, "default", "prod")

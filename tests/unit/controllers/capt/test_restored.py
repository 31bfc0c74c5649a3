"""A site is restored from a backup of before 20 claims and releases, while machines run: nothing is done to any."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.bmc import JOB
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core.node import NodeCondition
from ironbell.api.core.secret import SECRET
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.app.site.restored import hold_all
from ironbell.base.clock import rfc3339
from ironbell.contract.servers.claim import HELD, USER_DATA_OF, claim_of
from ironbell.contract.servers.restored import RESTORED, Restored, confirmation, mark, restored
from ironbell.controllers.capt.machine import TinkerbellMachineReconciler
from ironbell.controllers.tink.workflow import WorkflowReconciler
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import MergePatch
from ironbell.kube.testing import World
from ironbell.provisioner.lifecycle.installing import GIVE_USER_DATA
from ironbell.provisioner.lifecycle.nodes import still_runs
from ironbell.workload.nodes import NodeNow
from ironbell.workload.queries import NodeView
from support.servers.captscene import add_machine
from support.servers.captworld import EVERY_VERSION, server
from support.servers.restoredworld import PERFORMERS, Reality, Server

CONTROLLERS = (TinkerbellMachineReconciler("http://192.0.2.1:7080", images=EVERY_VERSION), WorkflowReconciler())
SERVERS = 12
HOUR_S = 3600.0


def give(_world: World, arguments: Any) -> list[Any]:
    body = {"metadata": {"annotations": {USER_DATA_OF: arguments.marked_as}}, "spec": {"userData": "x"}}
    return [MergePatch(HARDWARE, *arguments.hardware, body, resource_version=arguments.resource_version)]


def a_site() -> tuple[World, Reality]:
    reality = Reality({f"s{number}": Server() for number in range(SERVERS)})
    world = World(
        performers={GIVE_USER_DATA: give, **PERFORMERS}, resolvers={NodeNow: reality.node}, environment=reality
    )
    world.api.serve([HARDWARE, TEMPLATE, WORKFLOW, JOB, SECRET, MACHINE, TINKERBELL_MACHINE])
    infrastructure = {"apiGroup": TINKERBELL_CLUSTER.group, "kind": "TinkerbellCluster", "name": "prod"}
    place = {"namespace": "default", "name": "prod"}
    world.add(CLUSTER, {"metadata": place, "spec": {"infrastructureRef": infrastructure}})
    world.add(TINKERBELL_CLUSTER, {"metadata": place, "spec": {}, "status": {"ready": True}})
    for name in reality.servers:
        bmc = {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": f"bmc-{name}"}
        world.add(HARDWARE, server(name, spec={"bmcRef": bmc}))
    return world, reality


def settle(world: World, horizon_s: float = 0.0) -> None:
    world.settle(*CONTROLLERS, horizon_s=horizon_s, max_rounds=3000)


def joined(world: World, name: str) -> None:
    """Its Machine has found its Node."""
    ready = {"type": "NodeReady", "status": "True", "reason": "x", "lastTransitionTime": rfc3339(world.now())}
    machine = world.require(MACHINE, "default", name)
    world.set_status(MACHINE, machine, {"nodeRef": {"name": name}, "conditions": [ready]})


def claimed(world: World, name: str) -> str:
    add_machine(world, name)
    settle(world)
    joined(world, name)
    settle(world)
    return machine(world, name).spec.hardware_name


def given_back(world: World, name: str) -> None:
    world.remove(TINKERBELL_MACHINE, machine(world, name))
    settle(world)
    assert world.get(TINKERBELL_MACHINE, "default", name) is None


def machine(world: World, name: str) -> TinkerbellMachine:
    return world.require(TINKERBELL_MACHINE, "default", name)


def unfinished(world: World) -> list[str]:
    return [job.metadata.name for job in world.list(JOB) if not job.status.conditions]


async def back_to(backup: World, world: World) -> World:
    """The objects of the backup in the present; what a start after a restore does has been done."""
    made = rfc3339(backup.now())
    backup.clock.advance(world.clock.elapsed_s - backup.clock.elapsed_s)
    await hold_all(backup.api, Restored(made, rfc3339(backup.now())))
    backup.facts.clear()
    return backup


async def test_twenty_claims_and_releases_after_the_backup_are_not_undone() -> None:
    world, reality = a_site()
    before = {name: claimed(world, name) for name in ("kept-a", "kept-b", "kept-c", "gone-a", "gone-b", "gone-c")}
    add_machine(world, "wanted")  # is being installed when the backup is made
    world.environment = None
    settle(world)
    under_way = machine(world, "wanted").spec.hardware_name
    assert unfinished(world)
    world.clock.advance(60)
    backup = world.copy()
    world.clock.advance(60)

    world.environment = reality
    settle(world)
    joined(world, "wanted")
    for name in ("gone-a", "gone-b", "gone-c"):
        given_back(world, name)
    for number in range(20):
        claimed(world, f"new-{number}")
        if number >= 4:
            given_back(world, f"new-{number - 4}")
        world.clock.advance(600)
    running = {name: one.disk for name, one in reality.servers.items() if one.disk}
    assert len(running) == 8
    assert sum(1 for one in reality.done if one.startswith("install")) == 27

    reality.done.clear()
    restored_world = await back_to(backup, world)
    restored_world.environment = reality
    assert not unfinished(restored_world), "what BMCs were to do is from before"
    settle(restored_world, HOUR_S)
    # what people, health checks and deployments would do next: delete what has no node, ask for more, switch on and off
    for name in ("gone-a", "gone-b"):
        restored_world.remove(TINKERBELL_MACHINE, machine(restored_world, name))
    for number in range(3):
        add_machine(restored_world, f"more-{number}")
    for name in reality.servers:
        reality.power_cycle(restored_world, name)
    settle(restored_world, HOUR_S)

    assert reality.done == []
    assert {name: one.disk for name, one in reality.servers.items() if one.disk} == running
    # those that are as they were are known to be, and nobody had to say so
    for name, where in before.items():
        has = restored_world.require(HARDWARE, "default", where)
        assert (restored(has) is None) == name.startswith("kept"), name
    assert sum(1 for one in restored_world.list(HARDWARE) if RESTORED in one.metadata.annotations) == SERVERS - 3
    for name, word in (
        ("gone-a", "HardwareNotConfirmed"),
        ("wanted", "HardwareNotConfirmed"),
        ("more-0", "NoHardware"),
    ):
        conditions = machine(restored_world, name).status.conditions
        kind = "HardwareReady" if word == "NoHardware" else "Ready"
        found = find_condition(conditions, kind)
        assert found is not None
        assert found.reason == word
    flow = next(one for one in restored_world.list(WORKFLOW) if one.spec.hardware_ref == under_way)
    assert any(one.reason == "NotConfirmed" for one in flow.status.conditions)

    # a server that a person knows to be free is free
    nobodys = [one for one in restored_world.list(HARDWARE) if claim_of(one) is None]
    free = next(one for one in nobodys if not reality.servers[one.metadata.name].disk)
    restored_world.change(HARDWARE, free, {"metadata": {"annotations": confirmation(free)}})
    settle(restored_world)
    name = free.metadata.name
    assert reality.done == [f"power {name}", f"install {name}"]
    assert {name: one.disk for name, one in reality.servers.items() if one.disk} == {**running, name: "more-0"}


def node(**changes: Any) -> NodeView:
    ready = NodeCondition(type="Ready", status=changes.pop("ready", "True"))
    fields = {
        "name": "n",
        "provider_id": "tinkerbell://default/s0",
        "creation_timestamp": "2026-11-01T00:00:00Z",
        "conditions": (ready,),
    }
    return NodeView(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({}, True),
        ({"annotations": {"cluster.x-k8s.io/machine": "m"}}, True),
        ({"annotations": {"cluster.x-k8s.io/machine": "another"}}, False),
        ({"ready": "Unknown"}, False),
        ({"conditions": ()}, False),
        ({"deleting": True}, False),
        ({"provider_id": "tinkerbell://default/s1"}, False),
        ({"creation_timestamp": "2026-11-03T00:00:00Z"}, False),
        ({"creation_timestamp": ""}, False),
    ],
)
def test_only_the_node_of_the_backup_confirms(changes: dict[str, Any], is_same: bool) -> None:
    found = Restored("2026-11-02T00:00:00Z", "")
    assert still_runs(node(**changes), "m", server("s0"), found) is is_same
    assert not still_runs(None, "m", server("s0"), found)
    assert not still_runs(node(), "m", server("s0"), Restored(""))


def test_a_person_s_own_hold_outlasts_the_confirmation() -> None:
    free, held = server("s0"), server("s1", annotations={HELD: "evidence"})
    found = Restored("2026-11-02T00:00:00Z", "")
    assert set(mark(free, found)) == {RESTORED, HELD}
    assert set(mark(held, found)) == {RESTORED}
    marked = server("s0", annotations=mark(free, found))
    assert confirmation(marked) == {RESTORED: None, HELD: None}
    assert confirmation(server("s1", annotations={HELD: "evidence", **mark(held, found)})) == {RESTORED: None}


def test_a_record_that_was_never_confirmed_stays_as_old_as_it_is() -> None:
    first = Restored("2026-11-02T00:00:00Z", "a")
    marked = server("s0", annotations=mark(server("s0"), first))
    again = msgspec.json.decode(mark(marked, Restored("2026-11-05T00:00:00Z", "b"))[RESTORED])
    assert again == {"backup": "2026-11-02T00:00:00Z", "at": "b"}

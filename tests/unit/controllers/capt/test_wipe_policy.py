"""How a server's disks are wiped when it is released, and what its certificate claims: never more than was reported."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.codec import goyaml
from ironbell.contract.servers.claim import HELD, WIPED, claim_of
from ironbell.kube.testing import World
from ironbell.provisioner.lifecycle.names import WIPE, WIPE_TIMEOUT, WipePolicy
from ironbell.provisioner.lifecycle.wiping import wipe_template
from support.servers.captscene import MACHINES, Engine, add_machine, delete, get, hardware, said, scene
from support.servers.wipereports import SIZE, wipe_action

TERABYTE = 10**12


def released(engine: Engine, **annotations: str) -> World:
    world = scene(engine)
    if annotations:
        names = {f"ironbell.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
        world.change(HARDWARE, hardware(world), {"metadata": {"annotations": names}})
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    return world


def certificate(world: World) -> dict[str, Any]:
    return msgspec.json.decode(hardware(world).metadata.annotations[WIPED], type=dict[str, Any])


def test_a_server_is_wiped_completely_unless_asked_otherwise() -> None:
    world = scene(Engine(wipe=""))
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    assert "WIPE_METHOD: complete" in world.require(TEMPLATE, "default", "m-wipe").spec.data


def test_the_certificate_states_what_was_done_to_each_disk() -> None:
    found = certificate(released(Engine()))
    assert (found["wiped"], found["method"], found["disks"]) == (True, "complete", ["/dev/sda"])
    assert found["results"] == [
        {
            "device": "/dev/sda",
            "size": "8.0 GB",
            "serial": "X1",
            "method": "zeros everywhere",
            "coveredBytes": SIZE,
            "totalBytes": SIZE,
            "complete": True,
        }
    ]


def test_a_quick_wipe_is_never_certified_as_wiped() -> None:
    world = released(Engine(complete=False), wipe="quick")
    found = certificate(world)
    assert (found["wiped"], found["method"], found.get("disks", [])) == (False, "quick", [])
    assert found["results"][0]["complete"] is False
    assert found["results"][0]["coveredBytes"] == 20 << 20
    assert HELD not in hardware(world).metadata.annotations, "it was asked for"
    assert claim_of(hardware(world)) is None


@pytest.mark.parametrize("report", [False, None])
def test_a_complete_wipe_that_is_not_reported_complete_holds_the_server(report: bool | None) -> None:
    class Silent(Engine):
        def __call__(self, world: World) -> None:
            super().__call__(world)
            for template in world.list(TEMPLATE):
                if template.metadata.name == "m-wipe" and report is None:
                    forget(world)

    world = released(Silent(complete=False) if report is False else Silent())
    assert certificate(world)["wiped"] is False
    assert claim_of(hardware(world)) is None
    assert "did not report that /dev/sda was completely wiped" in hardware(world).metadata.annotations[HELD]


def forget(world: World) -> None:
    """The action ends as another agent's would: well, and without a report."""
    for workflow in world.list(WORKFLOW):
        tasks = msgspec.to_builtins(workflow.status.tasks)
        if workflow.metadata.name == "m-wipe" and tasks:
            tasks[0]["actions"][0]["message"] = "action completed"
            world.set_status(WORKFLOW, workflow, {"state": "SUCCESS", "tasks": tasks})


def inventory(world: World, *sizes: int) -> None:
    blocks = [{"name": f"sd{'abc'[number]}", "sizeBytes": size} for number, size in enumerate(sizes)]
    text = msgspec.json.encode({"blockDevices": blocks}).decode()
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {ANNOTATION_AGENT_ATTRIBUTES: text}}})


@pytest.mark.parametrize(
    ("policy", "sizes", "held_after_s"),
    [("complete", (20 * TERABYTE,), 407_200), ("complete", (), 7200), ("quick", (20 * TERABYTE,), 7200)],
)
def test_the_time_limit_grows_with_the_disk(policy: str, sizes: tuple[int, ...], held_after_s: int) -> None:
    world = scene(Engine(wipe=""))
    inventory(world, *sizes)
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {WIPE: policy}}})
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    template = goyaml.load(world.require(TEMPLATE, "default", "m-wipe").spec.data)
    assert template["global_timeout"] >= held_after_s
    assert template["tasks"][0]["actions"][0]["timeout"] >= held_after_s
    world.settle(MACHINES, horizon_s=held_after_s - 100)
    assert said(get(world))[1] == "Wiping"
    world.settle(MACHINES, horizon_s=held_after_s)
    assert f"did not complete within {held_after_s} s" in hardware(world).metadata.annotations[HELD]


def test_an_annotation_sets_the_time_limit_whatever_the_disk() -> None:
    world = scene(Engine(wipe=""))
    inventory(world, 20 * TERABYTE)
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {WIPE_TIMEOUT: "60"}}})
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES, horizon_s=100)
    assert "did not complete within 60 s" in hardware(world).metadata.annotations[HELD]


def test_the_reports_of_many_disks_fit_into_the_messages_of_their_actions() -> None:
    disks = [f"/dev/disk/by-id/wwn-0x5000c500a1b2c{number:03d}" for number in range(40)]
    actions = goyaml.load(wipe_template("m", disks, WipePolicy.COMPLETE))["tasks"][0]["actions"]
    assert [action["name"] for action in actions] == ["wipe", "wipe-2", "wipe-3"]
    named = [action["environment"]["DEST_DISK"].split(",") for action in actions]
    assert [disk for some in named for disk in some] == disks


def wiping(state: str = "") -> World:
    """A server that is being wiped for its machine."""
    world = scene(Engine(wipe=""))
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    if state:
        world.set_status(WORKFLOW, world.require(WORKFLOW, "default", "m-wipe"), {"state": state})
    return world


def hold(world: World, reason: str | None) -> None:
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {HELD: reason}}})
    world.settle(MACHINES)


def test_a_wipe_that_has_not_begun_is_created_anew_after_a_hold() -> None:
    """Its time limit would have passed meanwhile."""
    world = wiping("PENDING")
    first = world.require(WORKFLOW, "default", "m-wipe").metadata.uid
    hold(world, "evidence")
    assert said(get(world))[1:] == (
        "HardwareHeld",
        "Hardware s0 is held (evidence). Remove annotation ironbell.dev/hold to release the server.",
    )
    assert not world.list(WORKFLOW)
    world.settle(MACHINES, horizon_s=8000)
    hold(world, None)
    assert world.require(WORKFLOW, "default", "m-wipe").metadata.uid != first
    assert said(get(world))[1] == "Wiping"


def test_a_wipe_that_has_begun_stays_while_its_server_is_held() -> None:
    world = wiping("RUNNING")
    hold(world, "evidence")
    assert world.require(WORKFLOW, "default", "m-wipe")


LABELS = {"capt.tinkerbell.org/machine-name": "m", "capt.tinkerbell.org/machine-namespace": "default"}


@pytest.mark.parametrize("when", ["earlier", "for another server"])
def test_what_an_earlier_machine_of_the_name_left_proves_no_wipe(when: str) -> None:
    """Its finalizer was removed by hand, and its Workflow, which has ended well, stayed."""
    world = scene(Engine(wipe=""))
    add_machine(world)
    world.settle(MACHINES)
    left = {"namespace": "default", "name": "m-wipe", "labels": LABELS}
    spec = {"hardwareRef": "s0" if when == "earlier" else "s9"}
    if when == "for another server":
        delete(world)
    old = world.add(WORKFLOW, {"metadata": left, "spec": spec})
    world.add(TEMPLATE, {"metadata": left, "spec": {"data": "of an earlier machine"}})
    action = {"id": "1", "name": "wipe", "state": "SUCCESS", **wipe_action(hardware(world))}
    tasks = [{"name": "wipe", "id": "1", "agentID": "a", "actions": [action]}]
    world.set_status(WORKFLOW, old, {"state": "SUCCESS", "tasks": tasks})
    if when == "earlier":
        world.clock.advance(1)
        delete(world)
    world.settle(MACHINES)
    assert WIPED not in hardware(world).metadata.annotations
    assert world.require(WORKFLOW, "default", "m-wipe").metadata.uid != old.metadata.uid
    assert "WIPE_METHOD: complete" in world.require(TEMPLATE, "default", "m-wipe").spec.data


def test_a_template_of_somebody_else_is_not_run_as_the_wipe() -> None:
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    mine = {"namespace": "default", "name": "m-wipe"}
    world.add(TEMPLATE, {"metadata": mine, "spec": {"data": "mine"}})
    delete(world)
    world.settle(MACHINES)
    assert said(get(world))[1:] == ("ForeignTemplate", "Template m-wipe belongs to another owner. Delete it.")
    world.remove(TEMPLATE, world.require(TEMPLATE, "default", "m-wipe"))
    world.settle(MACHINES)
    assert certificate(world)["wiped"] is True

"""Servers that were never booted: nobody waits for a wipe of what was not written, and in doubt they are wiped."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.contract.servers.claim import WIPED, claim_of
from ironbell.kube.testing import World, crash_check
from ironbell.provisioner.lifecycle import selection
from ironbell.provisioner.lifecycle.names import UNTOUCHED
from ironbell.provisioner.lifecycle.selection import verdict
from support.servers.captscene import BMC, MACHINES, Engine, add_machine, delete, get, hardware, said, scene
from support.servers.captworld import server

STARTED = {
    "state": "RUNNING",
    "currentState": {"taskID": "1", "actionID": "1", "taskName": "t", "actionName": "stream image", "state": "RUNNING"},
    "tasks": [{"name": "t", "id": "1", "agentID": "a", "actions": [{"id": "1", "name": "stream image"}]}],
}
PENDING = {
    "state": "PENDING",
    "tasks": [{"name": "t", "id": "1", "agentID": "a", "actions": [{"id": "1", "name": "a", "state": "PENDING"}]}],
}


def installing(*, bmc: bool = False, status: Any = PENDING, **machine: Any) -> World:
    """A machine whose Workflow waits for the agent; wipes never end."""
    world = scene(Engine("", wipe=""), bmc=bmc)
    add_machine(world, **machine)
    world.settle(MACHINES)
    if status:
        world.set_status(WORKFLOW, world.require(WORKFLOW, "default", "m"), status)
        world.settle(MACHINES)
    return world


def is_released(world: World) -> bool:
    return world.get(TINKERBELL_MACHINE, "default", "m") is None and claim_of(hardware(world)) is None


@pytest.mark.parametrize("bmc", [True, False])
@pytest.mark.parametrize("status", [None, PENDING])
def test_what_was_not_written_is_not_wiped(bmc: bool, status: Any) -> None:
    world = installing(bmc=bmc, status=status)
    delete(world)
    world.settle(MACHINES)
    assert is_released(world)
    certificate = msgspec.json.decode(hardware(world).metadata.annotations[WIPED])
    assert certificate["wiped"] is False
    assert certificate["message"] == "nothing was written: no action of its installation was ever started"


def test_a_server_on_which_an_action_was_started_is_wiped() -> None:
    world = installing(status=STARTED)
    delete(world)
    world.settle(MACHINES)
    assert said(get(world))[1] == "Wiping"


def test_an_action_that_is_handed_out_at_the_last_moment_has_the_disks_wiped() -> None:
    world = installing()
    delete(world)
    handed: list[str] = []

    def agent(world: World) -> None:
        obj, workflow = world.get(TINKERBELL_MACHINE, "default", "m"), world.get(WORKFLOW, "default", "m")
        if obj is not None and workflow is not None and UNTOUCHED in obj.metadata.annotations and not handed:
            handed.append("action")
            world.set_status(WORKFLOW, workflow, STARTED)

    world.environment = agent
    world.settle(MACHINES)
    assert handed
    assert said(get(world))[1] == "Wiping"


def test_a_workflow_that_another_preceded_proves_nothing() -> None:
    world = installing(status=STARTED)
    world.remove(WORKFLOW, world.require(WORKFLOW, "default", "m"))
    world.clock.advance(1)
    world.settle(MACHINES)
    assert world.require(WORKFLOW, "default", "m").status.state == ""
    delete(world)
    world.settle(MACHINES)
    assert said(get(world))[1] == "Wiping"


def test_a_server_that_booted_an_image_of_the_users_is_wiped() -> None:
    world = installing(bmc=True, bootOptions={"bootMode": "isoboot", "isoURL": "http://192.0.2.1/a.iso"})
    delete(world)
    world.settle(MACHINES)
    assert said(get(world))[1] == "Wiping"


@pytest.mark.parametrize("status", [PENDING, STARTED])
def test_it_may_be_killed_anywhere_while_it_finds_out(status: Any) -> None:
    world = installing(bmc=True, status=status)
    world.environment = Engine("")
    delete(world)
    crash_check(MACHINES, world, horizon_s=10)


def test_a_server_without_bmc_waits_for_a_person() -> None:
    world = installing()
    message = "Hardware default/s0 has no BMC: power the server on, or restart it, and boot it over the network."
    assert said(get(world)) == ("False", "WaitingForManualAction", message)
    assert get(world).status.instance_state == "Waiting"
    world.set_status(WORKFLOW, world.require(WORKFLOW, "default", "m"), STARTED)
    world.settle(MACHINES)
    assert said(get(world))[1:] == ("Installing", "action 1 of 1: stream image")


def test_a_server_with_a_bmc_is_claimed_first() -> None:
    world = scene(Engine(), bmc=False)
    world.add(HARDWARE, server("s9", spec=BMC))
    world.add(HARDWARE, server("s5"))
    add_machine(world)
    world.settle(MACHINES)
    add_machine(world, "n")
    world.settle(MACHINES)
    assert (get(world).spec.hardware_name, get(world, "n").spec.hardware_name) == ("s9", "s0")


def test_a_claim_looks_at_one_server_where_none_has_a_bmc(monkeypatch: pytest.MonkeyPatch) -> None:
    world, looked_at = scene(Engine(), servers=30, bmc=False), []

    def counted(wished: Any, one: Any, bmcs: Any) -> Any:
        looked_at.append(one.metadata.name)
        return verdict(wished, one, bmcs)

    monkeypatch.setattr(selection, "verdict", counted)
    add_machine(world)
    world.settle(MACHINES)
    assert get(world).spec.hardware_name == "s0"
    assert looked_at == ["s0"]


OWNED = {
    "labels": {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "default"},
    "finalizers": ["infrastructure.cluster.x-k8s.io/tinkerbellmachine"],
}
PROVISIONED = {"v1alpha1.tinkerbell.org/provisioned": "true"}


@pytest.mark.parametrize("known_by", ["status", "Hardware", "Workflow", "nothing"])
def test_a_server_that_upstreams_controllers_have_installed_is_wiped(known_by: str) -> None:
    """They count no attempts, and label nothing that they create."""
    world = scene(Engine("", wipe=""))
    obj = add_machine(
        world,
        metadata={"finalizers": OWNED["finalizers"]},
        hardwareName="s0",
        providerID="tinkerbell://default/s0",
    )
    annotations = PROVISIONED if known_by == "Hardware" else {}
    world.change(HARDWARE, hardware(world), {"metadata": {**OWNED, "annotations": annotations}})
    if known_by == "status":
        world.set_status(TINKERBELL_MACHINE, obj, {"ready": True})
    if known_by == "Workflow":
        owner = {"apiVersion": TINKERBELL_MACHINE.api_version, "kind": "TinkerbellMachine", "name": "m"}
        place = {"namespace": "default", "name": "m", "ownerReferences": [{**owner, "uid": obj.metadata.uid}]}
        made = world.add(WORKFLOW, {"metadata": place, "spec": {"hardwareRef": "s0"}})
        world.set_status(WORKFLOW, made, STARTED)
    delete(world)
    world.settle(MACHINES)
    if known_by == "nothing":
        assert is_released(world)
    else:
        assert said(get(world))[1] == "Wiping"
        assert [one.metadata.name for one in world.list(WORKFLOW)] == ["m-wipe"]


def test_a_server_that_runs_a_script_of_the_users_is_wiped() -> None:
    world = scene(Engine("", wipe=""))
    dhcp = {"mac": "02:00:00:00:00:01", "ip": {"address": "192.0.2.9"}}
    interfaces = [{"dhcp": dhcp, "netboot": {"ipxe": {"url": "http://192.0.2.1/any.ipxe"}}}]
    world.change(HARDWARE, hardware(world), {"spec": {"interfaces": interfaces}})
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    assert said(get(world))[1] == "Wiping"

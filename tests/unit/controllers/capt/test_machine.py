"""A machine's whole life: line, claim, installation, retries, node, wipe; and being killed at any point of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.bmc.job import JOB
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.names import ANNOTATION_CLONED_FROM_NAME
from ironbell.api.core.secret import SECRET
from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.base.clock import rfc3339
from ironbell.contract.servers.claim import (
    HELD,
    INSTALLED_SYSTEM_UP,
    USER_DATA_OF,
    WIPED,
    WITHDRAWN,
    Claimant,
    claim_of,
    claim_patch,
)
from ironbell.contract.servers.directory import AGENT_TIMEOUT, agent_id
from ironbell.controllers.tink.inventory import HardwareInventoryReconciler
from ironbell.kube.decision import MergePatch
from ironbell.kube.testing import World, crash_check
from ironbell.provisioner.health import install_failures
from ironbell.provisioner.lifecycle.installing import progress_of
from ironbell.provisioner.lifecycle.names import (
    HOLD_WHEN_RELEASED,
    INSTALL_ATTEMPT,
    WIPE,
    WIPE_ATTEMPT,
    WIPE_ATTEMPTS,
    WIPE_TEMPLATE,
)
from support.servers.captscene import MACHINES, USER_DATA, Engine, add_machine, delete, get, hardware, said, scene
from support.servers.captworld import server


def test_a_machine_gets_a_server_and_is_installed() -> None:
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    obj = get(world)
    assert (obj.spec.hardware_name, obj.spec.provider_id) == ("s0", "tinkerbell://default/s0")
    assert obj.status.ready
    assert obj.status.initialization.provisioned
    assert obj.status.target_namespace == "default"
    assert obj.status.addresses[0].type == "InternalIP"
    assert said(obj)[0] == "True"
    has = hardware(world)
    claim = claim_of(has)
    assert claim is not None
    assert (claim.name, claim.uid) == ("m", obj.metadata.uid)
    assert has.metadata.annotations["v1alpha1.tinkerbell.org/provisioned"] == "true"
    assert has.spec.user_data == USER_DATA
    workflow = world.require(WORKFLOW, "default", "m")
    assert workflow.spec.hardware_ref == "s0"
    assert workflow.spec.hardware_map == {"device_1": agent_id(has)}
    assert to_builtin(workflow.spec.boot_options) == {"toggleAllowNetboot": True, "bootMode": "netboot"}
    assert workflow.metadata.owner_references[0].name == "m"
    assert "image2disk" in world.require(TEMPLATE, "default", "m").spec.data


@pytest.mark.parametrize("named", ["", "a"])
def test_a_control_planes_machine_that_named_no_failure_domain_gets_that_of_its_server(named: str) -> None:
    world = scene(Engine(), infrastructure={"failureDomainLabel": "rack"})
    world.change(HARDWARE, hardware(world), {"metadata": {"labels": {"rack": "a"}}})
    add_machine(world)
    owner = world.require(MACHINE, "default", "m")
    labels = {"labels": {"cluster.x-k8s.io/control-plane": ""}}
    world.change(MACHINE, owner, {"metadata": labels, "spec": {"failureDomain": named or None}})
    world.settle(MACHINES)
    assert get(world).spec.failure_domain == ("" if named else "a")
    assert get(world).status.failure_domain == "a"


def test_a_control_planes_machine_that_waits_in_a_full_failure_domain_says_what_to_do() -> None:
    world = scene(Engine(), infrastructure={"failureDomainLabel": "rack"}, servers=2)
    for name, rack in (("s0", "b"), ("s1", "c")):
        world.change(HARDWARE, hardware(world, name), {"metadata": {"labels": {"rack": rack}}})
    add_machine(world)
    owner = world.require(MACHINE, "default", "m")
    owner = world.change(MACHINE, owner, {"spec": {"failureDomain": "a"}})
    world.settle(MACHINES)
    assert said(get(world))[1] == "WaitingForHardware"
    assert "delete Machine" not in said(get(world))[2], "the user put it there"
    labels = {"labels": {"cluster.x-k8s.io/control-plane": ""}}
    world.change(MACHINE, owner, {"metadata": labels})
    world.settle(MACHINES)
    assert ". Failure domain b, c has one: delete Machine m to have it replaced there." in said(get(world))[2]


@pytest.mark.parametrize("change", [{"spec": {"version": "v1.36.0"}}, {}], ids=["version", "template"])
def test_a_machine_of_a_rollout_without_a_spare_server_says_how_to_do_without(change: dict[str, Any]) -> None:
    world = scene(Engine())
    for name, template in (("old", "a"), ("new", "b")):
        add_machine(
            world, name, metadata={"annotations": {ANNOTATION_CLONED_FROM_NAME: template if not change else "a"}}
        )
        owner = world.require(MACHINE, "default", name)
        labels = {"cluster.x-k8s.io/deployment-name": "workers"}
        world.change(MACHINE, owner, {"metadata": {"labels": labels}, **(change if name == "new" else {})})
        world.settle(MACHINES)
    remedy = " claimed. MachineDeployment workers is being rolled out: with maxSurge 0 it needs no spare server."
    assert said(get(world, "new"))[2].endswith(remedy)
    add_machine(world, "more", metadata={"annotations": {ANNOTATION_CLONED_FROM_NAME: "a"}})
    world.settle(MACHINES)
    assert "rolled out" not in said(get(world, "more"))[2], "of no deployment"


def test_a_server_with_a_bmc_is_netbooted_where_no_boot_mode_is_given() -> None:
    world = scene(Engine())
    add_machine(world, bootOptions={})
    world.settle(MACHINES)
    workflow = world.require(WORKFLOW, "default", "m")
    assert to_builtin(workflow.spec.boot_options) == {"toggleAllowNetboot": True, "bootMode": "netboot"}


def test_it_may_be_killed_anywhere_while_it_is_installed() -> None:
    world = scene(Engine(), servers=2)
    add_machine(world)
    crash_check(MACHINES, world, horizon_s=10)


def test_it_may_be_killed_anywhere_while_attempts_fail() -> None:
    world = scene(Engine("FAILED", "TIMEOUT", "SUCCESS"))
    add_machine(world)
    crash_check(MACHINES, world, horizon_s=10)


def test_it_may_be_killed_anywhere_while_it_is_given_back() -> None:
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    crash_check(MACHINES, world, horizon_s=10)


@pytest.mark.parametrize("bmc", [True, False])
def test_a_server_is_wiped_switched_off_and_given_back(bmc: bool) -> None:
    world = scene(Engine(), bmc=bmc)
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    assert world.get(TINKERBELL_MACHINE, "default", "m") is None
    has = hardware(world)
    assert claim_of(has) is None
    assert has.spec.user_data is None
    assert has.metadata.finalizers == []
    assert HELD not in has.metadata.annotations
    certificate = msgspec.json.decode(has.metadata.annotations[WIPED])
    assert certificate["wiped"] is True
    assert certificate["method"] == "complete"
    assert certificate["disks"] == ["/dev/sda"]
    assert not world.list(WORKFLOW)
    assert not world.list(TEMPLATE)
    assert not world.list(JOB)


def test_what_a_former_owner_left_is_gone_with_the_claim() -> None:
    """Upstream's controllers release a server with its user data, which is full of secrets."""
    world = scene(Engine(""))
    left = {"metadata": {"annotations": {WIPED: "{}", USER_DATA_OF: "default/old 1"}}, "spec": {"userData": "#old"}}
    world.change(HARDWARE, hardware(world), left)
    claim = claim_patch(hardware(world), Claimant("TinkerbellMachine", "default", "m", "u"), since="now")
    assert claim.body["spec"] == {"userData": None}, "in the same write: nobody reads it under the new owner's name"
    add_machine(world)
    world.settle(MACHINES)
    has = hardware(world)
    assert claim_of(has) is not None
    assert WIPED not in has.metadata.annotations
    assert has.spec.user_data == USER_DATA


def test_user_data_that_comes_back_is_withdrawn_again() -> None:
    """Upstream's controller writes it on every reconcile: whoever goes there and back finds it again."""
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    owner = world.require(MACHINE, "default", "m")
    ready = {"nodeRef": {"name": "n"}, "conditions": [{"type": "NodeReady", "status": "True", "reason": "x"}]}
    world.set_status(MACHINE, owner, ready)
    world.settle(MACHINES)
    assert hardware(world).spec.user_data is None
    assert hardware(world).metadata.annotations[USER_DATA_OF] == WITHDRAWN
    world.change(HARDWARE, hardware(world), {"spec": {"userData": USER_DATA}})
    world.settle(MACHINES)
    assert hardware(world).spec.user_data is None


def test_user_data_that_somebody_emptied_is_given_again_while_it_is_needed() -> None:
    world = scene(Engine(""))
    add_machine(world)
    world.settle(MACHINES)
    world.change(HARDWARE, hardware(world), {"spec": {"userData": None}})
    world.settle(MACHINES)
    assert hardware(world).spec.user_data == USER_DATA


def test_the_wipe_names_the_disks_of_the_server_and_boots_as_the_installation_did() -> None:
    world = scene(Engine(wipe=""))
    add_machine(world)
    world.settle(MACHINES)
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {WIPE: "zero"}}})
    delete(world)
    world.settle(MACHINES)
    text = world.require(TEMPLATE, "default", "m-wipe").spec.data
    assert "WIPE_METHOD: zero" in text
    assert "DEST_DISK: /dev/sda" in text
    workflow = world.require(WORKFLOW, "default", "m-wipe")
    assert to_builtin(workflow.spec.boot_options) == {"toggleAllowNetboot": True, "bootMode": "netboot"}
    assert said(get(world))[1] == "Wiping"
    assert hardware(world).spec.user_data is None, "secrets go first"


@pytest.mark.parametrize("wipe", ["FAILED", "TIMEOUT", ""])
def test_a_wipe_that_fails_or_does_not_end_holds_the_server_and_not_the_machine(wipe: str) -> None:
    world = scene(Engine(wipe=wipe))
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES, horizon_s=8000)
    assert world.get(TINKERBELL_MACHINE, "default", "m") is None
    has = hardware(world)
    assert claim_of(has) is None
    assert "not wiped after default/m" in has.metadata.annotations[HELD]
    assert ("attempt 2 of 2 to wipe the disks failed" in has.metadata.annotations[HELD]) == bool(wipe)
    add_machine(world, "next")
    world.settle(MACHINES)
    assert "it is held" in said(get(world, "next"))[2]


def given_back(*wipe: str) -> World:
    """A site whose machine was installed and deleted; its wipes end so."""
    world = scene(Engine(wipe=wipe))
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    return world


def test_a_wipe_that_fails_once_is_tried_again_and_the_server_is_free() -> None:
    world = given_back("FAILED", "SUCCESS")
    assert world.get(TINKERBELL_MACHINE, "default", "m") is None
    has = hardware(world)
    assert HELD not in has.metadata.annotations
    assert msgspec.json.decode(has.metadata.annotations[WIPED])["wiped"] is True
    assert claim_of(has) is None


@pytest.mark.parametrize(("on_server", "on_machine"), [("1", None), ("3", "1")])
def test_a_wipe_is_tried_as_often_as_the_machine_says_or_else_its_server(
    on_server: str, on_machine: str | None
) -> None:
    world = scene(Engine(wipe=("FAILED", "SUCCESS")))
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {WIPE_ATTEMPTS: on_server}}})
    add_machine(world, metadata={"annotations": {WIPE_ATTEMPTS: on_machine}} if on_machine else {})
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    assert (
        "attempt 1 of 1 to wipe the disks failed: action 'act' FAILED: done"
        in hardware(world).metadata.annotations[HELD]
    )


@pytest.mark.parametrize(
    ("on_server", "on_machine", "has_bmc", "expected"),
    [
        ({}, {}, True, "1800"),
        ({AGENT_TIMEOUT: "60"}, {}, True, "60"),
        ({AGENT_TIMEOUT: "60"}, {AGENT_TIMEOUT: "0"}, True, None),
        ({}, {}, False, None),
    ],
)
def test_a_wipe_waits_so_long_for_the_agent_of_a_server_that_its_bmc_boots(
    on_server: dict[str, str], on_machine: dict[str, str], *, has_bmc: bool, expected: str | None
) -> None:
    world = scene(Engine(wipe=""))
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": on_server}})
    add_machine(world, metadata={"annotations": on_machine})
    world.settle(MACHINES)
    if not has_bmc:
        world.change(HARDWARE, hardware(world), {"spec": {"bmcRef": None}})
    delete(world)
    world.settle(MACHINES)
    assert world.require(WORKFLOW, "default", "m-wipe").metadata.annotations.get(AGENT_TIMEOUT) == expected


def test_a_server_that_is_held_between_two_attempts_to_wipe_it_is_left_alone() -> None:
    world = given_back("FAILED", "")
    assert get(world).metadata.annotations[WIPE_ATTEMPT] == "2"
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {HELD: "wait"}}})
    world.settle(MACHINES)
    assert said(get(world))[1] == "HardwareHeld"
    assert claim_of(hardware(world)) is not None


def test_it_may_be_killed_anywhere_while_attempts_to_wipe_fail() -> None:
    world = scene(Engine(wipe=("FAILED", "TIMEOUT", "SUCCESS")))
    add_machine(world, metadata={"annotations": {WIPE_ATTEMPTS: "3"}})
    world.settle(MACHINES)
    delete(world)
    crash_check(MACHINES, world, horizon_s=10)


def test_an_annotation_leaves_the_wipe_out() -> None:
    world = scene(Engine(wipe=""))
    add_machine(world, metadata={"annotations": {WIPE: "none"}})
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    assert world.get(TINKERBELL_MACHINE, "default", "m") is None
    assert not msgspec.json.decode(hardware(world).metadata.annotations[WIPED])["wiped"]


def test_a_template_of_ones_own_takes_the_place_of_the_wipe() -> None:
    world = scene(Engine(wipe=""))
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {WIPE_TEMPLATE: "away"}}})
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    assert said(get(world))[1] == "TemplateNotFound"
    assert "Template default/away in annotation ironbell.dev/wipe-template does not" in said(get(world))[2]
    world.add(TEMPLATE, {"metadata": {"namespace": "default", "name": "away"}, "spec": {"data": "name: mine"}})
    world.settle(MACHINES)
    assert world.require(TEMPLATE, "default", "m-wipe").spec.data == "name: mine"
    assert said(get(world))[2].startswith("Wiping the disks (template away)")
    world.environment = Engine(wipe="FAILED")
    world.settle(MACHINES)
    assert "not wiped after default/m" in hardware(world).metadata.annotations[HELD]
    assert world.require(TEMPLATE, "default", "away"), "the user's own stays"


def test_an_annotation_that_is_no_method_is_named() -> None:
    world = scene(Engine())
    add_machine(world, metadata={"annotations": {WIPE: "all"}})
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    assert said(get(world))[1] == "InvalidWipePolicy"
    world.change(TINKERBELL_MACHINE, get(world), {"metadata": {"annotations": {WIPE: "quick"}}})
    world.settle(MACHINES)
    assert world.get(TINKERBELL_MACHINE, "default", "m") is None


def test_a_server_that_cannot_be_switched_off_is_held() -> None:
    world = scene(Engine(power="Failed"))
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    assert world.get(TINKERBELL_MACHINE, "default", "m") is None
    assert "could not be powered off" in hardware(world).metadata.annotations[HELD]


def test_a_held_server_is_neither_wiped_nor_switched_off() -> None:
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {HELD: "evidence"}}})
    delete(world)
    world.settle(MACHINES)
    assert said(get(world))[1] == "HardwareHeld"
    assert not [one for one in world.list(WORKFLOW) if one.metadata.name.endswith("-wipe")]
    assert not world.list(JOB)


def test_a_server_of_somebody_else_is_never_touched() -> None:
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    labels = {"v1alpha1.tinkerbell.org/ownerName": "other", "v1alpha1.tinkerbell.org/ownerNamespace": "default"}
    world.change(HARDWARE, hardware(world), {"metadata": {"labels": labels}})
    before = hardware(world)
    delete(world)
    world.settle(MACHINES)
    assert world.get(TINKERBELL_MACHINE, "default", "m") is None
    assert hardware(world) == before
    assert not world.list(JOB)


def test_a_machine_of_the_same_name_does_not_inherit_a_claim() -> None:
    world = scene(Engine())
    labels = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "default"}
    left = {"ironbell.dev/claimed-by": "TinkerbellMachine default/m uid-of-an-earlier-one"}
    world.change(HARDWARE, hardware(world), {"metadata": {"labels": labels, "annotations": left}})
    add_machine(world)
    world.settle(MACHINES)
    assert said(get(world))[1] == "WaitingForHardware"


def test_attempts_are_counted_and_told() -> None:
    world = scene(Engine("FAILED"))
    add_machine(world)
    world.settle(MACHINES)
    obj = get(world)
    status, reason, message = said(obj)
    assert (status, reason) == ("False", "InstallationFailed")
    assert "3 of 3" in message
    assert "action 'act' FAILED: done" in message
    assert obj.status.instance_state == "Failed"
    assert not obj.status.ready
    assert [event.reason for event in world.emitted].count("InstallationRetried") == 2


@pytest.mark.parametrize("at_last", [True, False])
def test_a_system_that_runs_is_not_installed_again_because_its_last_action_did_not_tell_how_it_ended(
    at_last: bool,
) -> None:
    world = scene(Engine(""))
    add_machine(world)
    world.settle(MACHINES)
    names = ["write", "leave"]
    actions = [{"id": name, "name": name, "executionStart": rfc3339(world.now())} for name in names]
    current = {"actionID": names[-1 if at_last else 0], "taskID": "t", "state": "TIMEOUT"}
    status = {
        "state": "TIMEOUT",
        "tasks": [{"name": "t", "id": "t", "agentID": "a", "actions": actions}],
        "currentState": current,
    }
    world.set_status(WORKFLOW, world.require(WORKFLOW, "default", "m"), status)
    up = {"metadata": {"annotations": {INSTALLED_SYSTEM_UP: rfc3339(world.now())}}}
    world.change(HARDWARE, hardware(world), up)
    world.settle(MACHINES)
    obj = get(world)
    assert obj.status.ready is at_last
    assert obj.metadata.annotations[INSTALL_ATTEMPT] == ("1" if at_last else "2")


def test_user_data_is_withdrawn_when_the_node_is_ready_and_not_given_again() -> None:
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    machine = world.require(MACHINE, "default", "m")
    ready = {
        "type": "NodeReady",
        "status": "True",
        "reason": "NodeReady",
        "message": "",
        "lastTransitionTime": rfc3339(world.now()),
    }
    world.set_status(MACHINE, machine, {"nodeRef": {"name": "n"}, "conditions": [ready]})
    world.settle(MACHINES)
    assert hardware(world).spec.user_data is None
    secret = world.require(SECRET, "default", "m-data")
    world.change(SECRET, secret, {"data": {"value": "YQ=="}})
    world.settle(MACHINES)
    assert hardware(world).spec.user_data is None


def test_a_hundred_machines_share_a_hundred_servers() -> None:
    world = scene(None, servers=30)
    for number in range(30):
        add_machine(world, f"m{number:02}")
    world.settle(MACHINES)
    owners = [claim.name for one in world.list(HARDWARE) if (claim := claim_of(one)) is not None]
    assert sorted(owners) == [f"m{number:02}" for number in range(30)]
    assert len({get(world, name).spec.provider_id for name in owners}) == 30


def test_a_shortage_is_told_and_a_server_that_comes_is_taken() -> None:
    world = scene(Engine(), servers=0)
    add_machine(world)
    world.settle(MACHINES)
    assert said(get(world)) == (
        "False",
        "WaitingForHardware",
        "no hardware available: there is no Hardware",
    )
    world.add(HARDWARE, server("late"))
    world.settle(MACHINES)
    assert get(world).spec.hardware_name == "late"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"bootstrap": {}}, "WaitingForBootstrapData"),
        ({"bootstrap": {"dataSecretName": "other"}}, "WaitingForBootstrapData"),
        ({"version": None}, "WaitingForVersion"),
        ({"clusterName": "none"}, "WaitingForCluster"),
    ],
)
def test_what_it_waits_for_is_told_and_does_not_keep_it_from_going(change: dict[str, Any], reason: str) -> None:
    world = scene(Engine())
    add_machine(world)
    lacking = {"bootstrap": {"dataSecretName": None, **change["bootstrap"]}} if "bootstrap" in change else change
    world.change(MACHINE, world.require(MACHINE, "default", "m"), {"spec": lacking})
    world.settle(MACHINES)
    assert said(get(world))[1] == reason
    delete(world)
    world.settle(MACHINES)
    assert world.get(TINKERBELL_MACHINE, "default", "m") is None


def test_a_pause_stops_everything_also_a_deletion() -> None:
    world = scene(Engine(), cluster={"paused": True})
    add_machine(world, metadata={"finalizers": ["infrastructure.cluster.x-k8s.io/tinkerbellmachine"]})
    delete(world)
    world.settle(MACHINES)
    assert said(get(world), "Paused")[0] == "True"
    assert claim_of(hardware(world)) is None


def test_override_by_a_template_of_the_hardware() -> None:
    world = scene(Engine())
    named = {"hardware.tinkerbell.org/capt-template-override": "own"}
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": named}})
    add_machine(world)
    world.settle(MACHINES)
    assert said(get(world))[1:] == (
        "TemplateNotFound",
        "Template default/own, which the Hardware's annotation names, does not exist.",
    )
    world.add(TEMPLATE, {"metadata": {"namespace": "default", "name": "own"}, "spec": {"data": "mine"}})
    world.settle(MACHINES)
    assert world.require(TEMPLATE, "default", "m").spec.data == "mine"
    assert get(world).status.ready


def test_what_was_taken_twice_is_given_back() -> None:
    world = scene(Engine(), servers=2)
    obj = add_machine(world)
    world.settle(MACHINES)
    assert get(world).spec.hardware_name == "s0"
    late = claim_patch(
        hardware(world, "s1"), Claimant("TinkerbellMachine", "default", "m", obj.metadata.uid), since="x"
    )
    world.change(HARDWARE, hardware(world, "s1"), late.body)
    world.settle(MACHINES)
    assert claim_of(hardware(world, "s1")) is None
    assert claim_of(hardware(world, "s0")) is not None
    assert get(world).status.ready


def test_what_another_of_the_same_name_has_is_let_be() -> None:
    world = scene(Engine(), servers=2)
    add_machine(world)
    world.settle(MACHINES)
    other = claim_patch(hardware(world, "s1"), Claimant("TinkerbellMachine", "default", "m", "another"), since="x")
    world.change(HARDWARE, hardware(world, "s1"), other.body)
    world.settle(MACHINES)
    assert claim_of(hardware(world, "s1")) is not None


def test_a_machine_that_waits_for_a_label_of_the_inventory_wakes_when_the_agent_has_reported() -> None:
    world = scene(Engine())
    labels = {"ironbell.dev/vendor": "Dell-Inc"}
    add_machine(world, hardwareAffinity={"required": [{"labelSelector": {"matchLabels": labels}}]})
    both = (MACHINES, HardwareInventoryReconciler())
    world.settle(*both)
    assert said(get(world))[1] == "WaitingForHardware"
    report = '{"product": {"vendor": "Dell Inc."}}'
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {"tinkerbell.org/agent-attributes": report}}})
    before = hardware(world)
    world.settle(both[1])
    now = hardware(world)
    assert now.metadata.labels["ironbell.dev/vendor"] == "Dell-Inc"
    watches = [one for one in MACHINES.declaration.watches if one.kind is HARDWARE]
    heard = [one for one in watches if one.relevant is None or one.relevant(before, now)]
    woken = [key for one in heard for key in one.keys(now, world)]
    assert woken == [("default", "m")], "the label's change wakes who waits"
    world.settle(*both)
    assert get(world).spec.hardware_name == "s0"


@pytest.mark.parametrize("ended", [False, True])
def test_a_power_cycle_that_is_under_way_is_waited_for_and_then_cleared_away(ended: bool) -> None:
    world = scene(Engine())
    obj = add_machine(world)
    world.settle(MACHINES)
    labels = {"capt.tinkerbell.org/machine-name": "m", "capt.tinkerbell.org/machine-namespace": "default"}
    place = {"namespace": "default", "name": f"{obj.metadata.name}-power-cycle", "labels": labels}
    job = world.add(
        JOB, {"metadata": place, "spec": {"machineRef": {"name": "bmc", "namespace": "default"}, "tasks": []}}
    )
    world.set_status(JOB, job, {"conditions": [{"type": "Completed" if ended else "Running", "status": "True"}]})
    delete(world)
    world.settle(MACHINES)
    if ended:
        assert world.get(TINKERBELL_MACHINE, "default", "m") is None
        assert not world.list(JOB)
    else:
        assert said(get(world))[1] == "PowerCycling"
        assert claim_of(hardware(world)) is not None
        assert [one.metadata.name for one in world.list(WORKFLOW)] == []


def test_a_server_may_be_held_when_it_is_given_back() -> None:
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    world.change(TINKERBELL_MACHINE, get(world), {"metadata": {"annotations": {HOLD_WHEN_RELEASED: "it was sick"}}})
    delete(world)
    world.settle(MACHINES)
    has = hardware(world)
    assert claim_of(has) is None
    assert has.metadata.annotations[HELD] == "it was sick"
    assert msgspec.json.decode(has.metadata.annotations[WIPED])["wiped"] is True


def test_how_far_counts_the_action_that_is_told_also_when_it_has_just_ended() -> None:
    actions = [{"id": name, "name": name, "state": "PENDING"} for name in ("a", "b", "c")]
    actions[0]["state"] = "SUCCESS"
    current = {"actionID": "a", "actionName": "a", "state": "SUCCESS"}
    status = {"state": "RUNNING", "tasks": [{"name": "t", "id": "1", "actions": actions}], "currentState": current}
    workflow = WORKFLOW.convert({"metadata": {"name": "w", "namespace": "default"}, "status": status})
    assert progress_of(workflow) == "action 1 of 3: a"


def test_a_server_on_which_every_attempt_failed_is_claimed_last_until_one_succeeds() -> None:
    world = scene(Engine("FAILED"), servers=2)
    add_machine(world)
    world.settle(MACHINES)
    failed = install_failures(hardware(world))
    assert failed is not None
    assert (failed.machine, failed.times, failed.message) == ("default/m", 3, "action 'act' FAILED: done")
    delete(world)
    world.environment = Engine()
    world.settle(MACHINES)
    for name in ("n", "o"):
        add_machine(world, name)
        world.settle(MACHINES)
    assert [get(world, name).spec.hardware_name for name in ("n", "o")] == ["s1", "s0"]
    assert install_failures(hardware(world)) is None
    said_of_it = [one.message for one in world.emitted if one.reason == "HardwareClaimed"]
    assert said_of_it[-1] == (
        "Claimed Hardware default/s0 because no better server fits: 3 installations failed on it, for default/m: action"
        " 'act' FAILED: done."
    )


OWNED = {
    "ownerReferences": [
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "ms", "uid": "1", "controller": True}
    ]
}


def _owned(world: World, name: str = "m") -> None:
    add_machine(world, name)
    world.change(MACHINE, world.require(MACHINE, "default", name), {"metadata": OWNED})


def _asked(world: World, name: str = "m") -> dict[str, tuple[str, str]]:
    conditions = world.require(MACHINE, "default", name).status.conditions
    return {one.type: (one.status, one.reason) for one in conditions}


def test_after_two_failures_the_machine_is_replaced_to_be_installed_on_another_server() -> None:
    world = scene(Engine("FAILED"), servers=2)
    _owned(world)
    crash_check(MACHINES, world)
    world.settle(MACHINES)
    assert _asked(world) == {
        "HealthCheckSucceeded": ("False", "InstallationFailed"),
        "OwnerRemediated": ("False", "WaitingForRemediation"),
    }
    reason, message = said(get(world), "Installed")[1:]
    assert reason == "Replacing"
    assert message.startswith(
        "Installation failed 2 times on Hardware default/s0: action 'act' FAILED: done. The Machine is"
    )
    failed = install_failures(hardware(world))
    assert failed is not None
    assert (failed.times, failed.owner) == (2, "MachineSet default/ms")
    world.environment = Engine()
    _owned(world, "n")
    delete(world)
    world.settle(MACHINES)
    assert get(world, "n").spec.hardware_name == "s1"
    assert get(world, "n").status.ready


def test_a_health_check_is_told_to_replace_the_machine() -> None:
    world = scene(Engine("FAILED"), servers=2)
    _owned(world)
    owner = world.require(MACHINE, "default", "m")
    checked = [{"type": "HealthCheckSucceeded", "status": "True", "reason": "HealthCheckSucceeded"}]
    world.set_status(MACHINE, owner, {"conditions": checked})
    world.settle(MACHINES)
    assert _asked(world) == {"HealthCheckSucceeded": ("True", "HealthCheckSucceeded")}
    assert "cluster.x-k8s.io/remediate-machine" in world.require(MACHINE, "default", "m").metadata.annotations
    assert said(get(world))[1] == "Replacing"


def test_another_machine_of_the_name_is_not_replaced() -> None:
    """Machines may have been deleted and created since what the decision rests on."""
    world = scene(Engine("FAILED"), servers=2)
    _owned(world)
    owner = world.require(MACHINE, "default", "m")
    checked = [{"type": "HealthCheckSucceeded", "status": "True", "reason": "HealthCheckSucceeded"}]
    world.set_status(MACHINE, owner, {"conditions": checked})
    writes: list[MergePatch] = []

    def look(world: World) -> None:
        Engine("FAILED")(world)
        decision = world.decide(MACHINES, ("default", "m"))
        actions = decision.actions if decision is not None else ()
        writes.extend(one for one in actions if isinstance(one, MergePatch) and one.kind is MACHINE)

    world.environment = look
    world.settle(MACHINES)
    assert writes
    assert all(one.resource_version for one in writes)


@pytest.mark.parametrize("why", ["no owner", "no other server", "held", "failed elsewhere"])
def test_an_installation_stays_where_no_other_server_would_help(why: str) -> None:
    world = scene(Engine("FAILED"), servers=1 if why == "no other server" else 2)
    if why == "no owner":
        add_machine(world)
    else:
        _owned(world)
    if why == "held":
        world.change(HARDWARE, hardware(world, "s1"), {"metadata": {"annotations": {HELD: "broken"}}})
    if why == "failed elsewhere":
        mark = '{"machine":"default/x","uid":"x","owner":"MachineSet default/ms","times":2,"message":"y"}'
        for name in ("t0", "t1"):
            world.add(HARDWARE, server(name, annotations={"ironbell.dev/install-failed": mark}))
    world.settle(MACHINES)
    assert said(get(world))[1] == "InstallationFailed"
    assert "failed 3 of 3 times" in said(get(world))[2]
    assert not _asked(world)

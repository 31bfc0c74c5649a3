"""What is done about an unhealthy machine: power cycles, then its replacement; and what is never done."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.bmc.job import JOB
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE, TINKERBELL_REMEDIATION
from ironbell.api.capt.tinkerbellremediation import TinkerbellRemediation
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.machine import Machine
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.contract.conditions.legacy import find_legacy, legacy_conditions
from ironbell.contract.servers.claim import HELD, Claimant, claim_patch
from ironbell.controllers.capt.remediation import TinkerbellRemediationReconciler
from ironbell.kube.conditions import find_condition
from ironbell.kube.testing import World, crash_check
from ironbell.provisioner.lifecycle.names import (
    HOLD_WHEN_RELEASED,
    INSTALL_BEGUN,
    POWER_CYCLE_ATTEMPTS,
    POWER_CYCLE_TURN,
    RACK,
    REPLACE_ON,
)
from support.servers.captworld import server

REMEDY = TinkerbellRemediationReconciler()
BMC = {"bmcRef": {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc"}}
UNHEALTHY = {"type": "HealthCheckSucceeded", "status": "False", "reason": "UnhealthyNode"}
CONTROL_PLANE = {"cluster.x-k8s.io/control-plane": ""}


class Bmc:
    """Plays the BMC controller: Jobs come to this end."""

    def __init__(self, end: str = "Completed", heals: int = 0) -> None:
        self.end, self.heals, self.cycles = end, heals, 0
        self.by: list[str] = []

    def __call__(self, world: World) -> None:
        for job in world.list(JOB):
            if job.status.conditions or not self.end:
                continue
            world.set_status(JOB, job, {"conditions": [{"type": self.end, "status": "True", "message": "no route"}]})
            self.cycles += 1
            self.by.append(job.metadata.labels["capt.tinkerbell.org/machine-name"])
            if self.cycles == self.heals:
                well(world, self.by[-1])


def well(world: World, name: str) -> None:
    machine = world.require(MACHINE, "default", name)
    said = {**UNHEALTHY, "status": "True", "reason": "HealthCheckSucceeded"}
    world.set_status(MACHINE, machine, {"conditions": [said]})


def scene(engine: Any = None, *names: str, **more: Any) -> World:
    world = World(environment=engine or Bmc())
    world.api.serve([JOB, HARDWARE, WORKFLOW, MACHINE, TINKERBELL_MACHINE, TINKERBELL_REMEDIATION])
    place = {"namespace": "default", "name": "prod"}
    infrastructure = {"apiGroup": TINKERBELL_CLUSTER.group, "kind": "TinkerbellCluster", "name": "prod"}
    world.add(CLUSTER, {"metadata": place, "spec": {"infrastructureRef": infrastructure}})
    world.add(TINKERBELL_CLUSTER, {"metadata": place, "spec": {}, "status": {"ready": True}})
    for name in names or ("m",):
        add(world, name, **more)
    return world


def add(
    world: World,
    name: str,
    *,
    sick: bool = True,
    bmc: bool = True,
    ready: bool = True,
    bootstrap: str = "",
    labels: dict[str, str] | None = None,
    conditions: tuple[tuple[str, str], ...] = (),
    annotations: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    owner: bool = True,
) -> None:
    """A Machine with its server, and if it is sick the remediation that a health check makes."""
    infrastructure = {"apiGroup": TINKERBELL_MACHINE.group, "kind": "TinkerbellMachine", "name": name}
    owners = [
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "s", "uid": "s", "controller": True}
    ]
    held = [{"type": kind, "status": status, "reason": "Told"} for kind, status in conditions]
    made = world.add(
        MACHINE,
        {
            "metadata": {
                "namespace": "default", "name": name, "labels": labels or {}, "ownerReferences": owners if owner else []
            },
            "spec": {"clusterName": "prod", "bootstrap": {}, "infrastructureRef": infrastructure},
            "status": {"conditions": [*([UNHEALTHY] if sick else []), *held]},
        },
    )  # fmt: skip
    metadata = {"namespace": "default", "name": name, "annotations": annotations or {}}
    names = {"hardwareName": f"s-{name}", "providerID": f"tinkerbell://default/s-{name}"}
    failed = {"type": "BootstrapSucceeded", "status": "False", "reason": "BootstrapFailed", "message": bootstrap}
    status = {"ready": ready, "conditions": [failed] if bootstrap else []}
    obj = world.add(TINKERBELL_MACHINE, {"metadata": metadata, "spec": names, "status": status})
    hardware = world.add(HARDWARE, server(f"s-{name}", spec=BMC if bmc else {}))
    claim = claim_patch(hardware, Claimant("TinkerbellMachine", "default", name, obj.metadata.uid), since="x")
    world.change(HARDWARE, hardware, claim.body)
    if sick:
        reference = {"apiVersion": MACHINE.api_version, "kind": "Machine", "name": name, "uid": made.metadata.uid}
        metadata = {"namespace": "default", "name": name, "ownerReferences": [reference]}
        world.add(TINKERBELL_REMEDIATION, {"metadata": metadata, "spec": spec or {}})


def get(world: World, name: str = "m") -> TinkerbellRemediation:
    return world.require(TINKERBELL_REMEDIATION, "default", name)


def machine(world: World, name: str = "m") -> Machine:
    return world.require(MACHINE, "default", name)


def said(world: World, name: str = "m") -> tuple[str, str]:
    found = find_condition(get(world, name).status.conditions, "Ready")
    assert found is not None
    return found.reason, found.message


def is_given_up(world: World, name: str = "m") -> bool:
    found = find_condition(machine(world, name).status.conditions, "OwnerRemediated")
    return found is not None and (found.status, found.reason) == ("False", "WaitingForRemediation")


def test_a_power_cycle_comes_first_and_may_be_enough() -> None:
    bmc = Bmc(heals=1)
    world = scene(bmc)
    world.settle(REMEDY)
    assert bmc.cycles == 1
    assert (get(world).status.phase, get(world).status.power_cycles) == ("Recovered", 1)
    assert not is_given_up(world)
    assert not world.list(JOB)
    assert [event.reason for event in world.emitted] == ["PowerCycling", "Recovered"]


def test_it_is_switched_off_and_on_by_its_own_bmc() -> None:
    world = scene(Bmc(end=""))
    world.settle(REMEDY)
    (job,) = world.list(JOB)
    assert [task.power_action for task in job.spec.tasks] == ["off", "on"]
    assert job.spec.machine_ref.name == "bmc"
    assert said(world) == ("PowerCycling", "Power cycle 1 of Hardware s-m is in progress.")


def test_it_has_time_to_recover_and_is_replaced_then() -> None:
    bmc = Bmc()
    world = scene(bmc, spec={"powerCycle": {"attempts": 2, "timeoutSeconds": 300}})
    world.settle(REMEDY)
    assert (bmc.cycles, said(world)[0]) == (1, "WaitingForRecovery")
    world.clock.advance(290)
    world.settle(REMEDY)
    assert bmc.cycles == 1
    world.clock.advance(11)
    world.settle(REMEDY)
    assert bmc.cycles == 2
    assert not is_given_up(world)
    world.clock.advance(301)
    world.settle(REMEDY)
    assert (bmc.cycles, get(world).status.phase) == (2, "Replacing")
    assert is_given_up(world)
    older = find_legacy(legacy_conditions(machine(world)), "OwnerRemediated")
    assert older is not None
    assert (older.status, older.reason, older.severity) == ("False", "WaitingForRemediation", "Warning")
    assert "2 power cycles did not help" in said(world)[1] + str(world.emitted)


def test_a_bmc_that_cannot_counts_as_an_attempt() -> None:
    world = scene(Bmc(end="Failed"))
    world.settle(REMEDY, horizon_s=700)
    assert is_given_up(world)
    failed = [event for event in world.emitted if event.reason == "PowerCycleFailed"]
    assert failed
    assert failed[0].message == "Could not power cycle Hardware s-m: no route"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"bmc": False}, "has no BMC"),
        ({"ready": False}, "the operating system never started"),
        ({"bootstrap": "kubeadm join failed"}, "the bootstrap failed: kubeadm join failed"),
        ({"spec": {"powerCycle": {"attempts": 0}}}, "power cycles are disabled"),
        ({"annotations": {POWER_CYCLE_ATTEMPTS: "0"}}, "power cycles are disabled"),
    ],
)
def test_where_a_power_cycle_cannot_help_it_is_replaced_at_once(more: dict[str, Any], why: str) -> None:
    bmc = Bmc()
    world = scene(bmc, **more)
    world.settle(REMEDY)
    assert bmc.cycles == 0
    assert is_given_up(world)
    assert any(why in event.message for event in world.emitted)


def test_a_held_server_is_let_be() -> None:
    bmc = Bmc()
    world = scene(bmc)
    hardware = world.require(HARDWARE, "default", "s-m")
    hardware = world.change(HARDWARE, hardware, {"metadata": {"annotations": {HELD: "being repaired"}}})
    world.settle(REMEDY, horizon_s=2000)
    assert (bmc.cycles, is_given_up(world)) == (0, False)
    assert said(world)[0] == "HardwareHeld"
    world.change(HARDWARE, hardware, {"metadata": {"annotations": {HELD: None}}})
    world.settle(REMEDY)
    assert bmc.cycles == 1


def test_the_server_of_somebody_else_is_not_touched() -> None:
    bmc = Bmc()
    world = scene(bmc)
    hardware = world.require(HARDWARE, "default", "s-m")
    world.change(HARDWARE, hardware, {"metadata": {"labels": {"v1alpha1.tinkerbell.org/ownerName": "another"}}})
    world.settle(REMEDY)
    assert bmc.cycles == 0
    assert is_given_up(world)


def test_nothing_is_done_before_a_health_check_has_said_so() -> None:
    bmc = Bmc()
    world = scene(bmc)
    well(world, "m")
    world.settle(REMEDY, horizon_s=2000)
    assert (bmc.cycles, said(world)[0]) == (0, "WaitingForHealthCheck")


@pytest.mark.parametrize("what", ["cluster", "object"])
def test_a_pause_stops_it(what: str) -> None:
    bmc = Bmc()
    world = scene(bmc)
    if what == "cluster":
        world.change(CLUSTER, world.require(CLUSTER, "default", "prod"), {"spec": {"paused": True}})
    else:
        paused = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
        world.change(TINKERBELL_REMEDIATION, get(world), paused)
    world.settle(REMEDY, horizon_s=2000)
    assert (bmc.cycles, is_given_up(world)) == (0, False)
    found = find_condition(get(world).status.conditions, "Paused")
    assert found is not None
    assert found.status == "True"


def test_a_machine_that_nobody_owns_is_not_replaced() -> None:
    world = scene(Bmc(), owner=False, bmc=False)
    world.settle(REMEDY)
    assert said(world)[0] == "NoOwner"


def test_one_of_a_control_plane_at_a_time() -> None:
    bmc = Bmc()
    world = scene(bmc, "a", "b", "c", labels=CONTROL_PLANE)
    world.settle(REMEDY)
    assert bmc.cycles == 1
    turns = sorted(said(world, name)[0] for name in "abc")
    assert turns == ["WaitingForRecovery", "WaitingForTurn", "WaitingForTurn"]
    world.settle(REMEDY, horizon_s=650)
    assert bmc.cycles == 2
    assert get(world, bmc.by[0]).status.phase == "Replacing"


def test_workers_do_not_wait_for_each_other() -> None:
    bmc = Bmc()
    world = scene(bmc, "a", "b")
    world.settle(REMEDY)
    assert bmc.cycles == 2


def test_a_member_that_serves_is_kept_while_others_are_down() -> None:
    bmc = Bmc()
    serves = (("EtcdMemberHealthy", "True"), ("NodeReady", "False"))
    world = scene(bmc, "a", labels=CONTROL_PLANE, conditions=serves)
    add(world, "b", sick=False, labels=CONTROL_PLANE, conditions=(("EtcdMemberHealthy", "True"), ("NodeReady", "True")))
    add(
        world,
        "c",
        sick=False,
        labels=CONTROL_PLANE,
        conditions=(("EtcdMemberHealthy", "Unknown"), ("NodeReady", "True")),
    )
    world.settle(REMEDY, horizon_s=2000)
    assert (bmc.cycles, said(world, "a")[0]) == (0, "WaitingForQuorum")
    assert "1 of 3 etcd members would be healthy, and 2 are required" in said(world, "a")[1]
    now_well = [{"type": kind, "status": "True", "reason": "Told"} for kind in ("EtcdMemberHealthy", "NodeReady")]
    world.set_status(MACHINE, machine(world, "c"), {"conditions": now_well})
    world.settle(REMEDY)
    assert bmc.cycles == 1
    mark = world.require(TINKERBELL_CLUSTER, "default", "prod").metadata.annotations[POWER_CYCLE_TURN]
    assert mark.startswith("default/a ")


def test_a_single_control_plane_is_power_cycled() -> None:
    bmc = Bmc()
    world = scene(bmc, labels=CONTROL_PLANE, conditions=(("EtcdMemberHealthy", "True"),))
    world.settle(REMEDY)
    assert bmc.cycles == 1


@pytest.mark.parametrize(
    ("more", "holds"),
    [
        ({}, False),
        ({"spec": {"powerCycle": {"attempts": 0}, "replacement": {"server": "Other"}}}, True),
        ({"annotations": {REPLACE_ON: "other"}}, True),
        ({"annotations": {REPLACE_ON: "any"}, "spec": {"replacement": {"server": "Other"}}}, False),
    ],
)
def test_another_server_may_be_asked_for(more: dict[str, Any], holds: bool) -> None:
    world = scene(Bmc(), **more)
    world.settle(REMEDY, horizon_s=2000)
    assert is_given_up(world)
    annotations = world.require(TINKERBELL_MACHINE, "default", "m").metadata.annotations
    assert (HOLD_WHEN_RELEASED in annotations) is holds


def test_it_may_be_killed_anywhere() -> None:
    world = scene(Bmc(), spec={"powerCycle": {"attempts": 2, "timeoutSeconds": 60}, "replacement": {"server": "Other"}})
    crash_check(REMEDY, world, horizon_s=500, ignore=("status.lastPowerCycle",))


def test_it_may_be_killed_anywhere_in_a_control_plane() -> None:
    world = scene(Bmc(), "a", "b", "c", labels=CONTROL_PLANE, spec={"powerCycle": {"timeoutSeconds": 60}})
    crash_check(REMEDY, world, horizon_s=500, ignore=("status.lastPowerCycle",))


def in_rack(world: World, *names: str) -> None:
    for name in names:
        machine = world.require(TINKERBELL_MACHINE, "default", name)
        world.change(TINKERBELL_MACHINE, machine, {"metadata": {"annotations": {RACK: "rack=r1"}}})


def test_power_cycles_in_a_rack_are_made_one_after_the_other() -> None:
    one, bmc = TinkerbellRemediationReconciler(at_once=1), Bmc("")
    world = scene(bmc, "a", "b")
    in_rack(world, "a", "b")
    world.settle(one)
    assert [job.metadata.name for job in world.list(JOB)] == ["a-power-cycle"]
    waits = world.require(TINKERBELL_REMEDIATION, "default", "b")
    ready = find_condition(waits.status.conditions, "Ready")
    assert ready is not None
    assert (ready.reason, ready.message) == (
        "WaitingForTurn",
        "Waiting for the rack: 1 server of rack r1 is being powered on.",
    )
    assert waits.status.power_cycles == 0, "what waits is not counted as tried"
    before = world.require(JOB, "default", "a-power-cycle")
    woken = {key for watch in one.declaration.watches if watch.kind is JOB for key in watch.keys(before, world)}
    assert ("default", "b") in woken
    bmc.end = "Completed"
    world.settle(one)
    assert "b" in bmc.by


def test_a_power_cycle_waits_for_an_installation_in_its_rack() -> None:
    one = TinkerbellRemediationReconciler(at_once=1)
    bmc = Bmc()
    world = scene(bmc, "a")
    in_rack(world, "a")
    annotations = {RACK: "rack=r1", INSTALL_BEGUN: "x"}
    metadata = {"namespace": "default", "name": "n", "annotations": annotations}
    workflow = world.add(WORKFLOW, {"metadata": metadata, "spec": {"hardwareRef": "elsewhere"}})
    world.settle(one)
    assert not bmc.by
    world.set_status(WORKFLOW, workflow, {"state": "SUCCESS"})
    world.settle(one)
    assert bmc.by == ["a"]

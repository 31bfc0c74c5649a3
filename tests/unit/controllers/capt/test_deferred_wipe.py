"""`ironbell.dev/wipe: deferred`: a server is reserved for its Cluster after a quick wipe; nobody else gets it before
a complete one; whatever is killed in between, and whoever claims and releases it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.bmc.job import JOB
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.capt.names import FINALIZER, LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.contract.servers.claim import HELD, WIPED, claim_of
from ironbell.contract.servers.directory import AGENT_TIMEOUT, KEEP_DISKS
from ironbell.contract.servers.wipe_due import WIPE_DUE, WIPE_RUN, wipe_due
from ironbell.kube.testing import World, crash_check
from ironbell.provisioner.lifecycle.due import WipeDueReconciler, due_name
from ironbell.provisioner.lifecycle.names import WIPE
from support.servers.captscene import BMC, MACHINES, Engine, add_machine, delete, get, hardware, said, scene
from support.servers.captworld import server

DUE = WipeDueReconciler()
BOTH = (MACHINES, DUE)
HOUR_S = 3600.0


def deferred(engine: Engine | None = None, **options: Any) -> World:
    """A machine of Cluster `prod` on a server whose complete wipe is deferred."""
    world = scene(engine or Engine(complete=False), **options)
    annotate(world, WIPE, "deferred")
    add_machine(world)
    world.settle(*BOTH)
    assert get(world).status.ready or engine is not None
    return world


def annotate(world: World, name: str, value: str | None, server: str = "s0") -> None:
    world.change(HARDWARE, hardware(world, server), {"metadata": {"annotations": {name: value}}})


def released(engine: Engine | None = None, **options: Any) -> World:
    """The same once the machine has released its server."""
    world = deferred(engine, **options)
    delete(world)
    world.settle(*BOTH)
    assert world.get(TINKERBELL_MACHINE, "default", "m") is None
    return world


def other_cluster(world: World, name: str = "other") -> None:
    reference = {"apiGroup": TINKERBELL_CLUSTER.group, "kind": "TinkerbellCluster", "name": name}
    place = {"namespace": "default", "name": name}
    world.add(CLUSTER, {"metadata": place, "spec": {"infrastructureRef": reference}})
    world.add(TINKERBELL_CLUSTER, {"metadata": place, "spec": {}, "status": {"ready": True}})


def add_other_machine(world: World, name: str = "n", cluster: str = "other") -> None:
    add_machine(world, name, metadata={"labels": {"cluster.x-k8s.io/cluster-name": cluster}})
    world.change(MACHINE, world.require(MACHINE, "default", name), {"spec": {"clusterName": cluster}})


def remove_cluster(world: World) -> None:
    world.remove(CLUSTER, world.require(CLUSTER, "default", "prod"))


def certificate(world: World) -> dict[str, Any]:
    return msgspec.json.decode(hardware(world).metadata.annotations[WIPED], type=dict[str, Any])


def is_reserved(world: World) -> bool:
    claim = claim_of(hardware(world))
    return claim is not None and claim.is_reservation and wipe_due(hardware(world)) is not None


def is_available(world: World) -> bool:
    found = hardware(world)
    return (
        claim_of(found) is None
        and HELD not in found.metadata.annotations
        and WIPE_DUE not in found.metadata.annotations
    )


def test_a_released_server_is_wiped_quickly_switched_off_and_reserved_for_its_cluster() -> None:
    world = deferred(Engine(complete=False, wipe=""))
    delete(world)
    world.settle(*BOTH)
    assert "WIPE_METHOD: quick" in world.require(TEMPLATE, "default", "m-wipe").spec.data
    world.environment = Engine(complete=False)
    world.settle(*BOTH, horizon_s=HOUR_S)
    world.settle(*BOTH)
    found = hardware(world)
    due = wipe_due(found)
    assert due is not None
    cluster = world.require(CLUSTER, "default", "prod")
    assert (due.namespace, due.cluster, due.uid) == ("default", "prod", cluster.metadata.uid)
    assert (certificate(world)["wiped"], certificate(world)["method"]) == (False, "deferred")
    assert found.metadata.labels[LABEL_OWNER_NAME] == "prod", "upstream's controllers see that it is claimed"
    assert found.metadata.labels[LABEL_OWNER_NAMESPACE] == "default"
    assert FINALIZER in found.metadata.finalizers
    assert found.spec.user_data is None


def test_a_machine_of_the_same_cluster_claims_its_server_before_any_other() -> None:
    world = released()
    world.add(HARDWARE, server("a0", spec=BMC))
    add_machine(world, "n")
    world.settle(*BOTH)
    assert get(world, "n").spec.hardware_name == "s0"
    assert wipe_due(hardware(world)) is not None, "the first machine's data is still to be wiped"


def test_a_cluster_of_the_same_name_is_somebody_else() -> None:
    world = released(Engine(complete=False, due=""))
    remove_cluster(world)
    reference = {"apiGroup": TINKERBELL_CLUSTER.group, "kind": "TinkerbellCluster", "name": "prod"}
    place = {"namespace": "default", "name": "prod"}
    world.add(CLUSTER, {"metadata": place, "spec": {"infrastructureRef": reference}})
    add_machine(world, "n")
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert not get(world, "n").spec.hardware_name
    assert world.require(WORKFLOW, "default", due_name(hardware(world)))


@pytest.mark.parametrize("crashes", [False, True])
def test_once_the_cluster_is_deleted_the_server_is_wiped_completely_and_available(crashes: bool) -> None:
    world = released()
    remove_cluster(world)
    if crashes:
        world = crash_check(BOTH, world, horizon_s=HOUR_S)
    else:
        world.settle(*BOTH, horizon_s=HOUR_S)
    assert is_available(world)
    found = certificate(world)
    assert (found["wiped"], found["method"], found["disks"]) == (True, "complete", ["/dev/sda"])
    assert not hardware(world).metadata.finalizers
    assert not world.list(WORKFLOW)
    assert not world.list(TEMPLATE)
    assert not world.list(JOB)


def test_a_release_may_be_killed_anywhere() -> None:
    world = deferred()
    delete(world)
    world = crash_check(BOTH, world, horizon_s=60, ignore=["metadata.annotations.ironbell.dev/wiped"])
    assert is_reserved(world)


def test_a_machine_that_is_deleted_before_its_installation_does_not_settle_what_was_due() -> None:
    """The certificate of an untouched server replaces that of the wipe before."""
    world = released()
    world.environment = Engine("", complete=False)
    add_machine(world, "n")
    world.settle(*BOTH)
    assert get(world, "n").spec.hardware_name == "s0"
    delete(world, "n")
    world.settle(*BOTH)
    assert world.get(TINKERBELL_MACHINE, "default", "n") is None
    assert "nothing was written" in certificate(world)["message"]
    assert is_reserved(world)


@pytest.mark.parametrize("policy", ["quick", "none"])
def test_a_later_machines_policy_does_not_settle_what_was_due(policy: str) -> None:
    world = released()
    add_machine(
        world, "n", metadata={"annotations": {WIPE: policy}, "labels": {"cluster.x-k8s.io/cluster-name": "prod"}}
    )
    add_owner(world, "n")
    world.settle(*BOTH)
    assert get(world, "n").spec.hardware_name == "s0"
    delete(world, "n")
    world.settle(*BOTH)
    assert is_reserved(world)


def add_owner(world: World, name: str) -> None:
    owner = world.require(MACHINE, "default", name)
    reference = {"apiVersion": MACHINE.api_version, "kind": "Machine", "name": name, "uid": owner.metadata.uid}
    world.change(
        TINKERBELL_MACHINE, get(world, name), {"metadata": {"ownerReferences": [{**reference, "controller": True}]}}
    )


def test_a_complete_wipe_at_release_settles_what_was_due() -> None:
    world = released()
    annotate(world, WIPE, "complete")
    add_machine(world, "n")
    world.settle(*BOTH)
    world.environment = Engine(complete=True)
    delete(world, "n")
    world.settle(*BOTH)
    assert is_available(world)
    assert certificate(world)["wiped"] is True


def test_a_server_on_which_nothing_was_written_is_available_at_once() -> None:
    world = deferred(Engine(""))
    delete(world)
    world.settle(*BOTH)
    assert is_available(world)


def test_another_cluster_waits_and_gets_the_server_wiped_once_it_was_reserved_long_enough() -> None:
    world = released()
    other_cluster(world)
    add_other_machine(world)
    world.settle(*BOTH)
    status, reason, message = said(get(world, "n"))
    assert (status, reason) == ("False", "WaitingForHardware")
    assert "reserved for other Clusters" in message
    assert is_reserved(world)
    world.settle(*BOTH, horizon_s=840)
    assert is_reserved(world), "a rolling upgrade may still use it"
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert get(world, "n").spec.hardware_name == "s0"
    assert WIPE_DUE not in hardware(world).metadata.annotations


def test_no_reservation_ends_for_another_cluster_while_a_free_server_fits() -> None:
    world = released()
    world.add(HARDWARE, server("z9", spec=BMC))
    other_cluster(world)
    add_other_machine(world)
    world.settle(*BOTH, horizon_s=1800)
    assert get(world, "n").spec.hardware_name == "z9"
    assert is_reserved(world)


def test_one_machine_that_waits_ends_one_reservation() -> None:
    """While one server is being wiped, the machine does not have the next wiped, too."""
    world = scene(Engine(complete=False, due=""), servers=2)
    for name in ("s0", "s1"):
        annotate(world, WIPE, "deferred", name)
    for name in ("m", "m2"):
        add_machine(world, name)
    world.settle(*BOTH)
    for name in ("m", "m2"):
        delete(world, name)
    world.settle(*BOTH)
    other_cluster(world)
    add_other_machine(world)
    world.settle(*BOTH, horizon_s=2700)
    ended = [wipe_due(one).ended for one in world.list(HARDWARE)]
    assert sorted(map(bool, ended)) == [False, True]


def test_each_machine_that_waits_has_one_server_wiped_for_it() -> None:
    world = scene(Engine(complete=False, due=""), servers=3)
    for name in ("s0", "s1", "s2"):
        annotate(world, WIPE, "deferred", name)
    for name in ("m", "m2", "m3"):
        add_machine(world, name)
    world.settle(*BOTH)
    for name in ("m", "m2", "m3"):
        delete(world, name)
    world.settle(*BOTH)
    other_cluster(world)
    add_other_machine(world)
    add_other_machine(world, "n2")
    world.settle(*BOTH, horizon_s=2700)
    assert sorted(bool(wipe_due(one).ended) for one in world.list(HARDWARE)) == [False, True, True]


def test_a_waiting_machine_of_another_cluster_does_not_stand_before_the_reservations_own() -> None:
    world = released()
    other_cluster(world)
    add_other_machine(world)
    world.settle(*BOTH)
    add_machine(world, "o")
    world.settle(*BOTH)
    assert get(world, "o").spec.hardware_name == "s0"


def test_a_failed_complete_wipe_holds_the_server_and_stays_due() -> None:
    world = released(Engine(complete=False, due="FAILED"))
    remove_cluster(world)
    world.settle(*BOTH, horizon_s=HOUR_S)
    held = hardware(world).metadata.annotations[HELD]
    assert "Attempt 2 of 2 to wipe the disks completely failed" in held
    assert is_reserved(world)
    assert (certificate(world)["wiped"], certificate(world)["failed"]) == (False, True)
    world.environment = Engine()
    annotate(world, HELD, None)
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert is_available(world)
    assert certificate(world)["wiped"] is True


def test_a_server_whose_agent_never_comes_is_booted_again() -> None:
    """It booted its disk because nothing answered it on the network: the limit of the whole wipe is hours away."""
    world = released(Engine(complete=False, due=""))
    remove_cluster(world)
    world.settle(*BOTH, horizon_s=60)
    first = world.require(WORKFLOW, "default", due_name(hardware(world)))
    assert first.metadata.annotations[AGENT_TIMEOUT] == "1800"
    world.set_status(WORKFLOW, first, {"state": "TIMEOUT"})
    world.settle(*BOTH, horizon_s=60)
    second = world.require(WORKFLOW, "default", due_name(hardware(world)))
    assert second.metadata.uid != first.metadata.uid
    due = wipe_due(hardware(world))
    assert due is not None
    assert due.attempt == 2


def test_a_complete_wipe_that_is_retried_may_be_killed_anywhere() -> None:
    world = released(Engine(complete=False, due=("FAILED", "SUCCESS")))
    remove_cluster(world)
    world = crash_check(BOTH, world, horizon_s=HOUR_S)
    assert is_available(world)


def test_what_the_agent_did_not_report_is_no_proof() -> None:
    world = released(Engine(complete=False, due_complete=False))
    remove_cluster(world)
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert "did not report that /dev/sda was completely wiped" in hardware(world).metadata.annotations[HELD]
    assert is_reserved(world)


def test_a_workflow_of_an_earlier_wipe_proves_nothing() -> None:
    world = released()
    uid = hardware(world).metadata.uid
    owner = {"apiVersion": HARDWARE.api_version, "kind": "Hardware", "name": "s0", "uid": uid}
    name = due_name(hardware(world))
    metadata = {
        "namespace": "default", "name": name, "annotations": {WIPE_RUN: "an earlier one"}, "ownerReferences": [owner],
    }  # fmt: skip
    world.environment = Engine(complete=False, due="")
    stale = world.add(WORKFLOW, {"metadata": metadata, "spec": {}, "status": {"state": "SUCCESS"}})
    remove_cluster(world)
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert world.require(WORKFLOW, "default", name).metadata.uid != stale.metadata.uid
    assert not is_available(world)


def test_labels_that_somebody_removed_make_it_available_to_nobody() -> None:
    world = released()
    labels = {LABEL_OWNER_NAME: None, LABEL_OWNER_NAMESPACE: None}
    annotations = {"ironbell.dev/claimed-by": None}
    world.change(HARDWARE, hardware(world), {"metadata": {"labels": labels, "annotations": annotations}})
    other_cluster(world)
    add_other_machine(world)
    world.settle(MACHINES)
    assert not get(world, "n").spec.hardware_name
    world.settle(*BOTH)
    assert is_reserved(world)


def test_a_record_that_nobody_can_read_is_due_and_reserves_for_nobody() -> None:
    world = released(Engine(complete=False, due=""))
    annotate(world, WIPE_DUE, "{")
    add_machine(world, "n")
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert not get(world, "n").spec.hardware_name
    assert world.require(WORKFLOW, "default", due_name(hardware(world)))


def test_a_deleted_hardware_is_wiped_before_it_goes() -> None:
    world = released(Engine(complete=False, due=""))
    world.remove(HARDWARE, hardware(world))
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert world.require(WORKFLOW, "default", due_name(hardware(world)))
    world.environment = Engine()
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert world.get(HARDWARE, "default", "s0") is None


def test_disks_that_the_machine_kept_are_kept_in_the_complete_wipe() -> None:
    world = deferred()
    world.change(TINKERBELL_MACHINE, get(world), {"metadata": {"annotations": {KEEP_DISKS: "X9"}}})
    delete(world)
    world.settle(*BOTH)
    world.environment = Engine(complete=False, due="")
    remove_cluster(world)
    world.settle(*BOTH, horizon_s=HOUR_S)
    workflow = world.require(WORKFLOW, "default", due_name(hardware(world)))
    assert workflow.metadata.annotations[KEEP_DISKS] == "X9"
    assert "WIPE_METHOD: complete" in world.require(TEMPLATE, "default", due_name(hardware(world))).spec.data


def test_a_person_may_decide_that_nothing_is_wiped() -> None:
    world = released()
    annotate(world, WIPE, "none")
    remove_cluster(world)
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert is_available(world)
    assert certificate(world)["wiped"] is False


def test_a_server_without_bmc_waits_for_a_person() -> None:
    world = released(Engine(complete=False, due=""), bmc=False)
    remove_cluster(world)
    world.settle(*BOTH, horizon_s=HOUR_S)
    workflow = world.require(WORKFLOW, "default", due_name(hardware(world)))
    assert workflow.spec.boot_options.boot_mode == ""
    assert any(event.reason == "WaitingForManualAction" for event in world.emitted)
    world.environment = Engine()
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert is_available(world)


def test_a_quick_wipe_that_fails_leaves_a_held_server_with_its_wipe_due() -> None:
    world = released(Engine(complete=False, wipe="FAILED"))
    assert HELD in hardware(world).metadata.annotations
    assert is_reserved(world)


def test_disks_to_keep_that_the_server_does_not_have_are_reported() -> None:
    world = released()
    blocks = [{"name": "sda", "sizeBytes": 10**9, "serialNumber": "S1"}]
    annotate(world, ANNOTATION_AGENT_ATTRIBUTES, msgspec.json.encode({"blockDevices": blocks}).decode())
    annotate(world, KEEP_DISKS, "X9")
    remove_cluster(world)
    world.settle(*BOTH, horizon_s=HOUR_S)
    messages = {one.message for one in world.emitted if one.reason == "KeepDisksUnknown"}
    assert len(messages) == 1
    assert "names X9, which no disk of Hardware s0 has" in messages.pop()
    annotate(world, KEEP_DISKS, None)
    world.settle(*BOTH, horizon_s=HOUR_S)
    assert is_available(world)


def test_a_complete_wipe_that_has_not_begun_is_created_anew_after_a_hold() -> None:
    world = released(Engine(complete=False, due=""))
    remove_cluster(world)
    world.settle(*BOTH, horizon_s=60)
    first = world.require(WORKFLOW, "default", due_name(hardware(world))).metadata.uid
    annotate(world, HELD, "evidence")
    world.settle(*BOTH, horizon_s=3 * HOUR_S)
    assert not world.list(WORKFLOW)
    assert is_reserved(world)
    annotate(world, HELD, None)
    world.settle(*BOTH)
    assert world.require(WORKFLOW, "default", due_name(hardware(world))).metadata.uid != first
    due = wipe_due(hardware(world))
    assert due is not None
    assert due.attempt == 1, "a hold is no attempt that failed"

"""The object that blocks, found from what is stored alone."""

from __future__ import annotations

import pytest

from ironbell.api.cluster import CLUSTER as CLUSTER_KIND
from ironbell.controllers.capi.cluster import endpoint
from ironbell.operations.why.depends import dependencies, queries
from ironbell.operations.why.model import Diagnosis, Link, Object, Ref
from ironbell.operations.why.text import first_line, lines
from ironbell.operations.why.world import World
from support.servers.whyworld import (
    BMC,
    CAPI,
    CAPT,
    CLUSTER,
    KCP,
    NOW,
    OF_ONE,
    PLANE,
    SINCE,
    SOON,
    TINKERBELL,
    answer,
    claimable,
    condition,
    hardware,
    host,
    machine,
    names,
    obj,
    reference,
)


def test_the_deepest_object_that_blocks_is_named_and_the_chain_leads_there() -> None:
    job = obj(BMC, "Job", "boot", condition("Running", "True"), machineRef={"name": "s1", "namespace": "site"})
    bmc = obj(
        BMC,
        "Machine",
        "s1",
        condition("Contactable", "False", "", "BMCAuthenticationFailed: 192.0.2.9: user name or password is rejected"),
        connection={"authSecretRef": {"namespace": "site", "name": "s1-bmc"}},
    )
    workflow = obj(
        TINKERBELL,
        "Workflow",
        "m",
        {**condition("Succeeded", "Unknown", "BootJobRunning", "job boot is not completed"), "time": SINCE},
        hardwareRef="s1",
        status={"state": "PREPARING", "bootOptions": {"jobs": {"boot": {}}}},
    )
    server = hardware(bmcRef={"name": "s1"})
    found = answer(CLUSTER, KCP, machine("m", PLANE), host("m", "Installing", "", "s1"), workflow, job, bmc, server)
    assert names(found) == [
        "Cluster/one",
        "KubeadmControlPlane/cp",
        "Machine/m",
        "TinkerbellMachine/m",
        "Workflow/m",
        "Job/boot",
        "Machine/s1",
    ]
    assert (found.reason, found.since, found.needs_help) == ("BMCAuthenticationFailed", SINCE, True)
    assert first_line(found, NOW) == (
        "BMC Machine site/s1: cannot be used: 192.0.2.9: user name or password is rejected (for 2 min). This ends when "
        "the BMC accepts the login. Correct username and password in Secret site/s1-bmc."
    )
    assert lines(found, NOW)[1] == "  Cluster site/one: NotAvailable, 2 min"
    assert found.plain()["chain"][-1]["group"] == "bmc.tinkerbell.org"


def test_an_address_that_is_not_confirmed_is_named_with_the_command_that_confirms_it() -> None:
    bmc = obj(
        BMC,
        "Machine",
        "s1",
        condition("Contactable", "False", "", "BMCAddressNotConfirmed: what the controller reported"),
        connection={"host": "192.0.2.66", "insecureTLS": True, "authSecretRef": {"name": "s1-bmc"}},
        metadata={"annotations": {"ironbell.dev/bmc-address": "192.0.2.7"}},
    )
    assert first_line(answer(bmc), NOW) == (
        "BMC Machine site/s1: cannot be used: the password of Machine site/s1 is used with the BMC at 192.0.2.7, and "
        "the Machine now names 192.0.2.66: the password is not sent there (for 2 min). This ends when the address is "
        "confirmed or reverted. If that is its BMC, a user who may read the Secret has to confirm it: `kubectl "
        "annotate machines.bmc.tinkerbell.org s1 -n site --overwrite ironbell.dev/bmc-address-confirmed=192.0.2.66`."
    )


def silent_server() -> tuple[Object, Object]:
    silent = condition("Contactable", "False", "", "BMCUnreachable: no answer from 192.0.2.9")
    return hardware(bmcRef={"name": "s1"}), obj(BMC, "Machine", "s1", silent)


def test_a_bmc_that_does_not_answer_blocks_nothing_while_actions_run() -> None:
    runs = obj(
        TINKERBELL,
        "Workflow",
        "m",
        condition("Succeeded", "Unknown", "ActionsRunning", "action 2 of 6"),
        hardwareRef="s1",
        status={"state": "RUNNING"},
    )
    found = answer(host("m", "Installing", "action 2 of 6", "s1"), runs, *silent_server())
    assert (names(found)[-1], found.needs_help) == ("Workflow/m", False)
    waits = answer(host("m", "BMCNotContactable", "its BMC cannot be used", "s1"), *silent_server())
    assert names(waits) == ["TinkerbellMachine/m", "Hardware/s1", "Machine/s1"]


def test_nothing_blocks_a_machine_whose_installed_server_has_a_silent_bmc_or_is_held() -> None:
    up = obj(CAPT, "TinkerbellMachine", "m", condition("Ready", "True"), hardwareName="s1")
    held = hardware(annotations={"ironbell.dev/hold": "smoke"}, bmcRef={"name": "s1"})
    assert answer(up, *silent_server()).is_good
    assert answer(up, held).is_good
    assert answer(held, *silent_server()[1:]).needs_help


def boot_job(*conditions: Object) -> Object:
    return obj(BMC, "Job", "boot", *conditions, machineRef={"name": "s1", "namespace": "site"})


def test_a_boot_job_that_failed_is_not_what_has_to_be_created_again() -> None:
    failed = failed_workflow("", "BootJobFailed", name="m")
    failed["status"]["bootOptions"] = {"jobs": {"boot": {}}}
    failed["metadata"]["labels"] = {"capt.tinkerbell.org/machine-name": "m"}
    bmc = obj(BMC, "Machine", "s1", condition("Contactable", "True"))
    job = boot_job(condition("Failed", "True", "", "BMCRefused: no such boot device"))
    found = answer(host("m", "InstallationFailed", "failed 3 of 3 times", "s1"), hardware(), failed, job, bmc)
    assert found.remedy == "Check the server's BMC, then delete the Machine; its owner creates another"


def test_a_job_that_waits_for_another_one_says_so() -> None:
    bmc = obj(BMC, "Machine", "s1", condition("Contactable", "True"))
    busy = "Waiting for Job other, which uses Machine s1."
    found = answer(boot_job(condition("Running", "False", "", busy)), bmc)
    assert (found.message, found.remedy, found.needs_help) == (f"cannot continue: {busy}", "", False)
    assert answer(boot_job(condition("Running", "True")), bmc).message == "is running"


def test_what_needs_help_comes_before_what_is_under_way() -> None:
    boots, waits = host("a", "Booting", "installed", "s1"), host("b", "WaitingForHardware", "all 12 are claimed")
    found = answer(CLUSTER, KCP, machine("a", PLANE), machine("b", PLANE, "WaitingForHardware"), boots, waits)
    assert names(found)[-1] == "TinkerbellMachine/b"
    assert found.message == "all 12 are claimed"


def test_a_worker_that_waits_for_the_control_plane_leads_to_what_blocks_that() -> None:
    found = answer(
        machine("w", OF_ONE),
        CLUSTER,
        KCP,
        machine("m", PLANE),
        host("w", "WaitingForBootstrapData", "no data"),
        host("m", "HardwareHeld", "held", "s1"),
        hardware(annotations={"ironbell.dev/hold": "smoke"}),
    )
    assert names(found) == [
        "Machine/w",
        "Cluster/one",
        "KubeadmControlPlane/cp",
        "Machine/m",
        "TinkerbellMachine/m",
        "Hardware/s1",
    ]
    assert "smoke" in found.message


def test_a_failure_that_the_installed_system_reported_counts_more_than_that_it_has_not_reported() -> None:
    server = hardware(annotations={"ironbell.dev/claimed-since": "2026-01-01T11:00:00Z"})
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "site", "name": "e"},
        "involvedObject": {"kind": "Hardware", "name": "s1"},
        "reason": "InstalledSystemUpWithErrors",
        "message": "kubeadm failed: port 6443 is in use",
        "lastTimestamp": SINCE,
    }
    found = answer(host("m", "Booting", "the system has not reported yet", "s1"), server, event)
    assert found.reason == "BootstrapFailed"
    assert "port 6443 is in use" in found.message
    earlier = {**event, "lastTimestamp": "2026-01-01T10:00:00Z"}
    found = answer(host("m", "Booting", "the system has not reported yet", "s1"), server, earlier)
    assert found.reason == "Booting", "a report about the previous owner's system"


def failed_workflow(message: str, reason: str = "ActionFailed", *, name: str = "w") -> Object:
    actions = [{"id": "a1", "name": "write", "state": "FAILED", "message": message, "executionStop": SINCE}]
    log = '{"lines":["first","no space left on device"]}'
    return obj(
        TINKERBELL,
        "Workflow",
        name,
        condition("Succeeded", "False", reason, "agent did not come"),
        metadata={"annotations": {"ironbell.dev/log.a1": log}},
        status={"state": "FAILED", "tasks": [{"actions": actions}]},
    )


@pytest.mark.parametrize(
    ("workflow", "words"),
    [
        (failed_workflow("IMG_CHECKSUM is wrong"), 'action "write" failed: IMG_CHECKSUM is wrong'),
        (failed_workflow("action completed"), 'action "write" failed: no space left on device'),
        (failed_workflow("", "AgentNeverCame"), "agent did not come"),
    ],
)
def test_a_failed_workflow_names_its_action_and_what_that_reported(workflow: Object, words: str) -> None:
    found = answer(workflow)
    assert found.message == words
    assert found.remedy


@pytest.mark.parametrize("reason", ["ActionFailed", "AgentNeverCame", "BootJobFailed"])
@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": [{"kind": "TinkerbellMachine", "name": "m"}]},
        {"labels": {"capt.tinkerbell.org/machine-name": "m"}},
    ],
    ids=["beside it", "in another namespace"],
)
def test_the_last_attempt_of_a_machine_is_followed_by_no_other(reason: str, metadata: Object) -> None:
    """The Workflow of an attempt that another one follows is deleted at once."""
    workflow = failed_workflow("no space left on device", reason)
    workflow["metadata"] |= metadata
    found = answer(workflow)
    assert found.ends_when == "the Machine is replaced"
    assert ", then delete the Machine; its owner creates another" in found.remedy
    by_hand = answer(failed_workflow("no space left on device", reason))
    assert by_hand.ends_when == "it is created again"
    assert ", then delete the Workflow and create it again" in by_hand.remedy


def test_a_bmc_that_was_not_contacted_yet_is_not_said_to_be_unreachable() -> None:
    found = answer(obj(BMC, "Machine", "s1"))
    assert (found.message, found.needs_help) == ("has not been contacted yet", False)


def test_a_server_names_its_owner() -> None:
    labels = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "site"}
    found = answer(hardware(metadata={"labels": labels}))
    assert found.is_good
    assert first_line(found, NOW) == "Hardware site/s1: in use by TinkerbellMachine site/m; nothing blocks it."
    assert answer(hardware()).facts == ("It is not claimed.",)


def test_a_claim_is_as_old_as_a_person_would_put_it() -> None:
    labels = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "site"}
    claimed = {"ironbell.dev/claimed-since": "2026-01-01T11:58:00.832703Z"}
    found = answer(hardware(annotations=claimed, metadata={"labels": labels}))
    owner = {"kind": "TinkerbellMachine", "namespace": "site", "name": "m", "time": "2026-01-01T11:58:00Z"}
    assert found.plain()["owner"] == owner
    assert answer(hardware()).plain()["owner"] is None
    assert first_line(found, NOW) == (
        "Hardware site/s1: in use by TinkerbellMachine site/m, claimed for it since 2026-01-01T11:58:00Z; "
        "nothing blocks it."
    )


def test_a_server_that_its_owner_installs_or_wipes_leads_to_what_that_waits_for() -> None:
    labels = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "site"}
    server = hardware(metadata={"labels": labels})
    gone = obj(
        CAPT,
        "TinkerbellMachine",
        "m",
        condition("Ready", "False", "Wiping"),
        hardwareName="s1",
        metadata={"deletionTimestamp": SINCE, "finalizers": ["infrastructure.cluster.x-k8s.io/tinkerbellmachine"]},
    )
    silent = {**condition("Succeeded", "Unknown", "AgentNotSeen", "agent a has not asked"), "time": SINCE}
    wipe = obj(TINKERBELL, "Workflow", "m-wipe", silent, hardwareRef="s1", status={"state": "PENDING"})
    found = answer(server, gone, wipe)
    assert names(found) == ["Hardware/s1", "TinkerbellMachine/m", "Workflow/m-wipe"]
    assert (found.message, found.facts) == ("agent a has not asked", ("In use by TinkerbellMachine site/m.",))
    assert names(answer(wipe, gone, server)) == ["Workflow/m-wipe"], "only from the server itself"
    assert answer(server, host("m", "Installing", "", "s1")).blocking.title == "TinkerbellMachine site/m"
    assert answer(server).is_good, "an owner that does not exist is nothing that blocks the server"


@pytest.mark.parametrize("kind", ["Job", "Task"])
def test_a_job_of_a_bmc_is_not_called_a_machine(kind: str) -> None:
    bmc = obj(BMC, "Machine", "s1", condition("Contactable", "True"))
    found = answer(obj(BMC, kind, "off", machineRef={"name": "s1", "namespace": "site"}), bmc)
    assert first_line(found, NOW).startswith(f"BMC {kind} site/off: is running")


def test_a_message_that_is_a_sentence_ends_once() -> None:
    found = answer(host("m", "Booting", "Installed. Waiting for its Node.", "s1"), hardware())
    assert found.message == "Installed. Waiting for its Node (on server s1)"


def test_a_heading_without_a_list_ends_in_no_colon() -> None:
    drain = condition("Deleting", "True", "DrainingNode", "Drain not completed yet (started at 2026-01-01T11:58:00Z):")
    metadata = {"deletionTimestamp": SINCE, "finalizers": ["machine.cluster.x-k8s.io"]}
    found = answer(obj(CAPI, "Machine", "a", drain, metadata=metadata))
    assert first_line(found, NOW).startswith(
        "Machine site/a: is being deleted: Drain not completed yet (started at 2026-01-01T11:58:00Z) (for 2 min). This"
    )


@pytest.mark.parametrize(
    ("reason", "ends"),
    [
        ("DrainingNode", "its pods have left the Node"),
        ("WaitingForVolumeDetach", "the Node's volumes are detached"),
        ("WaitingForPreDrainHook", "the hook's annotation is removed"),
        ("WaitingForPreTerminateHook", "the hook's annotation is removed"),
        ("WaitingForInfrastructureDeletion", "its dependents are deleted"),
    ],
)
def test_the_deletion_of_a_machine_names_what_ends_its_wait(reason: str, ends: str) -> None:
    metadata = {"deletionTimestamp": SINCE, "finalizers": ["machine.cluster.x-k8s.io"]}
    found = answer(obj(CAPI, "Machine", "a", condition("Deleting", "True", reason, "waits"), metadata=metadata))
    assert found.ends_when == ends


def test_an_object_that_is_referred_to_and_does_not_exist_is_named() -> None:
    found = answer(CLUSTER)
    assert (found.blocking.title, found.message) == ("KubeadmControlPlane site/cp", "does not exist")


def test_a_time_that_is_unknown_is_left_out_of_the_first_line() -> None:
    for time, said in ((SINCE, "waits (for 2 min)."), ("", "waits."), ("yesterday", "waits.")):
        found = Diagnosis((Link("Machine", "cluster.x-k8s.io", "site", "a"),), "waits", since=time)
        assert first_line(found, NOW) == f"Machine site/a: {said}"
    now = Diagnosis((Link("Machine", "cluster.x-k8s.io", "site", "a"),), "waits", since=SINCE)
    assert "(for 0 s)" in first_line(now, SOON), "a time is stored in whole seconds"


def test_only_one_machine_is_followed_for_each_way_of_waiting_first() -> None:
    machines = [machine(f"m{number}", PLANE) for number in range(9)] + [machine("z", PLANE, "InstallationFailed")]
    world = World(lists={query: tuple(machines) for query in queries(KCP)})
    assert dependencies(KCP, "", world)[0] == Ref("cluster.x-k8s.io", "Machine", "site", "z")
    assert len(dependencies(KCP, "", world)) == 4


def test_a_text_without_a_chain_has_the_reason_as_well() -> None:
    found = answer(failed_workflow("IMG_CHECKSUM is wrong"))
    assert lines(found, NOW)[1:] == ["  Workflow site/w: ActionFailed, 2 min"]


@pytest.mark.parametrize(("disk", "has_disk"), [("/dev/sdq", False), ("/dev/vda", True), ("/dev/disk/by-id/x", True)])
def test_a_disk_that_the_server_does_not_have_is_corrected_in_its_hardware(disk: str, has_disk: bool) -> None:
    inventory = '{"blockDevices": [{"name": "vda", "size": "20GB"}]}'
    server = hardware("s1", annotations={"tinkerbell.org/agent-attributes": inventory})
    workflow = failed_workflow("no such disk")
    workflow["spec"] = {"hardwareRef": "s1"}
    workflow["status"]["tasks"][0]["actions"][0]["environment"] = {"DEST_DISK": disk, "IMG_URL": "http://192.0.2.1/x"}
    remedy = answer(workflow, server).remedy
    assert remedy.startswith("Name a disk of this server in spec.disks of Hardware s1, or") is not has_disk
    assert answer(workflow, hardware("s1")).remedy.startswith("Correct the action"), "its inventory is unknown"


def test_an_action_s_message_does_not_decide_its_remedy() -> None:
    workflow = failed_workflow("there is no /dev/sdq; this machine has /dev/vda")
    workflow["spec"] = {"hardwareRef": "s1"}
    assert answer(workflow, hardware("s1")).remedy.startswith("Correct the action in the Template")


def test_a_task_that_failed_names_the_remedy_for_its_last_attempt() -> None:
    attempt = '{"number": 1, "failed": "2026-01-01T11:58:00Z", "trouble": "BMCRefused", "message": "no such device"}'
    failed = condition("Failed", "True", "", "no such device")
    annotations = {"ironbell.dev/attempt": attempt}
    task = obj(BMC, "Task", "boot-task-0", failed, metadata={"annotations": annotations}, task={}, connection={})
    found = answer(task)
    assert (found.message, found.reason) == ("failed: no such device", "BMCRefused")
    assert found.remedy == "Check the BMC's settings, licence and firmware"


@pytest.mark.parametrize("reason", ["NodeImageMissing", "NodeImagesUnknown", "NoNodeImages"])
def test_a_message_about_an_image_is_not_taken_apart(reason: str) -> None:
    message = 'Image "x" is missing: folder "/srv/v1.2. old" has none. Build it with `ironbell image build`.'
    found = answer(host("m", reason, message))
    assert found.message == message
    assert found.remedy
    assert found.needs_help


WAITS = host("m", "WaitingForHardware", "no hardware available")
NEEDS_MEMORY = {**WAITS, "spec": {**WAITS["spec"], "hardwareRequirements": {"memory": "64Ti"}}}
ADDS = ", add Hardware, or release a server"


def test_a_bmc_that_keeps_the_last_server_from_being_claimed_is_in_the_remedy() -> None:
    silent = obj(BMC, "Machine", "b1", condition("Contactable", "False", "", "BMCUnreachable: no route to host"))
    server = claimable(bmcRef={"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "b1"})
    assert answer(WAITS, server, silent).remedy == f"Correct what keeps the BMC from answering{ADDS}"
    responds = {**silent, "status": {"conditions": [condition("Contactable", "True")]}}
    assert answer(WAITS, server, responds).remedy.startswith("Add Hardware"), "an earlier machine claims it"


def test_holds_that_keep_servers_from_being_claimed_are_in_the_remedy() -> None:
    held = [claimable(f"h{number}", annotations={"ironbell.dev/hold": "fan"}) for number in range(2)]
    release = f"Remove annotation ironbell.dev/hold from a server that may be used{ADDS}"
    assert answer(WAITS, *held).remedy == release
    small = [claimable(f"s{number}") for number in range(3)]
    assert answer(NEEDS_MEMORY, *held, *small).remedy.startswith("Add Hardware"), "most servers lack memory"


def test_a_namespace_that_allows_no_claims_is_in_the_remedy() -> None:
    annotations = {"ironbell.dev/claims-from": "other"}
    metadata = {"name": "lab", "namespace": "", "annotations": annotations}
    lab = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    server = claimable()
    server["metadata"]["namespace"] = "lab"
    allow = 'Add "site" to annotation ironbell.dev/claims-from of Namespace "lab"'
    assert answer(WAITS, server, lab).remedy == f"{allow}{ADDS}"
    named = {**lab, "metadata": {**metadata, "annotations": {"ironbell.dev/claims-from": "site"}}}
    assert answer(WAITS, server, named).remedy.startswith("Add Hardware")


def test_the_message_about_missing_servers_does_not_decide_the_remedy() -> None:
    message = "none of 1 Hardware fits: 1: it is held; its BMC does not answer; dhcp.ip.address is empty"
    assert answer(host("m", "WaitingForHardware", message)).remedy.startswith("Add Hardware")


def test_a_server_in_error_names_the_fields_or_the_other_hardware() -> None:
    error = {"annotations": {"ironbell.dev/error": "the error"}}
    invalid = obj(TINKERBELL, "Hardware", "s1", metadata=error, interfaces=[{"dhcp": {"mac": "x"}}])
    invalid["status"]["state"] = "Error"
    assert answer(invalid).remedy == "Correct the named fields; the Hardware is checked again immediately"
    twin = claimable()
    twin["metadata"] |= error
    twin["status"]["state"] = "Error"
    assert answer(twin).remedy == "Correct the value in the Hardware that is wrong, or delete that Hardware"


def test_an_endpoint_that_belongs_to_another_cluster_is_the_cause() -> None:
    taken = {"controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443}}
    owner = CLUSTER_KIND.convert({"metadata": {"namespace": "site", "name": "two"}, "spec": taken})
    message = endpoint.message(CLUSTER_KIND.convert(obj(CAPI, "Cluster", "one")), owner)
    shared = obj(CAPI, "Cluster", "one", condition("InfrastructureReady", "False", "EndpointInUse", message))
    found = answer(shared)
    assert (found.message, found.needs_help) == ("Endpoint 192.0.2.1:6443 belongs to Cluster site/two", True)
    assert found.remedy == "Set another spec.controlPlaneEndpoint on the Cluster, or delete the other Cluster"


def test_a_finalizer_that_none_of_our_controllers_removes_is_named() -> None:
    for finalizers, reason in (
        (["example.com/keep"], "ForeignFinalizer"),
        (["example.com/keep", "machine.cluster.x-k8s.io"], "Deleting"),
        (["foregroundDeletion"], "Deleting"),
    ):
        goes = obj(CAPI, "Machine", "m", metadata={"deletionTimestamp": SINCE, "finalizers": finalizers})
        found = answer(goes)
        assert (found.reason, found.needs_help) == (reason, reason == "ForeignFinalizer")
    first = answer(obj(CAPI, "Machine", "m", metadata={"deletionTimestamp": SINCE, "finalizers": ["example.com/keep"]}))
    assert first.message == "is being deleted and waits for example.com/keep, which another program removes"


@pytest.mark.parametrize(
    "waits",
    [
        obj(CAPT, "TinkerbellMachine", "m", condition("Ready", "True")),
        obj(BMC, "Machine", "m", condition("Contactable", "True")),
        obj(TINKERBELL, "Workflow", "m", status={"state": "SUCCESS"}),
        obj(TINKERBELL, "Template", "m"),
    ],
    ids=lambda one: one["kind"],
)
def test_an_object_that_is_done_and_being_deleted_waits_for_its_finalizers(waits: Object) -> None:
    meta = {**waits["metadata"], "deletionTimestamp": SINCE, "finalizers": ["example.com/keep"]}
    assert answer({**waits, "metadata": meta}).reason == "ForeignFinalizer"


def test_a_topology_that_cannot_be_reconciled_comes_before_what_is_under_way() -> None:
    message = "variable workers is required"
    failed = condition("TopologyReconciled", "False", "ReconcileFailed", message)
    of_class = {
        **CLUSTER,
        "spec": {**CLUSTER["spec"], "topology": {"classRef": {"name": "small"}}},
        "status": {"conditions": [failed]},
    }
    small = obj(CAPI, "ClusterClass", "small", condition("VariablesReconciled", "True"))
    found = answer(
        of_class, small, KCP, machine("m", PLANE), host("m", "Installing", "action 1 of 6", "s1"), hardware()
    )
    assert (names(found), found.message) == (["Cluster/one"], message)
    assert found.remedy == "Correct spec.topology of the Cluster, or its ClusterClass"
    missing = answer(of_class, KCP)
    assert (names(missing), missing.message) == (["Cluster/one", "ClusterClass/small"], "does not exist")


def test_an_object_that_is_paused_with_its_cluster_leads_there() -> None:
    paused = condition("Paused", "True", "Paused", "Cluster spec.paused is set to true")
    halted = {**CLUSTER, "spec": {**CLUSTER["spec"], "paused": True}}
    up = obj(
        CAPI, "Machine", "m", condition("Available", "True"), paused, metadata={"labels": OF_ONE}, clusterName="one"
    )
    found = answer(up, halted, KCP)
    assert (names(found), found.remedy) == (["Machine/m", "Cluster/one"], "Set spec.paused to false")


def test_a_rollout_that_is_paused_is_not_under_way() -> None:
    rolls = condition("RollingOut", "True", "RollingOut", "Rolling out 3 not up-to-date replicas")
    found = answer(obj(CAPI, "MachineDeployment", "md", condition("Available", "True"), rolls, paused=True))
    assert (found.reason, found.remedy) == ("RolloutPaused", "Set spec.paused to false")
    other = answer(obj(CAPI, "MachineDeployment", "md", condition("Available", "True"), rolls))
    assert (other.reason, other.ends_when) == ("RollingOut", "condition RollingOut is False")


def test_what_keeps_machines_from_being_created_is_the_cause() -> None:
    scaling = condition("ScalingUp", "True", "ScalingUp", "Scaling up from 0 to 1 replicas")
    template = reference(CAPT, "TinkerbellMachineTemplate", "small")
    plane = {
        **KCP,
        "spec": {"machineTemplate": {"spec": {"infrastructureRef": template}}},
        "status": {"conditions": [condition("Available", "False"), scaling]},
    }
    found = answer(CLUSTER, plane)
    assert found.blocking.title == "TinkerbellMachineTemplate site/small"
    assert (found.message, found.needs_help) == ("does not exist", True)
    exists = obj(CAPT, "TinkerbellMachineTemplate", "small")
    assert not answer(CLUSTER, plane, exists).needs_help


@pytest.mark.parametrize(
    ("reason", "is_rejected"), [("MachineCreationFailed", True), ("PreflightCheckFailed", False), ("", False)]
)
def test_a_machine_that_the_api_rejects_is_the_cause(reason: str, is_rejected: bool) -> None:
    labels = {**OF_ONE, "cluster.x-k8s.io/deployment-name": "md"}
    refused = "Scaling up from 0 to 2 replicas is blocked because:\n* Machine md-x could not be created: quota exceeded"
    scaling = condition("ScalingUp", "True", "ScalingUp", "Scaling up from 0 to 2 replicas")
    deployment = obj(
        CAPI, "MachineDeployment", "md", condition("Available", "False"), scaling, metadata={"labels": OF_ONE}
    )
    legacy = condition("MachinesCreated", "False" if reason else "True", reason)
    below = obj(
        CAPI,
        "MachineSet",
        "md-x",
        condition("Available", "False"),
        condition("ScalingUp", "True", "", refused),
        metadata={"labels": labels},
        status={"deprecated": {"v1beta1": {"conditions": [legacy]}}},
    )
    found = answer(deployment, below)
    assert names(found) == ["MachineDeployment/md", "MachineSet/md-x"]
    assert ("quota exceeded" in found.message) is found.needs_help is is_rejected


def test_nothing_below_a_paused_object_is_the_cause() -> None:
    halted = {**CLUSTER, "spec": {**CLUSTER["spec"], "paused": True}}
    waits = host("m", "WaitingForHardware", "all 12 Hardware are claimed")
    found = answer(halted, KCP, machine("m", PLANE, "WaitingForHardware"), waits)
    assert (names(found), found.message) == (["Cluster/one"], "is paused: spec.paused is true")


def test_what_a_deletion_has_removed_does_not_block_it() -> None:
    meta = {**CLUSTER["metadata"], "deletionTimestamp": SINCE, "finalizers": ["cluster.cluster.x-k8s.io"]}
    found = answer({**CLUSTER, "metadata": meta})
    assert (names(found), found.reason) == (["Cluster/one"], "Deleting")


def test_a_machine_has_the_message_of_its_condition_ready() -> None:
    ready = condition("Ready", "False", "NotReady", "* InfrastructureReady: the machine is starting")
    found = answer(obj(CAPI, "Machine", "m", condition("Available", "False", "NotReady"), ready))
    assert found.message == "InfrastructureReady: the machine is starting"

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.bmc.job import JOB
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.template import TEMPLATE
from ironbell.api.tinkerbell.workflow import WORKFLOW
from ironbell.base.clock import parse_rfc3339
from ironbell.controllers.tink.names import FINALIZER_CLEANUP
from ironbell.controllers.tink.render import RenderArguments, derived_ulid, rendered
from ironbell.kube.decision import MergePatch
from ironbell.kube.testing import crash_check
from support.servers.rendering import InProcess, at_once

NETBOOT = {"toggleAllowNetboot": True, "bootMode": "netboot"}


def test_without_boot_options_a_workflow_is_rendered_and_waits_for_its_agent(scene: Any) -> None:
    scene.template("timeout 90\ninstall aa:bb: stream=30, write")
    scene.hardware()
    scene.workflow()
    status = scene.settled().status
    assert (status.state, status.agent_id, status.template_rendering) == ("PENDING", "aa:bb", "successful")
    assert status.global_timeout == 90
    assert [(a.name, a.state, a.timeout) for a in status.tasks[0].actions] == [
        ("stream", "PENDING", 30),
        ("write", "PENDING", 0),
    ]
    assert scene.condition("TemplateRenderedSuccess").reason == "Complete"
    assert scene.condition().reason == "AgentNotSeen"
    assert scene.pxe() == [False, None]


def test_ids_are_ulids_that_differ_and_stay_the_same_when_rendered_again(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow()
    twin = scene.world.copy()
    status = scene.settled().status
    ids = [status.tasks[0].id, *(a.id for a in status.tasks[0].actions)]
    assert len(set(ids)) == 3
    assert all(len(one) == 26 and one[0] in "01234567" for one in ids)
    twin.clock.advance(60)
    twin.settle(scene.reconciler)
    assert twin.require(WORKFLOW, "default", "wf").status.tasks == status.tasks


def test_a_derived_ulid_carries_the_creation_time() -> None:
    text = derived_ulid(parse_rfc3339("2016-07-30T23:54:10Z"), "x")
    value = 0
    for digit in text[:10]:
        value = value * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(digit)
    assert value == 1469922850_000


@pytest.mark.parametrize(
    ("missing", "reason", "condition"),
    [
        ("template", "TemplateNotFound", "template not found"),
        ("hardware", "HardwareNotFound", "hardware not found: m1"),
    ],
)
def test_a_workflow_waits_for_what_it_refers_to_and_starts_when_it_appears(
    scene: Any, missing: str, reason: str, condition: str
) -> None:
    scene.workflow()
    if missing != "template":
        scene.template()
    if missing != "hardware":
        scene.hardware()
    status = scene.settled().status
    assert (status.state, scene.condition().status, scene.condition().reason) == ("", "Unknown", reason)
    assert scene.condition("TemplateRenderedSuccess").message == condition
    getattr(scene, missing)()
    assert scene.settled().status.state == "PENDING"
    assert scene.condition("TemplateRenderedSuccess").status == "True"


def test_an_empty_template_reference_says_which_field_to_fill(scene: Any) -> None:
    scene.workflow(templateRef="")
    scene.settle()
    assert "spec.templateRef" in scene.condition().message


def test_a_workflow_without_hardware_needs_none(scene: Any) -> None:
    scene.template("install device_1: a")
    scene.workflow(hardwareRef="", hardwareMap={"device_1": "cc:dd"})
    assert scene.settled().status.agent_id == "cc:dd"


def test_defect_6_a_template_that_does_not_render_ends_failed_with_the_line(scene: Any) -> None:
    scene.template("install a: b\nerror")
    scene.hardware()
    scene.workflow()
    status = scene.settled().status
    assert (status.state, status.template_rendering) == ("FAILED", "failed")
    assert "line 2" in scene.condition().message
    assert scene.condition().reason == "TemplateNotRendered"
    assert "line 2" in scene.condition("TemplateRenderedSuccess").message
    assert "TemplateNotRendered" in scene.events()


@pytest.mark.parametrize("data", ["timeout 5", "install aa:"])
def test_a_document_without_actions_would_never_end_and_is_refused(scene: Any, data: str) -> None:
    scene.template(data)
    scene.hardware()
    scene.workflow()
    assert scene.settled().status.state == "FAILED"
    assert "tasks" in scene.condition().message


def test_failed_is_terminal_even_when_the_template_is_mended(scene: Any) -> None:
    template = scene.template("error")
    scene.hardware()
    scene.workflow()
    scene.settle()
    scene.world.change(TEMPLATE, template, {"spec": {"data": "install a: b"}})
    assert scene.settled().status.state == "FAILED"


def test_a_workflow_in_the_state_of_old_releases_starts(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.world.set_status(WORKFLOW, scene.workflow(), {"state": "STATE_PENDING"})
    assert scene.settled().status.state == "PENDING"


def test_a_disabled_workflow_stays_new_but_its_agent_is_known(scene: Any) -> None:
    scene.template()
    scene.hardware()
    workflow = scene.workflow(disabled=True)
    status = scene.settled().status
    assert (status.state, status.agent_id, status.tasks) == ("", "02:00:00:00:00:01", [])
    assert scene.condition().reason == "Disabled"
    rendered = len(scene.world.performed)
    scene.settle()
    assert len(scene.world.performed) == rendered
    scene.world.change(WORKFLOW, workflow, {"spec": {"disabled": False}})
    assert scene.settled().status.state == "PENDING"


def test_a_disabled_workflow_finds_its_agent_anew_when_the_template_changes(scene: Any) -> None:
    template = scene.template("error")
    scene.hardware()
    scene.workflow(disabled=True)
    assert scene.settled().status.agent_id == ""
    assert scene.condition("TemplateRenderedSuccess").status == "False"
    scene.world.change(TEMPLATE, template, {"spec": {"data": "install ee:ff: b"}})
    assert scene.settled().status.agent_id == "ee:ff"


def test_the_disabled_annotation_stops_everything(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(annotations={"tinkerbell.org/disabled": "maintenance"})
    before = scene.world.api.version
    scene.settle()
    assert scene.world.api.version == before


def test_netboot_is_allowed_on_all_interfaces_and_the_boot_job_is_made(scene: Any) -> None:
    scene.template()
    scene.hardware(uefi=True)
    scene.workflow(bootOptions=NETBOOT)
    status = scene.settled().status
    assert status.state == "PREPARING"
    assert scene.pxe() == [True, True]
    hardware = scene.world.api.objects[HARDWARE.collection]["default", "m1"]
    assert hardware["spec"]["interfaces"][0]["netboot"] == {"allowPXE": True, "allowWorkflow": True}
    assert FINALIZER_CLEANUP in scene.current.metadata.finalizers
    (job,) = scene.jobs()
    assert job.metadata.name == "netboot-wf"
    assert job.metadata.owner_references[0].name == "wf"
    assert job.metadata.labels == {"tink-controller-auto-created": "true"}
    assert (job.spec.machine_ref.name, job.spec.machine_ref.namespace) == ("bmc1", "default")
    body = scene.world.api.objects[JOB.collection][job.key]
    assert body["spec"]["tasks"] == [
        {"powerAction": "off"},
        {"oneTimeBootDeviceAction": {"device": ["pxe"], "efiBoot": True}},
        {"powerAction": "on"},
    ]
    assert status.boot_options.jobs["netboot-wf"].uid == job.metadata.uid
    assert scene.condition("AllowNetbootTrue").message == "set allowPXE to true"
    assert scene.condition("BootJobSetupComplete").reason == "Created"
    assert scene.condition().reason == "BootJobRunning"
    scene.end_job("netboot-wf")
    assert scene.settled().status.state == "PENDING"
    assert scene.current.status.boot_options.jobs["netboot-wf"].complete
    assert scene.condition("BootJobComplete").message == "job completed"


def test_defect_1_the_boot_job_is_created_once_wherever_the_controller_dies(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(bootOptions=NETBOOT)
    end = crash_check(scene.reconciler, scene.world)
    assert len(end.list(JOB)) == 1
    creations = [e for where, _, e in end.api.history if where == JOB.collection and e.type.value == "ADDED"]
    assert len(creations) == 1


def test_a_job_left_by_an_earlier_workflow_of_the_name_is_replaced(scene: Any) -> None:
    scene.template()
    scene.hardware()
    owner = {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Workflow",
        "name": "wf",
        "uid": "gone",
        "controller": True,
    }
    stale = {
        "metadata": {"name": "netboot-wf", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"machineRef": {"name": "bmc1", "namespace": "default"}, "tasks": [{"powerAction": "on"}]},
        "status": {"conditions": [{"type": "Completed", "status": "True"}]},
    }
    old = scene.world.add(JOB, stale)
    scene.workflow(bootOptions=NETBOOT)
    end = crash_check(scene.reconciler, scene.world)
    (job,) = end.list(JOB)
    assert job.metadata.uid != old.metadata.uid
    assert end.require(WORKFLOW, "default", "wf").status.state == "PREPARING"


def test_a_boot_job_that_fails_ends_the_workflow_with_the_bmcs_reason_and_forbids_netboot(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(bootOptions=NETBOOT)
    scene.settle()
    scene.end_job("netboot-wf", "Failed", "task default/netboot-wf-task-0 failed: wrong password")
    status = scene.settled().status
    assert status.state == "FAILED"
    assert "wrong password" in scene.condition().message
    assert scene.condition("BootJobFailed").status == "True"
    assert scene.pxe() == [False, False]
    assert scene.condition("AllowNetbootFalse").status == "True"
    assert scene.current.metadata.finalizers == []


def test_a_boot_job_that_disappears_is_not_made_again(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(bootOptions=NETBOOT)
    scene.settle()
    scene.world.remove(JOB, scene.jobs()[0])
    assert scene.settled().status.state == "FAILED"
    assert "deleted" in scene.condition().message
    assert scene.jobs() == []


def test_defect_4_without_bmc_a_boot_mode_ends_failed_before_anything_is_touched(scene: Any) -> None:
    scene.template()
    scene.hardware(bmc="")
    scene.workflow(bootOptions=NETBOOT)
    assert scene.settled().status.state == "FAILED"
    assert (scene.condition().reason, "spec.bmcRef" in scene.condition().message) == ("NoBMC", True)
    assert scene.pxe() == [False, None]


def test_a_bmc_that_two_hardware_name_is_never_switched(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.hardware("other")
    scene.workflow(bootOptions=NETBOOT)
    assert scene.settled().status.state == "FAILED"
    assert (scene.condition().reason, "Hardware other" in scene.condition().message) == ("BMCShared", True)
    assert scene.jobs() == []


@pytest.mark.parametrize("mode", ["iso", "isoboot"])
def test_an_empty_iso_address_ends_failed_naming_the_field(scene: Any, mode: str) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(bootOptions={"bootMode": mode})
    assert scene.settled().status.state == "FAILED"
    assert "spec.bootOptions.isoURL" in scene.condition("BootJobSetupFailed").message


def test_iso_boot_ejects_inserts_and_boots_the_drive(scene: Any) -> None:
    scene.template()
    scene.hardware(uefi=False)
    scene.workflow(bootOptions={"bootMode": "isoboot", "isoURL": "http://a/b.iso"})
    scene.settle()
    tasks = scene.world.api.objects[JOB.collection]["default", "iso-mount-wf"]["spec"]["tasks"]
    assert tasks == [
        {"powerAction": "off"},
        {"virtualMediaAction": {"kind": "CD"}},
        {"virtualMediaAction": {"mediaURL": "http://a/b.iso", "kind": "CD"}},
        {"oneTimeBootDeviceAction": {"device": ["cdrom"]}},
        {"powerAction": "on"},
    ]


def test_defect_2_customboot_without_preparing_actions_goes_on(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(bootOptions={"bootMode": "customboot", "custombootConfig": {"preparingActions": []}})
    assert scene.settled().status.state == "PENDING"


def test_customboot_fills_in_media_addresses(scene: Any) -> None:
    scene.template()
    scene.hardware()
    media = {"virtualMediaAction": {"mediaURL": "http://a/{{ .Hardware.Name }}.iso", "kind": "CD"}}
    scene.workflow(bootOptions={"bootMode": "customboot", "custombootConfig": {"preparingActions": [media]}})
    end = crash_check(scene.reconciler, scene.world)
    (job,) = end.list(JOB)
    assert job.spec.tasks[0].virtual_media_action.media_url == "http://a/m1.iso"


def test_customboot_that_does_not_render_ends_failed(scene: Any) -> None:
    scene.template()
    scene.hardware()
    media = {"virtualMediaAction": {"mediaURL": "http://a/{{ .missing }}", "kind": "CD"}}
    scene.workflow(bootOptions={"bootMode": "customboot", "custombootConfig": {"preparingActions": [media]}})
    assert scene.settled().status.state == "FAILED"
    assert "line 1" in scene.condition().message


def test_boot_options_without_hardware_end_failed_naming_the_field(scene: Any) -> None:
    scene.template()
    scene.workflow(hardwareRef="", bootOptions=NETBOOT)
    assert scene.settled().status.state == "FAILED"
    assert "spec.hardwareRef" in scene.condition().message


def test_an_unknown_boot_mode_ends_failed(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(bootOptions={"bootMode": "floppy"})
    assert scene.settled().status.state == "FAILED"
    assert "floppy" in scene.condition().message


FORBIDDEN = [{"dhcp": {"mac": "02:00:00:00:00:01", "uefi": True}, "netboot": {"allowWorkflow": False}}]
ALLOWED = [{"dhcp": {"mac": "02:00:00:00:00:01", "uefi": True}, "netboot": {"allowWorkflow": True}}]


def test_a_workflow_does_not_start_on_a_server_that_allows_none_and_starts_once_it_does(scene: Any) -> None:
    scene.template()
    scene.hardware(interfaces=FORBIDDEN)
    scene.workflow(bootOptions=NETBOOT)
    assert scene.settled().status.state == ""
    said = scene.condition()
    assert (said.status, said.reason) == ("Unknown", "WorkflowNotAllowed")
    assert "spec.interfaces[0].netboot.allowWorkflow" in said.message
    assert "set it to true" in said.message
    assert not scene.jobs(), "the machine is not switched on"
    hardware = scene.world.require(HARDWARE, "default", "m1")
    scene.world.change(HARDWARE, hardware, {"spec": {"interfaces": ALLOWED}})
    assert scene.settled().status.state == "PREPARING"
    assert scene.condition().reason == "BootJobRunning"


def test_a_workflow_that_waits_for_its_agent_says_that_it_is_not_allowed(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow()
    assert scene.settled().status.state == "PENDING"
    hardware = scene.world.require(HARDWARE, "default", "m1")
    scene.world.change(HARDWARE, hardware, {"spec": {"interfaces": FORBIDDEN}})
    assert scene.settled().status.state == "PENDING"
    assert scene.condition().reason == "WorkflowNotAllowed"
    scene.world.change(HARDWARE, scene.world.require(HARDWARE, "default", "m1"), {"spec": {"interfaces": ALLOWED}})
    scene.settle()
    assert scene.condition().reason == "AgentNotSeen"
    scene.report(0, "RUNNING")
    scene.world.change(HARDWARE, scene.world.require(HARDWARE, "default", "m1"), {"spec": {"interfaces": FORBIDDEN}})
    scene.settle()
    assert scene.condition().reason == "ActionsRunning", "what has begun goes on"


def test_fields_of_a_document_that_have_no_effect_are_listed_on_the_workflow(scene: Any) -> None:
    text = "name: x\ntasks: [{name: os, worker: m, actions: [{name: a, image: reboot, on-failure: [sh]}]}]"
    scene.template(text)
    scene.hardware()
    workflow = scene.workflow()
    template = scene.world.require(TEMPLATE, "default", "t")
    for action in at_once(rendered(InProcess(), RenderArguments(workflow, template, None, scene.now()))):
        if isinstance(action, MergePatch) and action.subresource == "status":
            scene.world.set_status(WORKFLOW, workflow, action.body["status"])
    found = scene.condition("FieldsWithoutEffect")
    assert found.status == "True"
    assert found.message.startswith(
        "tasks[0].actions[0].on-failure has no effect: a Workflow ends with the first action"
    )
    assert scene.condition().reason == "AgentNotSeen"


def test_an_installation_does_not_start_on_a_held_server_and_starts_once_the_hold_is_removed(scene: Any) -> None:
    scene.template()
    scene.hardware()
    workflow = scene.workflow(bootOptions=NETBOOT)
    hold(scene, "evidence")
    scene.world.change(WORKFLOW, workflow, {"metadata": {"labels": {"capt.tinkerbell.org/machine-name": "m"}}})
    assert scene.settled().status.state == ""
    assert (scene.condition().status, scene.condition().reason) == ("Unknown", "HardwareHeld")
    assert 'Hardware "m1" is held (evidence)' in scene.condition().message
    assert not scene.jobs(), "the machine is not switched on"
    hold(scene, None)
    assert scene.settled().status.state == "PREPARING"
    assert scene.condition().reason == "BootJobRunning"


def test_a_persons_own_workflow_starts_on_a_held_server(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(bootOptions=NETBOOT)
    hold(scene, "repair")
    assert scene.settled().status.state == "PREPARING"


def hold(scene: Any, reason: str | None) -> None:
    hardware = scene.world.require(HARDWARE, "default", "m1")
    scene.world.change(HARDWARE, hardware, {"metadata": {"annotations": {"ironbell.dev/hold": reason}}})

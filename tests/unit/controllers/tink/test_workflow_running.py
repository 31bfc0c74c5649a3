from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from ironbell.api.bmc.job import JOB
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.contract.servers.boot_token import Record, annotation
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_FAILED
from ironbell.controllers.tink import history
from ironbell.controllers.tink.workflow import OWN
from ironbell.kube.testing import World, crash_check
from ironbell.provisioner.installed_system import SystemFailure, encoded

NETBOOT = {"toggleAllowNetboot": True, "bootMode": "netboot"}
ISO = {"toggleAllowNetboot": True, "bootMode": "isoboot", "isoURL": "http://a/b.iso"}


def started(scene: Any, data: str = "install m: stream=100, write", **spec: Any) -> None:
    scene.template(data)
    scene.hardware()
    scene.workflow(**spec)
    scene.settle()
    for job in scene.jobs():
        scene.end_job(job.metadata.name)
    scene.settle()
    assert scene.current.status.state == "PENDING"


def test_a_workflow_runs_to_success_and_takes_back_what_it_changed(scene: Any) -> None:
    started(scene, bootOptions=NETBOOT)
    assert scene.pxe() == [True, True]
    scene.report(0, "RUNNING")
    scene.settle()
    assert (scene.condition().reason, scene.condition().status) == ("ActionsRunning", "Unknown")
    scene.report(0, "SUCCESS")
    scene.settle()
    scene.report(1, "SUCCESS")
    status = scene.settled().status
    assert status.state == "SUCCESS"
    assert (scene.condition().status, scene.condition().reason) == ("True", "Complete")
    assert scene.pxe() == [False, False]
    assert scene.current.metadata.finalizers == []
    assert scene.condition("AllowNetbootFalse").message == "set allowPXE to false"
    assert [r for r in scene.events() if r != "BootJobRunning"] == [
        "Preparing",
        "AgentNotSeen",
        "ActionsRunning",
        "Complete",
    ]


def test_the_hardware_names_the_workflow_that_it_boots_for_until_that_has_ended(scene: Any) -> None:
    started(scene, bootOptions=NETBOOT)
    workflow = scene.current
    named = scene.world.require(HARDWARE, "default", "m1").metadata.annotations
    uid, _, since = named["ironbell.dev/boot-for"].partition(" ")
    assert uid == workflow.metadata.uid
    assert parse_rfc3339(since) <= scene.now()
    for number in (0, 1):
        scene.report(number, "SUCCESS")
        scene.settle()
    assert "ironbell.dev/boot-for" not in scene.world.require(HARDWARE, "default", "m1").metadata.annotations


@pytest.mark.parametrize("is_running", [False, True])
def test_a_boot_whose_token_is_revoked_fails_the_workflow(scene: Any, is_running: bool) -> None:
    started(scene, bootOptions=NETBOOT)
    workflow = scene.current
    if is_running:
        scene.report(0, "RUNNING")
        scene.settle()
    for boot, state in (("another", scene.current.status.state), (workflow.metadata.uid, "FAILED")):
        record = annotation(Record(boot=boot, revoked="asked for twice"))
        hardware = scene.world.require(HARDWARE, "default", "m1")
        scene.world.change(HARDWARE, hardware, {"metadata": {"annotations": record}})
        assert scene.settled().status.state == state
    assert (scene.condition().reason, scene.condition().message) == ("BootTokenRevoked", "asked for twice")
    assert scene.pxe() == [False, False]


def test_a_wait_for_the_agent_says_what_is_wrong_with_the_hardware(scene: Any) -> None:
    started(scene)

    def hardware() -> Any:
        return scene.world.require(HARDWARE, "default", "m1")

    twins = "disk serial s1 is claimed by several Hardware (default/m1, default/twin)"
    scene.world.change(HARDWARE, hardware(), {"metadata": {"annotations": {"ironbell.dev/error": twins}}})
    scene.world.set_status(HARDWARE, hardware(), {"state": "Error"})
    scene.settle()
    assert (scene.condition().reason, scene.condition().message) == ("HardwareError", f"Hardware m1: {twins}")
    scene.world.set_status(HARDWARE, hardware(), {"state": "Ready"})
    scene.settle()
    assert scene.condition().reason == "AgentNotSeen"


def test_the_whole_way_survives_a_crash_anywhere(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(bootOptions=ISO)
    scene.world.environment = bmc_and_agent
    end = crash_check(scene.reconciler, scene.world)
    assert end.require(WORKFLOW, "default", "wf").status.state == "SUCCESS"
    assert sorted(job.metadata.name for job in end.list(JOB)) == ["iso-eject-wf", "iso-mount-wf"]
    assert not end.errors


def test_a_failure_on_the_way_survives_a_crash_anywhere(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(bootOptions=ISO)
    scene.world.environment = bmc_and_failing_agent
    end = crash_check(scene.reconciler, scene.world)
    assert end.require(WORKFLOW, "default", "wf").status.state == "FAILED"
    hardware = end.require(HARDWARE, "default", "m1")
    assert [i.netboot.allow_pxe for i in hardware.spec.interfaces] == [False, False]
    assert end.require(JOB, "default", "iso-eject-wf").spec.tasks[0].virtual_media_action.media_url == ""


def bmc_and_agent(world: World, outcome: str = "SUCCESS") -> None:
    for job in world.list(JOB):
        if not job.status.conditions:
            world.set_status(JOB, job, {"conditions": [{"type": "Completed", "status": "True"}]})
    workflow = world.require(WORKFLOW, "default", "wf")
    if workflow.status.state not in ("PENDING", "RUNNING"):
        return
    tasks = [dict(_plain(task)) for task in workflow.status.tasks]
    actions = tasks[0]["actions"]
    number = next(n for n, action in enumerate(actions) if action["state"] != "SUCCESS")
    actions[number] = {**actions[number], "state": outcome, "message": "as told"}
    moved = ("POST" if number == len(actions) - 1 else "RUNNING") if outcome == "SUCCESS" else outcome
    current = {"agentID": tasks[0]["agentID"], "taskID": tasks[0]["id"], "actionID": actions[number]["id"]}
    world.set_status(
        WORKFLOW, workflow, {"state": moved, "tasks": tasks, "currentState": {**current, "state": outcome}}
    )


def bmc_and_failing_agent(world: World) -> None:
    bmc_and_agent(world, "FAILED")


def _plain(task: Any) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(task)
    return plain


def test_defect_3_without_a_global_timeout_there_is_no_deadline(scene: Any) -> None:
    started(scene, "install m: stream, write")
    scene.report(0, "RUNNING")
    status = scene.settled(horizon_s=1e6).status
    assert (status.state, status.global_execution_stop) == ("RUNNING", None)


def test_defect_3_the_global_timeout_starts_with_the_first_action_and_is_enforced(scene: Any) -> None:
    started(scene, "timeout 300\ninstall m: stream, write", bootOptions=NETBOOT)
    scene.world.clock.advance(5000)
    assert scene.settled().status.state == "PENDING"
    scene.report(0, "RUNNING")
    began = scene.now()
    status = scene.settled().status
    assert parse_rfc3339(status.global_execution_stop) == began + timedelta(seconds=300)
    scene.world.clock.advance(299)
    assert scene.settled().status.state == "RUNNING"
    status = scene.settled(horizon_s=10).status
    assert status.state == "TIMEOUT"
    assert (scene.condition().reason, "300 s" in scene.condition().message) == ("GlobalTimeout", True)
    assert (status.tasks[0].actions[0].state, status.current_state.state) == ("TIMEOUT", "TIMEOUT")
    assert scene.pxe() == [False, False]


def test_an_action_whose_machine_vanished_times_out(scene: Any) -> None:
    started(scene, "install m: stream=100, write")
    scene.report(0, "RUNNING")
    scene.settle()
    scene.world.clock.advance(159)
    assert scene.settled().status.state == "RUNNING"
    status = scene.settled(horizon_s=5).status
    assert status.state == "TIMEOUT"
    assert scene.condition().reason == "ActionTimeout"
    assert "action stream of task install" in scene.condition().message
    assert "Check the server's power and network" in status.tasks[0].actions[0].message


def test_a_wrong_clock_of_the_machine_times_nothing_out(scene: Any) -> None:
    started(scene, "install m: stream=100, write")
    scene.report(0, "RUNNING")
    tasks = scene.world.api.objects[WORKFLOW.collection]["default", "wf"]["status"]["tasks"]
    tasks[0]["actions"][0]["executionStart"] = rfc3339(scene.now() - timedelta(days=4000))
    assert scene.settled(horizon_s=100).status.state == "RUNNING"


def test_an_action_that_began_anew_unseen_gets_its_whole_time_again(scene: Any) -> None:
    started(scene, "install m: stream=100, write")
    scene.report(0, "RUNNING")
    scene.settle()
    scene.world.clock.advance(90)
    tasks = scene.world.api.objects[WORKFLOW.collection]["default", "wf"]["status"]["tasks"]
    tasks[0]["actions"][0]["executionStart"] = rfc3339(scene.now())
    scene.report(0, "RUNNING", "resumed")
    scene.world.clock.advance(150)
    assert scene.settled().status.state == "RUNNING"
    assert scene.settled(horizon_s=15).status.state == "TIMEOUT"


def test_a_begin_in_the_future_moves_no_deadline(scene: Any) -> None:
    started(scene, "install m: stream=100, write")
    scene.report(0, "RUNNING")
    tasks = scene.world.api.objects[WORKFLOW.collection]["default", "wf"]["status"]["tasks"]
    tasks[0]["actions"][0]["executionStart"] = rfc3339(scene.now() + timedelta(days=4000))
    assert scene.settled(horizon_s=165).status.state == "TIMEOUT"


def test_the_second_action_gets_its_own_time(scene: Any) -> None:
    started(scene, "install m: stream=100, write=100")
    scene.report(0, "RUNNING")
    scene.settle()
    scene.world.clock.advance(90)
    scene.report(0, "SUCCESS")
    scene.settle()
    scene.report(1, "RUNNING")
    scene.settle()
    scene.world.clock.advance(150)
    assert scene.settled().status.state == "RUNNING"
    assert scene.settled(horizon_s=60).status.state == "TIMEOUT"


def test_an_agent_that_is_silent_between_two_actions_times_out(scene: Any) -> None:
    started(scene)
    scene.report(0, "SUCCESS")
    scene.settle()
    scene.world.clock.advance(1700)
    assert scene.settled().status.state == "RUNNING"
    assert scene.settled(horizon_s=200).status.state == "TIMEOUT"
    assert scene.condition().reason == "AgentSilent"


def test_a_pending_workflow_waits_for_ever_unless_an_annotation_says_otherwise(scene: Any) -> None:
    started(scene)
    assert scene.settled(horizon_s=1e7).status.state == "PENDING"
    annotation = {"metadata": {"annotations": {"ironbell.dev/agent-timeout": "600"}}}
    scene.world.change(WORKFLOW, scene.current, annotation)
    assert scene.settled(horizon_s=700).status.state == "TIMEOUT"
    assert scene.condition().reason == "AgentNeverCame"


@pytest.mark.parametrize("text", ["0", "-5", "soon", "1e3"])
def test_an_agent_timeout_that_is_no_number_is_none(scene: Any, text: str) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(annotations={"ironbell.dev/agent-timeout": text})
    assert scene.settled(horizon_s=1e6).status.state == "PENDING"


def test_an_agent_that_fetched_the_first_action_and_died_times_out(scene: Any) -> None:
    started(scene)
    scene.report(0, "PENDING")
    assert scene.settled(horizon_s=1900).status.state == "TIMEOUT"
    assert scene.condition().reason == "AgentSilent"


def test_what_an_agent_works_at_is_told_now_and_then_and_what_follows_from_it_at_once() -> None:
    def body(state: str, *actions: str, **more: Any) -> Workflow:
        tasks = [
            {
                "id": f"t{n}",
                "agentID": f"m{n}",
                "actions": [{"id": f"a{n}{m}", "state": one} for m, one in enumerate(task)],
            }
            for n, task in enumerate([actions[:2], actions[2:]])
        ]
        current = {"taskID": "t0", "actionID": "a01"}
        status = {"state": state, "agentID": "m0", "tasks": tasks, "currentState": current}
        return WORKFLOW.convert({"metadata": {"name": "w", **more}, "status": status})

    def urgent(old: Workflow, new: Workflow) -> bool:
        assert OWN.urgent is not None
        return OWN.urgent(old, new)

    begun = body("RUNNING", "SUCCESS", "RUNNING", "PENDING")
    assert not urgent(body("RUNNING", "RUNNING", "PENDING", "PENDING"), begun)
    assert not urgent(
        begun, body("RUNNING", "SUCCESS", "RUNNING", "PENDING", annotations={"ironbell.dev/progress": "1"})
    )
    assert urgent(begun, body("RUNNING", "SUCCESS", "SUCCESS", "PENDING")), "it is the next agent's turn"
    assert urgent(begun, body("RUNNING", "SUCCESS", "RUNNING", "PENDING", deletionTimestamp="2026-01-01T00:00:00Z"))
    assert urgent(body("PENDING", "PENDING", "PENDING", "PENDING"), begun)
    assert urgent(begun, body("FAILED", "SUCCESS", "FAILED", "PENDING"))


def test_the_next_tasks_agent_takes_over_and_may_take_its_time(scene: Any) -> None:
    started(scene, "one a: x\ntwo b: y")
    scene.report(0, "SUCCESS")
    status = scene.settled(horizon_s=1e6).status
    assert (status.agent_id, status.state) == ("b", "RUNNING")
    scene.report(0, "SUCCESS", task=1)
    assert scene.settled().status.state == "SUCCESS"


def test_a_restart_keeps_the_global_deadline(scene: Any) -> None:
    started(scene, "timeout 300\ninstall m: stream, write")
    scene.report(0, "RUNNING")
    workflow = scene.settled()
    scene.world.set_status(WORKFLOW, workflow, {"state": "PENDING", "currentState": None})
    assert scene.settled(horizon_s=400).status.state == "TIMEOUT"


def test_the_reason_of_a_failing_action_is_kept(scene: Any) -> None:
    started(scene, bootOptions=NETBOOT)
    scene.report(0, "FAILED", "checksum is a, not b")
    assert scene.settled().status.state == "FAILED"
    assert scene.condition().message == "Action stream of task install: checksum is a, not b"
    assert scene.pxe() == [False, False]


def test_netboot_stays_allowed_while_another_workflow_needs_it(scene: Any) -> None:
    started(scene, bootOptions=NETBOOT)
    scene.workflow("wf2", bootOptions={"toggleAllowNetboot": True})
    scene.settle()
    scene.report(0, "FAILED", "no")
    scene.settle()
    assert scene.pxe() == [True, True]
    assert "wf2" in scene.condition("AllowNetbootFalse").message
    scene.report(0, "FAILED", "no", of="wf2")
    scene.settle()
    assert scene.pxe() == [False, False]


def test_deleting_a_running_workflow_forbids_netboot_again(scene: Any) -> None:
    started(scene, bootOptions=NETBOOT)
    scene.report(0, "RUNNING")
    scene.settle()
    scene.world.remove(WORKFLOW, scene.current)
    end = crash_check(scene.reconciler, scene.world)
    assert end.get(WORKFLOW, "default", "wf") is None
    assert end.list(JOB) == []
    hardware = end.require(HARDWARE, "default", "m1")
    assert [i.netboot.allow_pxe for i in hardware.spec.interfaces] == [False, False]
    (entry,) = history.read(hardware.metadata.annotations["ironbell.dev/history"])
    assert (entry.state, entry.message) == ("DELETED", "deleted in state RUNNING")


def test_deleting_never_blocks_on_hardware_that_is_gone(scene: Any) -> None:
    started(scene, bootOptions=NETBOOT)
    scene.world.remove(HARDWARE, scene.world.require(HARDWARE, "default", "m1"))
    scene.world.remove(WORKFLOW, scene.current)
    assert scene.settle() is None


def test_the_hardware_remembers_its_last_five_workflows_while_all_still_exist(scene: Any) -> None:
    scene.template("install m: stream")
    scene.hardware()
    for number in range(7):
        scene.workflow(f"wf{number}")
        scene.world.settle(scene.reconciler)
        scene.report(0, "FAILED", f"reason {number}", of=f"wf{number}")
        scene.world.clock.advance(60)
        scene.world.settle(scene.reconciler)
    hardware = scene.world.require(HARDWARE, "default", "m1")
    entries = history.read(hardware.metadata.annotations["ironbell.dev/history"])
    assert [entry.workflow for entry in entries] == ["wf6", "wf5", "wf4", "wf3", "wf2"]
    assert entries[0].actions[0].message == "reason 6"
    assert (entries[0].state, entries[0].template, entries[0].reason) == ("FAILED", "t", "ActionFailed")


def test_a_failing_ejection_does_not_change_the_outcome(scene: Any) -> None:
    started(scene, bootOptions=ISO)
    scene.report(0, "FAILED", "no disk")
    scene.settle()
    scene.end_job("iso-eject-wf", "Failed", "unreachable")
    status = scene.settled().status
    assert status.state == "FAILED"
    assert "no disk" in scene.condition().message
    assert "unreachable" in scene.condition("BootJobFailed").message


def test_a_post_job_that_fails_ends_failed(scene: Any) -> None:
    started(scene, bootOptions=ISO)
    scene.report(0, "SUCCESS")
    scene.report(1, "SUCCESS")
    scene.settle()
    assert scene.current.status.state == "POST"
    scene.end_job("iso-eject-wf", "Failed", "drive is locked")
    assert scene.settled().status.state == "FAILED"
    assert "drive is locked" in scene.condition().message


def test_customboot_runs_its_post_actions(scene: Any) -> None:
    off = {"preparingActions": [], "postActions": [{"powerAction": "off"}]}
    started(scene, bootOptions={"bootMode": "customboot", "custombootConfig": off})
    scene.report(0, "SUCCESS")
    scene.report(1, "SUCCESS")
    scene.settle()
    (job,) = scene.jobs()
    assert (job.metadata.name, job.spec.tasks[0].power_action) == ("customboot-post-wf", "off")
    scene.end_job(job.metadata.name)
    assert scene.settled().status.state == "SUCCESS"


def test_an_unknown_state_is_left_alone_and_said(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.world.set_status(WORKFLOW, scene.workflow(), {"state": "PAUSED"})
    assert scene.settled().status.state == "PAUSED"
    assert scene.condition().reason == "UnknownState"


def test_the_history_keeps_the_end_of_logs_and_less_of_older_workflows(scene: Any) -> None:
    scene.template("install m: stream, write")
    scene.hardware()
    for name in ("old", "new"):
        workflow = scene.workflow(name)
        scene.settle()
        actions = scene.world.require(WORKFLOW, "default", name).status.tasks[0].actions
        log = '{"lines": ["1", "2", "3", "4", "5", "6"], "count": 6, "exitCode": 0, "digest": "sha256:x"}'
        logs = {f"ironbell.dev/log.{action.id}": log for action in actions}
        scene.world.change(WORKFLOW, workflow, {"metadata": {"annotations": logs}})
        scene.report(0, "SUCCESS", of=name)
        scene.report(1, "FAILED", "no", of=name)
        scene.settle()
        scene.world.clock.advance(60)
    hardware = scene.world.require(HARDWARE, "default", "m1")
    new, old = history.read(hardware.metadata.annotations["ironbell.dev/history"])
    assert [action.log.lines for action in new.actions] == [["2", "3", "4", "5", "6"]] * 2
    assert [action.log.lines for action in old.actions] == [[], ["2", "3", "4", "5", "6"]]
    assert (old.actions[0].log.exit_code, old.actions[0].log.digest) == (0, "sha256:x")


@pytest.mark.parametrize("text", ["9" * 400, "9" * 5000, "999999999999999"])
def test_an_agent_timeout_beyond_all_time_is_kept_as_a_long_one(scene: Any, text: str) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(annotations={"ironbell.dev/agent-timeout": text})
    scene.settle()
    assert scene.current.status.state == "PENDING"
    assert scene.condition().reason == "AgentNotSeen"


def test_an_agent_timeout_with_a_unit_is_said_to_have_no_effect(scene: Any) -> None:
    scene.template()
    scene.hardware()
    scene.workflow(annotations={"ironbell.dev/agent-timeout": "15m"})
    scene.settle()
    assert "ironbell.dev/agent-timeout '15m' has no effect" in scene.condition().message


def test_timeouts_beyond_all_time_do_not_hinder_a_workflow(scene: Any) -> None:
    longest = 2**63 - 1
    started(scene, f"timeout {longest}\ninstall m: stream={longest}")
    scene.report(0, "RUNNING")
    scene.settle()
    assert scene.condition().reason == "ActionsRunning"
    assert scene.current.status.global_execution_stop is not None
    scene.report(0, "SUCCESS")
    assert scene.settled().status.state == "SUCCESS"


FAILURE = SystemFailure("", "modules-final", "cloud-init failed", [f"line {number}" for number in range(20)])


def installed(scene: Any, name: str) -> None:
    scene.workflow(name)
    scene.world.settle(scene.reconciler)
    scene.report(0, "SUCCESS", "", of=name)
    scene.world.clock.advance(60)
    scene.world.settle(scene.reconciler)


def annotate(scene: Any, value: str | None) -> None:
    hardware = scene.world.require(HARDWARE, "default", "m1")
    scene.world.change(HARDWARE, hardware, {"metadata": {"annotations": {INSTALLED_SYSTEM_FAILED: value}}})
    scene.world.settle(scene.reconciler)


def failures(scene: Any) -> dict[str, SystemFailure | None]:
    hardware = scene.world.require(HARDWARE, "default", "m1")
    entries = history.read(hardware.metadata.annotations["ironbell.dev/history"])
    return {entry.workflow: entry.system_failure for entry in entries}


def test_the_history_keeps_why_the_installed_system_failed_though_the_hardware_forgets_it(scene: Any) -> None:
    scene.template("install m: stream")
    scene.hardware()
    installed(scene, "wf1")
    installed(scene, "wf2")
    assert failures(scene) == {"wf1": None, "wf2": None}
    failure = msgspec.structs.replace(FAILURE, at=rfc3339(scene.world.now()))
    annotate(scene, encoded(failure))
    found = failures(scene)
    assert found["wf1"] is None, "another was installed since"
    assert found["wf2"] == msgspec.structs.replace(failure, output=FAILURE.output[-8:])
    annotate(scene, None)
    assert failures(scene) == found

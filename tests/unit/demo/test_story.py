"""The demonstration's story: each thing told once, failures with their reason."""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.bmc.machine import Machine, MachineStatus
from ironbell.api.core import EVENT
from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.contract.servers.boot_progress import BootStage
from ironbell.demo.story import Story


def workflow(state: str, *actions: dict[str, Any], **metadata: Any) -> Workflow:
    full = [{"id": f"a{n}", "name": f"step {n}", **action} for n, action in enumerate(actions)]
    body = {
        "metadata": {"name": "install", **metadata},
        "status": {"state": state, "tasks": [{"name": "t", "id": "t", "agentID": "m", "actions": full}]},
    }
    return WORKFLOW.decode(msgspec.json.encode(body))


def event(reason: str, message: str, kind: str = "Normal") -> Any:
    body = {
        "metadata": {"name": f"e-{message}"},
        "involvedObject": {"kind": "Hardware", "name": "node"},
        "reason": reason,
        "message": message,
        "type": kind,
    }
    return EVENT.decode(msgspec.json.encode(body))


def test_actions_are_told_when_they_change() -> None:
    story = Story("node", "install")
    assert [line.text for line in story.workflow_changed(workflow("PENDING", {"state": "PENDING"}))] == ["PENDING"]
    running = story.workflow_changed(workflow("RUNNING", {"state": "RUNNING"}, {"state": "PENDING"}))
    assert [line.label for line in running] == ["agent", "action", "workflow"]
    assert story.workflow_changed(workflow("RUNNING", {"state": "RUNNING"}, {"state": "PENDING"})) == []
    done = story.workflow_changed(
        workflow("RUNNING", {"state": "SUCCESS", "executionDuration": "2s"}, {"state": "PENDING"})
    )
    assert [line.text for line in done] == ["1 of 2, step 0: SUCCESS in 2s"]
    assert [line.follows for line in (running[1], *done)] == ["1 of 2, step 0", "waits for the next action"]


def test_a_lease_is_for_the_firmware_until_the_kernel_is_loaded() -> None:
    story = Story("node", "install")

    def next_step(reason: str, message: str) -> str:
        (line,) = story.event(event(reason, message))
        return line.follows

    def power(state: str) -> str:
        (line,) = story.power(Machine(metadata=ObjectMeta(name="node"), status=MachineStatus(power_state=state)))
        return line.value

    assert power("on") == "on"
    assert next_step("DHCPLeased", "the address, boot file ipxe.efi") == "loads its boot file"
    assert next_step("DHCPLeased", "the address, boot file auto.ipxe") == "loads its boot file"
    next_step(BootStage.KERNEL.value, "over HTTP")
    assert next_step("DHCPLeased", "the address") == "starts the in-memory OS"
    next_step(BootStage.DISK.value, "exit")
    assert next_step("DHCPLeased", "the address of the installed system") == "loads its boot file"
    assert next_step(BootStage.REJECTED.value, "netboot is not allowed") == ""
    assert power("off") == "off"


def test_a_workflow_leads_to_the_agent_or_to_the_installed_system() -> None:
    story = Story("node", "install")
    steps = [story.workflow_changed(workflow(state))[0].follows for state in ("PENDING", "POST", "SUCCESS")]
    assert steps == ["waits for the agent", "boots the installed system", "boots the installed system"]


def test_failure_has_its_reason() -> None:
    story = Story("node", "install")
    lines = story.workflow_changed(workflow("FAILED", {"state": "FAILED", "message": "no such disk"}))
    assert any(line.is_bad and "no such disk" in line.text for line in lines)
    assert "no such disk" in story.failure


def test_boot_events_are_told_once_and_end_the_story() -> None:
    story = Story("node", "install")
    assert len(story.event(event("DHCPLeased", "x"))) == 1
    assert story.event(event("DHCPLeased", "x")) == []
    assert story.event(event("SomethingElse", "y")) == []
    assert not story.is_installed
    story.event(event("InstalledSystemUp", "z"))
    assert story.is_installed


def test_power_is_told_when_it_changes() -> None:
    story = Story("node", "install")
    machine = Machine(metadata=ObjectMeta(name="node"), status=MachineStatus(power_state="on"))
    assert len(story.power(machine)) == 1
    assert story.power(machine) == []


def test_progress_is_read_and_damage_left_out() -> None:
    story = Story("node", "install")
    story.workflow_changed(workflow("RUNNING", annotations={"ironbell.dev/progress": '{"percent": 12.3}'}))
    assert story.progress == "12 %"
    story.workflow_changed(workflow("RUNNING", annotations={"ironbell.dev/progress": "[]"}))
    assert story.progress == ""

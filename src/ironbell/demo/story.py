"""What happened, told once and in order: turns changes of objects into lines with times. Pure but for its memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from ironbell.api.bmc.machine import Machine, PowerState
from ironbell.api.core import Event
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowAction, WorkflowState
from ironbell.contract.servers.boot_progress import PROGRESS, BootStage

LABELS = {
    BootStage.LEASE.value: "DHCP",
    BootStage.BINARY.value: "boot file",
    BootStage.SCRIPT.value: "script",
    BootStage.KERNEL.value: "kernel",
    BootStage.INITRD.value: "initramfs",
    BootStage.DISK.value: "disk boot",
    BootStage.REJECTED.value: "DHCP",
    BootStage.METADATA.value: "metadata",
    BootStage.INSTALLED.value: "installed",
    BootStage.INSTALLED_WITH_ERRORS.value: "installed",
    BootStage.PROBLEM.value: "problem",
}
FINAL = {BootStage.INSTALLED.value, BootStage.INSTALLED_WITH_ERRORS.value}
OVER = {WorkflowState.FAILED, WorkflowState.TIMEOUT}


@dataclass(frozen=True)
class Line:
    """One thing that happened."""

    label: str
    text: str
    is_bad: bool = False
    about: str = ""
    """Whom it is about, where there are several."""


def follows(line: Line) -> str:
    """What a server is at after this line, in words; empty where nothing more is known to come."""
    if line.label == "DHCP":
        return "loads its boot file" if "boot file" in line.text else "starts the in-memory OS"
    if line.label == "action":
        return line.text.removesuffix(" ...") if line.text.endswith(" ...") else "the next action"
    if line.label == "workflow":
        return "boots what was installed" if line.text in _INSTALLED else "waits for the agent"
    return _FOLLOWS.get(line.label, "")


_INSTALLED = {WorkflowState.POST, WorkflowState.SUCCESS}
_FOLLOWS = {
    "claimed": "is switched on",
    "power": "firmware starts",
    "boot file": "starts iPXE",
    "script": "loads the in-memory OS",
    "kernel": "loads the in-memory OS",
    "initramfs": "starts the in-memory OS",
    "agent": "the first action",
    "disk boot": "boots its disk",
    "metadata": "cloud-init is at work",
    "installed": "services start",
    "node": "its network and kubelet get ready",
    "node ready": "its pod starts",
}


@dataclass
class Story:
    """Remembers what was told. `failure` is set when the installation cannot succeed any more."""

    machine: str
    workflow: str
    is_installed: bool = False
    failure: str = ""
    progress: str = ""
    """The running action's progress, for a line that is drawn over and over."""
    _told: set[tuple[str, str]] = field(default_factory=set)
    _power: str = ""
    _actions: dict[str, str] = field(default_factory=dict)
    _state: str = ""

    def event(self, event: Event) -> list[Line]:
        """An Event appeared or was counted up."""
        about, reason = event.involved_object, event.reason
        if about.kind != "Hardware" or about.name != self.machine or reason not in LABELS:
            return []
        if reason in FINAL:
            self.is_installed = True
        return self._once(Line(LABELS[reason], event.message, event.type == "Warning"), key=event.metadata.name)

    def power(self, machine: Machine) -> list[Line]:
        """A bmc Machine changed."""
        if machine.metadata.name != self.machine or machine.status.power_state == self._power:
            return []
        self._power = machine.status.power_state
        if self._power not in {PowerState.ON, PowerState.OFF}:
            return []
        return [Line("power", f"BMC reports power {self._power}")]

    def workflow_changed(self, workflow: Workflow) -> list[Line]:
        """The Workflow changed."""
        if workflow.metadata.name != self.workflow:
            return []
        self.progress = _progress(workflow)
        actions = [action for task in workflow.status.tasks for action in task.actions]
        lines = [
            line for number, action in enumerate(actions, 1) for line in self._action(action, number, len(actions))
        ]
        state = workflow.status.state
        if state != self._state:
            self._state = state
            lines.append(Line("workflow", state, state in OVER))
        if state in OVER and not self.failure:
            failed = next((a for a in actions if a.state in OVER), None)
            why = next((c.message for c in workflow.status.conditions if c.type == "Succeeded"), "")
            self.failure = f"workflow {state}: {why or (failed.message if failed else 'see ironbell why')}"
        return lines

    def _action(self, action: WorkflowAction, number: int, count: int) -> list[Line]:
        if action.state == self._actions.get(action.id, WorkflowState.PENDING):
            return []
        first = not self._actions
        self._actions[action.id] = action.state
        where = f"{number} of {count}, {action.name}"
        lines = [Line("agent", "the agent has taken the first action")] if first else []
        if action.state == WorkflowState.RUNNING:
            return [*lines, Line("action", f"{where} ...")]
        took = f" in {action.execution_duration}" if action.execution_duration else ""
        bad = action.state != WorkflowState.SUCCESS
        said = f": {action.message}" if bad and action.message else ""
        return [*lines, Line("action", f"{where}: {action.state}{took}{said}", bad)]

    def _once(self, line: Line, *, key: str) -> list[Line]:
        if (key, line.text) in self._told:
            return []
        self._told.add((key, line.text))
        return [line]


def _progress(workflow: Workflow) -> str:
    try:
        document = msgspec.json.decode(workflow.metadata.annotations.get(PROGRESS, "{}"))
        percent, speed = document.get("percent"), document.get("bytesPerSecond")
    except (msgspec.DecodeError, AttributeError):
        return ""
    parts = [f"{percent:.0f} %"] if isinstance(percent, int | float) else []
    parts += [f"{speed / 1e6:.0f} MB/s"] if isinstance(speed, int | float) and speed else []
    return ", ".join(parts)

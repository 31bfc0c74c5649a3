"""The story of a server: turns changes of objects into lines, each once and in order. Pure but for its memory."""

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
UNSUCCESSFUL = {WorkflowState.FAILED, WorkflowState.TIMEOUT}


@dataclass(frozen=True)
class Line:
    """One change to show."""

    label: str
    text: str
    is_bad: bool = False
    about: str = ""
    """The server's title, if there are several."""
    follows: str = ""
    """The server's next step; if empty, the step that the label determines."""
    value: str = ""
    """The new state, for programs: text is for people."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "follows", self.follows or _FOLLOWS.get(self.label, ""))


_INSTALLED = {WorkflowState.POST, WorkflowState.SUCCESS}
_FOLLOWS = {
    "claimed": "is being powered on",
    "power": "firmware starts",
    "boot file": "starts iPXE",
    "script": "loads the in-memory OS",
    "kernel": "loads the in-memory OS",
    "initramfs": "starts the in-memory OS",
    "agent": "waits for the first action",
    "disk boot": "boots its disk",
    "metadata": "cloud-init runs",
    "installed": "services start",
    "node": "its network and kubelet start",
    "node ready": "its pod starts",
}


@dataclass
class Story:
    """Remembers what was shown. `failure` is set when the installation cannot succeed any more."""

    machine: str
    workflow: str
    is_installed: bool = False
    failure: str = ""
    progress: str = ""
    """The running action's progress, for a line that is redrawn."""
    _shown: set[tuple[str, str]] = field(default_factory=set)
    _power: str = ""
    _actions: dict[str, str] = field(default_factory=dict)
    _state: str = ""
    _has_kernel: bool = False
    """Whether the in-memory OS is what the server boots: it has loaded that kernel since it was powered on."""

    def event(self, event: Event) -> list[Line]:
        """An Event appeared or was counted up."""
        about, reason = event.involved_object, event.reason
        if about.kind != "Hardware" or about.name != self.machine or reason not in LABELS:
            return []
        if reason in FINAL:
            self.is_installed = True
        if reason in {BootStage.KERNEL.value, BootStage.DISK.value}:
            self._has_kernel = reason == BootStage.KERNEL.value
        line = Line(LABELS[reason], event.message, event.type == "Warning", follows=self._after_event(reason))
        return self._once(line, key=event.metadata.name)

    def _after_event(self, reason: str) -> str:
        if reason != BootStage.LEASE.value:
            return ""
        return "starts the in-memory OS" if self._has_kernel else "loads its boot file"

    def power(self, machine: Machine) -> list[Line]:
        """A bmc Machine changed."""
        if machine.metadata.name != self.machine or machine.status.power_state == self._power:
            return []
        self._power, self._has_kernel = machine.status.power_state, False
        if self._power not in {PowerState.ON, PowerState.OFF}:
            return []
        return [Line("power", f"BMC reports power {self._power}", value=self._power)]

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
            follows = "boots the installed system" if state in _INSTALLED else "waits for the agent"
            lines.append(Line("workflow", state, state in UNSUCCESSFUL, follows=follows))
        if state in UNSUCCESSFUL and not self.failure:
            failed = next((a for a in actions if a.state in UNSUCCESSFUL), None)
            reason = next((c.message for c in workflow.status.conditions if c.type == "Succeeded"), "")
            self.failure = f"workflow {state}: {reason or (failed.message if failed else 'see ironbell why')}"
        return lines

    def _action(self, action: WorkflowAction, number: int, count: int) -> list[Line]:
        if action.state == self._actions.get(action.id, WorkflowState.PENDING):
            return []
        first = not self._actions
        self._actions[action.id] = action.state
        where = f"{number} of {count}, {action.name}"
        lines = [Line("agent", "the agent has received the first action")] if first else []
        if action.state == WorkflowState.RUNNING:
            return [*lines, Line("action", f"{where} ...", follows=where)]
        took = f" in {action.execution_duration}" if action.execution_duration else ""
        is_bad = action.state != WorkflowState.SUCCESS
        message = f": {action.message}" if is_bad and action.message else ""
        text = f"{where}: {action.state}{took}{message}"
        return [*lines, Line("action", text, is_bad, follows="waits for the next action")]

    def _once(self, line: Line, *, key: str) -> list[Line]:
        if (key, line.text) in self._shown:
            return []
        self._shown.add((key, line.text))
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

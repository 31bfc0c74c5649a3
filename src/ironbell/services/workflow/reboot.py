"""Detection of a machine that reboots during its Workflow, and the consequence that an annotation selects.

The id of an agent's boot is recorded with the first action that the agent gets. Another id while the Workflow runs
means that the machine rebooted: the Workflow fails (the default), restarts, or continues with the same action. A reboot
by an action of the Workflow, which reported success, is not counted.

Agents that send no boot id get the same action again, as from upstream.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.quantities import decimal
from ironbell.contract.servers.boot_progress import PROGRESS
from ironbell.services.workflow import names
from ironbell.services.workflow.changes import Change, Place, failed_at

FAIL, RESTART, RESUME = "fail", "restart", "resume"
MAX_RESTARTS = 5

# Last path elements of images whose success means that the machine reboots or powers off.
_REBOOTING = {"reboot", "kexec", "poweroff", "waitdaemon"}


def boot_ids(workflow: Workflow) -> dict[str, str]:
    """Return the recorded boot ids by agent id; empty if the annotation cannot be read."""
    text = workflow.metadata.annotations.get(names.BOOT_IDS, "")
    try:
        return msgspec.json.decode(text, type=dict[str, str]) if text else {}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def boot_annotation(workflow: Workflow, agent_id: str, *, boot_id: str) -> dict[str, str | None]:
    """Return the annotation with this agent's boot id added; empty for an agent that sends none."""
    if not boot_id:
        return {}
    known = {**boot_ids(workflow), agent_id: boot_id}
    return {names.BOOT_IDS: msgspec.json.encode(dict(sorted(known.items()))).decode()}


def has_rebooted(workflow: Workflow, agent_id: str, *, boot_id: str, place: Place) -> bool:
    """Return whether the machine has rebooted since it began this Workflow, other than by one of its actions."""
    previous = boot_ids(workflow).get(agent_id, "")
    if workflow.status.state != WorkflowState.RUNNING or previous in {"", boot_id}:
        return False
    task, action = place
    is_running = workflow.status.tasks[task].actions[action].state == WorkflowState.RUNNING
    return is_running or not _was_requested(workflow, place)


def _was_requested(workflow: Workflow, place: Place) -> bool:
    """Return whether the last action of this machine, in this or an earlier task, rebooted it."""
    tasks = workflow.status.tasks
    agent_id = tasks[place[0]].agent_id
    done = [
        action
        for number, task in enumerate(tasks[: place[0] + 1])
        if task.agent_id == agent_id
        for action in task.actions[: place[1] if number == place[0] else None]
    ]
    if not done:
        return False
    name = done[-1].image.split("@", 1)[0].rsplit("/", 1)[-1].split(":", 1)[0]
    return done[-1].state == WorkflowState.SUCCESS and name.lower() in _REBOOTING


def consequence(workflow: Workflow, agent_id: str, *, place: Place, now: str) -> Change | None:
    """Return the change that the reboot causes, or None if the Workflow continues."""
    policy = workflow.metadata.annotations.get(names.ON_REBOOT, FAIL).strip().lower()
    if policy == RESUME:
        return None
    if policy == RESTART and _restarts(workflow) < MAX_RESTARTS:
        return _restarted(workflow)
    return _failed(workflow, agent_id, place=place, policy=policy, now=now)


def _restarts(workflow: Workflow) -> int:
    text = workflow.metadata.annotations.get(names.RESTARTS, "")
    return decimal(text) or 0


def _restarted(workflow: Workflow) -> Change:
    """Return the change that restarts the Workflow with its first action.

    The new boot id is recorded only with the first action that is handed out in it: annotations and status are two
    writes, and with the boot id alone the Workflow would continue in the middle.
    """
    pending: dict[str, Any] = {
        "state": WorkflowState.PENDING.value,
        "executionStart": None,
        "executionStop": None,
        "executionDuration": None,
        "message": None,
    }
    tasks = workflow.status.tasks
    return Change(
        status={"state": WorkflowState.PENDING.value, "agentID": tasks[0].agent_id, "currentState": None},
        actions={(i, j): pending for i, task in enumerate(tasks) for j in range(len(task.actions))},
        annotations={
            names.RESTARTS: str(_restarts(workflow) + 1),
            PROGRESS: None,
        },
    )


def _failed(workflow: Workflow, agent_id: str, *, place: Place, policy: str, now: str) -> Change:
    task = workflow.status.tasks[place[0]]
    action = task.actions[place[1]]
    is_running = action.state == WorkflowState.RUNNING
    when = f"while action {action.name} was running" if is_running else f"before action {action.name}"
    message = f"machine {agent_id} rebooted {when}"
    if policy == RESTART:
        message += f"; the workflow has already been restarted {MAX_RESTARTS} times"
    else:
        invalid = "" if policy == FAIL else f" ({policy!r} is not a valid value)"
        message += f"; to continue after a reboot, set annotation {names.ON_REBOOT} to restart or resume{invalid}"
    return failed_at(workflow, agent_id, place=place, message=message, now=now)

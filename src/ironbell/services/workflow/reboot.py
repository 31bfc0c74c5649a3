"""A machine that reboots in the middle of a Workflow: noticed by its boot's name, decided by an annotation.

Agents that send the name of their boot have it recorded with the first action they get. Another name while the
Workflow runs means that the machine went down: the Workflow fails (the default), begins again, or goes on with the
same action. A reboot that an action of the Workflow made on purpose, and reported as its success, is none of that.

Agents that send no name are served as upstream does: the same action again.
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

# Last path elements of images whose success means that the machine goes down.
_LEAVING = {"reboot", "kexec", "poweroff", "waitdaemon"}


def boot_ids(workflow: Workflow) -> dict[str, str]:
    """Agent id to boot; what cannot be read counts as nothing."""
    text = workflow.metadata.annotations.get(names.BOOT_IDS, "")
    try:
        return msgspec.json.decode(text, type=dict[str, str]) if text else {}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def recorded(workflow: Workflow, agent_id: str, *, boot_id: str) -> dict[str, str | None]:
    """The annotation with this agent's boot in it; nothing to write for an agent that names none."""
    if not boot_id:
        return {}
    known = {**boot_ids(workflow), agent_id: boot_id}
    return {names.BOOT_IDS: msgspec.json.encode(dict(sorted(known.items()))).decode()}


def happened(workflow: Workflow, agent_id: str, *, boot_id: str, place: Place) -> bool:
    """The machine has rebooted since this Workflow began on it, and not because an action made it."""
    before = boot_ids(workflow).get(agent_id, "")
    if workflow.status.state != WorkflowState.RUNNING or before in {"", boot_id}:
        return False
    task, action = place
    at_work = workflow.status.tasks[task].actions[action].state == WorkflowState.RUNNING
    return at_work or not _was_leaving(workflow, place)


def _was_leaving(workflow: Workflow, place: Place) -> bool:
    """The last action that this machine carried out, be it in an earlier task, made it go down."""
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
    return done[-1].state == WorkflowState.SUCCESS and name.lower() in _LEAVING


def consequence(workflow: Workflow, agent_id: str, *, place: Place, now: str) -> Change | None:
    """What becomes of the Workflow; None when it simply goes on."""
    policy = workflow.metadata.annotations.get(names.ON_REBOOT, FAIL).strip().lower()
    if policy == RESUME:
        return None
    if policy == RESTART and _restarts(workflow) < MAX_RESTARTS:
        return _again(workflow)
    return _failed(workflow, agent_id, place=place, policy=policy, now=now)


def _restarts(workflow: Workflow) -> int:
    text = workflow.metadata.annotations.get(names.RESTARTS, "")
    return decimal(text) or 0


def _again(workflow: Workflow) -> Change:
    """Everything from the start.

    The new boot is recorded only with the first action that is handed out in it: annotations and status are two
    writes, and a Workflow that knew the boot and not that it begins again would go on in the middle.
    """
    fresh: dict[str, Any] = {
        "state": WorkflowState.PENDING.value,
        "executionStart": None,
        "executionStop": None,
        "executionDuration": None,
        "message": None,
    }
    tasks = workflow.status.tasks
    return Change(
        status={"state": WorkflowState.PENDING.value, "agentID": tasks[0].agent_id, "currentState": None},
        actions={(i, j): fresh for i, task in enumerate(tasks) for j in range(len(task.actions))},
        annotations={
            names.RESTARTS: str(_restarts(workflow) + 1),
            PROGRESS: None,
        },
    )


def _failed(workflow: Workflow, agent_id: str, *, place: Place, policy: str, now: str) -> Change:
    task = workflow.status.tasks[place[0]]
    action = task.actions[place[1]]
    at_work = action.state == WorkflowState.RUNNING
    when = f"while action {action.name} was running" if at_work else f"before action {action.name}"
    message = f"machine {agent_id} rebooted {when}"
    if policy == RESTART:
        message += f"; it has begun again {MAX_RESTARTS} times already"
    else:
        unknown = "" if policy == FAIL else f" (its value {policy!r} is neither)"
        message += f"; annotation {names.ON_REBOOT}: restart or resume lets the workflow go on{unknown}"
    return failed_at(workflow, agent_id, place=place, message=message, now=now)

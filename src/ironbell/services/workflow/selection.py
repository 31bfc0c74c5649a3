"""Choice of an agent's next action: a pure function of the Workflows that name the agent.

A machine runs one Workflow at a time: the running one comes first, then pending ones, oldest first. The next action of
a Workflow is the first that has not succeeded; a running action is handed out again, because its agent may have been
restarted. A completed or failed Workflow never blocks another one, and a disabled Workflow hands out nothing. If our
agent cannot run one of its actions, the Workflow fails before the first one begins: in the middle it would have
overwritten a disk already. Our agent runs no containers, and sends its built-in actions with every request; agents
that send none, such as upstream's, run any image.

Source: tinkerbell/tinkerbell: tink/server/internal/grpc/grpc.go (codes and texts).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowAction, WorkflowState, WorkflowTask
from ironbell.codec.actionimage import WRAPPER, builtin_name, image_name
from ironbell.services.workflow import reboot
from ironbell.services.workflow.changes import Change, Code, Place, failed_at


@dataclass(frozen=True, slots=True)
class Serve:
    """Hand this action out after `change` is stored."""

    workflow: Workflow
    task: WorkflowTask
    action: WorkflowAction
    is_first: bool
    change: Change


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The machine rebooted during the Workflow: store `change`, then choose again."""

    workflow: Workflow
    change: Change


@dataclass(frozen=True, slots=True)
class Unrunnable:
    """The agent cannot run one of its actions, and has begun none of them: store `change`, then choose again."""

    workflow: Workflow
    change: Change
    message: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is no action now; the error to respond with if none arrives in time."""

    code: Code
    message: str


Choice = Serve | Interrupted | Unrunnable | Nothing

_ACTIVE = {WorkflowState.RUNNING: 0, WorkflowState.PENDING: 1}


def choose(
    workflows: Sequence[Workflow],
    agent_ids: Sequence[str],
    *,
    boot_id: str = "",
    builtin: Collection[str] = (),
    now: str = "",
) -> Choice:
    """Choose the next action of the agent that has these ids.

    `boot_id` is empty for agents that do not send it, `builtin` for agents that run any image or do not send the list;
    `now` is RFC 3339.
    """
    named = [workflow for workflow in workflows if workflow.status.agent_id in agent_ids]
    named = [workflow for workflow in named if not is_being_deleted(workflow)]
    if not named:
        return Nothing(Code.NOT_FOUND, "no Workflows found")
    rendered = [workflow for workflow in named if workflow.status.tasks]
    if not rendered:
        return Nothing(Code.NOT_FOUND, "no Tasks found in Workflow")
    blocked: Choice | None = None
    for workflow in sorted((w for w in rendered if w.status.state in _ACTIVE), key=_order):
        choice = _next_action(workflow, boot_id=boot_id, builtin=builtin, now=now)
        if not isinstance(choice, Nothing) or workflow.status.state == WorkflowState.RUNNING:
            return choice
        blocked = blocked or choice
    if blocked is not None:
        return blocked
    if any(workflow.status.state == WorkflowState.PREPARING for workflow in rendered):
        return Nothing(Code.FAILED_PRECONDITION, "Workflow is in preparing state")
    return Nothing(Code.FAILED_PRECONDITION, "Workflow not in pending or running state")


def is_being_deleted(workflow: Workflow) -> bool:
    """Return whether the Workflow is being deleted, so that no action of it is started."""
    return workflow.metadata.deletion_timestamp is not None


def disabled_message(workflow: Workflow) -> str | None:
    """Return the message that a user has disabled the Workflow, or None if it is not disabled."""
    reason = workflow.metadata.annotations.get(ANNOTATION_DISABLED)
    if reason is None:
        return None
    return f"Workflow is disabled by annotation {ANNOTATION_DISABLED}: {reason or 'no reason given'}"


def _order(workflow: Workflow) -> tuple[int, str, str, str]:
    meta = workflow.metadata
    return (_ACTIVE[WorkflowState(workflow.status.state)], meta.creation_timestamp or "", meta.namespace, meta.name)


def position(workflow: Workflow) -> Place | None:
    """Return the place of the next or running action, the first that has not succeeded; None if all have."""
    for task_number, task in enumerate(workflow.status.tasks):
        for action_number, action in enumerate(task.actions):
            if action.state != WorkflowState.SUCCESS:
                return task_number, action_number
    return None


def _next_action(workflow: Workflow, *, boot_id: str, builtin: Collection[str], now: str) -> Choice:
    agent_id, place = workflow.status.agent_id, position(workflow)
    if place is None:
        has_actions = any(task.actions for task in workflow.status.tasks)
        return Nothing(Code.NOT_FOUND, "no Tasks found" if has_actions else "no Actions found")
    task = workflow.status.tasks[place[0]]
    action = task.actions[place[1]]
    if action.state in {WorkflowState.FAILED, WorkflowState.TIMEOUT}:
        return Nothing(Code.FAILED_PRECONDITION, "current Action not in success state")
    if task.agent_id != agent_id:
        return Nothing(Code.NOT_FOUND, "Task not assigned to Agent")
    if (disabled := disabled_message(workflow)) is not None:
        return Nothing(Code.FAILED_PRECONDITION, disabled)
    is_running = action.state == WorkflowState.RUNNING
    if not is_running and (unrunnable := _unrunnable_action(workflow, agent_id, place, builtin)) is not None:
        failed_place, message = unrunnable
        change = failed_at(workflow, agent_id, place=failed_place, message=message, now=now)
        return Unrunnable(workflow, change, message)
    restarted: dict[Place, dict[str, Any]] = {}
    if boot_id and reboot.has_rebooted(workflow, agent_id, boot_id=boot_id, place=place):
        consequence = reboot.consequence(workflow, agent_id, place=place, now=now)
        if consequence is not None:
            return Interrupted(workflow, consequence)
        # The Workflow continues with this action, whose timeout starts again.
        action = msgspec.structs.replace(action, state=WorkflowState.PENDING.value)
        restarted[place] = {"state": action.state, "executionStart": None}
    current = {
        "agentID": agent_id,
        "taskID": task.id,
        "actionID": action.id,
        "state": action.state or WorkflowState.PENDING.value,
        "actionName": action.name,
        "taskName": task.name,
    }
    # Our own agent reports that it begins an action before it does: between two of its actions that is soon enough.
    begins_soon = bool(boot_id) and place[1] > 0 and not restarted
    return Serve(
        workflow=workflow,
        task=task,
        action=action,
        is_first=place == (0, 0),
        change=Change(
            status={} if begins_soon else {"currentState": current},
            actions=restarted,
            annotations=reboot.boot_annotation(workflow, agent_id, boot_id=boot_id),
        ),
    )


def _unrunnable_action(
    workflow: Workflow, agent_id: str, place: Place, known: Collection[str]
) -> tuple[Place, str] | None:
    """Return the first action that this agent cannot run, with a message, or None.

    It is only determined if `place` is the agent's first action: later, the Workflow has changed the machine already.
    """
    tasks = workflow.status.tasks
    if not known or place[1] != 0 or any(task.agent_id == agent_id for task in tasks[: place[0]]):
        return None
    for number, task in enumerate(tasks):
        for index, action in enumerate(task.actions if task.agent_id == agent_id else ()):
            environment = {**task.environment, **action.environment}
            if builtin_name(action.image, command=action.command, environment=environment, known=known) is None:
                return (number, index), _unrunnable_message(action.image, environment.get("IMAGE", ""), known)
    return None


def _unrunnable_message(image: str, wrapped: str, known: Collection[str]) -> str:
    named = f'"{image}" with IMAGE "{wrapped}"' if wrapped and image_name(image) == WRAPPER else f'"{image}"'
    return (
        f"Image {named} is not built into this machine's agent, which runs no containers. No action was run. Use a"
        f" built-in action ({', '.join(sorted({*known, WRAPPER}))}), or boot HookOS, whose agent runs containers."
    )

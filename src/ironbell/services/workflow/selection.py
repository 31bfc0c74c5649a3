"""Which action an agent gets: a pure function over the Workflows that name it.

One machine carries out one Workflow at a time: one that runs comes first, then those that wait, oldest first. Within
a Workflow the first action that has not succeeded is next; one that is at work already is handed out again, because
its agent may have been started anew in between. A Workflow that has ended never stands in the way of another, and one
that a person has disabled hands out nothing.

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
    """Hand this action out, once `change` is stored."""

    workflow: Workflow
    task: WorkflowTask
    action: WorkflowAction
    is_first: bool
    change: Change


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The machine rebooted in the middle: store `change`, then choose again."""

    workflow: Workflow
    change: Change


@dataclass(frozen=True, slots=True)
class Unrunnable:
    """The agent cannot run one of its actions, and has begun none: store `change`, then choose again."""

    workflow: Workflow
    change: Change
    message: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is no action now; what to say when nothing comes in time."""

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
    """What the agent gets that these ids mean. `boot_id` is empty for agents that do not send one, `builtin` for agents
    that run any image or do not say which actions they have built in; `now` is RFC 3339."""
    mine = [workflow for workflow in workflows if workflow.status.agent_id in agent_ids and not is_going(workflow)]
    if not mine:
        return Nothing(Code.NOT_FOUND, "no Workflows found")
    rendered = [workflow for workflow in mine if workflow.status.tasks]
    if not rendered:
        return Nothing(Code.NOT_FOUND, "no Tasks found in Workflow")
    answer: Choice | None = None
    for workflow in sorted((w for w in rendered if w.status.state in _ACTIVE), key=_order):
        choice = _next_action(workflow, boot_id=boot_id, builtin=builtin, now=now)
        if not isinstance(choice, Nothing) or workflow.status.state == WorkflowState.RUNNING:
            return choice
        answer = answer or choice
    if answer is not None:
        return answer
    if any(workflow.status.state == WorkflowState.PREPARING for workflow in rendered):
        return Nothing(Code.FAILED_PRECONDITION, "Workflow is in preparing state")
    return Nothing(Code.FAILED_PRECONDITION, "Workflow not in pending or running state")


def is_going(workflow: Workflow) -> bool:
    """It is being deleted: nothing is started for it any more."""
    return workflow.metadata.deletion_timestamp is not None


def disabled(workflow: Workflow) -> str | None:
    """What a person has said that keeps its actions from being started, or None."""
    why = workflow.metadata.annotations.get(ANNOTATION_DISABLED)
    return (
        None if why is None else f"Workflow is disabled by annotation {ANNOTATION_DISABLED}: {why or 'no reason given'}"
    )


def _order(workflow: Workflow) -> tuple[int, str, str, str]:
    meta = workflow.metadata
    return (_ACTIVE[WorkflowState(workflow.status.state)], meta.creation_timestamp or "", meta.namespace, meta.name)


def position(workflow: Workflow) -> tuple[int, int] | None:
    """Task and action that are next or at work: the first that has not succeeded; None when all have."""
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
    if (why := disabled(workflow)) is not None:
        return Nothing(Code.FAILED_PRECONDITION, why)
    if action.state != WorkflowState.RUNNING and (found := unrunnable(workflow, agent_id, place, builtin)) is not None:
        change = failed_at(workflow, agent_id, place=found[0], message=found[1], now=now)
        return Unrunnable(workflow, change, found[1])
    anew: dict[Place, dict[str, Any]] = {}
    if boot_id and reboot.happened(workflow, agent_id, boot_id=boot_id, place=place):
        consequence = reboot.consequence(workflow, agent_id, place=place, now=now)
        if consequence is not None:
            return Interrupted(workflow, consequence)
        # It goes on with this action, which has its whole time again.
        action = msgspec.structs.replace(action, state=WorkflowState.PENDING.value)
        anew[place] = {"state": action.state, "executionStart": None}
    current = {
        "agentID": agent_id,
        "taskID": task.id,
        "actionID": action.id,
        "state": action.state or WorkflowState.PENDING.value,
        "actionName": action.name,
        "taskName": task.name,
    }
    # Our own agent says that it begins before it does anything: between two of its actions that is told soon enough.
    begins_soon = bool(boot_id) and place[1] > 0 and not anew
    return Serve(
        workflow=workflow,
        task=task,
        action=action,
        is_first=place == (0, 0),
        change=Change(
            status={} if begins_soon else {"currentState": current},
            actions=anew,
            annotations=reboot.recorded(workflow, agent_id, boot_id=boot_id),
        ),
    )


def unrunnable(workflow: Workflow, agent_id: str, place: Place, known: Collection[str]) -> tuple[Place, str] | None:
    """The first action that this agent cannot run, with a message; None if there is none.

    Only looked for when `place` is the agent's first action: later, what was done is done.
    """
    tasks = workflow.status.tasks
    if not known or place[1] != 0 or any(task.agent_id == agent_id for task in tasks[: place[0]]):
        return None
    for number, task in enumerate(tasks):
        for position, action in enumerate(task.actions if task.agent_id == agent_id else ()):
            environment = {**task.environment, **action.environment}
            if builtin_name(action.image, command=action.command, environment=environment, known=known) is None:
                return (number, position), _message(action.image, environment.get("IMAGE", ""), known)
    return None


def _message(image: str, wrapped: str, known: Collection[str]) -> str:
    named = f'"{image}" with IMAGE "{wrapped}"' if wrapped and image_name(image) == WRAPPER else f'"{image}"'
    return (
        f"Image {named} is not built into this machine's agent, which runs no containers. No action was run. Use a"
        f" built-in action ({', '.join(sorted({*known, WRAPPER}))}), or boot HookOS, whose agent runs containers."
    )

"""Changes of a Workflow's status: conditions, and the patch that writes a new status.

Every function takes a status and returns one; nothing is changed in place. `time` of a condition is the time of its
last change of any kind, and an unchanged condition costs no write.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ironbell.api.tinkerbell.names import WorkflowConditionReason, WorkflowConditionType
from ironbell.api.tinkerbell.workflow import (
    WORKFLOW,
    Workflow,
    WorkflowAction,
    WorkflowCondition,
    WorkflowState,
    WorkflowStatus,
    WorkflowTask,
)
from ironbell.base.clock import rfc3339
from ironbell.contract.servers.ineffective import FIELDS_WITHOUT_EFFECT, Ineffective, listed
from ironbell.controllers.tink import states
from ironbell.controllers.tink.names import CONDITION_SUCCEEDED, Reason
from ironbell.kube.decision import Decision, Emit, MergePatch, Waiting, do, emit
from ironbell.kube.patches import status_change

MESSAGE_LIMIT = 4096
"""Maximum length of a message; an error may quote a whole document."""


def condition(status: WorkflowStatus, condition_type: str) -> WorkflowCondition | None:
    """The condition of this type, or None."""
    return next((c for c in status.conditions if c.type == condition_type), None)


def with_condition(
    status: WorkflowStatus, condition_type: str, value: str, *, reason: str, message: str, now: datetime
) -> WorkflowStatus:
    """The status with this condition set."""
    old = condition(status, condition_type)
    message = shortened(message, MESSAGE_LIMIT)
    if old is not None and (old.status, old.reason, old.message) == (value, reason, message):
        return status
    new = WorkflowCondition(type=condition_type, status=value, reason=reason, message=message, time=rfc3339(now))
    others = [new if c is old else c for c in status.conditions]
    return msgspec.structs.replace(status, conditions=[*others, new] if old is None else others)


def with_upstream(
    status: WorkflowStatus, condition_type: WorkflowConditionType, value: bool, message: str, *, now: datetime
) -> WorkflowStatus:
    """The status with one of upstream's conditions; its reason follows from type and value."""
    is_failure = condition_type in {
        WorkflowConditionType.BOOT_JOB_FAILED,
        WorkflowConditionType.BOOT_JOB_SETUP_FAILED,
    }
    if value is is_failure:
        reason = WorkflowConditionReason.ERROR
    elif condition_type is WorkflowConditionType.BOOT_JOB_SETUP_COMPLETE:
        reason = WorkflowConditionReason.CREATED
    else:
        reason = WorkflowConditionReason.COMPLETE
    return with_condition(status, condition_type, str(value), reason=reason, message=message, now=now)


def with_ineffective(status: WorkflowStatus, fields: Sequence[Ineffective], *, now: datetime) -> WorkflowStatus:
    """The status with a condition that lists fields without effect, if there are any."""
    if not fields:
        return status
    message = listed(fields)
    return with_condition(status, FIELDS_WITHOUT_EFFECT, "True", reason="NotImplemented", message=message, now=now)


def waits(status: WorkflowStatus, reason: Reason, message: str, *, now: datetime) -> WorkflowStatus:
    """The status with the reason for which the Workflow waits."""
    return with_condition(status, CONDITION_SUCCEEDED, "Unknown", reason=reason, message=message, now=now)


def terminated(
    status: WorkflowStatus, state: WorkflowState, reason: Reason, message: str, *, now: datetime
) -> WorkflowStatus:
    """The status in a terminal state, with the outcome."""
    value = "True" if state is WorkflowState.SUCCESS else "False"
    return with_condition(
        states.moved(status, state), CONDITION_SUCCEEDED, value, reason=reason, message=message, now=now
    )


def written(workflow: Workflow, new: WorkflowStatus) -> MergePatch | None:
    """The patch to a new status; None when nothing changes."""
    return None if new is workflow.status else status_change(WORKFLOW, workflow, workflow.status, new)


def announced(workflow: Workflow, new: WorkflowStatus) -> Emit | None:
    """The event that reports a new state or a new reason for waiting.

    While actions run, only the start of each action is reported.
    """
    old, current = condition(workflow.status, CONDITION_SUCCEEDED), condition(new, CONDITION_SUCCEEDED)
    if current is None or old == current:
        return None
    if current.reason == Reason.ACTIONS_RUNNING:
        if not any(action.state == WorkflowState.RUNNING for task in new.tasks for action in task.actions):
            return None
    elif old is not None and (old.status, old.reason) == (current.status, current.reason):
        return None
    return emit(WORKFLOW, workflow, reason=current.reason, message=current.message, warning=current.status == "False")


def changed(workflow: Workflow, new: WorkflowStatus, *, requeue_after_s: float | None = None) -> Decision:
    """The decision that writes and reports a new status, and waits for the reason in its condition."""
    current = condition(new, CONDITION_SUCCEEDED)
    waiting = Waiting(current.reason, current.message) if current is not None and current.status == "Unknown" else None
    return do(written(workflow, new), announced(workflow, new), waiting=waiting, requeue_after_s=requeue_after_s)


def with_actions(status: WorkflowStatus, action_id: str, new: WorkflowAction) -> WorkflowStatus:
    """The status with one action replaced."""

    def replaced(task: WorkflowTask) -> WorkflowTask:
        actions = [new if action.id == action_id else action for action in task.actions]
        return msgspec.structs.replace(task, actions=actions)

    return msgspec.structs.replace(status, tasks=[replaced(task) for task in status.tasks])


def find_action(tasks: Sequence[WorkflowTask], action_id: str) -> tuple[WorkflowTask, WorkflowAction] | None:
    """An action by its id, with its task."""
    return next(((task, a) for task in tasks for a in task.actions if a.id == action_id), None)


def shortened(message: str, limit: int) -> str:
    """A message of at most `limit` characters, with a mark if it was longer."""
    if len(message) <= limit:
        return message
    mark = " ... (shortened)"
    return message[: limit - len(mark)] + mark

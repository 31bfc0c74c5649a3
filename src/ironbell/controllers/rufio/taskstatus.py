"""The status of a Task.

While a Task is blocked, its condition `Completed` is False and has the reason; upstream's clients look for True only.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ironbell.api.bmc.task import TASK, Task, TaskCondition, TaskConditionType
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.bmc.driver import reported, reported_problem
from ironbell.kube.decision import Decision, Fields, MergePatch, do, emit, patch_status

LIMIT_S: Final = 600.0
"""Timeout of a Task from its start, including the time in which it waits for its BMC."""
MESSAGE_LIMIT: Final = 1024


def condition(task: Task, kind: TaskConditionType) -> TaskCondition | None:
    """The condition of this type, or None."""
    return next((c for c in task.status.conditions if c.type == kind), None)


def has_failed(task: Task) -> bool:
    return _is_true(task, TaskConditionType.FAILED)


def has_completed(task: Task) -> bool:
    return _is_true(task, TaskConditionType.COMPLETED)


def is_finished(task: Task) -> bool:
    """Return whether the Task has completed or failed."""
    return has_failed(task) or has_completed(task)


def started(task: Task) -> datetime | None:
    """The start time; None before the start."""
    return parse_rfc3339(task.status.start_time) if task.status.start_time else None


def failed(task: Task, message: str) -> Decision:
    """Fail the Task."""
    status = {"conditions": [_condition(TaskConditionType.FAILED, "True", message)]}
    return do(
        patch_status(TASK, task, status),
        emit(TASK, task, reason="TaskFailed", message=message, warning=True),
    )


def completed(task: Task, message: str, now: datetime) -> MergePatch:
    """Complete the Task."""
    conditions = [_condition(TaskConditionType.COMPLETED, "True", message)]
    return patch_status(TASK, task, {"conditions": conditions, "completionTime": rfc3339(now)})


def held_up(task: Task, reason: str, message: str) -> MergePatch | None:
    """Report why the Task is blocked; None while the reason stays the same."""
    old = condition(task, TaskConditionType.COMPLETED)
    if old is not None and reported_problem(old.message) == reason:
        return None
    conditions = [_condition(TaskConditionType.COMPLETED, "False", reported(reason, message))]
    return patch_status(TASK, task, {"conditions": conditions})


def cleared(task: Task) -> MergePatch | None:
    """Remove the report of why the Task was blocked; None if there is none."""
    return patch_status(TASK, task, {"conditions": []}) if task.status.conditions else None


def _condition(kind: TaskConditionType, value: str, message: str) -> Fields:
    fields: Fields = {"type": str(kind), "status": value}
    return {**fields, "message": message[:MESSAGE_LIMIT]} if message else fields


def _is_true(task: Task, kind: TaskConditionType) -> bool:
    current = condition(task, kind)
    return current is not None and current.status == "True"

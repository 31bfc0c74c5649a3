"""A Task's status: when it began, whether it has ended, and how it is written down.

While a Task cannot go on, its condition `Completed` is False and says why; upstream's clients look for True only.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ironbell.api.bmc.task import TASK, Task, TaskCondition, TaskConditionType
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.kube.decision import Decision, Fields, MergePatch, do, emit, patch_status

LIMIT_S: Final = 600.0
"""How long a Task may take from its start, waiting for its BMC included."""
MESSAGE_LIMIT: Final = 1024


def condition(task: Task, kind: TaskConditionType) -> TaskCondition | None:
    """The condition of this type, if there is one."""
    return next((c for c in task.status.conditions if c.type == kind), None)


def has_failed(task: Task) -> bool:
    return _is_true(task, TaskConditionType.FAILED)


def has_completed(task: Task) -> bool:
    return _is_true(task, TaskConditionType.COMPLETED)


def is_finished(task: Task) -> bool:
    """Whether the Task has ended, well or not."""
    return has_failed(task) or has_completed(task)


def started(task: Task) -> datetime | None:
    """When work began."""
    return parse_rfc3339(task.status.start_time) if task.status.start_time else None


def failed(task: Task, message: str) -> Decision:
    """End the Task with what went wrong."""
    status = {"conditions": [_condition(TaskConditionType.FAILED, "True", message)]}
    return do(
        patch_status(TASK, task, status),
        emit(TASK, task, reason="TaskFailed", message=message, warning=True),
    )


def completed(task: Task, message: str, now: datetime) -> MergePatch:
    """End the Task well."""
    conditions = [_condition(TaskConditionType.COMPLETED, "True", message)]
    return patch_status(TASK, task, {"conditions": conditions, "completionTime": rfc3339(now)})


def held_up(task: Task, reason: str, message: str) -> MergePatch | None:
    """Say why the Task cannot go on; nothing while the reason stays the same."""
    old = condition(task, TaskConditionType.COMPLETED)
    if old is not None and old.message.startswith(f"{reason}:"):
        return None
    conditions = [_condition(TaskConditionType.COMPLETED, "False", f"{reason}: {message}")]
    return patch_status(TASK, task, {"conditions": conditions})


def cleared(task: Task) -> MergePatch | None:
    """Take back what the Task was held up by; None if it says nothing."""
    return patch_status(TASK, task, {"conditions": []}) if task.status.conditions else None


def _condition(kind: TaskConditionType, value: str, message: str) -> Fields:
    found: Fields = {"type": str(kind), "status": value}
    return {**found, "message": message[:MESSAGE_LIMIT]} if message else found


def _is_true(task: Task, kind: TaskConditionType) -> bool:
    found = condition(task, kind)
    return found is not None and found.status == "True"

"""The status of a Task.

While a Task is blocked, its condition `Completed` is False and has the reason; upstream's clients look for True only.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ironbell.api.bmc.task import TASK, Task, TaskCondition, TaskConditionType, TaskStatus
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.bmc.driver import reported, reported_problem
from ironbell.kube.draft import Draft, replace

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


class TaskDraft(Draft[Task]):
    """A Task's next state. It has one condition at a time."""

    status: TaskStatus

    def __init__(self, task: Task, now: datetime) -> None:
        super().__init__(TASK, task, now)

    def fail(self, message: str) -> None:
        """Fail the Task."""
        self._report(TaskConditionType.FAILED, "True", message)
        self.emit("TaskFailed", message, warning=True)

    def complete(self, message: str = "") -> None:
        """Complete the Task."""
        self._report(TaskConditionType.COMPLETED, "True", message)
        self.status = replace(self.status, completion_time=rfc3339(self.now))

    def hold_up(self, reason: str, message: str) -> None:
        """Wait, and report why the Task is blocked, unless it is for the same reason as before."""
        self.wait(reason, message)
        old = condition(self.obj, TaskConditionType.COMPLETED)
        if old is None or reported_problem(old.message) != reason:
            self._report(TaskConditionType.COMPLETED, "False", reported(reason, message))

    def _report(self, kind: TaskConditionType, value: str, message: str) -> None:
        new = TaskCondition(type=kind, status=value, message=message[:MESSAGE_LIMIT])
        self.status = replace(self.status, conditions=[new])


def _is_true(task: Task, kind: TaskConditionType) -> bool:
    current = condition(task, kind)
    return current is not None and current.status == "True"

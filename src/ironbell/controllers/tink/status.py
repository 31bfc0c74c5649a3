"""The draft of a Workflow: its conditions and states.

`time` of a condition is the time of its last change of any kind, and an unchanged condition costs no write.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ironbell.api.meta import Condition
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
from ironbell.controllers.tink import states
from ironbell.controllers.tink.names import CONDITION_SUCCEEDED, Reason
from ironbell.kube.decision import Decision
from ironbell.kube.draft import Draft, replace

MESSAGE_LIMIT = 4096
"""Maximum length of a message; an error may quote a whole document."""


class WorkflowDraft(Draft[Workflow]):
    """A Workflow's next state. Its decision reports a new reason for waiting, or the outcome, in an event."""

    status: WorkflowStatus

    def __init__(self, workflow: Workflow, now: datetime) -> None:
        super().__init__(WORKFLOW, workflow, now, set_condition=_set_condition)

    @property
    def succeeded(self) -> WorkflowCondition | None:
        """The condition Succeeded."""
        return outcome_of(self.status)

    def upstream(self, condition_type: WorkflowConditionType, value: bool, message: str) -> None:
        """Set one of upstream's conditions; its reason follows from type and value."""
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
        self.set(condition_type, str(value), reason, message)

    def wait_for(self, reason: Reason, message: str) -> None:
        """Report the reason for which the Workflow waits."""
        self.set(CONDITION_SUCCEEDED, "Unknown", reason, message)
        self.wait(reason, shortened(message, MESSAGE_LIMIT))

    def move(self, state: WorkflowState) -> None:
        """Enter the next state."""
        self.status = states.moved(self.status, state)

    def end(self, state: WorkflowState, reason: Reason, message: str) -> None:
        """Enter a terminal state, and report the outcome."""
        self.move(state)
        self.set(CONDITION_SUCCEEDED, "True" if state is WorkflowState.SUCCESS else "False", reason, message)
        self.waiting = None

    def fail_job(self, condition_type: WorkflowConditionType, reason: Reason, message: str) -> None:
        """Fail because of a bmc Job."""
        self.upstream(condition_type, True, message)
        self.end(WorkflowState.FAILED, reason, message)

    def decision(self) -> Decision:
        self._announce()
        return super().decision()

    def _announce(self) -> None:
        """Emit an event about a new outcome or reason for waiting; while actions run, only about their starts."""
        old, current = outcome_of(self.obj.status), self.succeeded
        if current is None or old == current:
            return
        if current.reason == Reason.ACTIONS_RUNNING:
            if not any(action.state == WorkflowState.RUNNING for task in self.status.tasks for action in task.actions):
                return
        elif old is not None and (old.status, old.reason) == (current.status, current.reason):
            return
        self.emit(current.reason, current.message, warning=current.status == "False")


def outcome_of(status: WorkflowStatus) -> WorkflowCondition | None:
    """The condition Succeeded, if there is one."""
    return next((condition for condition in status.conditions if condition.type == CONDITION_SUCCEEDED), None)


def _set_condition(
    conditions: Sequence[WorkflowCondition], condition: Condition, *, now: datetime, generation: int
) -> Sequence[WorkflowCondition]:
    old = next((held for held in conditions if held.type == condition.type), None)
    new = WorkflowCondition(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=shortened(condition.message, MESSAGE_LIMIT),
        time=old.time if old is not None else None,
    )
    if new == old:
        return conditions
    new = replace(new, time=rfc3339(now))
    return [*conditions, new] if old is None else [new if held is old else held for held in conditions]


def with_actions(status: WorkflowStatus, action_id: str, new: WorkflowAction) -> WorkflowStatus:
    """The status with one action replaced."""

    def replaced(task: WorkflowTask) -> WorkflowTask:
        actions = [new if action.id == action_id else action for action in task.actions]
        return replace(task, actions=actions)

    return replace(status, tasks=[replaced(task) for task in status.tasks])


def find_action(tasks: Sequence[WorkflowTask], action_id: str) -> tuple[WorkflowTask, WorkflowAction] | None:
    """An action by its id, with its task."""
    return next(((task, a) for task in tasks for a in task.actions if a.id == action_id), None)


def shortened(message: str, limit: int) -> str:
    """A message of at most `limit` characters, with a mark if it was longer."""
    if len(message) <= limit:
        return message
    mark = " ... (shortened)"
    return message[: limit - len(mark)] + mark

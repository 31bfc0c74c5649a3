"""Change that an agent's report causes: a pure function of the Workflow.

An agent can only report on the next or running action of a pending or running Workflow; a completed or failed one does
not change. Upstream's agent exits if a *result* is rejected with NotFound, InvalidArgument or FailedPrecondition, so a
result that is late, repeated, or for a deleted Workflow is answered OK and changes nothing. A report that an action
*begins* is rejected instead: the agent backs off and does not start it.

Start and stop times are the server's, since a machine's clock may be wrong.

Source: tinkerbell/tinkerbell: tink/server/internal/grpc/grpc.go, tink/agent/agent.go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ironbell.api.tinkerbell.workflow import Workflow, WorkflowAction, WorkflowState, WorkflowTask
from ironbell.base.printable import printable
from ironbell.contract.servers.boot_progress import PROGRESS
from ironbell.services.workflow import selection
from ironbell.services.workflow.changes import Change, Code, Place

# The name becomes part of a URL, and a stranger may have sent it. RFC 1123 names, as in Kubernetes.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_MAX_MESSAGE = 4096
_MAX_DURATION = 64
UPSTREAMS_MESSAGE = "action completed"
"""The message of upstream's agent for every action, failed ones included."""
_BEGINS = WorkflowState.RUNNING.value
_RESULTS = {WorkflowState.SUCCESS.value, WorkflowState.FAILED.value, WorkflowState.TIMEOUT.value}


@dataclass(frozen=True, slots=True)
class Report:
    """An agent's report on an action."""

    workflow_id: str
    task_id: str
    action_id: str
    agent_id: str
    """The id that the agent uses for itself."""
    state: str
    message: str = ""
    duration: str = ""
    agent_ids: Sequence[str] = ()
    """All ids of this agent; empty if `agent_id` is the only one."""

    @property
    def is_result(self) -> bool:
        return self.state in _RESULTS

    @property
    def workflow_key(self) -> tuple[str, str]:
        """Namespace and name; only names that an object can have pass `check`."""
        namespace, _, name = self.workflow_id.partition("/")
        return namespace, name


@dataclass(frozen=True, slots=True)
class Accept:
    """Store the change, then respond OK."""

    change: Change
    ends_action: bool


class IgnoreReason(StrEnum):
    """Reasons to ignore a report; values of a metric's label."""

    NOT_FOUND = "workflow not found"
    NOT_ACTIVE = "workflow is"
    NOT_CURRENT = "not the current action"
    RUNNING = "already running"


@dataclass(frozen=True, slots=True)
class Ignore:
    """Respond OK and change nothing; `message` is for logs."""

    reason: IgnoreReason
    message: str


@dataclass(frozen=True, slots=True)
class Reject:
    """Respond with an error."""

    code: Code
    message: str


Decision = Accept | Ignore | Reject


def check(report: Report) -> Reject | None:
    """Return the rejection of a report that is not valid for any Workflow, or None."""
    for value, message in (
        (report.workflow_id, "invalid workflow id"),
        (report.task_id, "invalid task name"),
        (report.action_id, "invalid action name"),
    ):
        if not value:
            return Reject(Code.INVALID_ARGUMENT, message)
    if not all(_NAME.fullmatch(part) for part in report.workflow_key):
        return Reject(Code.INVALID_ARGUMENT, "invalid workflow id")
    if report.state != _BEGINS and not report.is_result:
        return Reject(Code.INVALID_ARGUMENT, f"invalid action state {report.state}")
    return None


def decide(workflow: Workflow | None, report: Report, *, now: str) -> Decision:
    """Decide on a report that `check` did not reject. `now` is RFC 3339."""
    if workflow is None:
        return _unexpected(report, Code.NOT_FOUND, IgnoreReason.NOT_FOUND)
    place = _find(workflow, report)
    if place is None:
        return Reject(Code.NOT_FOUND, "action not found")
    state = workflow.status.state
    if state not in {WorkflowState.PENDING, WorkflowState.RUNNING}:
        message = f"workflow is in state {state or 'new'}"
        return _unexpected(report, Code.FAILED_PRECONDITION, IgnoreReason.NOT_ACTIVE, message)
    task = workflow.status.tasks[place[0]]
    action = task.actions[place[1]]
    if place != selection.position(workflow) or action.state in {WorkflowState.FAILED, WorkflowState.TIMEOUT}:
        return _unexpected(report, Code.FAILED_PRECONDITION, IgnoreReason.NOT_CURRENT)
    if not report.is_result:
        return _begins(workflow, report, place, now=now)
    return _ends(workflow, report, place, now=now)


def ends_workflow(workflow: Workflow, report: Report) -> bool:
    """Return whether the Workflow ends with the reported action."""
    place = _find(workflow, report)
    return report.state != WorkflowState.SUCCESS or place is None or _is_last(workflow, place)


def _unexpected(report: Report, code: Code, reason: IgnoreReason, message: str = "") -> Ignore | Reject:
    message = message or reason.value
    return Ignore(reason, message) if report.is_result else Reject(code, message)


def _find(workflow: Workflow, report: Report) -> Place | None:
    agent_ids = report.agent_ids or (report.agent_id,)
    for task_number, task in enumerate(workflow.status.tasks):
        if task.agent_id not in agent_ids or task.id != report.task_id:
            continue
        for action_number, action in enumerate(task.actions):
            if action.id == report.action_id:
                return task_number, action_number
    return None


def _begins(workflow: Workflow, report: Report, place: Place, *, now: str) -> Decision:
    if selection.is_being_deleted(workflow):
        return Reject(Code.FAILED_PRECONDITION, "workflow is being deleted")
    if (disabled := selection.disabled_message(workflow)) is not None:
        return Reject(Code.FAILED_PRECONDITION, disabled)
    task = workflow.status.tasks[place[0]]
    action = task.actions[place[1]]
    if action.state == WorkflowState.RUNNING and workflow.status.state == WorkflowState.RUNNING:
        return Ignore(IgnoreReason.RUNNING, IgnoreReason.RUNNING.value)
    fields = {"state": _BEGINS, "executionStart": action.execution_start or now, "message": _printable(report.message)}
    return Accept(
        Change(status={"state": _BEGINS, "currentState": _current(task, action, _BEGINS)}, actions={place: fields}),
        ends_action=False,
    )


def _cause(report: Report) -> str:
    """Return the message to store; upstream's agent reports `action completed` for failed actions as well."""
    if report.state == WorkflowState.SUCCESS or report.message != UPSTREAMS_MESSAGE:
        return report.message
    return "the agent reported no cause; see the action's log"


def _ends(workflow: Workflow, report: Report, place: Place, *, now: str) -> Accept:
    task = workflow.status.tasks[place[0]]
    action = task.actions[place[1]]
    fields: dict[str, Any] = {
        "state": report.state,
        "executionStart": action.execution_start or now,
        "executionStop": now,
        "executionDuration": report.duration[:_MAX_DURATION],
        "message": _printable(_cause(report)),
    }
    if report.state != WorkflowState.SUCCESS:
        state = report.state
    elif _is_last(workflow, place):
        state = WorkflowState.POST.value
    else:
        state = WorkflowState.RUNNING.value
    return Accept(
        Change(
            status={"state": state, "currentState": _current(task, action, report.state)},
            actions={place: fields},
            annotations={PROGRESS: None},
        ),
        ends_action=True,
    )


def _is_last(workflow: Workflow, place: Place) -> bool:
    task, action = place
    tasks = workflow.status.tasks
    return action == len(tasks[task].actions) - 1 and not any(later.actions for later in tasks[task + 1 :])


def _current(task: WorkflowTask, action: WorkflowAction, state: str) -> dict[str, str]:
    return {
        "agentID": task.agent_id,
        "taskID": task.id,
        "actionID": action.id,
        "state": state,
        "actionName": action.name,
        "taskName": task.name,
    }


def _printable(text: str) -> str:
    """Return an agent's text in a printable form and length, since conditions and Events quote it."""
    text = printable(text)
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 1] + "…"

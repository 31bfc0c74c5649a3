"""What an agent's report changes: a pure function over the Workflow.

Only the action that is next or at work can be reported on, and only while the Workflow waits or runs: what has ended
stays as it ended. Answers are chosen so that upstream's agent survives them: it ends its process when a *result* is
refused with NotFound, InvalidArgument or FailedPrecondition, so a result that comes too late, twice, or for a Workflow
that is gone is answered OK and changes nothing. A report that an action *begins* is refused instead: the agent backs
off and does not start it.

Times of begin and end are the server's: a machine's clock may be wrong.

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

# What becomes part of a URL comes from a stranger. RFC 1123 names, as Kubernetes has them.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_MAX_MESSAGE = 4096
_MAX_DURATION = 64
UPSTREAMS_MESSAGE = "action completed"
"""What upstream's agent reports for every action, failed ones included."""
_BEGINS = WorkflowState.RUNNING.value
_RESULTS = {WorkflowState.SUCCESS.value, WorkflowState.FAILED.value, WorkflowState.TIMEOUT.value}


@dataclass(frozen=True, slots=True)
class Report:
    """What an agent says about an action."""

    workflow_id: str
    task_id: str
    action_id: str
    agent_id: str
    """The id that it gives itself."""
    state: str
    message: str = ""
    duration: str = ""
    agent_ids: Sequence[str] = ()
    """All ids that mean this agent; empty where `agent_id` alone does."""

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
    """Store the change, then answer OK."""

    change: Change
    ends_action: bool


class IgnoreReason(StrEnum):
    """Why a report changes nothing; values of a metric's label."""

    NOT_FOUND = "workflow not found"
    ENDED = "workflow is"
    NOT_CURRENT = "not the current action"
    RUNNING = "already running"


@dataclass(frozen=True, slots=True)
class Ignore:
    """Answer OK and change nothing; `message` is for logs."""

    reason: IgnoreReason
    message: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error."""

    code: Code
    message: str


Verdict = Accept | Ignore | Refuse


def check(report: Report) -> Refuse | None:
    """What is wrong with a report whatever the Workflow."""
    for value, message in (
        (report.workflow_id, "invalid workflow id"),
        (report.task_id, "invalid task name"),
        (report.action_id, "invalid action name"),
    ):
        if not value:
            return Refuse(Code.INVALID_ARGUMENT, message)
    if not all(_NAME.fullmatch(part) for part in report.workflow_key):
        return Refuse(Code.INVALID_ARGUMENT, "invalid workflow id")
    if report.state != _BEGINS and not report.is_result:
        return Refuse(Code.INVALID_ARGUMENT, f"invalid action state {report.state}")
    return None


def judge(workflow: Workflow | None, report: Report, *, now: str) -> Verdict:
    """What to do with a report that `check` let pass. `now` is RFC 3339."""
    if workflow is None:
        return _unwanted(report, Code.NOT_FOUND, IgnoreReason.NOT_FOUND)
    place = _find(workflow, report)
    if place is None:
        return Refuse(Code.NOT_FOUND, "action not found")
    state = workflow.status.state
    if state not in {WorkflowState.PENDING, WorkflowState.RUNNING}:
        message = f"workflow is in state {state or 'new'}"
        return _unwanted(report, Code.FAILED_PRECONDITION, IgnoreReason.ENDED, message)
    task = workflow.status.tasks[place[0]]
    action = task.actions[place[1]]
    if place != selection.position(workflow) or action.state in {WorkflowState.FAILED, WorkflowState.TIMEOUT}:
        return _unwanted(report, Code.FAILED_PRECONDITION, IgnoreReason.NOT_CURRENT)
    if not report.is_result:
        return _begins(workflow, report, place, now=now)
    return _ends(workflow, report, place, now=now)


def ends_workflow(workflow: Workflow, report: Report) -> bool:
    """Whether no action follows that the report is about."""
    place = _find(workflow, report)
    return report.state != WorkflowState.SUCCESS or place is None or _is_last(workflow, place)


def _unwanted(report: Report, code: Code, reason: IgnoreReason, message: str = "") -> Ignore | Refuse:
    message = message or reason.value
    return Ignore(reason, message) if report.is_result else Refuse(code, message)


def _find(workflow: Workflow, report: Report) -> Place | None:
    agent_ids = report.agent_ids or (report.agent_id,)
    for task_number, task in enumerate(workflow.status.tasks):
        if task.agent_id not in agent_ids or task.id != report.task_id:
            continue
        for action_number, action in enumerate(task.actions):
            if action.id == report.action_id:
                return task_number, action_number
    return None


def _begins(workflow: Workflow, report: Report, place: Place, *, now: str) -> Verdict:
    if selection.is_going(workflow):
        return Refuse(Code.FAILED_PRECONDITION, "workflow is being deleted")
    if (why := selection.disabled(workflow)) is not None:
        return Refuse(Code.FAILED_PRECONDITION, why)
    task = workflow.status.tasks[place[0]]
    action = task.actions[place[1]]
    if action.state == WorkflowState.RUNNING and workflow.status.state == WorkflowState.RUNNING:
        return Ignore(IgnoreReason.RUNNING, IgnoreReason.RUNNING.value)
    fields = {"state": _BEGINS, "executionStart": action.execution_start or now, "message": _cut(report.message)}
    return Accept(
        Change(status={"state": _BEGINS, "currentState": _current(task, action, _BEGINS)}, actions={place: fields}),
        ends_action=False,
    )


def _cause(report: Report) -> str:
    """The message; upstream's agent reports `action completed` for actions that have failed as well."""
    if report.state == WorkflowState.SUCCESS or report.message != UPSTREAMS_MESSAGE:
        return report.message
    return "the agent reported no cause; the action's log may have it"


def _ends(workflow: Workflow, report: Report, place: Place, *, now: str) -> Accept:
    task = workflow.status.tasks[place[0]]
    action = task.actions[place[1]]
    fields: dict[str, Any] = {
        "state": report.state,
        "executionStart": action.execution_start or now,
        "executionStop": now,
        "executionDuration": report.duration[:_MAX_DURATION],
        "message": _cut(_cause(report)),
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


def _cut(text: str) -> str:
    """What an agent said, for people: conditions and Events quote it."""
    text = printable(text)
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 1] + "…"

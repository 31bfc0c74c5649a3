"""Handlers of the states in which an agent works, PENDING and RUNNING: hand-over between agents, and timeouts.

The workflow service writes the reports of agents; the controller measures time. Times that agents report are not used,
because a server's clock may be years off. The start of an action or of an agent's silence is the time of the condition
`Succeeded`, which is written when it is first observed; for an action that was restarted since, for example after a
reboot, it is the workflow service's time of the start.

There are three limits: the global timeout, from when RUNNING is first observed; the timeout of an action with a grace
period, since its agent ends the action in time unless the server is lost; and an agent's silence between two actions.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/reconciler.go (processRunningWorkflow).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from ironbell.api.tinkerbell.hardware import HARDWARE, HardwareState
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowAction, WorkflowState, WorkflowStatus, WorkflowTask
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.base.quantities import decimal
from ironbell.contract.servers.directory import AGENT_TIMEOUT, ERROR
from ironbell.contract.servers.identity import supersedes
from ironbell.controllers.tink import status as statuses
from ironbell.controllers.tink.names import Reason
from ironbell.controllers.tink.observed import Observed
from ironbell.controllers.tink.status import WorkflowDraft
from ironbell.kube.decision import patch

ACTION_GRACE_S: Final = 60.0
"""Grace period for the report of an agent, which itself ends an action that has timed out."""
AGENT_SILENCE_S: Final = 1800.0
"""Time in which an agent has to request the next action; a server may reboot in between."""

LONGEST_S: Final = 100 * 365.25 * 86400.0
"""Maximum of all limits: larger ones end after the last time that can be represented."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The reason for waiting, and the outcome if the wait exceeds `limit_s` (None: no limit)."""

    reason: Reason
    message: str
    limit_s: float | None = None
    too_late: Reason = Reason.AGENT_SILENT
    timeout_message: str = ""
    action_id: str = ""
    began: str | None = None
    """Time at which the workflow service recorded the start of the action."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time at which the Workflow times out, and the message for it."""

    at: datetime
    reason: Reason
    message: str
    action_id: str = ""


def pending(draft: WorkflowDraft, observed: Observed) -> None:
    """Wait for the agent, until the timeout of an annotation, if there is one."""
    _wait_until(draft, _in_doubt(observed) or _situation(draft.obj, draft.status))


def running(draft: WorkflowDraft, observed: Observed) -> None:
    """Hand over between agents, set the deadline, and time out; record that the new system has no token, if a previous
    system had one."""
    status = _handed_over(draft.status)
    if status.global_timeout > 0 and status.global_execution_stop is None:
        stop = _after(draft.now, status.global_timeout)
        status = msgspec.structs.replace(status, global_execution_stop=rfc3339(stop))
    draft.status = status
    if observed.hardware is not None and (marks := supersedes(draft.obj, observed.hardware)):
        draft.owned.append(patch(HARDWARE, observed.hardware, {"metadata": {"annotations": marks}}, locked=True))
    _wait_until(draft, _situation(draft.obj, draft.status))


def is_to_hand_over(status: WorkflowStatus) -> bool:
    """Return whether another agent takes over."""
    return _handed_over(status).agent_id != status.agent_id


def agent_timeout_s(workflow: Workflow) -> float | None:
    """The timeout in the annotation; None if it is unset or not a positive number."""
    seconds = float(decimal(workflow.metadata.annotations.get(AGENT_TIMEOUT, "")) or 0)
    return min(seconds, LONGEST_S) if seconds > 0 else None


def _in_doubt(observed: Observed) -> Situation | None:
    """The problem that prevents the workflow service from giving out the first action, or None."""
    hardware = observed.hardware
    if hardware is None or hardware.status.state != HardwareState.ERROR:
        return None
    reason = hardware.metadata.annotations.get(ERROR) or "its status.state is Error"
    waiting = _not_seen(observed.workflow, observed.workflow.status)
    message = f"Hardware {hardware.metadata.name}: {reason}"
    timeout_message = f"{waiting.timeout_message}: {message}"
    return replace(waiting, reason=Reason.HARDWARE_ERROR, message=message, timeout_message=timeout_message)


def _situation(workflow: Workflow, status: WorkflowStatus) -> Situation:
    current = _current(status)
    if current is None:
        return _not_seen(workflow, status)
    task, action = current
    about = f"action {action.name} of task {task.name}"
    if action.state == WorkflowState.RUNNING:
        return _running_action(status, action, about)
    limit_s = agent_timeout_s(workflow)
    if action.state != WorkflowState.SUCCESS:
        problem, limit_s = f"has not started {about}", limit_s or AGENT_SILENCE_S
    elif status.agent_id == task.agent_id:
        problem, limit_s = f"has not requested the action after {about}", limit_s or AGENT_SILENCE_S
    else:
        # Another server's agent takes over; it is unknown when that server has booted.
        problem = f"has not requested its first action, which follows {about}"
    timeout_message = (
        f"Agent {status.agent_id} {problem} within {limit_s or 0:g} s. Check the server's power and network."
    )
    message = f"Agent {status.agent_id} {problem}."
    return Situation(Reason.ACTIONS_RUNNING, message, limit_s, Reason.AGENT_SILENT, timeout_message)


def wait_for_agent(draft: WorkflowDraft) -> None:
    """Wait until the agent requests the first action."""
    waiting = _not_seen(draft.obj, draft.status)
    draft.wait_for(waiting.reason, waiting.message)


def _not_seen(workflow: Workflow, status: WorkflowStatus) -> Situation:
    limit_s = agent_timeout_s(workflow)
    message = f"Waiting until agent {status.agent_id} requests the first action, once the server runs the in-memory OS."
    if limit_s is None and (text := workflow.metadata.annotations.get(AGENT_TIMEOUT)):
        message += f" Annotation {AGENT_TIMEOUT} {text[:40]!r} has no effect: it must be a number of seconds."
    timeout_message = f"Agent {status.agent_id} has not requested the first action within {limit_s or 0:g} s."
    return Situation(Reason.AGENT_NOT_SEEN, message, limit_s, Reason.AGENT_NEVER_CAME, timeout_message)


def _running_action(status: WorkflowStatus, action: WorkflowAction, about: str) -> Situation:
    message = f"Agent {status.agent_id} runs {about}."
    if action.timeout <= 0:
        return Situation(Reason.ACTIONS_RUNNING, message, action_id=action.id)
    timeout_message = (
        f"Agent {status.agent_id} did not report on {about} within {ACTION_GRACE_S:g} s after the action's timeout of"
        f" {action.timeout} s. Check the server's power and network."
    )
    limit_s = action.timeout + ACTION_GRACE_S
    return Situation(
        Reason.ACTIONS_RUNNING,
        message,
        limit_s,
        Reason.ACTION_TIMEOUT,
        timeout_message,
        action.id,
        action.execution_start,
    )


def _after(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=min(seconds, LONGEST_S))


def _limit(draft: WorkflowDraft, situation: Situation) -> Iterable[Deadline]:
    current = draft.succeeded
    if situation.limit_s is None or current is None or current.time is None:
        return ()
    since = parse_rfc3339(current.time)
    began = parse_rfc3339(situation.began) if situation.began else since
    # A start in the future is by another clock.
    since = began if since < began <= draft.now else since
    at = _after(since, situation.limit_s)
    return (Deadline(at, situation.too_late, situation.timeout_message, situation.action_id),)


def _global_limit(status: WorkflowStatus, situation: Situation) -> Iterable[Deadline]:
    if status.global_execution_stop is None:
        return ()
    message = f"The Workflow did not complete within its global timeout of {status.global_timeout} s."
    at = parse_rfc3339(status.global_execution_stop)
    return (Deadline(at, Reason.GLOBAL_TIMEOUT, message, situation.action_id),)


def _wait_until(draft: WorkflowDraft, situation: Situation) -> None:
    """Wait, and time out at the first deadline."""
    draft.wait_for(situation.reason, situation.message)
    deadlines = [*_limit(draft, situation), *_global_limit(draft.status, situation)]
    first = min(deadlines, key=lambda deadline: deadline.at, default=None)
    if first is None:
        return
    if draft.now < first.at:
        draft.requeue_after(first.at - draft.now)
    else:
        _time_out(draft, first)


def _time_out(draft: WorkflowDraft, deadline: Deadline) -> None:
    status, state = draft.status, WorkflowState.TIMEOUT
    task_and_action = statuses.find_action(status.tasks, deadline.action_id)
    if task_and_action is not None:
        action = msgspec.structs.replace(
            task_and_action[1], state=state, execution_stop=rfc3339(draft.now), message=deadline.message
        )
        status = statuses.with_actions(status, action.id, action)
        if status.current_state is not None:
            current = msgspec.structs.replace(status.current_state, state=state)
            status = msgspec.structs.replace(status, current_state=current)
    draft.status = status
    draft.end(state, deadline.reason, deadline.message)


def _current(status: WorkflowStatus) -> tuple[WorkflowTask, WorkflowAction] | None:
    return statuses.find_action(status.tasks, status.current_state.action_id) if status.current_state else None


def _handed_over(status: WorkflowStatus) -> WorkflowStatus:
    """The status with the agent of the next task, once all actions of the previous task have succeeded."""
    if status.current_state is None:
        return status
    for number, task in enumerate(status.tasks[:-1]):
        following = status.tasks[number + 1]
        if (
            task.id == status.current_state.task_id
            and all(action.state == WorkflowState.SUCCESS for action in task.actions)
            and following.actions
            and following.actions[0].state == WorkflowState.PENDING
        ):
            return msgspec.structs.replace(status, agent_id=following.agent_id)
    return status

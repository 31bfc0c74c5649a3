"""The states in which an agent works: PENDING and RUNNING. Hand-over between agents, and all that ends them by time.

The workflow service writes what agents report; this side looks at the clock. Times that agents report are not used:
a machine's clock may be years off. Since when an action runs, or an agent is silent, is the time of the condition
`Succeeded`, which is written when that is first seen; an action that began anew meanwhile, as after a reboot, has the
workflow service's time of its begin.

Three limits: the global timeout, from the moment the Workflow is seen RUNNING; an action's own timeout with some
grace, since its agent ends it in time unless the machine is gone; and an agent's silence between two actions.

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
from ironbell.controllers.tink.names import CONDITION_SUCCEEDED, Reason
from ironbell.controllers.tink.observed import Observed
from ironbell.kube.decision import Decision, patch

ACTION_GRACE_S: Final = 60.0
"""An agent ends an action that is out of time by itself; this is how much later its report may come."""
AGENT_SILENCE_S: Final = 1800.0
"""How long an agent may take to ask for the next action: a server may reboot in between, and take its time."""

LONGEST_S: Final = 100 * 365.25 * 86400.0
"""Longer limits are taken as this: the ends of theirs lie beyond what can be written as a time."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What the Workflow is waiting for, and what it means when that takes longer than `limit_s` (None: for ever)."""

    reason: Reason
    message: str
    limit_s: float | None = None
    too_late: Reason = Reason.AGENT_SILENT
    verdict: str = ""
    action_id: str = ""
    began: str | None = None
    """When the workflow service saw the action begin."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment after which the Workflow has timed out, and what is said then."""

    at: datetime
    reason: Reason
    message: str
    action_id: str = ""


def pending(observed: Observed, now: datetime) -> Decision:
    """Wait for the agent, for as long as an annotation says, else for ever."""
    workflow = observed.workflow
    situation = _in_doubt(observed) or _situation(workflow, workflow.status)
    status = _seen(workflow.status, situation, now)
    return _until(workflow, status, [*_limit(status, situation, now), *_global_limit(status, situation)], now)


def running(observed: Observed, now: datetime) -> Decision:
    """Hand over between agents, set the deadline, and end what is out of time; note that what is installed now knows
    no token, where an earlier system did."""
    workflow = observed.workflow
    status = _handed_over(workflow.status)
    if status.global_timeout > 0 and status.global_execution_stop is None:
        stop = _after(now, status.global_timeout)
        status = msgspec.structs.replace(status, global_execution_stop=rfc3339(stop))
    situation = _situation(workflow, status)
    status = _seen(status, situation, now)
    decision = _until(workflow, status, [*_limit(status, situation, now), *_global_limit(status, situation)], now)
    if observed.hardware is None or not (marks := supersedes(workflow, observed.hardware)):
        return decision
    mark = patch(HARDWARE, observed.hardware, {"metadata": {"annotations": marks}}, locked=True)
    return replace(decision, actions=(mark, *decision.actions))


def is_to_hand_over(status: WorkflowStatus) -> bool:
    """Whether it is another agent's turn now."""
    return _handed_over(status).agent_id != status.agent_id


def agent_timeout_s(workflow: Workflow) -> float | None:
    """What the annotation says; None where there is none, or none that is a positive number."""
    seconds = float(decimal(workflow.metadata.annotations.get(AGENT_TIMEOUT, "")) or 0)
    return min(seconds, LONGEST_S) if seconds > 0 else None


def _in_doubt(observed: Observed) -> Situation | None:
    """What keeps the workflow service from giving any action of a Workflow whose agent has not begun."""
    hardware = observed.hardware
    if hardware is None or hardware.status.state != HardwareState.ERROR:
        return None
    why = hardware.metadata.annotations.get(ERROR) or "its status.state is Error"
    waiting = _not_seen(observed.workflow, observed.workflow.status)
    message = f"Hardware {hardware.metadata.name}: {why}"
    verdict = f"{waiting.verdict}: {message}"
    return replace(waiting, reason=Reason.HARDWARE_ERROR, message=message, verdict=verdict)


def _situation(workflow: Workflow, status: WorkflowStatus) -> Situation:
    current = _current(status)
    if current is None:
        return _not_seen(workflow, status)
    task, action = current
    about = f"action {action.name} of task {task.name}"
    if action.state == WorkflowState.RUNNING:
        return _at_work(status, action, about)
    limit_s = agent_timeout_s(workflow)
    if action.state != WorkflowState.SUCCESS:
        said, limit_s = f"has fetched {about} and not begun it", limit_s or AGENT_SILENCE_S
    elif status.agent_id == task.agent_id:
        said, limit_s = f"has ended {about} and not asked for the next", limit_s or AGENT_SILENCE_S
    else:
        # Another machine's agent takes over; nobody knows when that machine is up.
        said = f"has not asked for its first action, which follows {about}"
    verdict = f"agent {status.agent_id} {said} within {limit_s or 0:g} s; its machine may have lost power or network"
    message = f"agent {status.agent_id} {said}"
    return Situation(Reason.ACTIONS_RUNNING, message, limit_s, Reason.AGENT_SILENT, verdict)


def waits_for_agent(workflow: Workflow, status: WorkflowStatus, now: datetime) -> WorkflowStatus:
    """The status that waits for the agent to take the first action."""
    return _seen(status, _not_seen(workflow, status), now)


def _not_seen(workflow: Workflow, status: WorkflowStatus) -> Situation:
    limit_s = agent_timeout_s(workflow)
    message = f"agent {status.agent_id} has not asked for the first action; it does once the in-memory OS runs"
    if limit_s is None and (text := workflow.metadata.annotations.get(AGENT_TIMEOUT)):
        message += f"; annotation {AGENT_TIMEOUT} {text[:40]!r} has no effect, it must be a number of seconds"
    verdict = f"agent {status.agent_id} has not asked for the first action within {limit_s or 0:g} s"
    return Situation(Reason.AGENT_NOT_SEEN, message, limit_s, Reason.AGENT_NEVER_CAME, verdict)


def _at_work(status: WorkflowStatus, action: WorkflowAction, about: str) -> Situation:
    message = f"agent {status.agent_id} runs {about}"
    if action.timeout <= 0:
        return Situation(Reason.ACTIONS_RUNNING, message, action_id=action.id)
    verdict = (
        f"{about}: its agent {status.agent_id} said nothing for {ACTION_GRACE_S:g} s after the action's timeout"
        f" of {action.timeout} s; the machine may have lost power or network"
    )
    limit_s = action.timeout + ACTION_GRACE_S
    return Situation(
        Reason.ACTIONS_RUNNING, message, limit_s, Reason.ACTION_TIMEOUT, verdict, action.id, action.execution_start
    )


def _seen(status: WorkflowStatus, situation: Situation, now: datetime) -> WorkflowStatus:
    return statuses.waits(status, situation.reason, situation.message, now=now)


def _after(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=min(seconds, LONGEST_S))


def _limit(status: WorkflowStatus, situation: Situation, now: datetime) -> Iterable[Deadline]:
    found = statuses.condition(status, CONDITION_SUCCEEDED)
    if situation.limit_s is None or found is None or found.time is None:
        return ()
    since = parse_rfc3339(found.time)
    began = parse_rfc3339(situation.began) if situation.began else since
    # A begin that lies ahead is by another clock.
    since = began if since < began <= now else since
    at = _after(since, situation.limit_s)
    return (Deadline(at, situation.too_late, situation.verdict, situation.action_id),)


def _global_limit(status: WorkflowStatus, situation: Situation) -> Iterable[Deadline]:
    if status.global_execution_stop is None:
        return ()
    message = f"the workflow did not end within its global timeout of {status.global_timeout} s"
    at = parse_rfc3339(status.global_execution_stop)
    return (Deadline(at, Reason.GLOBAL_TIMEOUT, message, situation.action_id),)


def _until(workflow: Workflow, status: WorkflowStatus, deadlines: Iterable[Deadline], now: datetime) -> Decision:
    first = min(deadlines, key=lambda deadline: deadline.at, default=None)
    if first is None:
        return statuses.changed(workflow, status)
    if now < first.at:
        return statuses.changed(workflow, status, requeue_after_s=(first.at - now).total_seconds())
    return statuses.changed(workflow, _timed_out(status, first, now))


def _timed_out(status: WorkflowStatus, deadline: Deadline, now: datetime) -> WorkflowStatus:
    found = statuses.find_action(status.tasks, deadline.action_id)
    if found is not None:
        state = WorkflowState.TIMEOUT
        stopped = rfc3339(now)
        action = msgspec.structs.replace(found[1], state=state, execution_stop=stopped, message=deadline.message)
        status = statuses.with_actions(status, action.id, action)
        if status.current_state is not None:
            current = msgspec.structs.replace(status.current_state, state=state)
            status = msgspec.structs.replace(status, current_state=current)
    return statuses.ended(status, WorkflowState.TIMEOUT, deadline.reason, deadline.message, now=now)


def _current(status: WorkflowStatus) -> tuple[WorkflowTask, WorkflowAction] | None:
    return statuses.find_action(status.tasks, status.current_state.action_id) if status.current_state else None


def _handed_over(status: WorkflowStatus) -> WorkflowStatus:
    """The status in which the agent of the next task may fetch, once all actions of the task before have succeeded."""
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

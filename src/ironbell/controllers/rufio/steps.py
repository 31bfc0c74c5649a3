"""The next step of a Task that has not timed out, by the nature of its operation.

Decisions use the power state with the time of its query, and the stored attempt.

* A goal is sent only while the power state differs; it is sent again if the BMC accepted it long ago, or if its outcome
  is unknown.
* A setting is sent until it is accepted.
* A pulse is sent once. If its outcome is unknown, an annotation selects whether the Task fails or sends it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.machine import PowerState
from ironbell.api.bmc.task import Task
from ironbell.base.clock import parse_rfc3339
from ironbell.bmc.driver import BmcProblem, problem_of
from ironbell.controllers.rufio import attempt as attempts
from ironbell.controllers.rufio import taskstatus
from ironbell.controllers.rufio.attempt import Attempt
from ironbell.controllers.rufio.names import ANNOTATION_ON_UNKNOWN
from ironbell.controllers.rufio.operation import Nature, Operation, SetPower, describe, goal_of, nature_of
from ironbell.controllers.rufio.target import EFFECT_TIMEOUT_S, USE_TIMEOUT_S, PowerOf, Target
from ironbell.controllers.rufio.taskstatus import TaskDraft
from ironbell.kube.decision import Effect, Fact, Need
from ironbell.kube.draft import replace

OPERATE: Final = "bmc-operate"

QUERY_DELAY_MAX_S: Final = 30.0
"""Largest delay between queries of a BMC that does not respond."""
POLL_S: Final = 3.0
"""Interval between queries of the power state after a goal was sent."""
SEND_AGAIN_S: Final = 60.0
"""Delay after which a goal that was accepted and is not reached is sent again: a BMC may lose it."""
UNKNOWN_AGAIN_S: Final = 15.0
"""Delay after which a goal whose outcome is unknown is sent again."""
RETRY_MAX_S: Final = 60.0
LOGINS: Final = 3
"""Rejected logins after which the Task fails: more would lock the account."""
LOGIN_DELAY_S: Final = 10.0

_EVER: Final = datetime.min.replace(tzinfo=UTC)
_HOPELESS = (BmcProblem.REJECTED, BmcProblem.CERTIFICATE, BmcProblem.ADDRESS)


@dataclass(frozen=True, slots=True)
class TaskObserved:
    """A Task, its BMC, its last attempt, and the power state."""

    task: Task
    target: Target = field(default_factory=lambda: Target("", "{}"))
    attempt: Attempt = field(default_factory=Attempt)
    power: Fact[PowerState] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Operate:
    """Arguments of the effect `bmc-operate`."""

    task: Task
    target: Target
    operation: Operation
    attempt: Attempt


def take(draft: TaskDraft, observed: TaskObserved, operation: Operation) -> None:
    """Take the next step of an operation that has not completed."""
    _STEPS[nature_of(operation)](draft, observed, operation)


def _goal(draft: TaskDraft, observed: TaskObserved, operation: Operation) -> None:
    attempt, need = observed.attempt, _power_need(observed)
    state = _reading(observed.power, need, draft.now)
    if state is None:
        _query_power(draft, observed, need)
        return
    if state == goal_of(operation):
        if attempt.started:
            draft.first.append(attempts.store(draft.obj, attempts.settled(attempt, draft.now)))
        draft.complete()
        return
    due = _goal_due(attempt, operation)
    if attempt.failed and attempt.problem != BmcProblem.OUTCOME_UNKNOWN:
        _send_again(draft, observed, operation)
    elif due is not None and draft.now >= due:
        _send(draft, observed, operation)
    else:
        draft.wait("PowerStateNotReached", f"{describe(operation)} was sent, and the power is {state}")
        if attempt.failed:
            draft.hold_up(attempt.problem, attempt.message)
        draft.need(need)
        draft.requeue_after(due - draft.now if due is not None else None)


def _setting(draft: TaskDraft, observed: TaskObserved, operation: Operation) -> None:
    attempt = observed.attempt
    if attempt.accepted:
        draft.complete()
    elif attempt.failed and attempt.problem != BmcProblem.OUTCOME_UNKNOWN:
        _send_again(draft, observed, operation)
    else:
        _send(draft, observed, operation)


def _pulse(draft: TaskDraft, observed: TaskObserved, operation: Operation) -> None:
    attempt = observed.attempt
    is_unknown = attempt.is_unknown or attempt.problem == BmcProblem.OUTCOME_UNKNOWN
    if attempt.accepted:
        draft.complete()
    elif is_unknown and draft.metadata.annotations.get(ANNOTATION_ON_UNKNOWN) != "retry":
        draft.fail(
            f"the outcome of {describe(operation)} is unknown: {attempt.message or 'the controller was restarted'};"
            f" check the server and create a new Job, or annotate Jobs with {ANNOTATION_ON_UNKNOWN}: retry"
        )
    elif attempt.failed and not is_unknown:
        _send_again(draft, observed, operation)
    else:
        _send(draft, observed, operation)


def _query(draft: TaskDraft, observed: TaskObserved, operation: Operation) -> None:
    need = _power_need(observed)
    state = _reading(observed.power, need, draft.now)
    if state is None:
        _query_power(draft, observed, need)
    else:
        draft.complete(f"The power is {state}.")


_STEPS: Final[dict[Nature, Callable[[TaskDraft, TaskObserved, Operation], None]]] = {
    Nature.GOAL: _goal,
    Nature.SETTING: _setting,
    Nature.PULSE: _pulse,
    Nature.QUERY: _query,
}


def _send(draft: TaskDraft, observed: TaskObserved, operation: Operation) -> None:
    attempt = attempts.begun(observed.attempt, draft.now)
    intent = f"{draft.metadata.uid}/{attempt.number}"
    arguments = Operate(draft.obj, observed.target, operation, attempt)
    outdates = (PowerOf(observed.target),)
    draft.first.append(attempts.store(draft.obj, attempt, intent=intent))
    draft.status = replace(draft.status, conditions=[])
    draft.last.append(Effect(OPERATE, arguments, timeout_s=EFFECT_TIMEOUT_S, intent=intent, outdates=outdates))


def _send_again(draft: TaskDraft, observed: TaskObserved, operation: Operation) -> None:
    """Send an operation again when its delay has passed, or fail the Task."""
    attempt, message = observed.attempt, observed.attempt.message
    if attempt.problem in _HOPELESS or _is_locking(attempt):
        draft.fail(message)
        return
    delay_s = LOGIN_DELAY_S * attempt.logins if attempt.logins else min(2.0 ** (attempt.failures - 1), RETRY_MAX_S)
    due = parse_rfc3339(attempt.failed) + timedelta(seconds=delay_s)
    if attempt.failures == 0 or draft.now >= due:
        _send(draft, observed, operation)
    else:
        draft.hold_up(attempt.problem, message)
        draft.requeue_after(due - draft.now)


def _query_power(draft: TaskDraft, observed: TaskObserved, need: Need[PowerState]) -> None:
    """Wait for the power state, or handle the error of its query."""
    fact = observed.power
    if fact is None or fact.error is None:
        draft.wait("AskingPower", "Querying the power state.")
        draft.need(need)
        return
    problem, message = problem_of(fact.error), fact.error.message
    if problem in _HOPELESS:
        draft.fail(message)
    elif problem is BmcProblem.AUTHENTICATION:
        _count_login(draft, observed, need, message, fact.error_at or draft.now)
    else:
        draft.hold_up(problem, message)
        if problem is not BmcProblem.CREDENTIALS:
            draft.need(need)


def _count_login(draft: TaskDraft, observed: TaskObserved, need: Need[PowerState], message: str, at: datetime) -> None:
    """Count the rejected login, and query again only after a delay."""
    attempt = observed.attempt
    if not attempt.login_rejected or parse_rfc3339(attempt.login_rejected) < at:
        draft.first.append(attempts.store(draft.obj, attempts.login_rejected(attempt, at)))
        return
    if _is_locking(attempt):
        draft.fail(message)
        return
    draft.hold_up(BmcProblem.AUTHENTICATION, message)
    left_s = LOGIN_DELAY_S * attempt.logins - (draft.now - at).total_seconds()
    if left_s <= 0:
        draft.need(need)
    else:
        draft.requeue_after(left_s)


def _is_locking(attempt: Attempt) -> bool:
    return attempt.logins >= LOGINS


def _power_need(observed: TaskObserved) -> Need[PowerState]:
    attempt = observed.attempt
    query = PowerOf(observed.target)
    if attempt.started and not attempt.failed:
        return Need(query, POLL_S, parse_rfc3339(attempt.accepted or attempt.started), USE_TIMEOUT_S)
    return Need(query, QUERY_DELAY_MAX_S, taskstatus.started(observed.task), USE_TIMEOUT_S)


def _reading(power: Fact[PowerState] | None, need: Need[PowerState], now: datetime) -> PowerState | None:
    """The power state, if it is fresh enough and the last query succeeded."""
    if power is None or power.error is not None or not power.fresh(now, need.max_age_s, need.newer_than):
        return None
    return power.value


def _goal_due(attempt: Attempt, operation: Operation) -> datetime | None:
    """The time at which a goal that is not reached is sent (again); None for never."""
    if not attempt.started:
        return _EVER
    if not attempt.accepted:
        return parse_rfc3339(attempt.started) + timedelta(seconds=UNKNOWN_AGAIN_S)
    if isinstance(operation, SetPower) and operation.action is PowerAction.SOFT:
        return None
    return parse_rfc3339(attempt.accepted) + timedelta(seconds=SEND_AGAIN_S)

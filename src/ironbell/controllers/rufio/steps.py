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
from ironbell.base.errors import IronbellError
from ironbell.bmc.driver import BmcProblem, problem_of
from ironbell.controllers.rufio import attempt as attempts
from ironbell.controllers.rufio import taskstatus
from ironbell.controllers.rufio.attempt import Attempt
from ironbell.controllers.rufio.names import ANNOTATION_ON_UNKNOWN
from ironbell.controllers.rufio.operation import Nature, Operation, SetPower, describe, goal_of, nature_of
from ironbell.controllers.rufio.target import EFFECT_TIMEOUT_S, USE_TIMEOUT_S, PowerOf, Target
from ironbell.kube.decision import Decision, Effect, Fact, Need, do, wait

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


def next_step(observed: TaskObserved, operation: Operation, now: datetime) -> Decision:
    """Decide the next step of an operation that has not completed."""
    return _STEPS[nature_of(operation)](observed, operation, now)


def _goal(observed: TaskObserved, operation: Operation, now: datetime) -> Decision:
    attempt, need = observed.attempt, _power_need(observed)
    state = _reading(observed.power, need, now)
    if state is not None and state == goal_of(operation):
        settled = attempts.store(observed.task, attempts.settled(attempt, now)) if attempt.started else None
        return do(settled, taskstatus.completed(observed.task, "", now))
    if state is None:
        return _unknown_power(observed, need, now)
    due = _goal_due(attempt, operation)
    if attempt.failed and attempt.problem != BmcProblem.OUTCOME_UNKNOWN:
        return _again(observed, operation, now)
    if due is not None and now >= due:
        return _send(observed, operation, now)
    message = f"{describe(operation)} was sent, and the power is {state}"
    left_s = (due - now).total_seconds() if due is not None else None
    held_up = taskstatus.held_up(observed.task, attempt.problem, attempt.message) if attempt.failed else None
    return wait("PowerStateNotReached", message, held_up, needs=[need], requeue_after_s=left_s)


def _setting(observed: TaskObserved, operation: Operation, now: datetime) -> Decision:
    attempt = observed.attempt
    if attempt.accepted:
        return do(taskstatus.completed(observed.task, "", now))
    if attempt.failed and attempt.problem != BmcProblem.OUTCOME_UNKNOWN:
        return _again(observed, operation, now)
    return _send(observed, operation, now)


def _pulse(observed: TaskObserved, operation: Operation, now: datetime) -> Decision:
    attempt = observed.attempt
    if attempt.accepted:
        return do(taskstatus.completed(observed.task, "", now))
    if attempt.is_unknown or attempt.problem == BmcProblem.OUTCOME_UNKNOWN:
        if observed.task.metadata.annotations.get(ANNOTATION_ON_UNKNOWN) == "retry":
            return _send(observed, operation, now)
        message = (
            f"the outcome of {describe(operation)} is unknown: {attempt.message or 'the controller was restarted'};"
            f" check the server and create a new Job, or annotate Jobs with {ANNOTATION_ON_UNKNOWN}: retry"
        )
        return taskstatus.failed(observed.task, message)
    if attempt.failed:
        return _again(observed, operation, now)
    return _send(observed, operation, now)


def _query(observed: TaskObserved, _operation: Operation, now: datetime) -> Decision:
    need = _power_need(observed)
    state = _reading(observed.power, need, now)
    if state is None:
        return _unknown_power(observed, need, now)
    return do(taskstatus.completed(observed.task, f"The power is {state}.", now))


_STEPS: Final[dict[Nature, Callable[[TaskObserved, Operation, datetime], Decision]]] = {
    Nature.GOAL: _goal,
    Nature.SETTING: _setting,
    Nature.PULSE: _pulse,
    Nature.QUERY: _query,
}


def _send(observed: TaskObserved, operation: Operation, now: datetime) -> Decision:
    attempt = attempts.begun(observed.attempt, now)
    intent = f"{observed.task.metadata.uid}/{attempt.number}"
    effect = Effect(
        OPERATE,
        Operate(observed.task, observed.target, operation, attempt),
        timeout_s=EFFECT_TIMEOUT_S,
        intent=intent,
        outdates=(PowerOf(observed.target),),
    )
    return do(attempts.store(observed.task, attempt, intent=intent), taskstatus.cleared(observed.task), effect)


def _again(observed: TaskObserved, operation: Operation, now: datetime) -> Decision:
    """Send an operation again when its delay has passed, or fail the Task."""
    attempt, message = observed.attempt, observed.attempt.message
    if attempt.problem in _HOPELESS or _is_locking(attempt):
        return taskstatus.failed(observed.task, message)
    if attempt.failures == 0:
        return _send(observed, operation, now)
    delay_s = LOGIN_DELAY_S * attempt.logins if attempt.logins else min(2.0 ** (attempt.failures - 1), RETRY_MAX_S)
    due = parse_rfc3339(attempt.failed) + timedelta(seconds=delay_s)
    if now >= due:
        return _send(observed, operation, now)
    held_up = taskstatus.held_up(observed.task, attempt.problem, message)
    return wait(attempt.problem, message, held_up, requeue_after_s=(due - now).total_seconds())


def _unknown_power(observed: TaskObserved, need: Need[PowerState], now: datetime) -> Decision:
    """Wait for the power state, or handle the error of its query."""
    fact = observed.power
    if fact is None or fact.error is None:
        return wait("AskingPower", "Querying the power state.", needs=[need])
    problem, message = problem_of(fact.error), fact.error.message
    if problem in _HOPELESS:
        return taskstatus.failed(observed.task, message)
    held_up = taskstatus.held_up(observed.task, problem, message)
    if problem is BmcProblem.AUTHENTICATION:
        return _login_rejected(observed, need, fact.error, fact.error_at or now, now)
    if problem is BmcProblem.CREDENTIALS:
        return wait(problem, message, held_up)
    return wait(problem, message, held_up, needs=[need])


def _login_rejected(
    observed: TaskObserved, need: Need[PowerState], error: IronbellError, at: datetime, now: datetime
) -> Decision:
    """Count the rejected login, and query again only after a delay."""
    attempt = observed.attempt
    if not attempt.login_rejected or parse_rfc3339(attempt.login_rejected) < at:
        return do(attempts.store(observed.task, attempts.login_rejected(attempt, at)))
    if _is_locking(attempt):
        return taskstatus.failed(observed.task, error.message)
    left_s = LOGIN_DELAY_S * attempt.logins - (now - at).total_seconds()
    held_up = taskstatus.held_up(observed.task, BmcProblem.AUTHENTICATION, error.message)
    if left_s <= 0:
        return wait(BmcProblem.AUTHENTICATION, error.message, held_up, needs=[need])
    return wait(BmcProblem.AUTHENTICATION, error.message, held_up, requeue_after_s=left_s)


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

"""The last attempt at a Task's operation, stored on the Task before it begins and again with its outcome.

Status has no room for it in upstream's schema, so it is an annotation. An attempt that was started, and was neither
accepted nor failed, belongs to a process that died: its outcome is unknown.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from ironbell.api.bmc.task import TASK, Task
from ironbell.api.meta import Model
from ironbell.base.clock import parse_rfc3339, rfc3339_micro
from ironbell.bmc.driver import BmcProblem
from ironbell.controllers.rufio.names import ANNOTATION_ATTEMPT
from ironbell.kube.decision import Fields, MergePatch, patch


class Attempt(Model, frozen=True):
    """One attempt at an operation. Field names on the wire are older than the attributes."""

    number: int = 0
    started: str = ""
    accepted: str = msgspec.field(default="", name="ended")
    """When the BMC had accepted the operation; empty while that is unknown."""
    settled: str = ""
    """When its result was observed."""
    failed: str = ""
    """When it was known to have failed; empty otherwise."""
    problem: str = msgspec.field(default="", name="trouble")
    message: str = ""
    failures: int = 0
    """Failures in a row with the same Secrets, this one included."""
    logins: int = 0
    """Logins in a row that were rejected with the same Secrets, for any query or operation."""
    login_rejected: str = msgspec.field(default="", name="loginRefused")
    """When the last login was rejected."""
    secrets: list[str] = msgspec.field(default_factory=list)
    """Versions of the Secrets to which the counts apply."""

    @property
    def is_unknown(self) -> bool:
        """Return whether the attempt was started and its outcome is unknown."""
        return bool(self.started and not self.accepted and not self.failed)


_decoder = msgspec.json.Decoder(Attempt)


def read(task: Task) -> Attempt | None:
    """The attempt on a Task; None before the first one, and if the annotation is not valid."""
    try:
        return _decoder.decode(task.metadata.annotations.get(ANNOTATION_ATTEMPT, ""))
    except msgspec.DecodeError:
        return None


def store(task: Task, attempt: Attempt, *, intent: str = "") -> MergePatch:
    """The write of an attempt; it fails if the Task has changed since it was observed."""
    return patch(TASK, task, _body(attempt), locked=True, intent=intent)


def store_outcome(task: Task, attempt: Attempt) -> MergePatch:
    """The write of an outcome. It is unconditional, because an outcome must not be lost if the Task has changed."""
    return patch(TASK, task, _body(attempt))


def _body(attempt: Attempt) -> Fields:
    return {"metadata": {"annotations": {ANNOTATION_ATTEMPT: msgspec.json.encode(attempt).decode()}}}


def known(attempt: Attempt | None, secrets: tuple[str, ...]) -> Attempt:
    """The attempt, with its counts reset if a Secret has changed; an empty attempt before the first one."""
    if attempt is None:
        return Attempt(secrets=list(secrets))
    if attempt.secrets == list(secrets):
        return attempt
    return msgspec.structs.replace(attempt, failures=0, logins=0, login_rejected="", secrets=list(secrets))


def begun(previous: Attempt, now: datetime) -> Attempt:
    """The next attempt, which is stored before it begins."""
    return msgspec.structs.replace(
        previous,
        number=previous.number + 1,
        started=rfc3339_micro(now),
        accepted="",
        settled="",
        failed="",
        problem="",
        message="",
    )


def accepted(attempt: Attempt, now: datetime) -> Attempt:
    """The attempt after the BMC has accepted the operation."""
    return msgspec.structs.replace(attempt, accepted=rfc3339_micro(now), failures=0, logins=0, login_rejected="")


def settled(attempt: Attempt, now: datetime) -> Attempt:
    """The attempt after its result was observed."""
    return msgspec.structs.replace(attempt, settled=rfc3339_micro(now))


def failed(attempt: Attempt, problem: BmcProblem, message: str, now: datetime) -> Attempt:
    """The attempt after it has failed."""
    new = msgspec.structs.replace(
        attempt, failed=rfc3339_micro(now), problem=problem, message=message, failures=attempt.failures + 1
    )
    return login_rejected(new, now) if problem is BmcProblem.AUTHENTICATION else new


def login_rejected(attempt: Attempt, at: datetime) -> Attempt:
    """The attempt after one more rejected login."""
    return msgspec.structs.replace(attempt, logins=attempt.logins + 1, login_rejected=rfc3339_micro(at))


def last_effect(task: Task) -> datetime | None:
    """Time at which the Task last changed the power or settings of its server, or may have; None for never."""
    attempt = read(task)
    if attempt is None or (attempt.failed and attempt.problem != BmcProblem.OUTCOME_UNKNOWN):
        return None
    moment = attempt.settled or attempt.accepted or attempt.started
    return parse_rfc3339(moment) if moment else None


def last_accepted(task: Task) -> datetime | None:
    """Time at which the BMC last accepted an operation of the Task, and so its login; None for never."""
    attempt = read(task)
    moment = attempt.settled or attempt.accepted if attempt is not None else ""
    return parse_rfc3339(moment) if moment else None

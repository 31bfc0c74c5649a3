"""The last time a Task's operation was begun, stored on the Task before it begins and again with its outcome.

Status has no room for it in upstream's schema, so it is an annotation. An attempt that has begun and neither ended nor
failed is one whose process died: what happened is unknown.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from ironbell.api.bmc.task import TASK, Task
from ironbell.api.meta import Model
from ironbell.base.clock import parse_rfc3339, rfc3339_micro
from ironbell.bmc.driver import Trouble
from ironbell.controllers.rufio.names import ANNOTATION_ATTEMPT
from ironbell.kube.decision import Fields, MergePatch, patch


class Attempt(Model, frozen=True):
    """One beginning of an operation."""

    number: int = 0
    started: str = ""
    ended: str = ""
    """When the BMC had accepted it; empty while that is unknown."""
    settled: str = ""
    """When its result was seen."""
    failed: str = ""
    """When it was known to have failed; empty otherwise."""
    trouble: str = ""
    message: str = ""
    failures: int = 0
    """Failures in a row with the same Secrets, this one included."""
    logins: int = 0
    """Logins in a row that were refused with the same Secrets, by whatever question or operation."""
    login_refused: str = ""
    """When the last of them was."""
    secrets: list[str] = msgspec.field(default_factory=list)
    """Versions of the Secrets that the counts are about."""

    @property
    def is_unknown(self) -> bool:
        """It began, and nobody knows what came of it."""
        return bool(self.started and not self.ended and not self.failed)


_decoder = msgspec.json.Decoder(Attempt)


def read(task: Task) -> Attempt | None:
    """The attempt on a Task; None before the first, and where the annotation is no valid one."""
    try:
        return _decoder.decode(task.metadata.annotations.get(ANNOTATION_ATTEMPT, ""))
    except msgspec.DecodeError:
        return None


def store(task: Task, attempt: Attempt, *, intent: str = "") -> MergePatch:
    """The write of an attempt, refused when the Task has changed since it was observed."""
    return patch(TASK, task, _body(attempt), locked=True, intent=intent)


def store_outcome(task: Task, attempt: Attempt) -> MergePatch:
    """The write of an outcome, which must not be lost whatever else has changed on the Task."""
    return patch(TASK, task, _body(attempt))


def _body(attempt: Attempt) -> Fields:
    return {"metadata": {"annotations": {ANNOTATION_ATTEMPT: msgspec.json.encode(attempt).decode()}}}


def known(attempt: Attempt | None, secrets: tuple[str, ...]) -> Attempt:
    """The attempt, with counts that begin anew when a Secret has changed; an empty one before the first."""
    if attempt is None:
        return Attempt(secrets=list(secrets))
    if attempt.secrets == list(secrets):
        return attempt
    return msgspec.structs.replace(attempt, failures=0, logins=0, login_refused="", secrets=list(secrets))


def begun(previous: Attempt, now: datetime) -> Attempt:
    """The next attempt, as stored before it begins."""
    return msgspec.structs.replace(
        previous,
        number=previous.number + 1,
        started=rfc3339_micro(now),
        ended="",
        settled="",
        failed="",
        trouble="",
        message="",
    )


def accepted(attempt: Attempt, now: datetime) -> Attempt:
    """The attempt after the BMC has accepted the operation."""
    return msgspec.structs.replace(attempt, ended=rfc3339_micro(now), failures=0, logins=0, login_refused="")


def settled(attempt: Attempt, now: datetime) -> Attempt:
    """The attempt whose result was seen."""
    return msgspec.structs.replace(attempt, settled=rfc3339_micro(now))


def refused(attempt: Attempt, trouble: Trouble, message: str, now: datetime) -> Attempt:
    """The attempt after it has failed."""
    failed = msgspec.structs.replace(
        attempt, failed=rfc3339_micro(now), trouble=trouble, message=message, failures=attempt.failures + 1
    )
    return login_refused(failed, now) if trouble is Trouble.AUTHENTICATION else failed


def login_refused(attempt: Attempt, at: datetime) -> Attempt:
    """The attempt with one more login that was refused."""
    return msgspec.structs.replace(attempt, logins=attempt.logins + 1, login_refused=rfc3339_micro(at))


def last_effect(task: Task) -> datetime | None:
    """When the Task last changed something on its machine, or may have."""
    attempt = read(task)
    if attempt is None or (attempt.failed and attempt.trouble != Trouble.OUTCOME_UNKNOWN):
        return None
    moment = attempt.settled or attempt.ended or attempt.started
    return parse_rfc3339(moment) if moment else None


def last_accepted(task: Task) -> datetime | None:
    """When the BMC last took an operation of the Task, and so its login."""
    attempt = read(task)
    moment = attempt.settled or attempt.ended if attempt is not None else ""
    return parse_rfc3339(moment) if moment else None

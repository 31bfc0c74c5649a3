"""The status of a Job.

Until a Job starts, its condition `Running` is False, and the message names what it waits for.

Source: tinkerbell/tinkerbell: rufio/internal/controller/job.go.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ironbell.api.bmc.job import JOB, Job, JobCondition, JobConditionType
from ironbell.api.meta import to_builtin
from ironbell.base.clock import rfc3339
from ironbell.kube.decision import Decision, MergePatch, do, emit, patch_status, wait

MESSAGE_LIMIT: Final = 2048


def is_finished(job: Job) -> bool:
    """Return whether the Job has completed or failed."""
    ends = (JobConditionType.COMPLETED, JobConditionType.FAILED)
    return any(c.type in ends and c.status == "True" for c in job.status.conditions)


def began(job: Job, now: datetime) -> MergePatch:
    """Record that the Job has claimed its Machine and runs."""
    status = {"conditions": _with(job, JobConditionType.RUNNING, "True", ""), "startTime": rfc3339(now)}
    return patch_status(JOB, job, status)


def progress(job: Job, message: str) -> MergePatch | None:
    """Report what the running Job waits for; None if the condition has this message already."""
    return _running(job, "True", message)


def held_up(job: Job, reason: str, message: str) -> Decision:
    """Report why the Job has not started."""
    return wait(reason, message, _running(job, "False", message))


def failed(job: Job, message: str) -> Decision:
    """Fail the Job."""
    status = {"conditions": _with(job, JobConditionType.FAILED, "True", message)}
    return do(
        patch_status(JOB, job, status),
        emit(JOB, job, reason="JobFailed", message=message, warning=True),
    )


def completed(job: Job, now: datetime) -> Decision:
    """Complete the Job."""
    status = {"conditions": _with(job, JobConditionType.COMPLETED, "True", ""), "completionTime": rfc3339(now)}
    count = len(job.spec.tasks)
    message = "Completed the operation." if count == 1 else f"Completed all {count} operations."
    return do(
        patch_status(JOB, job, status),
        emit(JOB, job, reason="JobCompleted", message=message),
    )


def _running(job: Job, running: str, message: str) -> MergePatch | None:
    conditions = _with(job, JobConditionType.RUNNING, running, message)
    return (
        patch_status(JOB, job, {"conditions": conditions}) if conditions != to_builtin(job.status.conditions) else None
    )


def _with(job: Job, kind: JobConditionType, status: str, message: str) -> list[dict[str, str]]:
    """All conditions with this one set. Messages of the others are removed, because they are outdated."""
    new = JobCondition(type=kind, status=status, message=message[:MESSAGE_LIMIT])
    others = [JobCondition(type=c.type, status=c.status) for c in job.status.conditions if c.type != kind]
    plain: list[dict[str, str]] = to_builtin([*others, new])
    return plain

"""A Job's status: whether it has begun or ended, and how it is written down.

Before a Job may begin, its condition `Running` is False and says what it waits for.

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
    """Whether the Job has ended, well or not."""
    ends = (JobConditionType.COMPLETED, JobConditionType.FAILED)
    return any(c.type in ends and c.status == "True" for c in job.status.conditions)


def began(job: Job, now: datetime) -> MergePatch:
    """The Job has its Machine."""
    status = {"conditions": _with(job, JobConditionType.RUNNING, "True", ""), "startTime": rfc3339(now)}
    return patch_status(JOB, job, status)


def progress(job: Job, message: str) -> MergePatch | None:
    """Say what the running Job is held up by; None when it says so already."""
    return _changed(job, "True", message)


def held_up(job: Job, reason: str, message: str) -> Decision:
    """Say why the Job has not begun."""
    return wait(reason, message, _changed(job, "False", message))


def failed(job: Job, message: str) -> Decision:
    """End the Job with what went wrong."""
    status = {"conditions": _with(job, JobConditionType.FAILED, "True", message)}
    return do(
        patch_status(JOB, job, status),
        emit(JOB, job, reason="JobFailed", message=message, warning=True),
    )


def completed(job: Job, now: datetime) -> Decision:
    """End the Job well."""
    status = {"conditions": _with(job, JobConditionType.COMPLETED, "True", ""), "completionTime": rfc3339(now)}
    count = len(job.spec.tasks)
    message = "the operation is done" if count == 1 else f"all {count} operations are done"
    return do(
        patch_status(JOB, job, status),
        emit(JOB, job, reason="JobCompleted", message=message),
    )


def _changed(job: Job, running: str, message: str) -> MergePatch | None:
    conditions = _with(job, JobConditionType.RUNNING, running, message)
    return (
        patch_status(JOB, job, {"conditions": conditions}) if conditions != to_builtin(job.status.conditions) else None
    )


def _with(job: Job, kind: JobConditionType, status: str, message: str) -> list[dict[str, str]]:
    """All conditions with this one set; what `Running` was held up by is no news any more then."""
    new = JobCondition(type=kind, status=status, message=message[:MESSAGE_LIMIT])
    others = [JobCondition(type=c.type, status=c.status) for c in job.status.conditions if c.type != kind]
    plain: list[dict[str, str]] = to_builtin([*others, new])
    return plain

"""The status of a Job.

Until a Job starts, its condition `Running` is False, and the message names what it waits for.

Source: tinkerbell/tinkerbell: rufio/internal/controller/job.go.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ironbell.api.bmc.job import JOB, Job, JobCondition, JobConditionType, JobStatus
from ironbell.base.clock import rfc3339
from ironbell.kube.draft import Draft, replace

MESSAGE_LIMIT: Final = 2048


def is_finished(job: Job) -> bool:
    """Return whether the Job has completed or failed."""
    ends = (JobConditionType.COMPLETED, JobConditionType.FAILED)
    return any(c.type in ends and c.status == "True" for c in job.status.conditions)


class JobDraft(Draft[Job]):
    """A Job's next state."""

    status: JobStatus

    def __init__(self, job: Job, now: datetime) -> None:
        super().__init__(JOB, job, now)

    def begin(self) -> None:
        """Record that the Job has claimed its Machine and runs."""
        self._report(JobConditionType.RUNNING, "True")
        self.status = replace(self.status, start_time=rfc3339(self.now))

    def progress(self, reason: str, message: str, report: str) -> None:
        """Wait while the Job runs, and report what for (empty for nothing unusual)."""
        self.wait(reason, message)
        self._report(JobConditionType.RUNNING, "True", report)

    def hold_up(self, reason: str, message: str) -> None:
        """Wait, and report why the Job has not started."""
        self.wait(reason, message)
        self._report(JobConditionType.RUNNING, "False", message)

    def fail(self, message: str) -> None:
        """Fail the Job."""
        self._report(JobConditionType.FAILED, "True", message)
        self.emit("JobFailed", message, warning=True)

    def complete(self) -> None:
        """Complete the Job."""
        self._report(JobConditionType.COMPLETED, "True")
        self.status = replace(self.status, completion_time=rfc3339(self.now))
        count = len(self.obj.spec.tasks)
        self.emit("JobCompleted", "Completed the operation." if count == 1 else f"Completed all {count} operations.")

    def _report(self, kind: JobConditionType, status: str, message: str = "") -> None:
        """Set a condition, and remove the messages of the others, because they are outdated."""
        new = JobCondition(type=kind, status=status, message=message[:MESSAGE_LIMIT])
        others = [JobCondition(type=c.type, status=c.status) for c in self.status.conditions if c.type != kind]
        self.status = replace(self.status, conditions=[*others, new])

"""The controller of Jobs: operations on one BMC, one Task after the other, and one Job at a time per Machine.

A Job claims its Machine with one conditional write: an annotation on the Machine that names the Job. The annotation of
a Job that has finished or was deleted is ignored, so it is never removed. Of several queued Jobs, the oldest is next.

Tasks are named by their position, so that each is created once. A Job waits until a Task of the same name that an
earlier Job created has been deleted.

Source: tinkerbell/tinkerbell: rufio/internal/controller/job.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from ironbell.api.bmc.job import JOB, Job
from ironbell.api.bmc.machine import MACHINE, Machine
from ironbell.api.bmc.task import TASK, Task, TaskConditionType, TaskSpec
from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED, LABEL_TASK_OWNER
from ironbell.bmc.driver import BmcProblem
from ironbell.contract.owners import owner_reference
from ironbell.controllers.rufio import jobstatus, taskstatus
from ironbell.controllers.rufio.jobstatus import JobDraft
from ironbell.controllers.rufio.names import ANNOTATION_CLAIM, ANNOTATION_MACHINE, ANNOTATION_ON_UNKNOWN
from ironbell.kube.decision import Action, Decision, Key, create, delete, patch
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration, Index, Watch, owned_by
from ironbell.provisioner import bmc_address

JOBS_BY_MACHINE: Final = Index(
    JOB,
    "rufio-unfinished",
    lambda job: [] if jobstatus.is_finished(job) else ["/".join(machine_key(job))],
)
"""Unfinished Jobs by their Machine."""


@dataclass(frozen=True, slots=True)
class JobObserved:
    """A Job, its Machine and Tasks, and the Jobs that compete for the Machine."""

    job: Job
    machine: Machine | None = None
    tasks: dict[int, Task] = field(default_factory=dict)
    """Tasks of the Job by position."""
    strangers: dict[int, Task] = field(default_factory=dict)
    """Tasks of other Jobs that have the names of this Job's Tasks, by position."""
    holder: str = ""
    """Name of another unfinished Job that has claimed the Machine."""
    elder: str = ""
    """Name of the oldest queued Job, if it is older than this one."""


def machine_key(job: Job) -> Key:
    """The key of the Machine; the namespace defaults to the Job's."""
    reference = job.spec.machine_ref
    return (reference.namespace or job.metadata.namespace, reference.name)


def task_name(job: Job, place: int) -> str:
    return f"{job.metadata.name}-task-{place}"


def claim_of(job: Job) -> str:
    """Value of the Machine's annotation while this Job has claimed it."""
    return f"{job.metadata.namespace}/{job.metadata.name}/{job.metadata.uid}"


def _of_machine(machine: Machine, cache: Cache) -> Iterable[Key]:
    return [job.key for job in cache.indexed(JOBS_BY_MACHINE, "/".join(machine.key))]


def _of_job(job: Job, cache: Cache) -> Iterable[Key]:
    """Jobs that can continue when this one has finished."""
    return [other.key for other in cache.indexed(JOBS_BY_MACHINE, "/".join(machine_key(job))) if other.key != job.key]


def _of_task(task: Task, _cache: Cache) -> Iterable[Key]:
    """The Job that creates a Task of this name, even if another object owns the Task."""
    owner = task.metadata.labels.get(LABEL_TASK_OWNER)
    return [(task.metadata.namespace, owner)] if owner else []


class JobReconciler:
    """Carries out the operations of a Job, in order."""

    name = "rufio-job"
    declaration = Declaration(
        JOB,
        watches=(
            owned_by(JOB, TASK),
            Watch(TASK, _of_task),
            Watch(MACHINE, _of_machine),
            Watch(JOB, _of_job),
        ),
        indexes=(JOBS_BY_MACHINE,),
    )

    def observe(self, cache: Cache, key: Key) -> JobObserved | None:
        job = cache.get(JOB, *key)
        if job is None or is_deleting(job):
            return None
        if jobstatus.is_finished(job):
            return JobObserved(job)
        by_place = {place: cache.get(TASK, key[0], task_name(job, place)) for place in range(len(job.spec.tasks))}
        tasks = {place: task for place, task in by_place.items() if task is not None}
        machine = cache.get(MACHINE, *machine_key(job))
        return JobObserved(
            job,
            machine,
            {place: task for place, task in tasks.items() if _is_owned(task, job)},
            {place: task for place, task in tasks.items() if not _is_owned(task, job)},
            _holder(cache, job, machine) if machine is not None else "",
            _elder(cache, job),
        )

    def decide(self, observed: JobObserved, now: datetime) -> Decision:
        draft = JobDraft(observed.job, now)
        if not jobstatus.is_finished(draft.obj):
            _decide(draft, observed)
        return draft.decision()


def _decide(draft: JobDraft, observed: JobObserved) -> None:
    job, machine = draft.obj, observed.machine
    if _is_disabled(job):
        draft.wait("Disabled", f"Annotation {ANNOTATION_DISABLED} is set.")
    elif machine is None:
        message = f"Machine {'/'.join(machine_key(job))} does not exist. Create it."
        draft.hold_up("MachineNotFound", message)
    elif problem := bmc_address.problem(machine):
        if job.status.start_time is None:
            draft.hold_up(BmcProblem.ADDRESS, problem)
        else:
            draft.progress(BmcProblem.ADDRESS, problem, problem)
    elif machine.metadata.annotations.get(ANNOTATION_CLAIM) != claim_of(job):
        _claim(draft, observed, machine)
    elif job.status.start_time is None:
        draft.begin()
    else:
        _next(draft, observed, machine)


def _claim(draft: JobDraft, observed: JobObserved, machine: Machine) -> None:
    other = observed.holder or observed.elder
    if other:
        draft.hold_up("MachineBusy", f"Waiting for Job {other}, which uses Machine {machine.metadata.name}.")
        return
    annotations = {ANNOTATION_CLAIM: claim_of(draft.obj)}
    if address := bmc_address.to_record(machine):
        annotations[bmc_address.ADDRESS] = address
    draft.owned.append(patch(MACHINE, machine, {"metadata": {"annotations": annotations}}, locked=True))
    draft.begin()


def _next(draft: JobDraft, observed: JobObserved, machine: Machine) -> None:
    """Follow the running Task, or create the next one."""
    last = max(observed.tasks, default=-1)
    if last >= 0:
        task = observed.tasks[last]
        failure = taskstatus.condition(task, TaskConditionType.FAILED)
        if taskstatus.has_failed(task) and failure is not None:
            draft.fail(f"Task {'/'.join(task.key)} failed: {failure.message or 'no reason given'}")
            return
        if not taskstatus.has_completed(task):
            _wait_for_task(draft, task)
            return
    stranger = observed.strangers.get(last + 1)
    if last + 1 >= len(draft.obj.spec.tasks):
        draft.complete()
    elif stranger is None:
        draft.owned.append(_creation(draft.obj, machine, last + 1))
    else:
        draft.owned.append(None if is_deleting(stranger) else delete(TASK, stranger))
        draft.wait("TaskNameTaken", f"Task {stranger.metadata.name} of an earlier Job is being deleted.")


def _wait_for_task(draft: JobDraft, task: Task) -> None:
    blocked = taskstatus.condition(task, TaskConditionType.COMPLETED)
    message = f"Task {task.metadata.name}: {blocked.message}" if blocked is not None and blocked.message else ""
    draft.progress("TaskRunning", message or f"Waiting for Task {task.metadata.name}.", message)


def _creation(job: Job, machine: Machine, place: int) -> Action:
    annotations = {ANNOTATION_MACHINE: "/".join(machine.key)}
    if ANNOTATION_ON_UNKNOWN in job.metadata.annotations:
        annotations[ANNOTATION_ON_UNKNOWN] = job.metadata.annotations[ANNOTATION_ON_UNKNOWN]
    metadata = ObjectMeta(
        name=task_name(job, place),
        namespace=job.metadata.namespace,
        labels={LABEL_TASK_OWNER: job.metadata.name},
        annotations=annotations,
        owner_references=[owner_reference(JOB, job, controller=True)],
    )
    connection = machine.spec.connection
    reference = connection.auth_secret_ref
    if reference is not None and not reference.namespace:
        # A Task lives in the Job's namespace, which need not be the Machine's.
        reference = msgspec.structs.replace(reference, namespace=machine.metadata.namespace)
        connection = msgspec.structs.replace(connection, auth_secret_ref=reference)
    spec = TaskSpec(task=job.spec.tasks[place], connection=connection)
    return create(TASK, Task(metadata=metadata, spec=spec))


def _holder(cache: Cache, job: Job, machine: Machine) -> str:
    claim = machine.metadata.annotations.get(ANNOTATION_CLAIM, "")
    queued = cache.indexed(JOBS_BY_MACHINE, "/".join(machine.key))
    return next((other.metadata.name for other in queued if claim_of(other) == claim and other.key != job.key), "")


def _elder(cache: Cache, job: Job) -> str:
    queued = cache.indexed(JOBS_BY_MACHINE, "/".join(machine_key(job)))
    eldest = min(
        (other for other in queued if not is_deleting(other) and not _is_disabled(other)), key=_age, default=job
    )
    return eldest.metadata.name if _age(eldest) < _age(job) else ""


def _age(job: Job) -> tuple[str, Key]:
    return (job.metadata.creation_timestamp or "", job.key)


def _is_disabled(job: Job) -> bool:
    return ANNOTATION_DISABLED in job.metadata.annotations


def _is_owned(task: Task, job: Job) -> bool:
    return any(owner.uid == job.metadata.uid for owner in task.metadata.owner_references)

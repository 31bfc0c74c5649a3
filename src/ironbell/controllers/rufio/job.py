"""The controller of Jobs: operations on one BMC, one Task after the other, and one Job at a time per Machine.

A Job takes its Machine by one write that fails when another was first: an annotation on the Machine that names the Job.
The annotation of a Job that has ended or is gone counts for nothing, so it is never taken off. Of several Jobs that
wait, the oldest goes first.

Tasks are named after their place, so that a Task is made once: while a Task of an earlier Job of the same name is still
there, this one waits for it to go.

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
from ironbell.api.meta import ObjectMeta, OwnerReference
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED, LABEL_TASK_OWNER
from ironbell.bmc.driver import Trouble
from ironbell.controllers.rufio import jobstatus, taskstatus
from ironbell.controllers.rufio.names import ANNOTATION_CLAIM, ANNOTATION_MACHINE, ANNOTATION_ON_UNKNOWN
from ironbell.kube.decision import DONE, Action, Decision, Key, create, delete, do, patch
from ironbell.kube.decision import wait as waits
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration, Index, Watch, owned_by
from ironbell.provisioner import bmc_address

JOBS_BY_MACHINE: Final = Index(
    JOB,
    "rufio-unfinished",
    lambda job: [] if jobstatus.is_finished(job) else ["/".join(machine_key(job))],
)
"""Jobs that have not ended, by their Machine."""


@dataclass(frozen=True, slots=True)
class JobObserved:
    """A Job, its Machine and Tasks, and who else wants the Machine."""

    job: Job
    machine: Machine | None = None
    tasks: dict[int, Task] = field(default_factory=dict)
    """Own Tasks by place."""
    strangers: dict[int, Task] = field(default_factory=dict)
    """Tasks of others that have the name of one of ours."""
    holder: str = ""
    """The unfinished Job, other than this, that holds the Machine."""
    elder: str = ""
    """The oldest unfinished Job that waits for the Machine and is older than this."""


def machine_key(job: Job) -> Key:
    """The Machine of a Job; without a namespace it is the Job's own."""
    reference = job.spec.machine_ref
    return (reference.namespace or job.metadata.namespace, reference.name)


def task_name(job: Job, place: int) -> str:
    return f"{job.metadata.name}-task-{place}"


def claim_of(job: Job) -> str:
    """What the Machine says when this Job holds it."""
    return f"{job.metadata.namespace}/{job.metadata.name}/{job.metadata.uid}"


def _of_machine(machine: Machine, cache: Cache) -> Iterable[Key]:
    return [job.key for job in cache.indexed(JOBS_BY_MACHINE, "/".join(machine.key))]


def _of_job(job: Job, cache: Cache) -> Iterable[Key]:
    """Jobs that may go on once this one has ended."""
    return [other.key for other in cache.indexed(JOBS_BY_MACHINE, "/".join(machine_key(job))) if other.key != job.key]


def _of_task(task: Task, _cache: Cache) -> Iterable[Key]:
    """The Job whose Task has this name, whoever owns the Task."""
    owner = task.metadata.labels.get(LABEL_TASK_OWNER)
    return [(task.metadata.namespace, owner)] if owner else []


class JobReconciler:
    """Brings the operations of a Job to their end, in order."""

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
        found = {place: cache.get(TASK, key[0], task_name(job, place)) for place in range(len(job.spec.tasks))}
        tasks = {place: task for place, task in found.items() if task is not None}
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
        job, machine = observed.job, observed.machine
        if jobstatus.is_finished(job):
            return DONE
        if _is_disabled(job):
            return waits("Disabled", f"annotation {ANNOTATION_DISABLED} is set")
        if machine is None:
            message = f"machine {'/'.join(machine_key(job))} does not exist; create it"
            return jobstatus.held_up(job, "MachineNotFound", message)
        if problem := bmc_address.problem(machine):
            return _without_password(job, problem)
        if machine.metadata.annotations.get(ANNOTATION_CLAIM) != claim_of(job):
            return _claim(observed, machine, now)
        if job.status.start_time is None:
            return do(jobstatus.began(job, now))
        return _next(observed, machine, now)


def _claim(observed: JobObserved, machine: Machine, now: datetime) -> Decision:
    other = observed.holder or observed.elder
    if other:
        message = f"job {other} uses machine {machine.metadata.name}; this one follows it"
        return jobstatus.held_up(observed.job, "MachineBusy", message)
    annotations = {ANNOTATION_CLAIM: claim_of(observed.job)}
    if address := bmc_address.to_record(machine):
        annotations[bmc_address.ADDRESS] = address
    claim = {"metadata": {"annotations": annotations}}
    return do(patch(MACHINE, machine, claim, locked=True), jobstatus.began(observed.job, now))


def _without_password(job: Job, problem: str) -> Decision:
    if job.status.start_time is None:
        return jobstatus.held_up(job, Trouble.ADDRESS, problem)
    return waits(Trouble.ADDRESS, problem, jobstatus.progress(job, problem))


def _next(observed: JobObserved, machine: Machine, now: datetime) -> Decision:
    """Follow the Task at work, or make the next."""
    job = observed.job
    last = max(observed.tasks, default=-1)
    if last >= 0:
        task = observed.tasks[last]
        failure = taskstatus.condition(task, TaskConditionType.FAILED)
        if taskstatus.has_failed(task) and failure is not None:
            return jobstatus.failed(job, f"task {'/'.join(task.key)} failed: {failure.message or 'no reason given'}")
        if not taskstatus.has_completed(task):
            return _follows(observed, task)
    if last + 1 >= len(job.spec.tasks):
        return jobstatus.completed(job, now)
    stranger = observed.strangers.get(last + 1)
    if stranger is not None:
        gone = None if is_deleting(stranger) else delete(TASK, stranger)
        message = f"task {stranger.metadata.name} of an earlier job is being deleted"
        return waits("TaskNameTaken", message, gone)
    return do(_creation(job, machine, last + 1))


def _follows(observed: JobObserved, task: Task) -> Decision:
    held_up = taskstatus.condition(task, TaskConditionType.COMPLETED)
    message = f"task {task.metadata.name}: {held_up.message}" if held_up is not None and held_up.message else ""
    write = jobstatus.progress(observed.job, message)
    return waits("TaskRunning", message or f"task {task.metadata.name} is not completed", write)


def _creation(job: Job, machine: Machine, place: int) -> Action:
    owner = OwnerReference(
        api_version=JOB.api_version,
        kind=JOB.kind,
        name=job.metadata.name,
        uid=job.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    annotations = {ANNOTATION_MACHINE: "/".join(machine.key)}
    if ANNOTATION_ON_UNKNOWN in job.metadata.annotations:
        annotations[ANNOTATION_ON_UNKNOWN] = job.metadata.annotations[ANNOTATION_ON_UNKNOWN]
    metadata = ObjectMeta(
        name=task_name(job, place),
        namespace=job.metadata.namespace,
        labels={LABEL_TASK_OWNER: job.metadata.name},
        annotations=annotations,
        owner_references=[owner],
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
    waiting = cache.indexed(JOBS_BY_MACHINE, "/".join(machine.key))
    return next((one.metadata.name for one in waiting if claim_of(one) == claim and one.key != job.key), "")


def _elder(cache: Cache, job: Job) -> str:
    waiting = cache.indexed(JOBS_BY_MACHINE, "/".join(machine_key(job)))
    eldest = min((one for one in waiting if not is_deleting(one) and not _is_disabled(one)), key=_age, default=job)
    return eldest.metadata.name if _age(eldest) < _age(job) else ""


def _age(job: Job) -> tuple[str, Key]:
    return (job.metadata.creation_timestamp or "", job.key)


def _is_disabled(job: Job) -> bool:
    return ANNOTATION_DISABLED in job.metadata.annotations


def _is_owned(task: Task, job: Job) -> bool:
    return any(owner.uid == job.metadata.uid for owner in task.metadata.owner_references)

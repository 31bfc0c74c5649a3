"""The controller of Tasks: one operation on one BMC, carried out once, with a known outcome.

An attempt is stored on the Task before the operation is sent, and its outcome afterwards. An outcome that a crash left
unknown is resolved by the power state (goals), by sending again (settings), or by policy (pulses): see `steps`. Failed
connections are retried until the Task times out.

Source: tinkerbell/tinkerbell: rufio/internal/controller/task.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from ironbell.api.bmc.machine import MACHINE
from ironbell.api.bmc.task import TASK, Task
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.base.clock import rfc3339
from ironbell.controllers.rufio import attempt, steps, taskstatus
from ironbell.controllers.rufio.names import ANNOTATION_MACHINE
from ironbell.controllers.rufio.operation import UnusableActionError, describe, operation_of
from ironbell.controllers.rufio.steps import TaskObserved
from ironbell.controllers.rufio.target import PowerOf, secret_keys, target_of
from ironbell.controllers.rufio.taskstatus import TaskDraft
from ironbell.kube.decision import Decision, Key
from ironbell.kube.draft import replace
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Declaration, Index, Watch, read_by
from ironbell.provisioner.bmc_address import Pin, pin_of

BY_SECRET: Final = Index(
    TASK,
    "rufio-task-secret",
    lambda task: [] if taskstatus.is_finished(task) else secret_keys(task.spec.connection, task.metadata.namespace),
)


def _of_secret(secret: SecretMetadata, cache: Cache) -> Iterable[Key]:
    return [task.key for task in cache.indexed(BY_SECRET, "/".join(secret.key))]


def _pin(task: Task, cache: Cache) -> Pin | None:
    """The address to which the password of the Task's Machine may be sent."""
    namespace, _, name = task.metadata.annotations.get(ANNOTATION_MACHINE, "").partition("/")
    machine = cache.get(MACHINE, namespace, name) if name else None
    return pin_of(machine) if machine is not None else None


class TaskReconciler:
    """Carries out one operation."""

    name = "rufio-task"
    declaration = Declaration(
        TASK,
        watches=(Watch(SECRET_METADATA, _of_secret), read_by(MACHINE, relevant=changed(pin_of))),
        indexes=(BY_SECRET,),
    )

    def observe(self, cache: Cache, key: Key) -> TaskObserved | None:
        task = cache.get(TASK, *key)
        if task is None or is_deleting(task):
            return None
        connection = task.spec.connection
        if connection is None or taskstatus.is_finished(task):
            return TaskObserved(task)
        target = target_of(connection, task.metadata.namespace, cache, _pin(task, cache))
        # the steps differ in how fresh the power state has to be; an error is used for as long as the Task runs
        power = cache.fact(PowerOf(target), taskstatus.LIMIT_S)
        return TaskObserved(task, target, attempt.known(attempt.read(task), target.secrets), power)

    def decide(self, observed: TaskObserved, now: datetime) -> Decision:
        draft = TaskDraft(observed.task, now)
        if not taskstatus.is_finished(draft.obj):
            _decide(draft, observed)
        return draft.decision()


def _decide(draft: TaskDraft, observed: TaskObserved) -> None:
    if ANNOTATION_DISABLED in draft.metadata.annotations:
        draft.wait("Disabled", f"Annotation {ANNOTATION_DISABLED} is set.")
        return
    try:
        operation = operation_of(draft.spec.task)
    except UnusableActionError as error:
        draft.fail(str(error))
        return
    started = taskstatus.started(draft.obj)
    if draft.spec.connection is None:
        draft.fail("spec.connection is missing; create a Job, which copies it from its Machine")
    elif started is None:
        draft.status = replace(draft.status, start_time=rfc3339(draft.now))
    elif (left_s := taskstatus.LIMIT_S - (draft.now - started).total_seconds()) <= 0:
        draft.fail(_late(observed, describe(operation)))
    else:
        steps.take(draft, observed, operation)
        draft.requeue_after(left_s)


def _late(observed: TaskObserved, operation: str) -> str:
    if observed.attempt.message:
        detail = observed.attempt.message
    elif observed.power is not None and observed.power.error is not None:
        detail = observed.power.error.message
    elif observed.attempt.accepted:
        detail = "the BMC accepted the operation, but the power state did not change"
    else:
        detail = "the BMC did not respond"
    return f"bmc task timeout: {operation} did not complete within {taskstatus.LIMIT_S:g} s: {detail}"

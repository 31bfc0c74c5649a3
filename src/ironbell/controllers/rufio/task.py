"""The controller of Tasks: one operation on one BMC, carried out once, with a known outcome.

An attempt is stored on the Task before the operation is sent, and its outcome afterwards. An outcome that a crash left
unknown is resolved by the power state (goals), by sending again (settings), or by policy (pulses): see `steps`. Failed
connections are retried until the Task times out.

Source: tinkerbell/tinkerbell: rufio/internal/controller/task.go.
"""

from __future__ import annotations

import dataclasses
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
from ironbell.kube.decision import DONE, Decision, Key, do, patch_status, wait
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
        task = observed.task
        if taskstatus.is_finished(task):
            return DONE
        if ANNOTATION_DISABLED in task.metadata.annotations:
            return wait("Disabled", f"Annotation {ANNOTATION_DISABLED} is set.")
        try:
            operation = operation_of(task.spec.task)
        except UnusableActionError as error:
            return taskstatus.failed(task, str(error))
        if task.spec.connection is None:
            return taskstatus.failed(task, "spec.connection is missing; create a Job, which copies it from its Machine")
        started = taskstatus.started(task)
        if started is None:
            return do(patch_status(TASK, task, {"startTime": rfc3339(now)}))
        left_s = taskstatus.LIMIT_S - (now - started).total_seconds()
        if left_s <= 0:
            return taskstatus.failed(task, _late(observed, describe(operation)))
        decision = steps.next_step(observed, operation, now)
        sooner_s = left_s if decision.requeue_after_s is None else min(decision.requeue_after_s, left_s)
        return dataclasses.replace(decision, requeue_after_s=sooner_s)


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

"""Task: one operation of a Job, with the connection to carry it out.

Source: tinkerbell/tinkerbell: api/v1alpha1/bmc/task.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.bmc.action import Action
from ironbell.api.bmc.connection import Connection
from ironbell.api.crd.markers import Schema, Time, required
from ironbell.api.kind import Kind
from ironbell.api.meta import Model, Resource


class TaskConditionType(StrEnum):
    """Types of a Task's conditions."""

    COMPLETED = "Completed"
    FAILED = "Failed"


class TaskCondition(Model, frozen=True):
    """One observation about a Task."""

    type: Annotated[str, Schema("Completed or Failed.")] = required(str)
    status: Annotated[str, Schema("True or False.")] = required(str)
    message: Annotated[str, Schema("Reason of the status, as a message for people.")] = ""


class TaskSpec(Model, frozen=True):
    """The operation, and the BMC it goes to."""

    task: Annotated[Action, Schema("The operation to carry out.")] = required(Action)
    connection: Annotated[Connection | None, Schema("How to reach the BMC, copied from the Machine.")] = None


class TaskStatus(Model, frozen=True):
    """Observed state of the Task."""

    conditions: Annotated[list[TaskCondition], Schema("Latest observations.")] = []
    start_time: Annotated[Time, Schema("When work began.")] = None
    completion_time: Annotated[Time, Schema("When the operation succeeded; unset after a failure.")] = None


class Task(Resource, frozen=True):
    """One operation on one BMC; made by the Job that it belongs to."""

    spec: TaskSpec = TaskSpec()
    status: TaskStatus = TaskStatus()


TASK: Kind[Task] = Kind(
    group="bmc.tinkerbell.org",
    version="v1alpha1",
    kind="Task",
    plural="tasks",
    model=Task,
    short_names=("t",),
    categories=("tinkerbell",),
    has_status=True,
)

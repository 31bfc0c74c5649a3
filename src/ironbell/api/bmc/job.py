"""Job: operations on one BMC, carried out in order.

Source: tinkerbell/tinkerbell: api/v1alpha1/bmc/job.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.bmc.action import Action
from ironbell.api.crd.markers import Schema, Time, required
from ironbell.api.kind import Kind
from ironbell.api.meta import Model, Resource


class JobConditionType(StrEnum):
    """Types of a Job's conditions."""

    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"


class MachineRef(Model, frozen=True):
    """A Machine by name and namespace."""

    name: Annotated[str, Schema("Name of the Machine.")] = required(str)
    namespace: Annotated[str, Schema("Namespace of the Machine.")] = required(str)


class JobCondition(Model, frozen=True):
    """One observation about a Job."""

    type: Annotated[str, Schema("Running, Completed or Failed.")] = required(str)
    status: Annotated[str, Schema("True or False.")] = required(str)
    message: Annotated[str, Schema("Reason of the status, as a message for people.")] = ""


class JobSpec(Model, frozen=True):
    """Operations to carry out, and the BMC that carries them out."""

    machine_ref: Annotated[MachineRef, Schema("The BMC that all operations go to.")] = required(MachineRef)
    tasks: Annotated[
        list[Action],
        Schema("Operations in order; the first that fails ends the Job.", min_items=1),
    ] = required(list)


class JobStatus(Model, frozen=True):
    """Observed state of the Job."""

    conditions: Annotated[list[JobCondition], Schema("Latest observations.")] = []
    start_time: Annotated[Time, Schema("When work began.")] = None
    completion_time: Annotated[Time, Schema("When the last operation succeeded; unset after a failure.")] = None


class Job(Resource, frozen=True):
    """Operations on one BMC, one after the other."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


JOB: Kind[Job] = Kind(
    group="bmc.tinkerbell.org",
    version="v1alpha1",
    kind="Job",
    plural="jobs",
    model=Job,
    short_names=("j",),
    categories=("tinkerbell",),
    has_status=True,
)

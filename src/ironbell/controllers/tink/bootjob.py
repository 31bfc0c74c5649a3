"""The bmc Jobs of a Workflow: their actions, their creation, and their progress.

A Job's name follows from the Workflow's name, and its owner reference names the Workflow. A Job of that name that
another Workflow has left is deleted first. The Workflow's own Job is created once, recorded by its uid, and never
created again: if it is deleted before it has completed, the Workflow fails, since the server may be in any state.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/{pre,post,job}.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ironbell.api.bmc.action import Action as BmcAction
from ironbell.api.bmc.action import (
    BootDeviceName,
    OneTimeBootDeviceAction,
    PowerAction,
    VirtualMediaAction,
    VirtualMediaKind,
)
from ironbell.api.bmc.job import JOB, Job, JobConditionType, JobSpec, MachineRef
from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.names import JOB_AUTO_CREATED, WorkflowConditionType
from ironbell.api.tinkerbell.workflow import WORKFLOW, BootJobStatus, BootMode, Workflow
from ironbell.contract.owners import owner_reference
from ironbell.controllers.tink.names import Reason
from ironbell.controllers.tink.observed import (
    CUSTOMBOOT_JOB,
    CUSTOMBOOT_POST_JOB,
    ISO_EJECT_JOB,
    ISO_MODES,
    ISO_MOUNT_JOB,
    NETBOOT_JOB,
    Observed,
)
from ironbell.controllers.tink.status import WorkflowDraft
from ironbell.kube.decision import Action, create, delete
from ironbell.kube.draft import replace
from ironbell.kube.finalizers import is_deleting


@dataclass(frozen=True, slots=True)
class Plan:
    """A Job to be carried out. `templated` actions are filled in before the Job is created."""

    name: str
    actions: tuple[BmcAction, ...]
    templated: bool = False


class Stage(Enum):
    """The progress of a Job."""

    STALE = "stale"
    TO_CREATE = "to create"
    TO_RECORD = "to record"
    RUNNING = "running"
    TO_COMPLETE = "to complete"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a Job, with a message if there is something to report."""

    stage: Stage
    message: str = ""


class UnusableBootOptionsError(Exception):
    """The boot options cannot be carried out; `reason` and message go into the Workflow."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def before_first_action(workflow: Workflow, hardware: Hardware) -> Plan | None:
    """The Job that boots the server into the in-memory OS, or None.

    Raises:
        UnusableBootOptionsError: a field is missing or wrong.
    """
    options, name = workflow.spec.boot_options, workflow.metadata.name
    if not options.boot_mode:
        return None
    if options.boot_mode == BootMode.NETBOOT:
        return Plan(NETBOOT_JOB + name, (_power(PowerAction.OFF), _boot_once(BootDeviceName.PXE, hardware), _ON))
    if options.boot_mode in ISO_MODES:
        if not options.iso_url:
            field = "spec.bootOptions.isoURL"
            raise UnusableBootOptionsError(
                Reason.INVALID_BOOT_OPTIONS,
                f"{field} is empty; boot mode {options.boot_mode} needs the address of an image",
            )
        insert = (_media(""), _media(options.iso_url), _boot_once(BootDeviceName.CDROM, hardware))
        return Plan(ISO_MOUNT_JOB + name, (_power(PowerAction.OFF), *insert, _ON))
    if options.boot_mode == BootMode.CUSTOMBOOT:
        actions = options.customboot_config.preparing_actions if options.customboot_config else []
        return Plan(CUSTOMBOOT_JOB + name, tuple(actions), templated=True) if actions else None
    raise UnusableBootOptionsError(
        Reason.INVALID_BOOT_OPTIONS,
        f"spec.bootOptions.bootMode {options.boot_mode!r} is not valid; use {', '.join(BootMode)}",
    )


def after_last_action(workflow: Workflow) -> Plan | None:
    """The Job that cleans up after success, or None."""
    options, name = workflow.spec.boot_options, workflow.metadata.name
    if options.boot_mode in ISO_MODES:
        return Plan(ISO_EJECT_JOB + name, (_media(""),))
    if options.boot_mode == BootMode.CUSTOMBOOT and options.customboot_config is not None:
        actions = tuple(options.customboot_config.post_actions)
        return Plan(CUSTOMBOOT_POST_JOB + name, actions, templated=True) if actions else None
    return None


def after_failure(workflow: Workflow) -> Plan | None:
    """The Job that ejects the image that a failed Workflow has inserted, or None."""
    inserted = ISO_MOUNT_JOB + workflow.metadata.name in workflow.status.boot_options.jobs
    return after_last_action(workflow) if inserted and workflow.spec.boot_options.boot_mode in ISO_MODES else None


def progress(observed: Observed, plan: Plan) -> Progress:
    """The progress of a planned Job."""
    job = observed.jobs.get(plan.name)
    entry = observed.workflow.status.boot_options.jobs.get(plan.name, BootJobStatus())
    if entry.complete:
        return Progress(Stage.COMPLETE)
    if entry.uid:
        if job is None or job.metadata.uid != entry.uid:
            return Progress(Stage.FAILED, f"Job {plan.name} was deleted before it completed.")
        return running(job)
    if job is None:
        return Progress(Stage.TO_CREATE)
    if not _is_owned(job, observed.workflow):
        return Progress(Stage.STALE, f"Job {plan.name} of an earlier Workflow is being deleted.")
    return Progress(Stage.TO_RECORD)


def discard(job: Job) -> Action | None:
    """Delete a Job of an earlier Workflow with its Tasks; None if it is being deleted."""
    return None if is_deleting(job) else delete(JOB, job)


def new_job(workflow: Workflow, hardware: Hardware, plan: Plan) -> Action:
    """Create the Job.

    Raises:
        UnusableBootOptionsError: the Hardware has no BMC.
    """
    return create(JOB, _job(workflow, machine_of(hardware), plan))


def machine_of(hardware: Hardware) -> str:
    """Name of the bmc Machine of a Hardware.

    Raises:
        UnusableBootOptionsError: the Hardware has no BMC.
    """
    if hardware.spec.bmc_ref is None or not hardware.spec.bmc_ref.name:
        raise UnusableBootOptionsError(
            Reason.NO_BMC,
            f'hardware "{hardware.metadata.name}" does not have a BMC: set spec.bmcRef to its bmc Machine,'
            " or leave spec.bootOptions.bootMode of the Workflow empty",
        )
    return hardware.spec.bmc_ref.name


def record(draft: WorkflowDraft, plan: Plan, job: Job) -> None:
    """Record the uid of the Job, which is never created again."""
    _set_job(draft, plan.name, BootJobStatus(uid=job.metadata.uid, existing_job_deleted=True))
    draft.upstream(WorkflowConditionType.BOOT_JOB_SETUP_COMPLETE, True, "job created")


def complete(draft: WorkflowDraft, plan: Plan) -> None:
    """Record that the Job has completed."""
    _set_job(draft, plan.name, replace(draft.status.boot_options.jobs[plan.name], complete=True))
    draft.upstream(WorkflowConditionType.BOOT_JOB_COMPLETE, True, "job completed")


def running(job: Job) -> Progress:
    """The progress of an existing Job of the Workflow."""
    conditions = {c.type: c for c in job.status.conditions}
    failed, done = conditions.get(JobConditionType.FAILED), conditions.get(JobConditionType.COMPLETED)
    if failed is not None and failed.status == "True":
        return Progress(Stage.FAILED, f"Job {job.metadata.name} failed: {failed.message or 'no reason given'}")
    if done is not None and done.status == "True":
        return Progress(Stage.TO_COMPLETE)
    current = conditions.get(JobConditionType.RUNNING)
    blocked = f": {current.message}" if current is not None and current.message else "."
    return Progress(Stage.RUNNING, f"Waiting for Job {job.metadata.name}{blocked}")


def _set_job(draft: WorkflowDraft, name: str, entry: BootJobStatus) -> None:
    options = draft.status.boot_options
    draft.status = replace(draft.status, boot_options=replace(options, jobs={**options.jobs, name: entry}))


def _is_owned(job: Job, workflow: Workflow) -> bool:
    return any(owner.uid == workflow.metadata.uid for owner in job.metadata.owner_references)


def _job(workflow: Workflow, machine: str, plan: Plan) -> Job:
    owner = owner_reference(WORKFLOW, workflow, controller=True)
    mark = {JOB_AUTO_CREATED: "true"}
    namespace = workflow.metadata.namespace
    return Job(
        metadata=ObjectMeta(
            name=plan.name, namespace=namespace, labels=mark, annotations=mark, owner_references=[owner]
        ),
        spec=JobSpec(machine_ref=MachineRef(name=machine, namespace=namespace), tasks=list(plan.actions)),
    )


def _power(action: PowerAction) -> BmcAction:
    return BmcAction(power_action=action)


_ON = _power(PowerAction.ON)


def _boot_once(device: BootDeviceName, hardware: Hardware) -> BmcAction:
    efi = any(interface.dhcp is not None and interface.dhcp.uefi for interface in hardware.spec.interfaces)
    return BmcAction(one_time_boot_device_action=OneTimeBootDeviceAction(device=[device], efi_boot=efi))


def _media(url: str) -> BmcAction:
    return BmcAction(virtual_media_action=VirtualMediaAction(media_url=url, kind=VirtualMediaKind.CD))

"""Objects that are created beside a Hardware for its owner: names, boot options, identity, and failures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.job import JOB, Job, JobConditionType
from ironbell.api.meta import Resource
from ironbell.api.tinkerbell import TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import BootMode, Workflow, WorkflowState
from ironbell.contract.servers.directory import agent_id
from ironbell.contract.servers.identity import IDENTITY, STRICT, gets_token
from ironbell.kube.decision import Action, AnyKind, Fields, delete
from ironbell.kube.finalizers import is_deleting

FAILED: Final = frozenset({WorkflowState.FAILED, WorkflowState.TIMEOUT})
TERMINAL: Final = FAILED | {WorkflowState.SUCCESS}
_KINDS: Final[Mapping[type[Resource], AnyKind]] = {Workflow: WORKFLOW, Template: TEMPLATE, Job: JOB}
_ISO: Final = frozenset({BootMode.ISO, BootMode.ISOBOOT})


@dataclass(frozen=True, slots=True)
class Boot:
    """Options with which the BMC boots a server into the in-memory OS."""

    mode: str = ""
    """Boot mode of a Workflow; empty is `netboot`."""
    iso_url: str = ""
    customboot: Fields = field(default_factory=dict)
    """BMC operations of the boot mode `customboot`."""


NETBOOT: Final = Boot()


class UnusableError(Exception):
    """The server cannot be installed in its current state; `reason` and message become a condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def marked_as_own(metadata: Fields, hardware: Hardware, boot: Mapping[str, Any]) -> Fields:
    """The metadata of a built-in Template: only Ironbell's agent can run it, so its boot is identified by a token if it
    can have one."""
    has = gets_token(hardware, toggles=bool(boot.get("toggleAllowNetboot")), mode=str(boot.get("bootMode") or ""))
    return _with_identity(metadata, STRICT if has else None)


def marked_as(metadata: Fields, template: Template) -> Fields:
    """The metadata of a copy of a user's Template."""
    return _with_identity(metadata, template.metadata.annotations.get(IDENTITY))


def _with_identity(metadata: Fields, mode: str | None) -> Fields:
    return {**metadata, "annotations": {**metadata.get("annotations", {}), IDENTITY: mode}} if mode else metadata


def deletions(created: Sequence[Any]) -> list[Action]:
    """Delete the objects that are not being deleted already."""
    return [delete(_KINDS[type(obj)], obj) for obj in created if not is_deleting(obj)]


def wipe_name(owner: Resource) -> str:
    """Name of the Template and Workflow that wipe an owner's server."""
    return f"{owner.metadata.name}-wipe"


def power_off_name(owner: Resource) -> str:
    """Name of the Job that powers off an owner's server."""
    return f"{owner.metadata.name}-poweroff"


def power_cycle_name(owner: Resource) -> str:
    """Name of the Job that power cycles an owner's server for a remediation; there is one at a time."""
    return f"{owner.metadata.name}-power-cycle"


def bmc_job(hardware: Hardware, *actions: PowerAction) -> Fields:
    """The spec of a Job with these power actions on a server."""
    reference = hardware.spec.bmc_ref
    where = {"name": reference.name if reference else "", "namespace": hardware.metadata.namespace}
    return {"machineRef": where, "tasks": [{"powerAction": str(action)} for action in actions]}


def workflow_spec(hardware: Hardware, name: str, boot: Fields) -> Fields:
    """The spec of the Workflow that runs the Template of the same name on a server."""
    return {
        "templateRef": name,
        "hardwareRef": hardware.metadata.name,
        "hardwareMap": {"device_1": agent_id(hardware)},
        "bootOptions": boot,
    }


def is_job(job: Job, kind: JobConditionType) -> bool:
    """Return whether a condition of a Job is True."""
    return any(condition.type == kind and condition.status == "True" for condition in job.status.conditions)


def has_finished(job: Job) -> bool:
    """Return whether a Job has completed or failed."""
    return is_job(job, JobConditionType.COMPLETED) or is_job(job, JobConditionType.FAILED)


def job_failure(job: Job) -> str:
    failed = (condition for condition in job.status.conditions if condition.type == JobConditionType.FAILED)
    return next((condition.message for condition in failed), "")


def boot_options(boot: Boot, hardware: Hardware) -> Fields:
    """The boot options of a Workflow. A server with a BMC netboots by default, as the provider's quick start promises;
    upstream's code waits until a user powers it on.

    Raises:
        UnusableError: the boot mode lacks something.
    """
    mode = boot.mode or BootMode.NETBOOT
    options: Fields = {"toggleAllowNetboot": True}
    if hardware.spec.bmc_ref is None:
        return options
    options["bootMode"] = str(mode)
    if mode in _ISO:
        if not boot.iso_url:
            raise UnusableError("MissingISO", f"spec.bootOptions.isoURL is empty; bootMode {mode} needs it")
        options["isoURL"] = _iso_url(boot.iso_url, hardware)
    if mode == BootMode.CUSTOMBOOT:
        options["custombootConfig"] = dict(boot.customboot)
    return options


def _iso_url(url: str, hardware: Hardware) -> str:
    """The image's address with the server's id before the file name, where the ISO server expects it."""
    folder, slash, file = url.rpartition("/")
    instance = hardware.spec.metadata.instance if hardware.spec.metadata is not None else None
    return f"{folder}{slash}{(instance.id if instance else '').replace(':', '-')}/{file}"


def workflow_failure(workflow: Workflow) -> str:
    """The failed action and its message, or the message of the Workflow's condition."""
    for task in workflow.status.tasks:
        for action in task.actions:
            if action.state in FAILED:
                return f"action {action.name!r} {action.state}: {action.message or 'no message'}"
    outcome = next((condition for condition in workflow.status.conditions if condition.type == "Succeeded"), None)
    return f"workflow {workflow.status.state}" + (
        f": {outcome.message}" if outcome is not None and outcome.message else ""
    )

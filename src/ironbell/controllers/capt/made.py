"""What a machine makes beside its Hardware: names, owners, boot options, and why a Workflow failed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ironbell.api.bmc.job import JOB, Job, JobConditionType
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import LABEL_MACHINE_NAME, LABEL_MACHINE_NAMESPACE
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.meta import Resource, to_builtin
from ironbell.api.tinkerbell import TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import BootMode, Workflow, WorkflowState
from ironbell.contract.directory import KEEP_DISKS
from ironbell.contract.identity import IDENTITY, STRICT, gets_token
from ironbell.contract.owners import owner_reference
from ironbell.kube.decision import Action, AnyKind, delete
from ironbell.kube.finalizers import is_deleting

FAILED: Final = frozenset({WorkflowState.FAILED, WorkflowState.TIMEOUT})
ENDED: Final = FAILED | {WorkflowState.SUCCESS}
_KINDS: Final[Mapping[type[Resource], AnyKind]] = {Workflow: WORKFLOW, Template: TEMPLATE, Job: JOB}
_ISO: Final = frozenset({BootMode.ISO, BootMode.ISOBOOT})


class UnusableError(Exception):
    """The machine cannot be installed as things are; `reason` and message become a condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def metadata(obj: TinkerbellMachine, hardware: Hardware, name: str) -> dict[str, Any]:
    """Of what is made beside the Hardware; an owner in another namespace would not count, so labels say whose it is."""
    labels = {LABEL_MACHINE_NAME: obj.metadata.name, LABEL_MACHINE_NAMESPACE: obj.metadata.namespace}
    found: dict[str, Any] = {"name": name, "namespace": hardware.metadata.namespace, "labels": labels}
    if hardware.metadata.namespace == obj.metadata.namespace:
        found["ownerReferences"] = [to_builtin(owner_reference(TINKERBELL_MACHINE, obj, controller=True))]
    return found


def workflow_metadata(obj: TinkerbellMachine, hardware: Hardware, name: str) -> dict[str, Any]:
    """Of a Workflow: the disks that the machine keeps go along, for whoever hands out its actions."""
    kept = obj.metadata.annotations.get(KEEP_DISKS)
    found = metadata(obj, hardware, name)
    return {**found, "annotations": {KEEP_DISKS: kept}} if kept else found


def marked_as_ours(found: dict[str, Any], hardware: Hardware, boot: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a Template of our own text: only our agent can carry it out, so its boot is known by its token
    wherever it can have one."""
    can = gets_token(hardware, toggles=bool(boot.get("toggleAllowNetboot")), mode=str(boot.get("bootMode") or ""))
    return {**found, "annotations": {**found.get("annotations", {}), IDENTITY: STRICT}} if can else found


def marked_as(found: dict[str, Any], template: Template) -> dict[str, Any]:
    """The metadata of a copy of somebody's Template."""
    said = template.metadata.annotations.get(IDENTITY)
    return {**found, "annotations": {**found.get("annotations", {}), IDENTITY: said}} if said else found


def is_ours(made: Resource, obj: TinkerbellMachine) -> bool:
    """Whether it was made for this machine; by an owner reference alone where upstream's controllers made it."""
    labels = made.metadata.labels
    if LABEL_MACHINE_NAME not in labels:
        return any(owner.uid == obj.metadata.uid for owner in made.metadata.owner_references)
    return (labels[LABEL_MACHINE_NAME], labels.get(LABEL_MACHINE_NAMESPACE)) == (
        obj.metadata.name,
        obj.metadata.namespace,
    )


def those_of(obj: TinkerbellMachine, *made: Any) -> list[Any]:
    """Those of them that are there and this machine's."""
    return [one for one in made if one is not None and is_ours(one, obj)]


def gone(made: list[Any]) -> list[Action]:
    """Delete what is not being deleted already."""
    return [delete(_KINDS[type(one)], one) for one in made if not is_deleting(one)]


def is_job(job: Job, condition: JobConditionType) -> bool:
    """Whether a Job says this of itself."""
    return any(one.type == condition and one.status == "True" for one in job.status.conditions)


def has_ended(job: Job) -> bool:
    """Whether a Job is over, well or not."""
    return is_job(job, JobConditionType.COMPLETED) or is_job(job, JobConditionType.FAILED)


def why_job_failed(job: Job) -> str:
    return next((one.message for one in job.status.conditions if one.type == JobConditionType.FAILED), "")


def boot_options(obj: TinkerbellMachine, hardware: Hardware) -> dict[str, Any]:
    """The boot options of a Workflow. A server with a BMC boots over the network where the machine names no way, as the
    provider's quick start promises; upstream's code waits there until somebody switches it on.

    Raises:
        UnusableError: the boot mode lacks something.
    """
    options = obj.spec.boot_options
    mode = options.boot_mode or BootMode.NETBOOT
    found: dict[str, Any] = {"toggleAllowNetboot": True}
    if hardware.spec.bmc_ref is None:
        return found
    found["bootMode"] = str(mode)
    if mode in _ISO:
        if not options.iso_url:
            raise UnusableError("MissingISO", f"spec.bootOptions.isoURL is empty; bootMode {mode} needs it")
        found["isoURL"] = _iso_url(options.iso_url, hardware)
    if mode == BootMode.CUSTOMBOOT:
        found["custombootConfig"] = to_builtin(options.customboot_config) if options.customboot_config else {}
    return found


def _iso_url(url: str, hardware: Hardware) -> str:
    """The image's address with the machine's id before the file name, where the ISO server looks for it."""
    folder, slash, file = url.rpartition("/")
    instance = hardware.spec.metadata.instance if hardware.spec.metadata is not None else None
    return f"{folder}{slash}{(instance.id if instance else '').replace(':', '-')}/{file}"


def why_failed(workflow: Workflow) -> str:
    """The action that failed and its message, or what the Workflow says of itself."""
    for task in workflow.status.tasks:
        for action in task.actions:
            if action.state in FAILED:
                return f"action {action.name!r} {action.state}: {action.message or 'no message'}"
    said = next((one for one in workflow.status.conditions if one.type == "Succeeded"), None)
    return f"workflow {workflow.status.state}" + (f": {said.message}" if said is not None and said.message else "")

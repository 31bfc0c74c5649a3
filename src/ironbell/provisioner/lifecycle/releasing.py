"""The release of a server: stop its installation, wipe its disks, power it off, remove the claim. Pure.

Only a server of this owner is changed, and none that is held. The outcome of the wipe is recorded on the Hardware
before the next step. If the wipe or the power off fails, the owner is not kept forever: the server is released and
held, so that nobody claims it before a user has checked it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.job import JOB, JobConditionType
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import BootMode, Workflow
from ironbell.contract.servers.claim import HELD, release
from ironbell.contract.servers.restored import hold_reason
from ironbell.contract.servers.wipe_due import wipe_due
from ironbell.kube.decision import Action, create, delete
from ironbell.kube.finalizers import is_deleting
from ironbell.provisioner.disks import certificate_of, has_started
from ironbell.provisioner.lifecycle.created import bmc_job, deletions, has_finished, is_job, job_failure, power_off_name
from ironbell.provisioner.lifecycle.host import Draft, Step
from ironbell.provisioner.lifecycle.names import (
    HOLD_WHEN_RELEASED,
    INSTALL_ATTEMPT,
    INSTALL_BEGUN,
    POWER_OFF_ATTEMPT,
    UNTOUCHED,
    State,
)
from ironbell.provisioner.lifecycle.owner import owner_finalizers
from ironbell.provisioner.lifecycle.wiping import wipe
from ironbell.provisioner.user_data import withdrawal

POWER_OFF_ATTEMPTS: Final = 3


def release_server(draft: Draft) -> Step:
    """Return the next step for an owner that releases its server."""
    owner, state, hardware = draft.owner, draft.state, draft.state.hardware
    installing = owner.owned(state.workflow, state.template)
    if installing:
        return draft.waits("StoppingInstallation", "Stopping the installation.", *_stopped(draft))
    cycle = state.power_cycle
    if cycle is not None and owner.owns(cycle):
        if not has_finished(cycle) and hardware is not None:
            return draft.waits("PowerCycling", f"Job {cycle.metadata.name} is power cycling the server.")
        return draft.waits("CleaningUp", "Deleting the Job of a remediation.", *deletions([cycle]))
    if hardware is None:
        return _clean_up(draft)
    if (unsure := hold_reason(hardware)) is not None:
        return draft.waits("HardwareNotConfirmed", unsure)
    held = hardware.metadata.annotations.get(HELD)
    certificate = certificate_of(owner.uid, hardware)
    if held is not None and certificate is None:
        message = f"Hardware {hardware.metadata.name} is held ({held}). Remove annotation {HELD} to release the server."
        return draft.waits("HardwareHeld", message, *_unbegun_wipe(draft))
    if hardware.spec.user_data is not None:
        return draft.waits("TakingUserDataBack", "The user data is being withdrawn.", withdrawal(hardware))
    if certificate is None:
        return wipe(draft, hardware)
    wiping = owner.owned(state.wipe_workflow, state.wipe_template)
    if wiping:
        return draft.waits("Wiped", "Deleting the objects of the finished wipe.", *deletions(wiping))
    step = _power_off(draft, hardware) if hardware.spec.bmc_ref is not None else None
    return step if step is not None else _release(draft, hardware)


def _stopped(draft: Draft) -> Sequence[Action]:
    """Delete the objects of the installation.

    Only while the Workflow exists is it known whether something was written. If nothing was, this is recorded before
    the Workflow is deleted, and the deletion fails if an action was handed out in between; in doubt, disks are wiped.
    """
    owner, workflow = draft.owner, draft.state.workflow
    rest = deletions(owner.owned(draft.state.template))
    if workflow is None or not owner.owns(workflow):
        return rest
    if owner.number(INSTALL_ATTEMPT, 0) == 0:
        # Upstream's controllers created it, and count no attempts; after its deletion, only the count shows that it
        # existed.
        return [owner.mark({INSTALL_ATTEMPT: "1"})]
    recorded = owner.annotations.get(UNTOUCHED)
    untouched = _is_untouched(draft, workflow) and not _boots_own_script(draft.state.hardware)
    if recorded is not None and not untouched:
        return [owner.mark({UNTOUCHED: None})]
    if is_deleting(workflow):
        return rest
    if untouched and recorded != workflow.metadata.uid:
        return [owner.mark({UNTOUCHED: workflow.metadata.uid})]
    version = workflow.metadata.resource_version if untouched else ""
    return [replace(delete(WORKFLOW, workflow), resource_version=version), *rest]


def _unbegun_wipe(draft: Draft) -> Sequence[Action]:
    """Delete a wipe that has not started: its timeout runs while the server is held; it is created again afterwards."""
    workflow = draft.state.wipe_workflow
    is_begun = workflow is not None and has_started(workflow)
    return () if is_begun else deletions(draft.owner.owned(workflow, draft.state.wipe_template))


def _is_untouched(draft: Draft, workflow: Workflow) -> bool:
    """Return whether nothing can have been written: no Workflow preceded this one, and its agent was given no action.

    With other boot modes than netboot the server runs what the user has chosen.
    """
    begun = draft.owner.annotations.get(INSTALL_BEGUN, "")
    is_first = bool(begun) and workflow.metadata.annotations.get(INSTALL_BEGUN) == begun
    return is_first and draft.wish.boot.mode in ("", BootMode.NETBOOT) and not has_started(workflow)


def _boots_own_script(hardware: Hardware | None) -> bool:
    """Return whether the server runs an iPXE script of the user, which may boot anything."""
    netboots = [interface.netboot for interface in hardware.spec.interfaces] if hardware is not None else []
    scripts = [netboot.ipxe for netboot in netboots if netboot is not None and netboot.ipxe is not None]
    return any(script.url or script.contents for script in scripts)


def _power_off(draft: Draft, hardware: Hardware) -> Step | None:
    """Power off the server; None once it is off, or if that failed too often."""
    owner, job = draft.owner, draft.state.power_off
    draft.phase = State.POWERING_OFF
    tried = owner.number(POWER_OFF_ATTEMPT, 0)
    if job is None and tried >= POWER_OFF_ATTEMPTS:
        return None
    if job is None:
        metadata = owner.metadata(hardware, power_off_name(owner.obj))
        write = create(JOB, {"metadata": metadata, "spec": bmc_job(hardware, PowerAction.OFF)})
        return draft.waits("PoweringOff", "Powering off the server.", write)
    if not owner.owns(job):
        return draft.waits("PoweringOff", f"Job {job.metadata.name} belongs to another owner. Delete it.")
    if is_deleting(job):
        return draft.waits("PoweringOff", f"Job {job.metadata.name} of an earlier attempt is being deleted.")
    if is_job(job, JobConditionType.COMPLETED):
        return None
    if not has_finished(job):
        return draft.waits("PoweringOff", f"Job {job.metadata.name} is powering off the server.")
    message = f"Attempt {tried + 1} of {POWER_OFF_ATTEMPTS} to power off the server failed: {job_failure(job)}"
    return draft.waits(
        "PowerOffFailed",
        message,
        owner.mark({POWER_OFF_ATTEMPT: str(tried + 1)}),
        delete(JOB, job),
        owner.event("PowerOffFailed", message, warning=True),
    )


def _release(draft: Draft, hardware: Hardware) -> Step:
    owner = draft.owner
    annotations: dict[str, str | None] = {}
    gave_up = owner.number(POWER_OFF_ATTEMPT, 0) >= POWER_OFF_ATTEMPTS and hardware.spec.bmc_ref is not None
    if gave_up and HELD not in hardware.metadata.annotations:
        annotations[HELD] = f"could not be powered off after {owner.path}; it may still run the old system"
    elif HOLD_WHEN_RELEASED in owner.annotations and HELD not in hardware.metadata.annotations:
        annotations[HELD] = owner.annotations[HOLD_WHEN_RELEASED]
    due = wipe_due(hardware)
    message = f"Released server {hardware.metadata.name}." + (f" It is reserved for {due}." if due is not None else "")
    return draft.proceeds(release(hardware, annotations), owner.event("HardwareReleased", message))


def _clean_up(draft: Draft) -> Step:
    """Delete everything that was created for an owner without a server, and remove its finalizer."""
    owner, state = draft.owner, draft.state
    left = owner.owned(state.wipe_workflow, state.wipe_template, state.power_off)
    if left:
        return draft.waits("CleaningUp", "Deleting the objects of the released server.", *deletions(left))
    rest = owner_finalizers(owner, present=False)
    return draft.writes(owner.patch({"metadata": {"finalizers": rest or None}}) if rest is not None else None)

"""Giving a server back: stop what is installing it, wipe its disks, switch it off, forget its owner. Pure.

Only a server that is this machine's is touched, and none that is held. What came of the wipe is noted on the Hardware
before anything else happens. One that fails, or a switch that does, does not keep the machine for ever: the server is
given back and held, so that nobody takes it before a person has looked at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.job import JOB, JobConditionType
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import FINALIZER, LEGACY_FINALIZER
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import BootMode, Workflow
from ironbell.contract.hardware_claim import HELD, release
from ironbell.contract.restored import why_held
from ironbell.contract.wipe_due import wipe_due
from ironbell.controllers.capt.made import gone, has_ended, is_job, is_ours, metadata, those_of, why_job_failed
from ironbell.controllers.capt.observed import Observed, power_off_name
from ironbell.controllers.capt.progress import Progress
from ironbell.controllers.capt.wiping import certificate_of, wipe
from ironbell.kube.decision import Action, Decision, create, delete, do, emit, patch
from ironbell.kube.finalizers import is_deleting
from ironbell.provisioner.evidence import has_started
from ironbell.provisioner.lifecycle.names import (
    HOLD_WHEN_RELEASED,
    INSTALL_ATTEMPT,
    INSTALL_BEGUN,
    POWER_OFF_ATTEMPT,
    UNTOUCHED,
    State,
    number,
)
from ironbell.provisioner.user_data import withdrawal

POWER_OFF_ATTEMPTS: Final = 3


def decommission(progress: Progress, observed: Observed) -> Decision:
    """The next step of a TinkerbellMachine that is being deleted."""
    obj, hardware = observed.obj, observed.hardware
    installing = those_of(obj, observed.workflow, observed.template)
    if installing:
        return progress.waits("StoppingInstallation", "the installation is being stopped", *_stopped(observed))
    cycle = observed.power_cycle
    if cycle is not None and is_ours(cycle, obj):
        if not has_ended(cycle) and hardware is not None:
            return progress.waits("PowerCycling", f"Job {cycle.metadata.name} is switching the server off and on")
        return progress.waits("CleaningUp", "what a remediation made goes", *gone([cycle]))
    if hardware is None:
        return _let_go(progress, observed)
    if (unsure := why_held(hardware)) is not None:
        return progress.waits("HardwareNotConfirmed", unsure)
    held = hardware.metadata.annotations.get(HELD)
    certificate = certificate_of(obj, hardware)
    if held is not None and certificate is None:
        message = f"Hardware {hardware.metadata.name} is held ({held}): remove annotation {HELD} to have it released."
        return progress.waits("HardwareHeld", message, *_unbegun_wipe(observed))
    if hardware.spec.user_data is not None:
        return progress.waits("TakingUserDataBack", "The user data is being withdrawn.", withdrawal(hardware))
    if certificate is None:
        return wipe(progress, observed, hardware)
    wiping = those_of(obj, observed.wipe_workflow, observed.wipe_template)
    if wiping:
        return progress.waits("Wiped", "the wipe is over", *gone(wiping))
    if hardware.spec.bmc_ref is not None:
        step = _power_off(progress, observed, hardware)
        if step is not None:
            return step
    return _release(progress, observed, hardware)


def _stopped(observed: Observed) -> Sequence[Action]:
    """Delete what installs the server.

    Whether something was written is only known while the Workflow exists. That nothing was is recorded before the
    Workflow is deleted, and the deletion fails if an action was handed out in the meantime; in doubt, disks are wiped.
    """
    obj, workflow = observed.obj, observed.workflow
    rest = gone(those_of(obj, observed.template))
    if workflow is None or not is_ours(workflow, obj):
        return rest
    if number(obj, INSTALL_ATTEMPT, 0) == 0:
        # Upstream's controllers created it, and count no attempts; once it is gone, only the count says that it was.
        return [patch(TINKERBELL_MACHINE, obj, {"metadata": {"annotations": {INSTALL_ATTEMPT: "1"}}}, locked=True)]
    noted = obj.metadata.annotations.get(UNTOUCHED)
    untouched = _is_untouched(obj, workflow) and not _boots_own_script(observed.hardware)
    if noted is not None and not untouched:
        return [_note(obj, None)]
    if is_deleting(workflow):
        return rest
    if untouched and noted != workflow.metadata.uid:
        return [_note(obj, workflow.metadata.uid)]
    version = workflow.metadata.resource_version if untouched else ""
    return [replace(delete(WORKFLOW, workflow), resource_version=version), *rest]


def _unbegun_wipe(observed: Observed) -> Sequence[Action]:
    """Delete a wipe that has not begun: its time limit runs while the server is held; it is created anew afterwards."""
    workflow = observed.wipe_workflow
    is_begun = workflow is not None and has_started(workflow)
    return () if is_begun else gone(those_of(observed.obj, workflow, observed.wipe_template))


def _is_untouched(obj: TinkerbellMachine, workflow: Workflow) -> bool:
    """Whether nothing can have been written: no Workflow preceded this one, and its agent was given no action.

    With other boot modes than netboot the server runs what the user has chosen.
    """
    begun = obj.metadata.annotations.get(INSTALL_BEGUN, "")
    is_first = bool(begun) and workflow.metadata.annotations.get(INSTALL_BEGUN) == begun
    return is_first and obj.spec.boot_options.boot_mode in ("", BootMode.NETBOOT) and not has_started(workflow)


def _boots_own_script(hardware: Hardware | None) -> bool:
    """Whether the server runs an iPXE script that the user wrote, which may boot anything."""
    netboots = [interface.netboot for interface in hardware.spec.interfaces] if hardware is not None else []
    scripts = [netboot.ipxe for netboot in netboots if netboot is not None and netboot.ipxe is not None]
    return any(script.url or script.contents for script in scripts)


def _note(obj: TinkerbellMachine, uid: str | None) -> Action:
    return patch(TINKERBELL_MACHINE, obj, {"metadata": {"annotations": {UNTOUCHED: uid}}}, locked=True)


def _power_off(progress: Progress, observed: Observed, hardware: Hardware) -> Decision | None:
    """Switch the server off; None when it is, or cannot be."""
    obj, job = observed.obj, observed.power_off
    progress.state = State.POWERING_OFF
    tried = number(obj, POWER_OFF_ATTEMPT, 0)
    if job is None and tried >= POWER_OFF_ATTEMPTS:
        return None
    if job is None:
        reference = hardware.spec.bmc_ref
        where = {"name": reference.name if reference else "", "namespace": hardware.metadata.namespace}
        spec = {"machineRef": where, "tasks": [{"powerAction": str(PowerAction.OFF)}]}
        made = metadata(obj, hardware, power_off_name(obj))
        return progress.waits(
            "PoweringOff", "the server is being switched off", create(JOB, {"metadata": made, "spec": spec})
        )
    if is_deleting(job) or not is_ours(job, obj):
        foreign = "" if is_ours(job, obj) else " is not this machine's; delete it"
        return progress.waits("PoweringOff", f"Job {job.metadata.name}{foreign or ' of an earlier attempt goes'}")
    if is_job(job, JobConditionType.COMPLETED):
        return None
    if not has_ended(job):
        return progress.waits("PoweringOff", f"Job {job.metadata.name} is switching the server off")
    why = why_job_failed(job)
    message = f"attempt {tried + 1} of {POWER_OFF_ATTEMPTS} to switch the server off failed: {why}"
    mark = {"metadata": {"annotations": {POWER_OFF_ATTEMPT: str(tried + 1)}}}
    return progress.waits(
        "PowerOffFailed",
        message,
        patch(TINKERBELL_MACHINE, obj, mark, locked=True),
        delete(JOB, job),
        emit(TINKERBELL_MACHINE, obj, reason="PowerOffFailed", message=message, warning=True),
    )


def _release(progress: Progress, observed: Observed, hardware: Hardware) -> Decision:
    annotations: dict[str, str | None] = {}
    gave_up = number(observed.obj, POWER_OFF_ATTEMPT, 0) >= POWER_OFF_ATTEMPTS and hardware.spec.bmc_ref is not None
    if gave_up and HELD not in hardware.metadata.annotations:
        where = "/".join(observed.obj.key)
        annotations[HELD] = f"could not be switched off after {where}; it may still run the old system"
    elif HOLD_WHEN_RELEASED in observed.obj.metadata.annotations and HELD not in hardware.metadata.annotations:
        annotations[HELD] = observed.obj.metadata.annotations[HOLD_WHEN_RELEASED]
    due = wipe_due(hardware)
    message = f"Released server {hardware.metadata.name}." + (f" It is reserved for {due}." if due is not None else "")
    told = emit(TINKERBELL_MACHINE, observed.obj, reason="HardwareReleased", message=message)
    return progress.goes_on(release(hardware, annotations), told)


def _let_go(progress: Progress, observed: Observed) -> Decision:
    """There is no server (any more): nothing of the machine stays."""
    obj = observed.obj
    left = those_of(obj, observed.wipe_workflow, observed.wipe_template, observed.power_off)
    if left:
        return progress.waits("CleaningUp", "what was made for the machine goes", *gone(left))
    rest = [one for one in obj.metadata.finalizers if one not in (FINALIZER, LEGACY_FINALIZER)]
    if len(rest) == len(obj.metadata.finalizers):
        return do()
    return do(patch(TINKERBELL_MACHINE, obj, {"metadata": {"finalizers": rest or None}}, locked=True))

"""Giving a server back: stop what is installing it, wipe its disks, switch it off, forget its owner. Pure.

Only a server that is this machine's is touched, and none that is held. Its disks are wiped by a Workflow in the
in-memory OS, by the method that the annotation `ironbell.dev/wipe` names; what came of it is noted on the Hardware
before anything else happens. A wipe that fails is tried again, with a new Workflow, as often as an annotation allows.
One that takes too long, or a switch that fails, does not keep the machine for ever either: the server is given back and
held, so that nobody takes it before a person has looked at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.job import JOB, Job, JobConditionType
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import FINALIZER, LEGACY_FINALIZER
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.meta import Resource
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware, HardwareState
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.codec import goyaml
from ironbell.contract.directory import ERROR
from ironbell.contract.hardware_claim import HELD, USER_DATA_OF, WITHDRAWN, release
from ironbell.contract.restored import why_held
from ironbell.controllers.capt.made import (
    agent_id,
    boot_options,
    has_ended,
    is_job,
    is_ours,
    metadata,
    why_failed,
    why_job_failed,
)
from ironbell.controllers.capt.names import (
    DEFAULT_WIPE_ATTEMPTS,
    DEFAULT_WIPE_TIMEOUT_S,
    HOLD_WHEN_RELEASED,
    INSTALL_ATTEMPT,
    POWER_OFF_ATTEMPT,
    RELEASED,
    WIPE,
    WIPE_ATTEMPT,
    WIPE_ATTEMPTS,
    WIPE_TIMEOUT,
    WIPED,
    State,
    WipePolicy,
)
from ironbell.controllers.capt.numbers import number
from ironbell.controllers.capt.observed import Observed, power_off_name, wipe_name
from ironbell.controllers.capt.progress import Progress
from ironbell.kube.decision import Action, AnyKind, Decision, Fields, create, delete, do, emit, patch
from ironbell.kube.finalizers import is_deleting

POWER_OFF_ATTEMPTS: Final = 3
WIPE_WORKFLOW_TIMEOUT_S: Final = 86400
ENDED: Final = {WorkflowState.SUCCESS, WorkflowState.FAILED, WorkflowState.TIMEOUT}


class Certificate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was done to the disks of a server when it was last given back."""

    machine: str
    uid: str
    method: str
    at: str
    wiped: bool
    disks: list[str] = []
    message: str = ""


def decommission(progress: Progress, observed: Observed) -> Decision:
    """The next step of a TinkerbellMachine that is being deleted."""
    obj, hardware = observed.obj, observed.hardware
    installing = _present(obj, observed.workflow, observed.template)
    if installing:
        return progress.waits("StoppingInstallation", "what installs the server is taken back", *_gone(installing))
    cycle = observed.power_cycle
    if cycle is not None and is_ours(cycle, obj):
        if not has_ended(cycle) and hardware is not None:
            return progress.waits("PowerCycling", f"Job {cycle.metadata.name} is switching the server off and on")
        return progress.waits("CleaningUp", "what a remediation made goes", *_gone([cycle]))
    if hardware is None:
        return _let_go(progress, observed)
    if (unsure := why_held(hardware)) is not None:
        return progress.waits("HardwareNotConfirmed", unsure)
    held = hardware.metadata.annotations.get(HELD)
    certificate = _certificate(obj, hardware)
    if held is not None and certificate is None:
        message = f"Hardware {hardware.metadata.name} is held ({held}); take the annotation {HELD} off to let it go"
        return progress.waits("HardwareHeld", message)
    if hardware.spec.user_data is not None:
        body: Fields = {"metadata": {"annotations": {USER_DATA_OF: WITHDRAWN}}, "spec": {"userData": None}}
        return progress.waits(
            "TakingUserDataBack", "user data is taken back", patch(HARDWARE, hardware, body, locked=True)
        )
    if certificate is None:
        return _wipe(progress, observed, hardware)
    wiping = _present(obj, observed.wipe_workflow, observed.wipe_template)
    if wiping:
        return progress.waits("Wiped", "the wipe is over", *_gone(wiping))
    if hardware.spec.bmc_ref is not None:
        step = _power_off(progress, observed, hardware)
        if step is not None:
            return step
    return _release(progress, observed, hardware)


def wipe_policy(obj: TinkerbellMachine, hardware: Hardware) -> WipePolicy | None:
    """What the annotations say, the machine's before the Hardware's; None if that is no method."""
    text = obj.metadata.annotations.get(WIPE) or hardware.metadata.annotations.get(WIPE) or WipePolicy.QUICK
    try:
        return WipePolicy(text.strip().lower())
    except ValueError:
        return None


def _wipe(progress: Progress, observed: Observed, hardware: Hardware) -> Decision:
    obj, workflow = observed.obj, observed.wipe_workflow
    policy = wipe_policy(obj, hardware)
    if policy is None:
        message = f"annotation {WIPE} is none of {', '.join(WipePolicy)}: correct it on the Hardware or on this object"
        return progress.waits("InvalidWipePolicy", message)
    progress.state = State.WIPING
    if policy is WipePolicy.NONE:
        return _certify(progress, observed, hardware, policy, False, "the annotation says that nothing is wiped")
    if number(obj, INSTALL_ATTEMPT, 0) == 0 and workflow is None:
        return _certify(progress, observed, hardware, policy, False, "nothing was installed")
    if workflow is None:
        return _begin_wipe(progress, observed, hardware, policy)
    if not is_ours(workflow, obj):
        return progress.waits("ForeignWorkflow", f"Workflow {workflow.metadata.name} is not this machine's; delete it")
    if workflow.status.state == WorkflowState.SUCCESS:
        return _certify(progress, observed, hardware, policy, True, _said(workflow))
    if workflow.status.state in ENDED:
        return _wipe_failed(progress, observed, hardware, policy, workflow)
    limit = number(obj, WIPE_TIMEOUT, number(hardware, WIPE_TIMEOUT, DEFAULT_WIPE_TIMEOUT_S))
    made = parse_rfc3339(workflow.metadata.creation_timestamp or rfc3339(progress.now))
    left = limit - (progress.now - made).total_seconds()
    if left <= 0:
        message = f"the wipe was not done within {limit} s (workflow {workflow.status.state or 'new'})"
        return _certify(progress, observed, hardware, policy, False, message, hold=True)
    message = f"the disks are being wiped ({policy}): workflow is {workflow.status.state or 'new'}"
    if hardware.status.state == HardwareState.ERROR:
        message += f"; nothing is done while {hardware.metadata.annotations.get(ERROR) or 'its status.state is Error'}"
    if hardware.spec.bmc_ref is None:
        message += f"; it has no BMC: boot it over the network, or set the annotation {WIPE}=none"
    return progress.waits("Wiping", message, after_s=left)


def _wipe_failed(
    progress: Progress, observed: Observed, hardware: Hardware, policy: WipePolicy, workflow: Workflow
) -> Decision:
    """Try it again with a new Workflow, which boots the server anew; or hold the server."""
    obj = observed.obj
    if is_deleting(workflow):
        return progress.waits("WaitingForOldWorkflow", f"Workflow {workflow.metadata.name} of an earlier attempt goes")
    tried = max(number(obj, WIPE_ATTEMPT, 1), 1)
    most = max(number(obj, WIPE_ATTEMPTS, number(hardware, WIPE_ATTEMPTS, DEFAULT_WIPE_ATTEMPTS)), 1)
    message = f"attempt {tried} of {most} to wipe failed: {why_failed(workflow)}"
    if tried >= most:
        return _certify(progress, observed, hardware, policy, False, message, hold=True)
    mark = {"metadata": {"annotations": {WIPE_ATTEMPT: str(tried + 1)}}}
    return progress.waits(
        "WipeRetried",
        f"{message}; it is tried again",
        # the Workflow goes first: a crash in between counts no attempt that was not one
        delete(WORKFLOW, workflow),
        *_gone(_present(obj, observed.wipe_template)),
        patch(TINKERBELL_MACHINE, obj, mark, locked=True),
        emit(
            TINKERBELL_MACHINE, obj, reason="WipeRetried", message=f"{hardware.metadata.name}: {message}", warning=True
        ),
    )


def _begin_wipe(progress: Progress, observed: Observed, hardware: Hardware, policy: WipePolicy) -> Decision:
    obj = observed.obj
    if observed.wipe_template is not None and is_deleting(observed.wipe_template):
        return progress.waits("WaitingForOldTemplate", f"Template {wipe_name(obj)} of an earlier attempt goes")
    made = metadata(obj, hardware, wipe_name(obj))
    if observed.wipe_template is None:
        text = wipe_template(obj.metadata.name, [disk.device for disk in hardware.spec.disks if disk.device], policy)
        write: Action = create(TEMPLATE, {"metadata": made, "spec": {"data": text}})
    else:
        spec = {
            "templateRef": wipe_name(obj),
            "hardwareRef": hardware.metadata.name,
            "hardwareMap": {"device_1": agent_id(hardware)},
            "bootOptions": boot_options(obj, hardware),
        }
        write = create(WORKFLOW, {"metadata": made, "spec": spec})
    return progress.waits("Wiping", f"the wipe ({policy}) is being begun", write)


def wipe_template(machine: str, disks: list[str], policy: WipePolicy) -> str:
    """The workflow that wipes: the disks that the Hardware names, and no others."""
    environment = {"DEST_DISK": ",".join(disks), "WIPE_METHOD": str(policy)}
    action = {"name": "wipe", "image": "wipe", "timeout": WIPE_WORKFLOW_TIMEOUT_S, "environment": environment}
    task = {"name": "wipe", "worker": "{{.device_1}}", "volumes": ["/dev:/dev"], "actions": [action]}
    document = {"version": "0.1", "name": f"{machine}-wipe", "global_timeout": WIPE_WORKFLOW_TIMEOUT_S, "tasks": [task]}
    return goyaml.dump(document)


def _certify(
    progress: Progress,
    observed: Observed,
    hardware: Hardware,
    policy: WipePolicy,
    wiped: bool,
    message: str,
    *,
    hold: bool = False,
) -> Decision:
    """Note what came of it; from here on nothing is wiped again for this machine."""
    metadata_ = observed.obj.metadata
    certificate = Certificate(
        machine=f"{metadata_.namespace}/{metadata_.name}",
        uid=metadata_.uid,
        method=str(policy),
        at=rfc3339(progress.now),
        wiped=wiped,
        disks=[disk.device for disk in hardware.spec.disks] if wiped else [],
        message=message,
    )
    annotations: dict[str, Any] = {WIPED: msgspec.json.encode(certificate).decode()}
    if hold:
        annotations[HELD] = f"not wiped after {certificate.machine}: {message}"
    write = patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)
    reason = "Wiped" if wiped else "NotWiped"
    said = f"{hardware.metadata.name}: {message}"
    event = emit(TINKERBELL_MACHINE, observed.obj, reason=reason, message=said, warning=hold)
    progress.note(RELEASED, False, reason, said)
    return progress.waits(reason, said, write, event)


def _certificate(obj: TinkerbellMachine, hardware: Hardware) -> Certificate | None:
    """What was noted for this very machine."""
    text = hardware.metadata.annotations.get(WIPED, "")
    try:
        found = msgspec.json.decode(text, type=Certificate) if text else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found if found is not None and found.uid == obj.metadata.uid else None


def _said(workflow: Workflow) -> str:
    messages = [action.message for task in workflow.status.tasks for action in task.actions if action.message]
    return "; ".join(messages) or "wiped"


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
    told = emit(
        TINKERBELL_MACHINE, observed.obj, reason="HardwareReleased", message=f"{hardware.metadata.name} is given back"
    )
    return progress.goes_on(release(hardware, annotations), told)


def _let_go(progress: Progress, observed: Observed) -> Decision:
    """There is no server (any more): nothing of the machine stays."""
    obj = observed.obj
    left = _present(obj, observed.wipe_workflow, observed.wipe_template, observed.power_off)
    if left:
        return progress.waits("CleaningUp", "what was made for the machine goes", *_gone(left))
    rest = [one for one in obj.metadata.finalizers if one not in (FINALIZER, LEGACY_FINALIZER)]
    if len(rest) == len(obj.metadata.finalizers):
        return do()
    return do(patch(TINKERBELL_MACHINE, obj, {"metadata": {"finalizers": rest or None}}, locked=True))


_KINDS: Final[Mapping[type[Resource], AnyKind]] = {Workflow: WORKFLOW, Template: TEMPLATE, Job: JOB}


def _present(obj: TinkerbellMachine, *made: Any) -> list[Any]:
    """Those of them that are there and this machine's."""
    return [one for one in made if one is not None and is_ours(one, obj)]


def _gone(made: list[Any]) -> list[Action]:
    """Delete what is not being deleted already."""
    return [delete(_KINDS[type(one)], one) for one in made if not is_deleting(one)]

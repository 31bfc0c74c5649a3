"""Wiping the disks of a server that is given back, by a Workflow in the in-memory OS, and noting what came of it. Pure.

The built-in action `wipe` erases the disks that the Hardware names, by the method that annotation `ironbell.dev/wipe`
names; or a Template of the user's runs, that `ironbell.dev/wipe-template` names. What fails is tried again, with a new
Workflow, as often as an annotation allows; then the server is held. So is one whose wipe should have been complete and
was not reported to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import ANNOTATION_PROVISIONED
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware, HardwareState
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import parse_rfc3339, rfc3339, rfc3339_micro
from ironbell.codec import goyaml
from ironbell.codec.diskwipe import MAX_DISKS_PER_MESSAGE
from ironbell.contract.directory import AGENT_TIMEOUT, ERROR, KEEP_VARIABLE, agent_id
from ironbell.contract.hardware_claim import HELD, PHASE, WIPED, ServerPhase, shown
from ironbell.contract.wipe_due import UNKNOWN, WIPE_DUE, WipeDue
from ironbell.controllers.capt.made import (
    ENDED,
    UnusableError,
    boot_options,
    gone,
    is_ours,
    marked_as,
    marked_as_ours,
    metadata,
    those_of,
    why_failed,
    workflow_metadata,
)
from ironbell.controllers.capt.observed import Observed, own_wipe, wipe_name
from ironbell.controllers.capt.progress import Progress
from ironbell.kube.decision import Action, Decision, create, delete, emit, patch
from ironbell.kube.finalizers import is_deleting
from ironbell.provisioner.deferral import due_after
from ironbell.provisioner.keeping import kept_disks, unknown_kept_disks
from ironbell.provisioner.lifecycle.names import (
    DEFAULT_WIPE_ATTEMPTS,
    DEFAULT_WIPE_TIMEOUT_S,
    INSTALL_ATTEMPT,
    RELEASED,
    UNTOUCHED,
    WIPE,
    WIPE_ATTEMPT,
    WIPE_ATTEMPTS,
    WIPE_TEMPLATE,
    WIPE_TIMEOUT,
    State,
    WipePolicy,
    number,
)
from ironbell.provisioner.wiping import DiskCertificate, disk_certificates, is_wiped, unproven, wipe_timeout_s

WIPE_WORKFLOW_TIMEOUT_S: Final = 86400
"""At least; the time limit that decides is the controller's."""
WIPE_AGENT_S: Final = 1800
"""How long a server may take from power-on until its agent takes the wipe's first action."""


class Certificate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was done to the disks of a server when it was last given back."""

    machine: str
    uid: str
    method: str
    at: str
    wiped: bool
    """Whether every disk was completely wiped that is not to be kept."""
    failed: bool = False
    """Whether it was tried in vain; `wiped` is also False where nothing was to be wiped."""
    disks: list[str] = []
    """Those that were completely wiped."""
    message: str = ""
    results: list[DiskCertificate] = []
    """What the agent reported of each disk."""


def wipe_policy(obj: TinkerbellMachine, hardware: Hardware) -> WipePolicy | None:
    """What the annotations say, the machine's before the Hardware's; None if that is no method."""
    try:
        return WipePolicy(_policy_text(obj, hardware))
    except ValueError:
        return None


def _policy_text(obj: TinkerbellMachine, hardware: Hardware) -> str:
    text = obj.metadata.annotations.get(WIPE) or hardware.metadata.annotations.get(WIPE) or WipePolicy.COMPLETE
    return text.strip().lower()


def invalid_wipe_policy(obj: TinkerbellMachine, hardware: Hardware) -> str:
    """Why the annotations name no method, as a sentence with the remedy."""
    text = _policy_text(obj, hardware)
    remedy = f"set it to one of {', '.join(WipePolicy)}, on the Hardware or on this object"
    return f"annotation {WIPE} is {text!r}, which is not a wipe method; {remedy}"


def wipe(progress: Progress, observed: Observed, hardware: Hardware) -> Decision:
    """The next step of a wipe, until its `Certificate` is on the Hardware."""
    obj, workflow = observed.obj, observed.wipe_workflow
    progress.state = State.WIPING
    policy = wipe_policy(obj, hardware)
    if policy is None:
        return progress.waits("InvalidWipePolicy", invalid_wipe_policy(obj, hardware))
    own = own_wipe(obj, hardware)
    method = f"template {own}" if own and policy is not WipePolicy.NONE else str(policy)
    if policy is WipePolicy.NONE:
        return _certify(progress, observed, hardware, method, False, "the annotation says that nothing is wiped")
    if workflow is None and not _may_be_installed(obj, hardware):
        return _certify(progress, observed, hardware, method, False, "nothing was installed", was_written=False)
    if UNTOUCHED in obj.metadata.annotations and workflow is None:
        why = "nothing was written: no action of its installation was ever started"
        return _certify(progress, observed, hardware, method, False, why, was_written=False)
    if workflow is None:
        return _begin_wipe(progress, observed, hardware, policy)
    if not is_ours(workflow, obj):
        return progress.waits("ForeignWorkflow", f"Workflow {workflow.metadata.name} is not this machine's; delete it")
    if _is_of_earlier_machine(workflow, obj, hardware):
        return progress.waits(
            "WaitingForOldWorkflow",
            f"Workflow {workflow.metadata.name} of an earlier machine of this name is being deleted",
            *gone(those_of(obj, workflow, observed.wipe_template)),
        )
    if workflow.status.state == WorkflowState.SUCCESS:
        return _succeeded(progress, observed, hardware, method, workflow)
    if workflow.status.state in ENDED:
        return _wipe_failed(progress, observed, hardware, method, workflow)
    limit = number(obj, WIPE_TIMEOUT, number(hardware, WIPE_TIMEOUT, _limit_s(hardware, policy)))
    made = parse_rfc3339(workflow.metadata.creation_timestamp or rfc3339(progress.now))
    left = limit - (progress.now - made).total_seconds()
    if left <= 0:
        message = f"the wipe was not done within {limit} s (workflow {workflow.status.state or 'new'})"
        return _certify(progress, observed, hardware, method, False, message, hold=True)
    message = f"the disks are being wiped ({method}): workflow is {workflow.status.state or 'new'}"
    if hardware.status.state == HardwareState.ERROR:
        message += f"; nothing is done while {hardware.metadata.annotations.get(ERROR) or 'its status.state is Error'}"
    if hardware.spec.bmc_ref is None:
        message += f"; it has no BMC: boot it over the network, or set the annotation {WIPE}=none"
    return progress.waits("Wiping", message, after_s=left)


def _is_of_earlier_machine(made: Workflow | Template, obj: TinkerbellMachine, hardware: Hardware) -> bool:
    """Whether something of the wipe's name proves nothing: it was created before this machine was to be deleted, or for
    another server. An earlier machine of the same name, whose finalizer was removed by hand, leaves such things."""
    created, deleted = made.metadata.creation_timestamp, obj.metadata.deletion_timestamp
    is_older = bool(created and deleted) and parse_rfc3339(created or "") < parse_rfc3339(deleted or "")
    return is_older or (isinstance(made, Workflow) and made.spec.hardware_ref != hardware.metadata.name)


def _may_be_installed(obj: TinkerbellMachine, hardware: Hardware) -> bool:
    """Whether an installation was begun. Upstream's controllers count no attempts, but record that one succeeded."""
    is_provisioned = hardware.metadata.annotations.get(ANNOTATION_PROVISIONED) == "true"
    return number(obj, INSTALL_ATTEMPT, 0) > 0 or obj.status.ready or is_provisioned


def _succeeded(progress: Progress, observed: Observed, hardware: Hardware, method: str, workflow: Workflow) -> Decision:
    """The Workflow has ended well: what that says about the disks is what the agent reported about each."""
    disks = disk_certificates(workflow)
    devices = [disk.device for disk in hardware.spec.disks if disk.device]
    if is_wiped(devices, disks):
        return _certify(progress, observed, hardware, method, True, _said(workflow), disks)
    if method != WipePolicy.COMPLETE:
        return _certify(progress, observed, hardware, method, False, _said(workflow), disks)
    if disks and all(disk.kept for disk in disks):
        return _certify(progress, observed, hardware, method, False, _said(workflow), disks)
    doubtful = ", ".join(unproven(devices, disks)) or "any disk"
    message = f"the agent did not report that {doubtful} was completely wiped: {_said(workflow)}"
    return _certify(progress, observed, hardware, method, False, message, disks, hold=True)


def _wipe_failed(
    progress: Progress, observed: Observed, hardware: Hardware, method: str, workflow: Workflow
) -> Decision:
    """Try it again with a new Workflow, which boots the server anew; or hold the server."""
    obj = observed.obj
    if is_deleting(workflow):
        return progress.waits("WaitingForOldWorkflow", f"Workflow {workflow.metadata.name} of an earlier attempt goes")
    tried = max(number(obj, WIPE_ATTEMPT, 1), 1)
    most = max(number(obj, WIPE_ATTEMPTS, number(hardware, WIPE_ATTEMPTS, DEFAULT_WIPE_ATTEMPTS)), 1)
    message = f"attempt {tried} of {most} to wipe failed: {why_failed(workflow)}"
    if tried >= most:
        return _certify(progress, observed, hardware, method, False, message, hold=True)
    mark = {"metadata": {"annotations": {WIPE_ATTEMPT: str(tried + 1)}}}
    return progress.waits(
        "WipeRetried",
        f"{message}; it is tried again",
        # the Workflow goes first: a crash in between counts no attempt that was not one
        delete(WORKFLOW, workflow),
        *gone(those_of(obj, observed.wipe_template)),
        patch(TINKERBELL_MACHINE, obj, mark, locked=True),
        emit(
            TINKERBELL_MACHINE, obj, reason="WipeRetried", message=f"{hardware.metadata.name}: {message}", warning=True
        ),
    )


def _begin_wipe(progress: Progress, observed: Observed, hardware: Hardware, policy: WipePolicy) -> Decision:
    obj = observed.obj
    template = observed.wipe_template
    if template is not None and not is_ours(template, obj):
        return progress.waits("ForeignTemplate", f"Template {wipe_name(obj)} is not this machine's; delete it")
    if template is not None and (is_deleting(template) or _is_of_earlier_machine(template, obj, hardware)):
        message = f"Template {wipe_name(obj)} of an earlier attempt is being deleted"
        return progress.waits("WaitingForOldTemplate", message, *gone([template]))
    if wrong := unknown_kept_disks(hardware, kept_disks(obj, hardware)):
        return progress.waits("KeepDisksUnknown", wrong)
    made, own = metadata(obj, hardware, wipe_name(obj)), own_wipe(obj, hardware)
    if observed.wipe_template is None:
        if own and (observed.wipe_override is None or not observed.wipe_override.spec.data):
            where = f"Template {hardware.metadata.namespace}/{own}, that annotation {WIPE_TEMPLATE} names,"
            lacks = "does not exist" if observed.wipe_override is None else "has no spec.data"
            return progress.waits("TemplateNotFound", f"{where} {lacks}: make it, or take the annotation off")
        disks = [disk.device for disk in hardware.spec.disks if disk.device]
        built_in = wipe_template(
            obj.metadata.name, disks, policy, limit_s=_limit_s(hardware, policy), kept=kept_disks(obj, hardware)
        )
        if own and observed.wipe_override is not None:
            made, text = marked_as(made, observed.wipe_override), observed.wipe_override.spec.data
        else:
            made, text = marked_as_ours(made, hardware, boot_options(obj, hardware)), built_in
        write: Action = create(TEMPLATE, {"metadata": made, "spec": {"data": text}})
    else:
        spec = {
            "templateRef": wipe_name(obj),
            "hardwareRef": hardware.metadata.name,
            "hardwareMap": {"device_1": agent_id(hardware)},
            "bootOptions": boot_options(obj, hardware),
        }
        write = create(WORKFLOW, {"metadata": _workflow_metadata(obj, hardware), "spec": spec})
    message = f"the wipe ({f'template {own}' if own else policy}) is being begun"
    return progress.waits("Wiping", message, _show_wiping(hardware), write)


def _show_wiping(hardware: Hardware) -> Action | None:
    """Have tables show that the server is being wiped."""
    annotations = shown(hardware, ServerPhase.WIPING)
    if hardware.metadata.annotations.get(PHASE) == annotations.get(PHASE):
        return None
    return patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)


def _workflow_metadata(obj: TinkerbellMachine, hardware: Hardware) -> dict[str, Any]:
    """Metadata of the wipe's Workflow, with a time limit for the first action.

    A server that booted its disk because nothing answered it on the network would wait for its agent until the limit of
    the whole wipe; the next attempt boots it again. Without a BMC there is no limit: somebody boots it by hand.
    """
    found = workflow_metadata(obj, hardware, wipe_name(obj))
    patience = agent_patience(hardware, number(obj, AGENT_TIMEOUT, number(hardware, AGENT_TIMEOUT, WIPE_AGENT_S)))
    return {**found, "annotations": {**found.get("annotations", {}), **patience}} if patience else found


def agent_patience(hardware: Hardware, patience_s: int) -> dict[str, str]:
    """The annotation of a wipe's Workflow that limits the time until its agent takes the first action, in seconds (0:
    no limit); empty where a person boots the server."""
    return {AGENT_TIMEOUT: str(patience_s)} if hardware.spec.bmc_ref is not None and patience_s else {}


def _limit_s(hardware: Hardware, policy: WipePolicy) -> int:
    """How long an attempt may take where no annotation says so."""
    is_quick = policy in (WipePolicy.QUICK, WipePolicy.DEFERRED)
    return DEFAULT_WIPE_TIMEOUT_S if is_quick else wipe_timeout_s(hardware)


def wipe_template(
    machine: str, disks: list[str], policy: WipePolicy, *, limit_s: int = 0, kept: Sequence[str] = ()
) -> str:
    """The workflow that wipes: the disks that the Hardware names, and no others."""
    timeout = max(WIPE_WORKFLOW_TIMEOUT_S, limit_s)
    method = WipePolicy.QUICK if policy is WipePolicy.DEFERRED else policy
    actions = []
    for start in range(0, max(len(disks), 1), MAX_DISKS_PER_MESSAGE):
        some = disks[start : start + MAX_DISKS_PER_MESSAGE]
        name = "wipe" if start == 0 else f"wipe-{start // MAX_DISKS_PER_MESSAGE + 1}"
        environment = {"DEST_DISK": ",".join(some), "WIPE_METHOD": str(method)}
        if kept:
            # Our workflow service sends them with every action; upstream's does not.
            environment[KEEP_VARIABLE] = ",".join(kept)
        actions.append({"name": name, "image": "wipe", "timeout": timeout, "environment": environment})
    task = {"name": "wipe", "worker": "{{.device_1}}", "volumes": ["/dev:/dev"], "actions": actions}
    document = {"version": "0.1", "name": f"{machine}-wipe", "global_timeout": timeout, "tasks": [task]}
    return goyaml.dump(document)


def _certify(
    progress: Progress,
    observed: Observed,
    hardware: Hardware,
    method: str,
    wiped: bool,
    message: str,
    disks: Sequence[DiskCertificate] = (),
    *,
    hold: bool = False,
    was_written: bool = True,
) -> Decision:
    """Note what came of it, and what is due because of it; from here on nothing is wiped again for this machine."""
    metadata_ = observed.obj.metadata
    certificate = Certificate(
        machine=f"{metadata_.namespace}/{metadata_.name}",
        uid=metadata_.uid,
        method=method,
        at=rfc3339(progress.now),
        wiped=wiped,
        disks=[disk.device for disk in disks if disk.complete],
        failed=hold,
        message=message,
        results=list(disks),
    )
    annotations: dict[str, Any] = {
        WIPED: msgspec.json.encode(certificate).decode(),
        **shown(hardware, ServerPhase.IN_USE),
    }
    due = _due(progress, observed, hardware, wiped=wiped, was_written=was_written)
    if due is not None or WIPE_DUE in hardware.metadata.annotations:
        annotations[WIPE_DUE] = due.encoded if due is not None else None
    if due is not None:
        message = f"{message}; a complete wipe is due before anybody but {due} may claim the server"
    if hold:
        annotations[HELD] = f"not wiped after {certificate.machine}: {message}"
    write = patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)
    reason = "Wiped" if wiped else "NotWiped"
    said = f"{hardware.metadata.name}: {message}"
    event = emit(TINKERBELL_MACHINE, observed.obj, reason=reason, message=said, warning=hold)
    progress.note(RELEASED, False, reason, said)
    return progress.waits(reason, said, write, event)


def _due(
    progress: Progress, observed: Observed, hardware: Hardware, *, wiped: bool, was_written: bool
) -> WipeDue | None:
    """The complete wipe that is due on the server once this machine has released it."""
    obj, cluster = observed.obj, observed.cluster
    policy = wipe_policy(obj, hardware)
    new = WipeDue(
        namespace=obj.metadata.namespace,
        cluster=cluster.metadata.name
        if cluster is not None
        else obj.metadata.labels.get(LABEL_CLUSTER_NAME) or UNKNOWN,
        uid=cluster.metadata.uid if cluster is not None else "",
        machine="/".join(obj.key),
        machine_uid=obj.metadata.uid,
        since=rfc3339_micro(progress.now),
        boot_options=_boot_options(obj, hardware),
        keep=kept_disks(obj, hardware),
    )
    deferred = policy is WipePolicy.DEFERRED
    return due_after(hardware, new, is_deferred=deferred, was_written=was_written, wiped=wiped)


def _boot_options(obj: TinkerbellMachine, hardware: Hardware) -> dict[str, Any]:
    """How the server boots for its complete wipe; by network where what the machine says is incomplete."""
    try:
        return boot_options(obj, hardware)
    except UnusableError:
        return {}


def certificate_of(obj: TinkerbellMachine, hardware: Hardware) -> Certificate | None:
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

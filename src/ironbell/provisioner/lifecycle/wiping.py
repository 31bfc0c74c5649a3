"""Wiping the disks of a server that is released, by a Workflow in the in-memory OS, and noting what came of it. Pure.

The built-in action `wipe` erases the disks that the Hardware names, by the method that annotation `ironbell.dev/wipe`
names; or a Template of the user's runs, that `ironbell.dev/wipe-template` names. What fails is tried again, with a new
Workflow, as often as an annotation allows; then the server is held. So is one whose wipe should have been complete and
was not reported to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ironbell.api.meta import Resource
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware, HardwareState
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import parse_rfc3339, rfc3339, rfc3339_micro
from ironbell.codec import goyaml
from ironbell.codec.diskwipe import MAX_DISKS_PER_MESSAGE
from ironbell.contract.servers.claim import HELD, PHASE, WIPED, ServerPhase, phase_annotation
from ironbell.contract.servers.directory import AGENT_TIMEOUT, ERROR, KEEP_VARIABLE
from ironbell.contract.servers.wipe_due import WIPE_DUE, WipeDue, wipe_due
from ironbell.kube.decision import Action, Fields, create, delete, patch
from ironbell.kube.finalizers import is_deleting
from ironbell.provisioner.deferral import due_after
from ironbell.provisioner.keeping import kept_disks, unknown_kept_disks
from ironbell.provisioner.lifecycle.created import (
    ENDED,
    Boot,
    UnusableError,
    boot_options,
    deletions,
    marked_as,
    marked_as_ours,
    why_failed,
    wipe_name,
    workflow_spec,
)
from ironbell.provisioner.lifecycle.host import Draft, Step
from ironbell.provisioner.lifecycle.names import (
    DEFAULT_WIPE_ATTEMPTS,
    DEFAULT_WIPE_TIMEOUT_S,
    INSTALL_ATTEMPT,
    RACK,
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
from ironbell.provisioner.lifecycle.owner import Owner
from ironbell.provisioner.lifecycle.waves import LOOK_AGAIN_S
from ironbell.provisioner.user_data import is_provisioned
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


def own_wipe(obj: Resource, hardware: Hardware | None) -> str:
    """Return which Template is run when the server is released; empty for the built-in wipe."""
    of_server = hardware.metadata.annotations.get(WIPE_TEMPLATE, "") if hardware is not None else ""
    return obj.metadata.annotations.get(WIPE_TEMPLATE) or of_server


def wipe_policy(obj: Resource, hardware: Hardware) -> WipePolicy | None:
    """Return what the annotations say, the owner's before the Hardware's; None if that is not a method."""
    try:
        return WipePolicy(_policy_text(obj, hardware))
    except ValueError:
        return None


def _policy_text(obj: Resource, hardware: Hardware) -> str:
    text = obj.metadata.annotations.get(WIPE) or hardware.metadata.annotations.get(WIPE) or WipePolicy.COMPLETE
    return text.strip().lower()


def invalid_wipe_policy(obj: Resource, hardware: Hardware) -> str:
    """Why the annotations name no method, as a sentence with the remedy."""
    text = _policy_text(obj, hardware)
    remedy = f"set it to one of {', '.join(WipePolicy)}, on the Hardware or on this object"
    return f"annotation {WIPE} is {text!r}, which is not a wipe method; {remedy}"


def wipe(draft: Draft, hardware: Hardware) -> Step:
    """The next step of a wipe, until its `Certificate` is on the Hardware."""
    owner, workflow = draft.owner, draft.state.wipe_workflow
    draft.phase = State.WIPING
    policy = wipe_policy(owner.obj, hardware)
    if policy is None:
        return draft.waits("InvalidWipePolicy", invalid_wipe_policy(owner.obj, hardware))
    if policy is WipePolicy.DEFERRED and draft.wish.cluster is None:
        policy = WipePolicy.COMPLETE
    own = own_wipe(owner.obj, hardware)
    method = f"template {own}" if own and policy is not WipePolicy.NONE else str(policy)
    if policy is WipePolicy.NONE:
        return _certify(draft, hardware, method, False, "the annotation says that nothing is wiped")
    if workflow is None and not _may_be_installed(owner, hardware):
        return _certify(draft, hardware, method, False, "nothing was installed", was_written=False)
    if UNTOUCHED in owner.annotations and workflow is None:
        why = "nothing was written: no action of its installation was ever started"
        return _certify(draft, hardware, method, False, why, was_written=False)
    if workflow is None:
        return _begin_wipe(draft, hardware, policy)
    if not owner.owns(workflow):
        return draft.waits("ForeignWorkflow", f"Workflow {workflow.metadata.name} is not this machine's; delete it")
    if _is_of_earlier_machine(workflow, owner, hardware):
        return draft.waits(
            "WaitingForOldWorkflow",
            f"Workflow {workflow.metadata.name} of an earlier machine of this name is being deleted",
            *deletions(owner.owned(workflow, draft.state.wipe_template)),
        )
    if workflow.status.state == WorkflowState.SUCCESS:
        return _succeeded(draft, hardware, method, workflow)
    if workflow.status.state in ENDED:
        return _wipe_failed(draft, hardware, method, workflow)
    limit = owner.number(WIPE_TIMEOUT, number(hardware, WIPE_TIMEOUT, _limit_s(hardware, policy)))
    begun = parse_rfc3339(workflow.metadata.creation_timestamp or rfc3339(draft.now))
    left = limit - (draft.now - begun).total_seconds()
    if left <= 0:
        message = f"the wipe was not done within {limit} s (workflow {workflow.status.state or 'new'})"
        return _certify(draft, hardware, method, False, message, hold=True)
    message = f"the disks are being wiped ({method}): workflow is {workflow.status.state or 'new'}"
    if hardware.status.state == HardwareState.ERROR:
        message += f"; nothing is done while {hardware.metadata.annotations.get(ERROR) or 'its status.state is Error'}"
    if hardware.spec.bmc_ref is None:
        message += f"; it has no BMC: boot it over the network, or set the annotation {WIPE}=none"
    return draft.waits("Wiping", message, after_s=left)


def _is_of_earlier_machine(obj: Workflow | Template, owner: Owner, hardware: Hardware) -> bool:
    """Whether something of the wipe's name proves nothing: it was created before this machine was to be deleted, or for
    another server. An earlier machine of the same name, whose finalizer was removed by hand, leaves such things."""
    created, deleted = obj.metadata.creation_timestamp, owner.obj.metadata.deletion_timestamp
    is_older = bool(created and deleted) and parse_rfc3339(created or "") < parse_rfc3339(deleted or "")
    return is_older or (isinstance(obj, Workflow) and obj.spec.hardware_ref != hardware.metadata.name)


def _may_be_installed(owner: Owner, hardware: Hardware) -> bool:
    """Whether an installation was begun. Upstream's controllers count no attempts, but record that one succeeded."""
    return owner.number(INSTALL_ATTEMPT, 0) > 0 or owner.status.is_ready or is_provisioned(hardware)


def _succeeded(draft: Draft, hardware: Hardware, method: str, workflow: Workflow) -> Step:
    """The Workflow has ended well: what that says about the disks is what the agent reported about each."""
    disks = disk_certificates(workflow)
    devices = [disk.device for disk in hardware.spec.disks if disk.device]
    if is_wiped(devices, disks):
        return _certify(draft, hardware, method, True, _messages_of(workflow), disks)
    if method != WipePolicy.COMPLETE:
        return _certify(draft, hardware, method, False, _messages_of(workflow), disks)
    if disks and all(disk.kept for disk in disks):
        return _certify(draft, hardware, method, False, _messages_of(workflow), disks)
    doubtful = ", ".join(unproven(devices, disks)) or "any disk"
    message = f"the agent did not report that {doubtful} was completely wiped: {_messages_of(workflow)}"
    return _certify(draft, hardware, method, False, message, disks, hold=True)


def _wipe_failed(draft: Draft, hardware: Hardware, method: str, workflow: Workflow) -> Step:
    """Try it again with a new Workflow, which boots the server anew; or hold the server."""
    owner = draft.owner
    if is_deleting(workflow):
        return draft.waits("WaitingForOldWorkflow", f"Workflow {workflow.metadata.name} of an earlier attempt goes")
    tried = max(owner.number(WIPE_ATTEMPT, 1), 1)
    most = max(owner.number(WIPE_ATTEMPTS, number(hardware, WIPE_ATTEMPTS, DEFAULT_WIPE_ATTEMPTS)), 1)
    message = f"attempt {tried} of {most} to wipe failed: {why_failed(workflow)}"
    if tried >= most:
        return _certify(draft, hardware, method, False, message, hold=True)
    return draft.waits(
        "WipeRetried",
        f"{message}; it is tried again",
        # the Workflow goes first: a crash in between counts no attempt that was not one
        delete(WORKFLOW, workflow),
        *deletions(owner.owned(draft.state.wipe_template)),
        owner.mark({WIPE_ATTEMPT: str(tried + 1)}),
        owner.event("WipeRetried", f"{hardware.metadata.name}: {message}", warning=True),
    )


def _begin_wipe(draft: Draft, hardware: Hardware, policy: WipePolicy) -> Step:
    owner, template, override = draft.owner, draft.state.wipe_template, draft.state.wipe_override
    name = wipe_name(owner.obj)
    if template is not None and not owner.owns(template):
        return draft.waits("ForeignTemplate", f"Template {name} is not this machine's; delete it")
    if template is not None and (is_deleting(template) or _is_of_earlier_machine(template, owner, hardware)):
        message = f"Template {name} of an earlier attempt is being deleted"
        return draft.waits("WaitingForOldTemplate", message, *deletions([template]))
    if wrong := unknown_kept_disks(hardware, kept_disks(owner.obj, hardware)):
        return draft.waits("KeepDisksUnknown", wrong)
    metadata, own = owner.metadata(hardware, name), own_wipe(owner.obj, hardware)
    if template is None:
        if own and (override is None or not override.spec.data):
            where = f"Template {hardware.metadata.namespace}/{own}, that annotation {WIPE_TEMPLATE} names,"
            lacks = "does not exist" if override is None else "has no spec.data"
            return draft.waits("TemplateNotFound", f"{where} {lacks}: make it, or take the annotation off")
        disks = [disk.device for disk in hardware.spec.disks if disk.device]
        built_in = wipe_template(
            owner.name, disks, policy, limit_s=_limit_s(hardware, policy), kept=kept_disks(owner.obj, hardware)
        )
        if own and override is not None:
            metadata, text = marked_as(metadata, override), override.spec.data
        else:
            metadata, text = marked_as_ours(metadata, hardware, boot_options(draft.wish.boot, hardware)), built_in
        write: Action = create(TEMPLATE, {"metadata": metadata, "spec": {"data": text}})
    else:
        turn = draft.state.wave.waits(draft.wish.installs_per_rack, draft.now)
        if turn:
            draft.phase = State.WAITING
            return draft.waits("WaitingForTurn", turn, after_s=LOOK_AGAIN_S)
        spec = workflow_spec(hardware, name, boot_options(draft.wish.boot, hardware))
        write = create(WORKFLOW, {"metadata": _workflow_metadata(owner, hardware), "spec": spec})
    message = f"the wipe ({f'template {own}' if own else policy}) is being begun"
    return draft.waits("Wiping", message, _show_wiping(hardware), write)


def _show_wiping(hardware: Hardware) -> Action | None:
    """Have tables show that the server is being wiped."""
    annotations = phase_annotation(hardware, ServerPhase.WIPING)
    if hardware.metadata.annotations.get(PHASE) == annotations.get(PHASE):
        return None
    return patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)


def _workflow_metadata(owner: Owner, hardware: Hardware) -> Fields:
    """Metadata of the wipe's Workflow, with a time limit for the first action.

    A server that booted its disk because nothing answered it on the network would wait for its agent until the limit of
    the whole wipe; the next attempt boots it again. Without a BMC there is no limit: somebody boots it by hand.
    """
    patience_s = owner.number(AGENT_TIMEOUT, number(hardware, AGENT_TIMEOUT, WIPE_AGENT_S))
    return owner.workflow_metadata(hardware, wipe_name(owner.obj), agent_patience(hardware, patience_s))


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
    draft: Draft,
    hardware: Hardware,
    method: str,
    wiped: bool,
    message: str,
    disks: Sequence[DiskCertificate] = (),
    *,
    hold: bool = False,
    was_written: bool = True,
) -> Step:
    """Note what came of it, and what is due because of it; from here on nothing is wiped again for this machine."""
    certificate = Certificate(
        machine=draft.owner.path,
        uid=draft.owner.uid,
        method=method,
        at=rfc3339(draft.now),
        wiped=wiped,
        disks=[disk.device for disk in disks if disk.complete],
        failed=hold,
        message=message,
        results=list(disks),
    )
    annotations: dict[str, Any] = {
        WIPED: msgspec.json.encode(certificate).decode(),
        **phase_annotation(hardware, ServerPhase.IN_USE),
    }
    due = _due(draft, hardware, wiped=wiped, was_written=was_written)
    if due is not None or WIPE_DUE in hardware.metadata.annotations:
        annotations[WIPE_DUE] = due.encoded if due is not None else None
    if due is not None:
        message = f"{message}; a complete wipe is due before anybody but {due} may claim the server"
    if hold:
        annotations[HELD] = f"not wiped after {certificate.machine}: {message}"
    write = patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)
    reason = "Wiped" if wiped else "NotWiped"
    report = f"{hardware.metadata.name}: {message}"
    event = draft.owner.event(reason, report, warning=hold)
    draft.note(RELEASED, False, reason, report)
    return draft.waits(reason, report, write, event)


def _due(draft: Draft, hardware: Hardware, *, wiped: bool, was_written: bool) -> WipeDue | None:
    """The complete wipe that is due on the server once this owner has released it."""
    owner, cluster = draft.owner, draft.wish.cluster
    if cluster is None:
        return None if wiped else wipe_due(hardware)
    new = WipeDue(
        namespace=cluster.namespace,
        cluster=cluster.name,
        uid=cluster.uid,
        machine=owner.path,
        machine_uid=owner.uid,
        since=rfc3339_micro(draft.now),
        boot_options=_boot_options(draft.wish.boot, hardware),
        keep=kept_disks(owner.obj, hardware),
        rack=owner.annotations.get(RACK, ""),
    )
    deferred = wipe_policy(owner.obj, hardware) is WipePolicy.DEFERRED
    return due_after(hardware, new, is_deferred=deferred, was_written=was_written, wiped=wiped)


def _boot_options(boot: Boot, hardware: Hardware) -> Fields:
    """How the server boots for its complete wipe; by network where what the owner says is incomplete."""
    try:
        return boot_options(boot, hardware)
    except UnusableError:
        return {}


def certificate_of(uid: str, hardware: Hardware) -> Certificate | None:
    """Return what was noted for the owner with this uid."""
    text = hardware.metadata.annotations.get(WIPED, "")
    try:
        found = msgspec.json.decode(text, type=Certificate) if text else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found if found is not None and found.uid == uid else None


def _messages_of(workflow: Workflow) -> str:
    messages = [action.message for task in workflow.status.tasks for action in task.actions if action.message]
    return "; ".join(messages) or "wiped"

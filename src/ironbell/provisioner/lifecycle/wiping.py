"""The wipe of a server that is released, by a Workflow in the in-memory OS, and the record of its outcome. Pure.

The built-in action `wipe` erases the disks that the Hardware names, with the method in annotation `ironbell.dev/wipe`;
or the Template in `ironbell.dev/wipe-template` runs instead. A failed wipe is retried with a new Workflow, as often as
an annotation allows; then the server is held. It is also held if a complete wipe is not reported as complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

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
from ironbell.provisioner.disks import (
    DiskCertificate,
    devices_of,
    disk_certificates,
    encoded_certificate,
    is_wiped,
    kept_disks,
    messages_of,
    unknown_kept_disks,
    unproven_problem,
    wipe_timeout_s,
)
from ironbell.provisioner.lifecycle.created import (
    TERMINAL,
    Boot,
    UnusableError,
    boot_options,
    deletions,
    marked_as,
    marked_as_own,
    wipe_name,
    workflow_failure,
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
from ironbell.provisioner.lifecycle.waves import RECHECK_S
from ironbell.provisioner.user_data import is_provisioned

WIPE_WORKFLOW_TIMEOUT_S: Final = 86400
"""Minimum timeout in the Workflow; the controller's own timeout decides."""
WIPE_AGENT_S: Final = 1800
"""Time from power-on within which the agent must request the first action of the wipe."""


def own_wipe(obj: Resource, hardware: Hardware | None) -> str:
    """Return the name of the Template that runs when the server is released; empty for the built-in wipe."""
    of_server = hardware.metadata.annotations.get(WIPE_TEMPLATE, "") if hardware is not None else ""
    return obj.metadata.annotations.get(WIPE_TEMPLATE) or of_server


def wipe_policy(obj: Resource, hardware: Hardware) -> WipePolicy | None:
    """Return the method in the annotations, of which the owner's takes precedence; None if it is not valid."""
    try:
        return WipePolicy(_policy_text(obj, hardware))
    except ValueError:
        return None


def _policy_text(obj: Resource, hardware: Hardware) -> str:
    text = obj.metadata.annotations.get(WIPE) or hardware.metadata.annotations.get(WIPE) or WipePolicy.COMPLETE
    return text.strip().lower()


def invalid_wipe_policy(obj: Resource, hardware: Hardware) -> str:
    """The message about annotations with an invalid method, with the remedy."""
    text = _policy_text(obj, hardware)
    remedy = f"Set it to one of {', '.join(WipePolicy)}, on the Hardware or on this object."
    return f"Annotation {WIPE} is {text!r}, which is not a valid wipe method. {remedy}"


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
        return _certify(draft, hardware, method, False, f"annotation {WIPE} is 'none'")
    if workflow is None and not _may_be_installed(owner, hardware):
        return _certify(draft, hardware, method, False, "nothing was installed", was_written=False)
    if UNTOUCHED in owner.annotations and workflow is None:
        message = "nothing was written: no action of its installation was ever started"
        return _certify(draft, hardware, method, False, message, was_written=False)
    if workflow is None:
        return _begin_wipe(draft, hardware, policy)
    if not owner.owns(workflow):
        message = f"Workflow {workflow.metadata.name} belongs to another owner. Delete it."
        return draft.waits("ForeignWorkflow", message)
    if _is_of_earlier_machine(workflow, owner, hardware):
        return draft.waits(
            "WaitingForOldWorkflow",
            f"Workflow {workflow.metadata.name} of an earlier {owner.of.noun} of this name is being deleted.",
            *deletions(owner.owned(workflow, draft.state.wipe_template)),
        )
    if workflow.status.state == WorkflowState.SUCCESS:
        return _succeeded(draft, hardware, method, workflow)
    if workflow.status.state in TERMINAL:
        return _wipe_failed(draft, hardware, method, workflow)
    limit = owner.number(WIPE_TIMEOUT, number(hardware, WIPE_TIMEOUT, _limit_s(hardware, policy)))
    begun = parse_rfc3339(workflow.metadata.creation_timestamp or rfc3339(draft.now))
    left = limit - (draft.now - begun).total_seconds()
    if left <= 0:
        message = f"the wipe did not complete within {limit} s (Workflow {workflow.status.state or 'new'})"
        return _certify(draft, hardware, method, False, message, hold=True)
    message = f"Wiping the disks ({method}): the Workflow is {workflow.status.state or 'new'}."
    if hardware.status.state == HardwareState.ERROR:
        problem = hardware.metadata.annotations.get(ERROR) or "its status.state is Error"
        message += f" The Hardware has to be corrected first: {problem}."
    if hardware.spec.bmc_ref is None:
        message += f" The server has no BMC: boot it over the network, or set annotation {WIPE}=none."
    return draft.waits("Wiping", message, after_s=left)


def _is_of_earlier_machine(obj: Workflow | Template, owner: Owner, hardware: Hardware) -> bool:
    """Return whether an object with the name of the wipe's proves nothing: it was created before this owner's deletion,
    or for another server. An earlier owner of the same name, whose finalizer a user removed, leaves such objects."""
    created, deleted = obj.metadata.creation_timestamp, owner.obj.metadata.deletion_timestamp
    is_older = bool(created and deleted) and parse_rfc3339(created or "") < parse_rfc3339(deleted or "")
    return is_older or (isinstance(obj, Workflow) and obj.spec.hardware_ref != hardware.metadata.name)


def _may_be_installed(owner: Owner, hardware: Hardware) -> bool:
    """Return whether an installation was started. Upstream's controllers count no attempts, but record a success."""
    return owner.number(INSTALL_ATTEMPT, 0) > 0 or owner.status.is_ready or is_provisioned(hardware)


def _succeeded(draft: Draft, hardware: Hardware, method: str, workflow: Workflow) -> Step:
    """Certify a completed Workflow by the agent's report of each disk."""
    disks, messages = disk_certificates(workflow), messages_of(workflow)
    wiped = is_wiped(devices_of(hardware), disks)
    problem = unproven_problem(hardware, disks)
    if problem and method == WipePolicy.COMPLETE:
        return _certify(draft, hardware, method, False, f"{problem}: {messages}", disks, hold=True)
    return _certify(draft, hardware, method, wiped, messages, disks)


def _wipe_failed(draft: Draft, hardware: Hardware, method: str, workflow: Workflow) -> Step:
    """Retry with a new Workflow, which boots the server again, or hold the server."""
    owner = draft.owner
    if is_deleting(workflow):
        message = f"Workflow {workflow.metadata.name} of an earlier attempt is being deleted."
        return draft.waits("WaitingForOldWorkflow", message)
    tried = max(owner.number(WIPE_ATTEMPT, 1), 1)
    most = max(owner.number(WIPE_ATTEMPTS, number(hardware, WIPE_ATTEMPTS, DEFAULT_WIPE_ATTEMPTS)), 1)
    message = f"attempt {tried} of {most} to wipe the disks failed: {workflow_failure(workflow)}"
    if tried >= most:
        return _certify(draft, hardware, method, False, message, hold=True)
    return draft.waits(
        "WipeRetried",
        f"Retrying: {message}.",
        # the Workflow is deleted first: after a crash in between, no attempt is counted that was not made
        delete(WORKFLOW, workflow),
        *deletions(owner.owned(draft.state.wipe_template)),
        owner.mark({WIPE_ATTEMPT: str(tried + 1)}),
        owner.event("WipeRetried", f"Retrying the wipe of server {hardware.metadata.name}: {message}.", warning=True),
    )


def _begin_wipe(draft: Draft, hardware: Hardware, policy: WipePolicy) -> Step:
    owner, template, override = draft.owner, draft.state.wipe_template, draft.state.wipe_override
    name = wipe_name(owner.obj)
    if template is not None and not owner.owns(template):
        return draft.waits("ForeignTemplate", f"Template {name} belongs to another owner. Delete it.")
    if template is not None and (is_deleting(template) or _is_of_earlier_machine(template, owner, hardware)):
        message = f"Template {name} of an earlier attempt is being deleted."
        return draft.waits("WaitingForOldTemplate", message, *deletions([template]))
    if problem := unknown_kept_disks(hardware, kept_disks(owner.obj, hardware)):
        return draft.waits("KeepDisksUnknown", problem)
    metadata, own = owner.metadata(hardware, name), own_wipe(owner.obj, hardware)
    if template is None:
        if own and (override is None or not override.spec.data):
            where = f"Template {hardware.metadata.namespace}/{own} in annotation {WIPE_TEMPLATE}"
            lacks = "does not exist" if override is None else "has no spec.data"
            return draft.waits("TemplateNotFound", f"{where} {lacks}. Create it, or remove the annotation.")
        limit_s, kept = _limit_s(hardware, policy), kept_disks(owner.obj, hardware)
        built_in = wipe_template(owner.name, devices_of(hardware), policy, limit_s=limit_s, kept=kept)
        if own and override is not None:
            metadata, text = marked_as(metadata, override), override.spec.data
        else:
            metadata, text = marked_as_own(metadata, hardware, boot_options(draft.wish.boot, hardware)), built_in
        write: Action = create(TEMPLATE, {"metadata": metadata, "spec": {"data": text}})
    else:
        if message := draft.state.wave.waits(draft.wish.installs_per_rack, draft.now):
            draft.phase = State.WAITING
            return draft.waits("WaitingForTurn", message, after_s=RECHECK_S)
        spec = workflow_spec(hardware, name, boot_options(draft.wish.boot, hardware))
        write = create(WORKFLOW, {"metadata": _workflow_metadata(owner, hardware), "spec": spec})
    message = f"Starting the wipe ({f'template {own}' if own else policy})."
    return draft.waits("Wiping", message, _show_wiping(hardware), write)


def _show_wiping(hardware: Hardware) -> Action | None:
    """Set the phase that tables show while the server is being wiped."""
    annotations = phase_annotation(hardware, ServerPhase.WIPING)
    if hardware.metadata.annotations.get(PHASE) == annotations.get(PHASE):
        return None
    return patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)


def _workflow_metadata(owner: Owner, hardware: Hardware) -> Fields:
    """Metadata of the wipe's Workflow, with a timeout for the first action.

    A server that booted from its disk because of a network failure would wait for its agent until the timeout of the
    whole wipe; the next attempt boots it again. Without a BMC there is no timeout: a user boots it.
    """
    patience_s = owner.number(AGENT_TIMEOUT, number(hardware, AGENT_TIMEOUT, WIPE_AGENT_S))
    return owner.workflow_metadata(hardware, wipe_name(owner.obj), agent_patience(hardware, patience_s))


def agent_patience(hardware: Hardware, patience_s: int) -> dict[str, str]:
    """The annotation with the timeout of the agent's first request (0: none); empty if a user boots the server."""
    return {AGENT_TIMEOUT: str(patience_s)} if hardware.spec.bmc_ref is not None and patience_s else {}


def _limit_s(hardware: Hardware, policy: WipePolicy) -> int:
    """The default timeout of an attempt."""
    is_quick = policy in (WipePolicy.QUICK, WipePolicy.DEFERRED)
    return DEFAULT_WIPE_TIMEOUT_S if is_quick else wipe_timeout_s(hardware)


def wipe_template(
    machine: str, disks: list[str], policy: WipePolicy, *, limit_s: int = 0, kept: Sequence[str] = ()
) -> str:
    """The workflow that wipes the disks that the Hardware names, and no others."""
    timeout = max(WIPE_WORKFLOW_TIMEOUT_S, limit_s)
    method = WipePolicy.QUICK if policy is WipePolicy.DEFERRED else policy
    actions = []
    for start in range(0, max(len(disks), 1), MAX_DISKS_PER_MESSAGE):
        some = disks[start : start + MAX_DISKS_PER_MESSAGE]
        name = "wipe" if start == 0 else f"wipe-{start // MAX_DISKS_PER_MESSAGE + 1}"
        environment = {"DEST_DISK": ",".join(some), "WIPE_METHOD": str(method)}
        if kept:
            # Ironbell's workflow service sends them with every action; upstream's does not.
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
    """Record the outcome, and the complete wipe that is due; from then on, nothing is wiped again for this owner."""
    owner = draft.owner
    certificate = encoded_certificate(owner.path, owner.uid, method, draft.now, wiped, message, disks, failed=hold)
    annotations: dict[str, Any] = {WIPED: certificate, **phase_annotation(hardware, ServerPhase.IN_USE)}
    due = _due(draft, hardware, wiped=wiped, was_written=was_written)
    if due is not None or WIPE_DUE in hardware.metadata.annotations:
        annotations[WIPE_DUE] = due.encoded if due is not None else None
    if due is not None:
        message = f"{message}; a complete wipe is due before others than {due} can claim the server"
    if hold:
        annotations[HELD] = f"not wiped after {owner.path}: {message}"
    write = patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)
    reason = "Wiped" if wiped else "NotWiped"
    report = f"{hardware.metadata.name}: {message}"
    event = owner.event(reason, report, warning=hold)
    draft.set_condition(RELEASED, False, reason, report)
    return draft.waits(reason, report, write, event)


def _due(draft: Draft, hardware: Hardware, *, wiped: bool, was_written: bool) -> WipeDue | None:
    """The complete wipe that is due once this owner has released the server, or None."""
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
    """Boot options for the complete wipe; netboot if the owner's options are incomplete."""
    try:
        return boot_options(boot, hardware)
    except UnusableError:
        return {}

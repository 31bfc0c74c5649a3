"""The permission to netboot, which a Workflow sets on its Hardware and withdraws when it completes, fails or is
deleted.

The finalizer is added to the Workflow before the Hardware is changed, so that a Workflow that is deleted in between
still withdraws its permission. It is not withdrawn while another Workflow needs it.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/hardware.go.
"""

from __future__ import annotations

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.names import WorkflowConditionType
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.contract.servers.boot_token import BOOT_FOR, boot_for, permitting_workflow_uid
from ironbell.contract.servers.identity import boot_mark
from ironbell.controllers.tink.names import FINALIZER_CLEANUP
from ironbell.controllers.tink.observed import Observed
from ironbell.controllers.tink.status import WorkflowDraft
from ironbell.kube.decision import Action, Fields, JsonPatch
from ironbell.kube.draft import replace
from ironbell.kube.finalizers import add_finalizer, has_finalizer, remove_finalizer


def must_allow(workflow: Workflow) -> bool:
    """Return whether the Workflow still has to allow its Hardware to netboot."""
    return (
        workflow.spec.boot_options.toggle_allow_netboot and not workflow.status.boot_options.allow_netboot.toggled_true
    )


def must_forbid(workflow: Workflow) -> bool:
    """Return whether the Workflow still has to withdraw its permission."""
    marks = workflow.status.boot_options.allow_netboot
    given = marks.toggled_true or has_finalizer(workflow, FINALIZER_CLEANUP)
    return workflow.spec.boot_options.toggle_allow_netboot and given and not marks.toggled_false


def allow(draft: WorkflowDraft, hardware: Hardware) -> None:
    """Allow every interface to netboot."""
    uid = boot_for(draft.metadata.uid, draft.now, boot_mark(draft.obj))
    draft.first.append(add_finalizer(WORKFLOW, draft.obj, FINALIZER_CLEANUP))
    draft.owned.append(set_allow_pxe(hardware, True, boot_for_uid=uid))
    _mark(draft, toggled_true=True)
    draft.upstream(WorkflowConditionType.ALLOW_NETBOOT_TRUE, True, "set allowPXE to true")


def forbid(draft: WorkflowDraft, observed: Observed) -> None:
    """Forbid every interface to netboot, unless the Hardware was deleted or another Workflow needs the permission."""
    message = "set allowPXE to false"
    if observed.hardware is None:
        message = f"Hardware {draft.obj.spec.hardware_ref} was deleted."
    elif observed.others_netbooting:
        message = f"allowPXE remains true for Workflow {', '.join(observed.others_netbooting)}."
    draft.owned.append(withdrawal(observed))
    _mark(draft, toggled_false=True)
    draft.upstream(WorkflowConditionType.ALLOW_NETBOOT_FALSE, True, message)


def withdrawal(observed: Observed) -> Action | None:
    """Withdraw the permission; None if nobody has it, or another Workflow needs it."""
    if observed.hardware is None or observed.others_netbooting:
        return None
    return set_allow_pxe(observed.hardware, False)


def release(workflow: Workflow) -> Action | None:
    """Remove the finalizer of the Workflow once nothing has to be undone."""
    return remove_finalizer(WORKFLOW, workflow, FINALIZER_CLEANUP)


def set_allow_pxe(hardware: Hardware, value: bool, *, boot_for_uid: str = "") -> JsonPatch | None:
    """The patch of all interfaces, for exactly the observed version of the Hardware; None if nothing changes.

    `boot_for_uid` names the Workflow with the permission: its boot may get a token (`contract.servers.boot_token`).
    """
    operations: list[Fields] = _named(hardware, boot_for_uid)
    for number, interface in enumerate(hardware.spec.interfaces):
        path = f"/spec/interfaces/{number}/netboot"
        if interface.netboot is None:
            operations.append({"op": "add", "path": path, "value": {"allowPXE": value}})
        elif interface.netboot.allow_pxe is not value:
            operations.append({"op": "add", "path": f"{path}/allowPXE", "value": value})
    if not operations:
        return None
    version = hardware.metadata.resource_version
    return JsonPatch(HARDWARE, *hardware.key, tuple(operations), resource_version=version)


def _named(hardware: Hardware, boot_for_uid: str) -> list[Fields]:
    annotations = hardware.metadata.annotations
    if permitting_workflow_uid(hardware) == boot_for_uid.partition(" ")[0]:
        return []
    if not annotations:
        return [{"op": "add", "path": "/metadata/annotations", "value": {BOOT_FOR: boot_for_uid}}]
    path = f"/metadata/annotations/{BOOT_FOR.replace('/', '~1')}"
    return [{"op": "add", "path": path, "value": boot_for_uid}] if boot_for_uid else [{"op": "remove", "path": path}]


def _mark(draft: WorkflowDraft, **toggled: bool) -> None:
    options = draft.status.boot_options
    marked = replace(options, allow_netboot=replace(options.allow_netboot, **toggled))
    draft.status = replace(draft.status, boot_options=marked)

"""The permission to netboot, which a Workflow sets on its Hardware and withdraws when it completes, fails or is
deleted.

The finalizer is added to the Workflow before the Hardware is changed, so that a Workflow that is deleted in between
still withdraws its permission. It is not withdrawn while another Workflow needs it.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/hardware.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.names import WorkflowConditionType
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow, WorkflowStatus
from ironbell.contract.servers.boot_token import BOOT_FOR, boot_for, permitting_workflow_uid
from ironbell.contract.servers.identity import boot_mark
from ironbell.controllers.tink import status as statuses
from ironbell.controllers.tink.names import FINALIZER_CLEANUP
from ironbell.controllers.tink.observed import Observed
from ironbell.kube.decision import Action, Fields, JsonPatch, do
from ironbell.kube.finalizers import add_finalizer, has_finalizer, remove_finalizer


@dataclass(frozen=True, slots=True)
class Change:
    """Writes besides the Workflow's status, and the status that follows from them."""

    actions: tuple[Action, ...]
    status: WorkflowStatus


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


def allow(workflow: Workflow, hardware: Hardware, now: datetime) -> Change:
    """Allow every interface to netboot."""
    status = _marked(workflow.status, toggled_true=True)
    status = statuses.with_upstream(
        status, WorkflowConditionType.ALLOW_NETBOOT_TRUE, True, "set allowPXE to true", now=now
    )
    permit = set_allow_pxe(hardware, True, boot_for_uid=boot_for(workflow.metadata.uid, now, boot_mark(workflow)))
    writes = do(add_finalizer(WORKFLOW, workflow, FINALIZER_CLEANUP), permit)
    return Change(writes.actions, status)


def forbid(observed: Observed, status: WorkflowStatus, now: datetime) -> Change:
    """Forbid every interface to netboot, unless the Hardware was deleted or another Workflow needs the permission."""
    condition = WorkflowConditionType.ALLOW_NETBOOT_FALSE
    marked = _marked(status, toggled_false=True)
    if observed.hardware is None:
        message = f"Hardware {observed.workflow.spec.hardware_ref} was deleted."
        return Change((), statuses.with_upstream(marked, condition, True, message, now=now))
    if observed.others_netbooting:
        message = f"allowPXE remains true for Workflow {', '.join(observed.others_netbooting)}."
        return Change((), statuses.with_upstream(marked, condition, True, message, now=now))
    writes = do(set_allow_pxe(observed.hardware, False))
    return Change(writes.actions, statuses.with_upstream(marked, condition, True, "set allowPXE to false", now=now))


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


def _marked(status: WorkflowStatus, *, toggled_true: bool = False, toggled_false: bool = False) -> WorkflowStatus:
    marks = status.boot_options.allow_netboot
    marks = msgspec.structs.replace(
        marks,
        toggled_true=marks.toggled_true or toggled_true,
        toggled_false=marks.toggled_false or toggled_false,
    )
    options = msgspec.structs.replace(status.boot_options, allow_netboot=marks)
    return msgspec.structs.replace(status, boot_options=options)

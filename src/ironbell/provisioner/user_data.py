"""Rules for providing, serving, withholding and withdrawing user data, and for completing installations. Pure.

User data that is on a Hardware is served regardless of annotations, so its withdrawal removes it in the same write. The
annotation `ironbell.dev/user-data-of` only records the version of the Secret that was provided, or the withdrawal.

A server that loses its power during an installation, or that is claimed with an old system on its disk, boots that
disk. That system must not read the user data of the server's new owner: it would join a cluster although its
installation is not complete, and the next attempt would wipe a node.

The metadata service has the same rules for every route, EC2 and NoCloud, and three kinds of documents. Descriptions of
a server (its names, keys, network) are served whenever the server is known: a node that is held, or has joined its
cluster long ago, requests them at each boot, and without them cloud-init would consider it another machine. The storage
layout is for the in-memory OS. Instructions (user data and vendor data) may hold secrets, and are not served

- once the user data was withdrawn, because the server has joined its cluster or is being released;
- while its record is from a backup and not confirmed;
- before its installation is complete, and while it is held during it; then the server may retry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from ironbell.api.capt.names import ANNOTATION_PROVISIONED
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.contract.servers.claim import HELD, USER_DATA_OF, WITHDRAWN, claim_of
from ironbell.contract.servers.restored import hold_reason
from ironbell.kube.decision import MergePatch, patch

EARLY: Final = "ironbell.dev/user-data-early"
"""Annotation on Hardware: actions of its installation read the user data themselves."""
INSTRUCTIONS: Final = frozenset({"user-data", "vendor-data"})
"""Names of documents with instructions for a server, in every tree."""
_COMPLETE: Final = frozenset({WorkflowState.POST, WorkflowState.SUCCESS})

FindWorkflow = Callable[[str, str], Workflow | None]
"""A Workflow by namespace and name, as the caller knows it."""


class Document(Enum):
    """The kinds of documents of the metadata service."""

    DESCRIPTION = "description"
    STORAGE = "storage"
    INSTRUCTIONS = "instructions"


@dataclass(frozen=True, slots=True)
class Serve:
    """The document is served."""


@dataclass(frozen=True, slots=True)
class Withhold:
    """The document does not exist, and a retry does not help."""

    reason: str


@dataclass(frozen=True, slots=True)
class Later:
    """The document is not served yet; the server may retry."""

    reason: str


def kind_of(name: str) -> Document:
    """The kind of a document by its name; `storage` is the in-memory OS's."""
    if name in INSTRUCTIONS:
        return Document.INSTRUCTIONS
    return Document.STORAGE if name == "storage" else Document.DESCRIPTION


def service_of(hardware: Hardware, document: Document, find: FindWorkflow) -> Serve | Withhold | Later:
    """Decide whether a document of a server is served to the system that is known to be that server's."""
    if document is not Document.INSTRUCTIONS:
        return Serve()
    if reason := withheld_reason(hardware):
        return Withhold(reason)
    if reason := incomplete_reason(hardware, find) or _interrupted_reason(hardware):
        return Later(reason)
    return Serve()


def is_provisioned(hardware: Hardware) -> bool:
    """Return whether a server was installed for its owner, and the owner has recorded it."""
    return hardware.metadata.annotations.get(ANNOTATION_PROVISIONED) == "true"


def is_at_last_action(workflow: Workflow) -> bool:
    """Return whether the last action runs, or has run: it leaves the in-memory OS, and may not report how it ends."""
    actions = [action for task in workflow.status.tasks for action in task.actions]
    current = workflow.status.current_state
    return current is not None and bool(actions) and bool(current.action_id) and current.action_id == actions[-1].id


def is_complete(workflow: Workflow) -> bool:
    """Return whether an installation has written all that the installed system needs to boot."""
    state = workflow.status.state
    return state in _COMPLETE or (state == WorkflowState.RUNNING and is_at_last_action(workflow))


def withheld_reason(hardware: Hardware) -> str:
    """The reason why no user data is served; empty if it is served."""
    if not hardware.spec.user_data and _given(hardware) == WITHDRAWN:
        return "The user data was withdrawn: the machine has joined its cluster, or is being released."
    return hold_reason(hardware) or ""


def incomplete_reason(hardware: Hardware, find: FindWorkflow) -> str:
    """The reason why a server's user data is not served yet; empty if it may be.

    It is about user data that was given to the server for its current owner, until that is provisioned: the Workflow
    has the owner's name.
    """
    claim = claim_of(hardware)
    if claim is None or not _is_given(hardware) or is_provisioned(hardware):
        return ""
    if hardware.metadata.annotations.get(EARLY) == "true":
        return ""
    workflow = find(hardware.metadata.namespace, claim.name)
    if workflow is None or workflow.spec.hardware_ref != hardware.metadata.name:
        return "the machine has not been installed for its owner"
    if is_complete(workflow):
        return ""
    return f"the machine is not installed: workflow {workflow.metadata.name} is {workflow.status.state or 'new'}"


def needs_user_data(hardware: Hardware, version: str) -> bool:
    """Return whether a server lacks this version of its bootstrap data; what was withdrawn is not given again."""
    given = _given(hardware)
    return given != WITHDRAWN and (given != version or not hardware.spec.user_data)


def withdrawal(hardware: Hardware) -> MergePatch | None:
    """The one write that removes the user data and records it; None if both are done.

    Upstream's controller writes the data in every reconciliation, so it may exist although it was withdrawn.
    """
    if hardware.spec.user_data is None and _given(hardware) == WITHDRAWN:
        return None
    body: dict[str, Any] = {"metadata": {"annotations": {USER_DATA_OF: WITHDRAWN}}, "spec": {"userData": None}}
    return patch(HARDWARE, hardware, body, locked=True)


def _given(hardware: Hardware) -> str | None:
    """Secret and version of the user data that was given, `withdrawn`, or None."""
    return hardware.metadata.annotations.get(USER_DATA_OF)


def _is_given(hardware: Hardware) -> bool:
    return _given(hardware) not in (None, WITHDRAWN)


def _interrupted_reason(hardware: Hardware) -> str:
    """The reason why a held server gets no user data during its installation; empty if it does."""
    held = hardware.metadata.annotations.get(HELD)
    if held is None or claim_of(hardware) is None or not _is_given(hardware) or is_provisioned(hardware):
        return ""
    return f"the server is held: {held or 'no reason given'}"

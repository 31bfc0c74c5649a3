"""Whether the installation of a server that somebody has taken is whole, by its Workflow. Pure.

A server that loses its power in the middle of an installation, or that is taken with an old system on its disk, boots
that disk. What runs there must not learn the user data of the server's new owner: it would join a cluster, as a system
that nobody has finished, and the next attempt would wipe a node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ironbell.api.capt.names import ANNOTATION_PROVISIONED
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.contract.hardware_claim import USER_DATA_OF, WITHDRAWN, claim_of

EARLY: Final = "ironbell.dev/user-data-early"
"""Annotation on Hardware: actions of its installation read the user data themselves."""
_DONE: Final = frozenset({WorkflowState.POST, WorkflowState.SUCCESS})

FindWorkflow = Callable[[str, str], Workflow | None]
"""A Workflow by namespace and name, as it is known here."""


def is_at_last_action(workflow: Workflow) -> bool:
    """Whether the last action runs, or has run: the one that leaves the in-memory OS, and may not tell how it ends."""
    actions = [action for task in workflow.status.tasks for action in task.actions]
    current = workflow.status.current_state
    return current is not None and bool(actions) and bool(current.action_id) and current.action_id == actions[-1].id


def why_not_whole(hardware: Hardware, find: FindWorkflow) -> str:
    """Why a server's user data is not told yet; empty if it may be. It is about user data that was given to the server
    for the owner that it has, until that is provisioned: the Workflow has the owner's name."""
    annotations = hardware.metadata.annotations
    claim = claim_of(hardware)
    if claim is None or annotations.get(USER_DATA_OF, WITHDRAWN) == WITHDRAWN:
        return ""
    if annotations.get(ANNOTATION_PROVISIONED) == "true" or annotations.get(EARLY) == "true":
        return ""
    workflow = find(hardware.metadata.namespace, claim.name)
    if workflow is None or workflow.spec.hardware_ref != hardware.metadata.name:
        return "the machine has not been installed for its owner"
    state = workflow.status.state
    if state in _DONE or (state == WorkflowState.RUNNING and is_at_last_action(workflow)):
        return ""
    return f"the machine is not installed: workflow {workflow.metadata.name} is {state or 'new'}"

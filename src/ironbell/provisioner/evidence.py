"""What a Workflow proves about the disks of its server."""

from __future__ import annotations

from typing import Final

from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState

_BEFORE_ACTIONS: Final = frozenset({"", WorkflowState.PREPARING, WorkflowState.PENDING})


def has_started(workflow: Workflow) -> bool:
    """Return whether an action of the Workflow was ever handed out: only then something may have been written.

    The workflow service stores that it hands an action out before the agent gets it.
    """
    status = workflow.status
    if status.current_state is not None and status.current_state.action_id:
        return True
    states = [action.state for task in status.tasks for action in task.actions]
    return status.state not in _BEFORE_ACTIONS or any(state not in _BEFORE_ACTIONS for state in states)

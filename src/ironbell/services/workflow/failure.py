"""Failing a Workflow at an action without its agent: what both a reboot and an image that nobody can run end in."""

from __future__ import annotations

from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.contract.servers.boot_progress import PROGRESS
from ironbell.services.workflow.changes import Change, Place


def failed_at(workflow: Workflow, agent_id: str, *, place: Place, message: str, now: str) -> Change:
    """The change that ends the Workflow as FAILED at the action in this place."""
    task = workflow.status.tasks[place[0]]
    action = task.actions[place[1]]
    failed = WorkflowState.FAILED.value
    return Change(
        status={
            "state": failed,
            "currentState": {
                "agentID": agent_id,
                "taskID": task.id,
                "actionID": action.id,
                "state": failed,
                "actionName": action.name,
                "taskName": task.name,
            },
        },
        actions={place: {"state": failed, "executionStop": now, "message": message}},
        annotations={PROGRESS: None},
    )

"""Changes to a Workflow that a decision returns, and their merge patches.

A merge patch replaces a list as a whole: the new list is built from the stored object's own JSON, so that fields that
our types do not have survive.

Source: RFC 7396.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec

from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.contract.servers.boot_progress import PROGRESS


class Code(Enum):
    """gRPC codes of decisions, by name."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    PERMISSION_DENIED = "PERMISSION_DENIED"


Place = tuple[int, int]
"""Index of a task, and of an action in it."""


@dataclass(frozen=True, slots=True)
class Change:
    """Fields to write. None removes a field."""

    status: Mapping[str, Any] = field(default_factory=dict)
    actions: Mapping[Place, Mapping[str, Any]] = field(default_factory=dict)
    """Fields of `status.tasks[i].actions[j]`."""
    annotations: Mapping[str, str | None] = field(default_factory=dict)


def failed_at(workflow: Workflow, agent_id: str, *, place: Place, message: str, now: str) -> Change:
    """The change that ends the Workflow as FAILED at the action at `place`."""
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


def annotations_patch(raw: Mapping[str, Any], change: Change) -> bytes | None:
    """The merge patch of the annotations, for the version in `raw`; None if they have the desired values."""
    present = raw.get("metadata", {}).get("annotations") or {}
    desired = {key: value for key, value in change.annotations.items() if present.get(key) != value}
    if not desired:
        return None
    return msgspec.json.encode({"metadata": {"resourceVersion": _version(raw), "annotations": desired}})


def status_patch(raw: Mapping[str, Any], change: Change) -> bytes | None:
    """The merge patch of the status subresource, for the version in `raw`; None if it has the desired values."""
    present = raw.get("status") or {}
    desired: dict[str, Any] = {key: value for key, value in change.status.items() if present.get(key) != value}
    if change.actions:
        tasks = msgspec.json.decode(msgspec.json.encode(present.get("tasks", [])))
        for (task, action), fields in change.actions.items():
            target = tasks[task]["actions"][action]
            target.update({key: value for key, value in fields.items() if value is not None})
            for key in [key for key, value in fields.items() if value is None]:
                target.pop(key, None)
        if tasks != present.get("tasks"):
            desired["tasks"] = tasks
    if not desired:
        return None
    return msgspec.json.encode({"metadata": {"resourceVersion": _version(raw)}, "status": desired})


def _version(raw: Mapping[str, Any]) -> str:
    version: str = raw["metadata"]["resourceVersion"]
    return version

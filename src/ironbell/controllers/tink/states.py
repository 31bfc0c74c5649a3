"""The states of a Workflow and its transitions: a table, which docs/workflows.md draws.

The controller makes only transitions marked `controller`; `moved` rejects all others. The workflow service, which
writes the reports of agents, makes those marked `service`. Terminal states have no transitions.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/reconciler.go, tink/server/internal/grpc.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from ironbell.api.tinkerbell.workflow import WorkflowState, WorkflowStatus
from ironbell.base.errors import IronbellError, Retry

NEW: Final = ""
LEGACY_PENDING: Final = "STATE_PENDING"
"""State of a Workflow that has not been rendered, in old releases."""

PREPARING, PENDING, RUNNING, POST = (
    WorkflowState.PREPARING,
    WorkflowState.PENDING,
    WorkflowState.RUNNING,
    WorkflowState.POST,
)
SUCCESS, FAILED, TIMEOUT = WorkflowState.SUCCESS, WorkflowState.FAILED, WorkflowState.TIMEOUT
TERMINAL: Final = frozenset({SUCCESS, FAILED, TIMEOUT})


class Mover(Enum):
    """The component that makes a transition."""

    CONTROLLER = "controller"
    SERVICE = "service"


_BY_CONTROLLER = (Mover.CONTROLLER,)
_BY_SERVICE = (Mover.SERVICE,)
_BY_BOTH = (Mover.CONTROLLER, Mover.SERVICE)

TRANSITIONS: Final[dict[tuple[str, str], tuple[tuple[Mover, ...], str]]] = {
    (NEW, PREPARING): (_BY_CONTROLLER, "rendered, boot options given"),
    (NEW, PENDING): (_BY_CONTROLLER, "rendered, no boot options"),
    (NEW, FAILED): (_BY_CONTROLLER, "template does not render"),
    (PREPARING, PENDING): (_BY_CONTROLLER, "netboot allowed, boot Job completed"),
    (PREPARING, FAILED): (_BY_CONTROLLER, "boot options cannot be carried out, or boot token revoked"),
    (PENDING, RUNNING): (_BY_SERVICE, "agent runs the first action"),
    (PENDING, POST): (_BY_SERVICE, "only action succeeded at once"),
    (PENDING, FAILED): (_BY_BOTH, "first action failed at once, or boot token revoked"),
    (PENDING, TIMEOUT): (_BY_BOTH, "agent never came, or first action timed out at once"),
    (RUNNING, PENDING): (_BY_SERVICE, "machine rebooted and the workflow begins again"),
    (RUNNING, POST): (_BY_SERVICE, "last action succeeded"),
    (RUNNING, FAILED): (_BY_BOTH, "an action failed, the machine rebooted, or boot token revoked"),
    (RUNNING, TIMEOUT): (_BY_BOTH, "out of time, or agent silent"),
    (POST, SUCCESS): (_BY_CONTROLLER, "boot options undone"),
    (POST, FAILED): (_BY_CONTROLLER, "boot options cannot be undone"),
}
"""Transitions from one state to another: their movers and their condition."""


class IllegalTransitionError(IronbellError):
    """A handler requests a transition that the table does not have: a defect of the controller."""

    reason = "IllegalTransition"
    retry = Retry.NEVER


def moved(status: WorkflowStatus, to: WorkflowState) -> WorkflowStatus:
    """The status in its next state.

    Raises:
        IllegalTransitionError: the controller may not make this transition.
    """
    start = NEW if status.state == LEGACY_PENDING else status.state
    movers, _when = TRANSITIONS.get((start, to), ((), ""))
    if Mover.CONTROLLER not in movers:
        raise IllegalTransitionError(f"the controller may not move a Workflow from {start!r} to {to}")
    return msgspec.structs.replace(status, state=to)


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> New"]
    for (start, end), (movers, when) in TRANSITIONS.items():
        names = ", ".join(mover.value for mover in movers)
        lines.append(f"    {start or 'New'} --> {end}: {when} ({names})")
    lines += [f"    {state} --> [*]" for state in (SUCCESS, FAILED, TIMEOUT)]
    return "\n".join(lines)

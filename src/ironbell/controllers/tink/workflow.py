"""The controller of Workflows: a table of states and their handlers.

It watches Templates and Hardware, so that a Workflow that waits for them starts when they are created, and bmc Jobs, so
that a Workflow continues when its Job has finished. docs/workflows.md describes it for users.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from ironbell.api.bmc.job import JOB
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.api.tinkerbell.template import TEMPLATE
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow, WorkflowState
from ironbell.contract.servers.boot_token import revocation
from ironbell.contract.servers.restored import hold_reason
from ironbell.controllers.tink import finishing, observed, running, starting, states
from ironbell.controllers.tink.names import Reason
from ironbell.controllers.tink.observed import Observed
from ironbell.controllers.tink.status import WorkflowDraft
from ironbell.kube.decision import Decision, Key
from ironbell.kube.reconciler import Cache, Changes, Declaration, Watch, owned_by
from ironbell.provisioner.permission import hold_objection, workflow_objection

Handler = Callable[[WorkflowDraft, Observed], None]

HANDLERS: Final[Mapping[str, Handler]] = {
    states.NEW: starting.new,
    states.LEGACY_PENDING: starting.new,
    states.PREPARING: starting.preparing,
    states.PENDING: running.pending,
    states.RUNNING: running.running,
    states.POST: finishing.post,
    states.SUCCESS: finishing.terminal,
    states.FAILED: finishing.terminal,
    states.TIMEOUT: finishing.terminal,
}


_BEFORE_THE_START: Final = frozenset({states.NEW, states.LEGACY_PENDING, states.PREPARING, states.PENDING})
_BEFORE_THE_END: Final = frozenset({states.PREPARING, states.PENDING, states.RUNNING})


ACTION_DELAY_S: Final = 3.0
"""Minimum interval between reports of the running action: actions may take milliseconds, and the workflow service
records the times of each of them."""


def _is_urgent(old: Workflow, new: Workflow) -> bool:
    """Return whether a change needs more than another message about the running action."""
    if old.status.state != new.status.state or new.status.state not in (states.PENDING, states.RUNNING):
        return True
    if old.spec != new.spec or old.metadata.finalizers != new.metadata.finalizers:
        return True
    if old.metadata.deletion_timestamp != new.metadata.deletion_timestamp:
        return True
    return old.status.agent_id != new.status.agent_id or running.is_to_hand_over(new.status)


OWN: Final = Changes(urgent=_is_urgent, delay_s=ACTION_DELAY_S, reporting=True)


class WorkflowReconciler:
    """Brings a Workflow from its creation to its end."""

    name = "tink-workflow"
    declaration = Declaration(
        WORKFLOW,
        watches=(
            Watch(TEMPLATE, observed.of_template),
            Watch(HARDWARE, observed.of_hardware),
            owned_by(WORKFLOW, JOB),
            Watch(JOB, observed.of_job),
        ),
        indexes=(observed.BY_TEMPLATE, observed.BY_HARDWARE, observed.BY_BMC),
        own=OWN,
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return observed.observe(cache, key)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft = WorkflowDraft(observed.workflow, now)
        _decide(draft, observed)
        return draft.decision()


def _decide(draft: WorkflowDraft, observed: Observed) -> None:
    workflow, state = draft.obj, draft.status.state
    if draft.is_deleting:
        finishing.delete(draft, observed)
    elif ANNOTATION_DISABLED in workflow.metadata.annotations:
        reason = workflow.metadata.annotations[ANNOTATION_DISABLED] or "no reason given"
        draft.wait(Reason.DISABLED, f"Annotation {ANNOTATION_DISABLED} is set: {reason}.")
    elif observed.hardware is not None and (held := hold_reason(observed.hardware)) is not None:
        # Server and BMC are left alone: the object was restored, and what happened since its backup is unknown.
        (draft.wait if state in states.TERMINAL else draft.wait_for)(Reason.NOT_CONFIRMED, held)
    elif state in _BEFORE_THE_START and (objection := _objection(observed)) is not None:
        draft.wait_for(*objection)
    elif (revoked := _revoked(observed)) and state in _BEFORE_THE_END:
        draft.end(WorkflowState.FAILED, Reason.BOOT_TOKEN_REVOKED, revoked)
    elif (handler := HANDLERS.get(state)) is not None:
        handler(draft, observed)
    else:
        draft.wait_for(Reason.UNKNOWN_STATE, f"status.state {state!r} is not a state that this controller knows.")


def _objection(observed: Observed) -> tuple[Reason, str] | None:
    """The objection of the Hardware to the start of the Workflow, by the agents that are known so far."""
    workflow, hardware = observed.workflow, observed.hardware
    if hardware is None:
        return None
    if (held := hold_objection(hardware, workflow)) is not None:
        return Reason.HELD, held
    agents = {task.agent_id for task in workflow.status.tasks} or set(workflow.spec.hardware_map.values())
    forbidden = workflow_objection(hardware, agents)
    return (Reason.NOT_ALLOWED, forbidden) if forbidden is not None else None


def _revoked(observed: Observed) -> str:
    """The reason why it is unknown which server booted for this Workflow; empty while it is known."""
    hardware = observed.hardware
    return revocation(hardware, observed.workflow.metadata.uid) if hardware is not None else ""

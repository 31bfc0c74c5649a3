"""The history of a Hardware: its last Workflows in short form, which outlive the Workflows.

An annotation holds the newest entries as JSON, newest first. The entries alone (their end and uid) decide which of them
are kept, so that existing Workflows that fell out of the history are not entered again. The last lines of logs are kept
for the newest Workflow, and for failed actions of the others.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ironbell.api.meta import Model
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowAction, WorkflowState, WorkflowStatus, WorkflowTask
from ironbell.contract.servers.boot_progress import LOG_PREFIX
from ironbell.controllers.tink.status import outcome_of, shortened
from ironbell.provisioner.installed_system import SystemFailure, installation_end, reported_failure

KEPT: Final = 5
ACTIONS_KEPT: Final = 40
MESSAGE_LIMIT: Final = 400
LINES_KEPT: Final = 5
LINE_LIMIT: Final = 200
FAILURE_LINES_KEPT: Final = 8
"""Lines of the output of a failed bootstrap; their width was limited when they were received."""
ABORTED: Final = "DELETED"
"""State of a Workflow that was deleted before it ended."""


class Log(Model, frozen=True):
    """The end of an action's log, which the workflow service records on the Workflow."""

    lines: list[str] = msgspec.field(default_factory=list)
    exit_code: int | None = None
    digest: str = ""


class ActionEntry(Model, frozen=True):
    """The outcome of an action."""

    name: str = ""
    state: str = ""
    duration: str = ""
    message: str = ""
    log: Log | None = None


class Entry(Model, frozen=True):
    """The outcome of a Workflow."""

    workflow: str = ""
    uid: str = ""
    template: str = ""
    state: str = ""
    reason: str = ""
    started: str = ""
    completed: str = msgspec.field(default="", name="ended")
    message: str = ""
    actions: list[ActionEntry] = msgspec.field(default_factory=list)
    system_failure: SystemFailure | None = None
    """The failure that the installed system reported of its bootstrap."""


_decoder = msgspec.json.Decoder(list[Entry])
_log_decoder = msgspec.json.Decoder(Log)
_encoder = msgspec.json.Encoder()


def entry(workflow: Workflow) -> Entry:
    """The entry of a Workflow in a terminal state."""
    outcome = outcome_of(workflow.status)
    return Entry(
        workflow=workflow.metadata.name,
        uid=workflow.metadata.uid,
        template=workflow.spec.template_ref,
        state=workflow.status.state,
        reason=outcome.reason if outcome else "",
        started=workflow.metadata.creation_timestamp or "",
        completed=(outcome.time if outcome else None) or "",
        message=shortened(outcome.message, MESSAGE_LIMIT) if outcome and outcome.status == "False" else "",
        actions=[
            ActionEntry(
                name=action.name,
                state=action.state,
                duration=action.execution_duration,
                message=shortened(action.message, MESSAGE_LIMIT),
                log=_log(workflow, action),
            )
            for task in workflow.status.tasks
            for action in task.actions
        ][:ACTIONS_KEPT],
    )


def aborted(workflow: Workflow, end: str) -> Entry:
    """The entry of a Workflow that is deleted in another state."""
    message = f"deleted in state {workflow.status.state or 'new'}"
    return msgspec.structs.replace(
        entry(workflow), state=ABORTED, reason=ABORTED.title(), completed=end, message=message
    )


def with_failure(entry: Entry, workflow: Workflow, hardware: Hardware, annotation: str) -> Entry:
    """The entry with the failure that the installed system reported of its bootstrap, if this Workflow installed it:
    no other known Workflow has completed since."""
    failure = reported_failure(hardware, installation_end(workflow))
    if failure is None or workflow.status.state != WorkflowState.SUCCESS:
        return entry
    if any(entry.completed < other.completed <= failure.at for other in read(annotation) if other.uid != entry.uid):
        return entry
    message, output = shortened(failure.message, MESSAGE_LIMIT), failure.output[-FAILURE_LINES_KEPT:]
    kept = msgspec.structs.replace(failure, message=message, output=output)
    return msgspec.structs.replace(entry, system_failure=kept)


def with_entry(annotation: str, new: Entry) -> str:
    """The annotation with this entry, if it is among the newest. A history that is not valid is replaced."""
    known = read(annotation)
    others = [old for old in known if old.uid != new.uid]
    if new.system_failure is None:
        # the Hardware lost it together with the system that had reported it
        failures = [old.system_failure for old in known if old.uid == new.uid]
        new = msgspec.structs.replace(new, system_failure=next(iter(failures), None))
    newest, *older = sorted([new, *others], key=lambda entry: (entry.completed, entry.uid), reverse=True)[:KEPT]
    return _encoder.encode([newest, *(_without_lines(entry) for entry in older)]).decode()


def read(annotation: str) -> list[Entry]:
    """The entries of an annotation, newest first; none if it cannot be read."""
    try:
        return _decoder.decode(annotation)
    except msgspec.DecodeError:
        return []


def _log(workflow: Workflow, action: WorkflowAction) -> Log | None:
    try:
        log = _log_decoder.decode(workflow.metadata.annotations.get(LOG_PREFIX + action.id, ""))
    except msgspec.DecodeError:
        return None
    return msgspec.structs.replace(log, lines=[shortened(line, LINE_LIMIT) for line in log.lines[-LINES_KEPT:]])


def _without_lines(entry: Entry) -> Entry:
    def spare(action: ActionEntry) -> ActionEntry:
        if action.log is None or action.state != WorkflowState.SUCCESS:
            return action
        return msgspec.structs.replace(action, log=msgspec.structs.replace(action.log, lines=[]))

    return msgspec.structs.replace(entry, actions=[spare(action) for action in entry.actions])


def failing_action(status: WorkflowStatus) -> tuple[WorkflowTask, WorkflowAction] | None:
    """The failed or timed out action, with its task."""
    bad = (WorkflowState.FAILED, WorkflowState.TIMEOUT)
    return next(((task, action) for task in status.tasks for action in task.actions if action.state in bad), None)

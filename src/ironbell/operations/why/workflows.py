"""Findings about an installation: its Workflow, its Template, and the Jobs and Tasks of its BMC. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ironbell.api.bmc import TASK
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import LABEL_MACHINE_NAME
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.workflow import WorkflowState
from ironbell.bmc.driver import reported_cause, reported_problem
from ironbell.contract.causes import Weight
from ironbell.contract.servers.boot_progress import LOG_PREFIX, PROGRESS
from ironbell.contract.servers.directory import ERROR
from ironbell.controllers.rufio import attempt as attempts
from ironbell.controllers.tink.names import Reason
from ironbell.operations.why.advice import FAILED_WORKFLOW, OF_BMC, OF_WORKFLOW, SILENT_AFTER_S, Advice
from ironbell.operations.why.depends import hardware_of_workflow
from ironbell.operations.why.model import Finding, Object
from ironbell.operations.why.world import (
    World,
    actions,
    annotation,
    annotation_object,
    condition,
    is_deleting,
    labels,
    owners,
    seconds_since,
    since,
)
from ironbell.provisioner.health import missing_disks
from ironbell.services.workflow.report import UPSTREAMS_MESSAGE

_HELP: Final = Weight.NEEDS_HELP
_FAILED: Final = (WorkflowState.FAILED, WorkflowState.TIMEOUT)
_UNKNOWN: Final = Advice("it succeeds", weight=Weight.WAITING)


def workflow(obj: Object, world: World, now: datetime) -> Finding | None:
    """Report what a Workflow waits for, or why it failed."""
    status, succeeded = obj.get("status", {}), condition(obj, "Succeeded")
    state, reason = status.get("state", ""), succeeded.get("reason", "")
    if state in _FAILED:
        return _failed(obj, world, succeeded)
    if state == WorkflowState.SUCCESS or is_deleting(obj):
        return None
    if not succeeded:
        return Finding(
            "has not been reconciled yet", "", obj["metadata"].get("creationTimestamp", ""), "it is prepared"
        )
    advice, message = OF_WORKFLOW.get(reason, _UNKNOWN), succeeded.get("message", "") or reason
    if reason == Reason.ACTIONS_RUNNING:
        message = _running(obj) or message
    if reason == Reason.AGENT_NOT_SEEN and (seconds_since(since(succeeded), now) or 0.0) >= SILENT_AFTER_S:
        advice = Advice(advice.ends_when, FAILED_WORKFLOW[Reason.AGENT_NEVER_CAME])
    return Finding(message, reason, since(succeeded), advice.ends_when, advice.remedy, advice.weight)


def template(obj: Object, world: World, now: datetime) -> Finding | None:
    """Report a Template that cannot be rendered."""
    error = annotation(obj, ERROR)
    if obj.get("status", {}).get("state") != "Error" and not error:
        return None
    message = f"cannot be used: {error or 'its status.state is Error'}"
    return Finding(message, "TemplateError", "", "the Template is valid", "Correct its spec.data", Weight.NEEDS_HELP)


def job(obj: Object, world: World, now: datetime) -> Finding | None:
    """Report a Job or a Task of a BMC."""
    status, name = obj.get("status", {}), obj["kind"]
    failed, completed = condition(obj, "Failed"), condition(obj, "Completed")
    if completed.get("status") == "True":
        return None
    started = status.get("startTime", "") or obj["metadata"].get("creationTimestamp", "")
    has_failed = failed.get("status") == "True"
    # the condition Completed has what blocks a Task, the condition Running what blocks a Job
    state = failed if has_failed else completed or condition(obj, "Running")
    problem = reported_problem(state.get("message", "")) or (_problem_of_attempt(obj) if has_failed else "")
    cause = reported_cause(problem, state.get("message", ""))
    advice = OF_BMC.get(problem, Advice("nothing blocks it any more", "Check the BMC and the server"))
    secret = ((obj.get("spec", {}).get("connection") or {}).get("authSecretRef") or {}).get("name", "of the BMC")
    remedy = advice.remedy.format(secret=secret)
    if has_failed:
        message = f"failed: {cause or 'no reason was reported'}"
        return Finding(message, problem or f"{name}Failed", started, f"the {name} is created again", remedy, _HELP)
    if cause:
        message = f"cannot continue: {cause}"
        if not problem:
            return Finding(message, "HeldUp", started, advice.ends_when)
        return Finding(message, problem, started, advice.ends_when, remedy, _HELP)
    return Finding("is running", f"{name}Running", started, "the BMC has completed it")


def _problem_of_attempt(obj: Object) -> str:
    """The problem of the last attempt at a Task's operation; empty if that did not fail."""
    attempt = attempts.read(TASK.convert(obj)) if obj["kind"] == TASK.kind else None
    return attempt.problem if attempt is not None else ""


def _failed(obj: Object, world: World, succeeded: Object) -> Finding:
    reason, time = succeeded.get("reason", ""), since(succeeded)
    ends, again = _another_attempt(obj)
    remedy = FAILED_WORKFLOW.get(reason)
    action = next((action for action in actions(obj) if action.get("state") in _FAILED), None)
    if remedy is not None or action is None:
        message = succeeded.get("message") or f"ended {obj['status']['state']}"
        return Finding(message, reason, time, ends, f"{remedy or 'Correct the cause'}, then {again}", _HELP)
    message = action.get("message", "")
    if not message or message == UPSTREAMS_MESSAGE:
        message = _last_line(obj, action) or "its agent reported no reason"
    name = obj["metadata"]["name"]
    return Finding(
        f'action "{action.get("name", "")}" failed: {message}',
        reason or Reason.ACTION_FAILED,
        action.get("executionStop") or time,
        ends,
        f"{_remedy(obj, world, action)}, then {again}; `ironbell logs {name}` shows its output",
        _HELP,
    )


def _another_attempt(obj: Object) -> tuple[str, str]:
    """Return when the failure of a Workflow ends, and what the user does for that.

    The Workflow of a Machine is deleted before another attempt; a failed one that still exists was the last attempt.
    """
    if LABEL_MACHINE_NAME in labels(obj) or any(owner.get("kind") == TINKERBELL_MACHINE.kind for owner in owners(obj)):
        return "the Machine is replaced", "delete the Machine; its owner creates another"
    return "it is created again", "delete the Workflow and create it again"


def _remedy(obj: Object, world: World, action: Object) -> str:
    """The remedy for an action that failed: another disk if the server lacks one that the action names."""
    ref = hardware_of_workflow(obj)
    server = world.get(ref) if ref is not None else None
    named = [path for value in (action.get("environment") or {}).values() for path in str(value).split(",")]
    if server is not None and missing_disks(HARDWARE.convert(server), named):
        return f"Name a disk of this server in spec.disks of Hardware {server['metadata']['name']}, or in the Template"
    return "Correct the action in the Template, or what it works on"


def _running(obj: Object) -> str:
    all_actions, current = actions(obj), obj.get("status", {}).get("currentState") or {}
    for number, action in enumerate(all_actions, 1):
        if action.get("id") == current.get("actionID") and action.get("state") == WorkflowState.RUNNING:
            done = _percent(annotation_object(obj, PROGRESS), action.get("id", ""))
            return f'runs action {number} of {len(all_actions)}, "{action.get("name", "")}"{done}'
    return ""


def _percent(progress: Object, action_id: str) -> str:
    if progress.get("percent") is None or progress.get("actionID", action_id) != action_id:
        return ""
    return f", {progress['percent']} %"


def _last_line(obj: Object, action: Object) -> str:
    """The last line that an action printed, as recorded on the Workflow."""
    lines = annotation_object(obj, f"{LOG_PREFIX}{action.get('id', '')}").get("lines")
    return str(lines[-1]) if lines else ""

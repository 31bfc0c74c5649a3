"""Handlers of Workflows after their last action: POST, the terminal states, and deletion.

When a Workflow completes, fails or is deleted, its changes are undone: the permission to netboot, and the ISO image in
the BMC's drive. Then it is entered in its Hardware's history. A terminal Workflow never changes its state again.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/post.go.
"""

from __future__ import annotations

from datetime import datetime

from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.names import WorkflowConditionType
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState, WorkflowStatus
from ironbell.controllers.tink import bootjob, history, netboot, states
from ironbell.controllers.tink import status as statuses
from ironbell.controllers.tink.bootjob import Stage, UnusableBootOptionsError
from ironbell.controllers.tink.names import ANNOTATION_HISTORY, CONDITION_SUCCEEDED, FINALIZER_CLEANUP, Reason
from ironbell.controllers.tink.observed import Observed
from ironbell.controllers.tink.starting import carry_on
from ironbell.kube.decision import DONE, Action, Decision, do, patch, wait
from ironbell.kube.finalizers import has_finalizer


def post(observed: Observed, now: datetime) -> Decision:
    """Forbid netboot, eject the image or run the post actions, then complete; at once if there is no Job."""
    workflow, plan = observed.workflow, bootjob.after_last_action(observed.workflow)
    if plan is None:
        change = netboot.forbid(observed, workflow.status, now) if netboot.must_forbid(workflow) else None
        status = _successful(workflow.status if change is None else change.status, now)
        actions = () if change is None else change.actions
        return do(*actions, statuses.written(workflow, status), statuses.announced(workflow, status))
    current = statuses.condition(workflow.status, CONDITION_SUCCEEDED)
    if current is None or current.reason not in (Reason.FINISHING, Reason.BOOT_JOB_RUNNING):
        message = "All actions succeeded. Undoing the boot options."
        return statuses.changed(workflow, statuses.waits(workflow.status, Reason.FINISHING, message, now=now))
    if netboot.must_forbid(workflow):
        change = netboot.forbid(observed, workflow.status, now)
        return do(*change.actions, statuses.written(workflow, change.status))
    step = bootjob.progress(observed, plan)
    if step.stage is Stage.COMPLETE:
        return statuses.changed(workflow, _successful(workflow.status, now))
    problem = step.message if step.stage is Stage.FAILED else _impossible(observed, step.stage)
    if problem:
        status = statuses.with_upstream(workflow.status, WorkflowConditionType.BOOT_JOB_FAILED, True, problem, now=now)
        reason = Reason.BOOT_JOB_FAILED
        return statuses.changed(workflow, statuses.terminated(status, WorkflowState.FAILED, reason, problem, now=now))
    return carry_on(observed, observed.hardware, plan, now)


def terminal(observed: Observed, now: datetime) -> Decision:
    """Report the outcome, undo the remaining changes, and enter the Workflow in the history."""
    workflow = observed.workflow
    status = _explained(workflow.status, now)
    actions: list[Action | None] = []
    if netboot.must_forbid(workflow):
        change = netboot.forbid(observed, status, now)
        actions, status = [*change.actions], change.status
    if status != workflow.status:
        return do(*actions, statuses.written(workflow, status), statuses.announced(workflow, status))
    if has_finalizer(workflow, FINALIZER_CLEANUP):
        return do(netboot.release(workflow))
    ejection = _ejection(observed, now)
    if ejection is not None and ejection.actions:
        return ejection
    entry = _history(observed, history.entry(workflow))
    if entry is not None:
        return do(entry)
    return ejection or DONE


def deleting(observed: Observed, now: datetime) -> Decision:
    """Withdraw the permission to netboot before the Workflow is removed. Its Jobs are deleted as its dependents."""
    workflow = observed.workflow
    if not has_finalizer(workflow, FINALIZER_CLEANUP):
        return (
            wait("Deleting", "Waiting for finalizers of other controllers.") if workflow.metadata.finalizers else DONE
        )
    change = netboot.forbid(observed, workflow.status, now)
    end = workflow.metadata.deletion_timestamp or ""
    entry = history.entry(workflow) if is_terminal(workflow) else history.aborted(workflow, end)
    return do(*change.actions, _history(observed, entry), netboot.release(workflow))


def is_terminal(workflow: Workflow) -> bool:
    """Return whether the Workflow is in a terminal state."""
    return workflow.status.state in states.TERMINAL


def _successful(status: WorkflowStatus, now: datetime) -> WorkflowStatus:
    return statuses.terminated(status, WorkflowState.SUCCESS, Reason.COMPLETE, "all actions succeeded", now=now)


def _impossible(observed: Observed, stage: Stage) -> str:
    """The reason why a planned Job cannot be created; empty if it can."""
    if stage is not Stage.TO_CREATE:
        return ""
    if observed.hardware is None:
        return f"hardware not found: {observed.workflow.spec.hardware_ref}"
    try:
        bootjob.machine_of(observed.hardware)
    except UnusableBootOptionsError as error:
        return str(error)
    return ""


def _explained(status: WorkflowStatus, now: datetime) -> WorkflowStatus:
    """The status whose condition has the outcome, also if the workflow service set the terminal state."""
    current = statuses.condition(status, CONDITION_SUCCEEDED)
    if current is not None and current.status != "Unknown":
        return status
    if status.state == WorkflowState.SUCCESS:
        value, reason, message = "True", Reason.COMPLETE, "all actions succeeded"
    else:
        value, (reason, message) = "False", _failure(status)
    return statuses.with_condition(status, CONDITION_SUCCEEDED, value, reason=reason, message=message, now=now)


def _failure(status: WorkflowStatus) -> tuple[Reason, str]:
    reason = Reason.ACTION_TIMEOUT if status.state == WorkflowState.TIMEOUT else Reason.ACTION_FAILED
    failing = history.failing_action(status)
    if failing is None:
        return reason, "The agent ended the Workflow without naming the action that failed. See the agent's log."
    task, action = failing
    description = action.message or "its agent reported no reason; see the action's log"
    return reason, f"Action {action.name} of task {task.name}: {description}"


def _ejection(observed: Observed, now: datetime) -> Decision | None:
    """The next step of ejecting an image after a failure; None if nothing can be done."""
    workflow = observed.workflow
    plan = bootjob.after_failure(workflow) if workflow.status.state != WorkflowState.SUCCESS else None
    if plan is None:
        return None
    step = bootjob.progress(observed, plan)
    problem = step.message if step.stage is Stage.FAILED else _impossible(observed, step.stage)
    if problem:
        condition = WorkflowConditionType.BOOT_JOB_FAILED
        status = statuses.with_upstream(workflow.status, condition, True, f"image not ejected: {problem}", now=now)
        return do(statuses.written(workflow, status))
    if step.stage is Stage.COMPLETE:
        return None
    if step.stage is Stage.RUNNING:
        return wait(Reason.BOOT_JOB_RUNNING, step.message)
    if step.stage is Stage.STALE:
        return wait(Reason.BOOT_JOB_RUNNING, step.message, bootjob.discard(observed.jobs[plan.name]))
    return carry_on(observed, observed.hardware, plan, now)


def _history(observed: Observed, entry: history.Entry) -> Action | None:
    hardware = observed.hardware
    if hardware is None:
        return None
    old = hardware.metadata.annotations.get(ANNOTATION_HISTORY, "")
    new = history.with_entry(old, history.with_failure(entry, observed.workflow, hardware, old))
    if new == old:
        return None
    return patch(HARDWARE, hardware, {"metadata": {"annotations": {ANNOTATION_HISTORY: new}}}, locked=True)

"""After the last action: POST, the terminal states, and Workflows that are deleted on the way.

However a Workflow ends, what it changed is taken back: the permission to netboot, and the ISO image in the BMC's
drive. Then it is entered in its Hardware's history. A terminal Workflow never changes its state again.

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
    """Forbid netboot, eject or run the post actions, then end with success; at once where nothing is waited for."""
    workflow, plan = observed.workflow, bootjob.after_last_action(observed.workflow)
    if plan is None:
        change = netboot.forbid(observed, workflow.status, now) if netboot.must_forbid(workflow) else None
        status = _successful(workflow.status if change is None else change.status, now)
        before = () if change is None else change.actions
        return do(*before, statuses.written(workflow, status), statuses.announced(workflow, status))
    found = statuses.condition(workflow.status, CONDITION_SUCCEEDED)
    if found is None or found.reason not in (Reason.FINISHING, Reason.BOOT_JOB_RUNNING):
        message = "all actions succeeded; the boot options are being undone"
        return statuses.changed(workflow, statuses.waits(workflow.status, Reason.FINISHING, message, now=now))
    if netboot.must_forbid(workflow):
        change = netboot.forbid(observed, workflow.status, now)
        return do(*change.actions, statuses.written(workflow, change.status))
    step = bootjob.progress(observed, plan)
    if step.stage is Stage.COMPLETE:
        return statuses.changed(workflow, _successful(workflow.status, now))
    problem = step.message if step.stage is Stage.FAILED else _impossible(observed, step.stage)
    if problem:
        status = statuses.noted(workflow.status, WorkflowConditionType.BOOT_JOB_FAILED, True, problem, now=now)
        reason = Reason.BOOT_JOB_FAILED
        return statuses.changed(workflow, statuses.ended(status, WorkflowState.FAILED, reason, problem, now=now))
    return carry_on(observed, observed.hardware, plan, now)


def terminal(observed: Observed, now: datetime) -> Decision:
    """Say how it ended, take back what is left to take back, and enter it in the history."""
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
    """Take back the permission to netboot before the Workflow is gone. Its Jobs go with it, as its dependents."""
    workflow = observed.workflow
    if not has_finalizer(workflow, FINALIZER_CLEANUP):
        return wait("Deleting", "waits for the finalizers of others") if workflow.metadata.finalizers else DONE
    change = netboot.forbid(observed, workflow.status, now)
    end = workflow.metadata.deletion_timestamp or ""
    entry = history.entry(workflow) if is_terminal(workflow) else history.aborted(workflow, end)
    return do(*change.actions, _history(observed, entry), netboot.release(workflow))


def is_terminal(workflow: Workflow) -> bool:
    """Whether the Workflow has ended."""
    return workflow.status.state in states.TERMINAL


def _successful(status: WorkflowStatus, now: datetime) -> WorkflowStatus:
    return statuses.ended(status, WorkflowState.SUCCESS, Reason.COMPLETE, "all actions succeeded", now=now)


def _impossible(observed: Observed, stage: Stage) -> str:
    """Why a Job that is to be created cannot be."""
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
    """The status whose condition has the outcome, also where the workflow service ended the Workflow."""
    found = statuses.condition(status, CONDITION_SUCCEEDED)
    if found is not None and found.status != "Unknown":
        return status
    if status.state == WorkflowState.SUCCESS:
        value, reason, message = "True", Reason.COMPLETE, "all actions succeeded"
    else:
        value, (reason, message) = "False", _failure(status)
    return statuses.with_condition(status, CONDITION_SUCCEEDED, value, reason=reason, message=message, now=now)


def _failure(status: WorkflowStatus) -> tuple[Reason, str]:
    reason = Reason.ACTION_TIMEOUT if status.state == WorkflowState.TIMEOUT else Reason.ACTION_FAILED
    found = history.failing_action(status)
    if found is None:
        return reason, "the agent ended the workflow without saying which action failed"
    task, action = found
    said = action.message or "its agent gave no reason; see the action's log"
    return reason, f"action {action.name} of task {task.name}: {said}"


def _ejection(observed: Observed, now: datetime) -> Decision | None:
    """The next step of ejecting an image after a failure; None when there is nothing to do or no way to do it."""
    workflow = observed.workflow
    plan = bootjob.after_failure(workflow) if workflow.status.state != WorkflowState.SUCCESS else None
    if plan is None:
        return None
    step = bootjob.progress(observed, plan)
    problem = step.message if step.stage is Stage.FAILED else _impossible(observed, step.stage)
    if problem:
        condition = WorkflowConditionType.BOOT_JOB_FAILED
        status = statuses.noted(workflow.status, condition, True, f"image not ejected: {problem}", now=now)
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

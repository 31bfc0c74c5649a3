"""Handlers of Workflows after their last action: POST, the terminal states, and deletion.

When a Workflow completes, fails or is deleted, its changes are undone: the permission to netboot, and the ISO image in
the BMC's drive. Then it is entered in its Hardware's history. A terminal Workflow never changes its state again.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/post.go.
"""

from __future__ import annotations

from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.names import WorkflowConditionType
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState, WorkflowStatus
from ironbell.controllers.tink import bootjob, history, netboot, states
from ironbell.controllers.tink.bootjob import Progress, Stage, UnusableBootOptionsError
from ironbell.controllers.tink.names import ANNOTATION_HISTORY, CONDITION_SUCCEEDED, FINALIZER_CLEANUP, Reason
from ironbell.controllers.tink.observed import Observed
from ironbell.controllers.tink.starting import carry_on
from ironbell.controllers.tink.status import WorkflowDraft
from ironbell.kube.decision import Action, patch
from ironbell.kube.finalizers import has_finalizer


def post(draft: WorkflowDraft, observed: Observed) -> None:
    """Forbid netboot, eject the image or run the post actions, then complete; at once if there is no Job."""
    plan, current = bootjob.after_last_action(draft.obj), draft.succeeded
    if plan is None:
        if netboot.must_forbid(draft.obj):
            netboot.forbid(draft, observed)
        _succeed(draft)
    elif current is None or current.reason not in (Reason.FINISHING, Reason.BOOT_JOB_RUNNING):
        draft.wait_for(Reason.FINISHING, "All actions succeeded. Undoing the boot options.")
    elif netboot.must_forbid(draft.obj):
        netboot.forbid(draft, observed)
    elif bootjob.progress(observed, plan).stage is Stage.COMPLETE:
        _succeed(draft)
    elif problem := _problem(observed, bootjob.progress(observed, plan)):
        draft.fail_job(WorkflowConditionType.BOOT_JOB_FAILED, Reason.BOOT_JOB_FAILED, problem)
    else:
        carry_on(draft, observed, plan)


def terminal(draft: WorkflowDraft, observed: Observed) -> None:
    """Report the outcome, undo the remaining changes, and enter the Workflow in the history."""
    _explain(draft)
    if netboot.must_forbid(draft.obj):
        netboot.forbid(draft, observed)
    if draft.status != draft.obj.status:
        return
    if has_finalizer(draft.obj, FINALIZER_CLEANUP):
        draft.last.append(netboot.release(draft.obj))
        return
    _eject(draft, observed)
    if draft.status == draft.obj.status and not any(draft.last):
        draft.last.append(_history(observed, history.entry(draft.obj)))


def delete(draft: WorkflowDraft, observed: Observed) -> None:
    """Withdraw the permission to netboot before the Workflow is removed. Its Jobs are deleted as its dependents."""
    workflow = draft.obj
    if not has_finalizer(workflow, FINALIZER_CLEANUP):
        if workflow.metadata.finalizers:
            draft.wait("Deleting", "Waiting for finalizers of other controllers.")
        return
    end = workflow.metadata.deletion_timestamp or ""
    entry = history.entry(workflow) if is_terminal(workflow) else history.aborted(workflow, end)
    draft.last += [netboot.withdrawal(observed), _history(observed, entry), netboot.release(workflow)]


def is_terminal(workflow: Workflow) -> bool:
    """Return whether the Workflow is in a terminal state."""
    return workflow.status.state in states.TERMINAL


def _succeed(draft: WorkflowDraft) -> None:
    draft.end(WorkflowState.SUCCESS, Reason.COMPLETE, "all actions succeeded")


def _problem(observed: Observed, step: Progress) -> str:
    """The reason why a planned Job has failed or cannot be created; empty otherwise."""
    if step.stage is Stage.FAILED:
        return step.message
    if step.stage is not Stage.TO_CREATE:
        return ""
    if observed.hardware is None:
        return f"hardware not found: {observed.workflow.spec.hardware_ref}"
    try:
        bootjob.machine_of(observed.hardware)
    except UnusableBootOptionsError as error:
        return str(error)
    return ""


def _explain(draft: WorkflowDraft) -> None:
    """Report the outcome, also if the workflow service set the terminal state."""
    current = draft.succeeded
    if current is not None and current.status != "Unknown":
        return
    if draft.status.state == WorkflowState.SUCCESS:
        draft.set(CONDITION_SUCCEEDED, "True", Reason.COMPLETE, "all actions succeeded")
    else:
        draft.set(CONDITION_SUCCEEDED, "False", *_failure(draft.status))


def _failure(status: WorkflowStatus) -> tuple[Reason, str]:
    reason = Reason.ACTION_TIMEOUT if status.state == WorkflowState.TIMEOUT else Reason.ACTION_FAILED
    failing = history.failing_action(status)
    if failing is None:
        return reason, "The agent ended the Workflow without naming the action that failed. See the agent's log."
    task, action = failing
    description = action.message or "its agent reported no reason; see the action's log"
    return reason, f"Action {action.name} of task {task.name}: {description}"


def _eject(draft: WorkflowDraft, observed: Observed) -> None:
    """The next step of ejecting an image after a failure, if anything can be done."""
    plan = bootjob.after_failure(draft.obj) if draft.status.state != WorkflowState.SUCCESS else None
    if plan is None:
        return
    step = bootjob.progress(observed, plan)
    if problem := _problem(observed, step):
        draft.upstream(WorkflowConditionType.BOOT_JOB_FAILED, True, f"image not ejected: {problem}")
    elif step.stage in (Stage.RUNNING, Stage.STALE):
        draft.wait(Reason.BOOT_JOB_RUNNING, step.message)
        if step.stage is Stage.STALE:
            draft.last.append(bootjob.discard(observed.jobs[plan.name]))
    elif step.stage is not Stage.COMPLETE:
        carry_on(draft, observed, plan)


def _history(observed: Observed, entry: history.Entry) -> Action | None:
    hardware = observed.hardware
    if hardware is None:
        return None
    old = hardware.metadata.annotations.get(ANNOTATION_HISTORY, "")
    new = history.with_entry(old, history.with_failure(entry, observed.workflow, hardware, old))
    if new == old:
        return None
    return patch(HARDWARE, hardware, {"metadata": {"annotations": {ANNOTATION_HISTORY: new}}}, locked=True)

"""Handlers of the states before an agent takes over: new (waiting for Template and Hardware, rendering) and PREPARING.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/{reconciler,pre}.go.
"""

from __future__ import annotations

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.names import WorkflowConditionType
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import WorkflowState
from ironbell.controllers.tink import bootjob, netboot
from ironbell.controllers.tink.bootjob import Plan, Stage, UnusableBootOptionsError
from ironbell.controllers.tink.names import ANNOTATION_RENDERED_FROM, Reason
from ironbell.controllers.tink.observed import Observed, bmc_keys
from ironbell.controllers.tink.render import (
    EFFECT_TIMEOUT_S,
    RENDER,
    RENDER_JOB,
    TRY_RENDER,
    JobArguments,
    RenderArguments,
    fingerprint,
    report_not_rendered,
)
from ironbell.controllers.tink.running import wait_for_agent
from ironbell.controllers.tink.status import WorkflowDraft
from ironbell.kube.decision import Action, Effect


def new(draft: WorkflowDraft, observed: Observed) -> None:
    """Render the Workflow as soon as Template and Hardware exist."""
    workflow, template, hardware = draft.obj, observed.template, observed.hardware
    namespace, name = workflow.metadata.namespace, workflow.spec.hardware_ref
    if template is None:
        message = "spec.templateRef is empty. Set it to the name of a Template."
        if workflow.spec.template_ref:
            message = f"Template {workflow.spec.template_ref} does not exist in namespace {namespace}. Create it."
        report_not_rendered(draft, "template not found")
        draft.wait_for(Reason.TEMPLATE_MISSING, message)
    elif name and hardware is None:
        report_not_rendered(draft, f"hardware not found: {name}")
        draft.wait_for(Reason.HARDWARE_MISSING, f"Hardware {name} does not exist in namespace {namespace}. Create it.")
    elif not workflow.spec.disabled:
        draft.last.append(_render(RENDER, draft, observed, template))
    # A disabled Workflow keeps its state; only its agent id is found, which the workflow service needs.
    elif workflow.metadata.annotations.get(ANNOTATION_RENDERED_FROM) != fingerprint(workflow, template, hardware):
        draft.last.append(_render(TRY_RENDER, draft, observed, template))
    else:
        draft.wait_for(Reason.DISABLED, "spec.disabled is true. Remove it to start the Workflow.")


def _render(performer: str, draft: WorkflowDraft, observed: Observed, template: Template) -> Effect:
    arguments = RenderArguments(draft.obj, template, observed.hardware, draft.now)
    return Effect(performer, arguments, timeout_s=EFFECT_TIMEOUT_S)


def preparing(draft: WorkflowDraft, observed: Observed) -> None:
    """Allow netboot, then boot the server through its BMC."""
    workflow, hardware = draft.obj, observed.hardware
    failed = WorkflowConditionType.BOOT_JOB_SETUP_FAILED
    if hardware is None:
        named = workflow.spec.hardware_ref
        message = (
            f"hardware not found: {named}" if named else "spec.hardwareRef is empty, but spec.bootOptions needs it"
        )
        draft.fail_job(failed, Reason.HARDWARE_MISSING, message)
        return
    try:
        plan = bootjob.before_first_action(workflow, hardware)
        if plan is not None:
            bootjob.machine_of(hardware)
            _reject_shared_bmc(observed, hardware)
    except UnusableBootOptionsError as error:
        draft.fail_job(failed, error.reason, str(error))
        return
    if netboot.must_allow(workflow):
        netboot.allow(draft, hardware)
    elif plan is None or bootjob.progress(observed, plan).stage is Stage.COMPLETE:
        draft.move(WorkflowState.PENDING)
        wait_for_agent(draft)
    elif (step := bootjob.progress(observed, plan)).stage is Stage.FAILED:
        draft.fail_job(WorkflowConditionType.BOOT_JOB_FAILED, Reason.BOOT_JOB_FAILED, step.message)
    else:
        carry_on(draft, observed, plan)


def _reject_shared_bmc(observed: Observed, hardware: Hardware) -> None:
    if observed.bmc_sharers:
        others = ", ".join(observed.bmc_sharers)
        raise UnusableBootOptionsError(
            Reason.BMC_SHARED,
            f"{', '.join(bmc_keys(hardware))} is also the BMC of Hardware {others}, and could power off another server;"
            " correct spec.bmcRef",
        )


def carry_on(draft: WorkflowDraft, observed: Observed, plan: Plan) -> None:
    """The next step of a Job that has neither failed nor completed, before the first or after the last action."""
    hardware, job = observed.hardware, observed.jobs.get(plan.name)
    step = bootjob.progress(observed, plan)
    message = step.message or f"Job {plan.name}"
    if step.stage is Stage.TO_CREATE and hardware is not None:
        draft.last.append(_creation(draft, hardware, plan))
        return
    if step.stage is Stage.TO_COMPLETE:
        bootjob.complete(draft, plan)
        return
    if step.stage is Stage.TO_RECORD and job is not None:
        bootjob.record(draft, plan, job)
        message = bootjob.running(job).message or message
    elif step.stage is Stage.STALE and job is not None:
        draft.last.append(bootjob.discard(job))
    draft.wait_for(Reason.BOOT_JOB_RUNNING, message)


def _creation(draft: WorkflowDraft, hardware: Hardware, plan: Plan) -> Action:
    if plan.templated:
        arguments = JobArguments(draft.obj, hardware, plan, draft.now)
        return Effect(RENDER_JOB, arguments, timeout_s=EFFECT_TIMEOUT_S)
    return bootjob.new_job(draft.obj, hardware, plan)

"""Handlers of the states before an agent takes over: new (waiting for Template and Hardware, rendering) and PREPARING.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/{reconciler,pre}.go.
"""

from __future__ import annotations

from datetime import datetime

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.names import WorkflowConditionType
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import WorkflowState
from ironbell.controllers.tink import bootjob, netboot, states
from ironbell.controllers.tink import status as statuses
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
    not_rendered,
)
from ironbell.controllers.tink.running import waits_for_agent
from ironbell.kube.decision import Action, Decision, Effect, do


def new(observed: Observed, now: datetime) -> Decision:
    """Render the Workflow as soon as Template and Hardware exist."""
    workflow, template = observed.workflow, observed.template
    if template is None:
        name = workflow.spec.template_ref
        remedy = f"Template {name} does not exist in namespace {workflow.metadata.namespace}. Create it."
        message = remedy if name else "spec.templateRef is empty. Set it to the name of a Template."
        return _missing(observed, Reason.TEMPLATE_MISSING, "template not found", message, now)
    if workflow.spec.hardware_ref and observed.hardware is None:
        name = workflow.spec.hardware_ref
        message = f"Hardware {name} does not exist in namespace {workflow.metadata.namespace}. Create it."
        return _missing(observed, Reason.HARDWARE_MISSING, f"hardware not found: {name}", message, now)
    if workflow.spec.disabled:
        return _disabled(observed, template, now)
    arguments = RenderArguments(workflow, template, observed.hardware, now)
    return do(Effect(RENDER, arguments, timeout_s=EFFECT_TIMEOUT_S))


def preparing(observed: Observed, now: datetime) -> Decision:
    """Allow netboot, then boot the server through its BMC."""
    workflow, hardware = observed.workflow, observed.hardware
    if hardware is None:
        named = workflow.spec.hardware_ref
        message = (
            f"hardware not found: {named}" if named else "spec.hardwareRef is empty, but spec.bootOptions needs it"
        )
        return _unprepared(observed, Reason.HARDWARE_MISSING, message, now)
    try:
        plan = bootjob.before_first_action(workflow, hardware)
        if plan is not None:
            bootjob.machine_of(hardware)
            _reject_shared_bmc(observed, hardware)
    except UnusableBootOptionsError as error:
        return _unprepared(observed, error.reason, str(error), now)
    if netboot.must_allow(workflow):
        change = netboot.allow(workflow, hardware, now)
        return do(*change.actions, statuses.written(workflow, change.status))
    if plan is None or bootjob.progress(observed, plan).stage is Stage.COMPLETE:
        status = states.moved(workflow.status, WorkflowState.PENDING)
        return statuses.changed(workflow, waits_for_agent(workflow, status, now))
    return _boot(observed, hardware, plan, now)


def _reject_shared_bmc(observed: Observed, hardware: Hardware) -> None:
    if observed.bmc_sharers:
        others = ", ".join(observed.bmc_sharers)
        raise UnusableBootOptionsError(
            Reason.BMC_SHARED,
            f"{', '.join(bmc_keys(hardware))} is also the BMC of Hardware {others}, and could power off another server;"
            " correct spec.bmcRef",
        )


def _boot(observed: Observed, hardware: Hardware, plan: Plan, now: datetime) -> Decision:
    workflow = observed.workflow
    step = bootjob.progress(observed, plan)
    if step.stage is Stage.FAILED:
        status = statuses.with_upstream(
            workflow.status, WorkflowConditionType.BOOT_JOB_FAILED, True, step.message, now=now
        )
        reason = Reason.BOOT_JOB_FAILED
        return statuses.changed(
            workflow, statuses.terminated(status, WorkflowState.FAILED, reason, step.message, now=now)
        )
    return carry_on(observed, hardware, plan, now)


def carry_on(observed: Observed, hardware: Hardware | None, plan: Plan, now: datetime) -> Decision:
    """The next step of a Job that has neither failed nor completed, before the first or after the last action."""
    workflow, job = observed.workflow, observed.jobs.get(plan.name)
    step = bootjob.progress(observed, plan)
    status = workflow.status
    if step.stage is Stage.TO_CREATE and hardware is not None:
        return do(_creation(observed, hardware, plan, now))
    if step.stage is Stage.TO_RECORD and job is not None:
        recorded = bootjob.recorded(status, plan, job, now)
        message = bootjob.running(job).message or f"Job {plan.name}"
        return statuses.changed(workflow, statuses.waits(recorded, Reason.BOOT_JOB_RUNNING, message, now=now))
    if step.stage is Stage.TO_COMPLETE:
        return statuses.changed(workflow, bootjob.completed(status, plan, now))
    message = step.message or f"Job {plan.name}"
    decision = statuses.changed(workflow, statuses.waits(status, Reason.BOOT_JOB_RUNNING, message, now=now))
    if step.stage is Stage.STALE and job is not None:
        return do(*decision.actions, bootjob.discard(job), waiting=decision.waiting)
    return decision


def _creation(observed: Observed, hardware: Hardware, plan: Plan, now: datetime) -> Action:
    if plan.templated:
        arguments = JobArguments(observed.workflow, hardware, plan, now)
        return Effect(RENDER_JOB, arguments, timeout_s=EFFECT_TIMEOUT_S)
    return bootjob.new_job(observed.workflow, hardware, plan)


def _unprepared(observed: Observed, reason: Reason, message: str, now: datetime) -> Decision:
    status = observed.workflow.status
    status = statuses.with_upstream(status, WorkflowConditionType.BOOT_JOB_SETUP_FAILED, True, message, now=now)
    return statuses.changed(
        observed.workflow, statuses.terminated(status, WorkflowState.FAILED, reason, message, now=now)
    )


def _missing(observed: Observed, reason: Reason, short: str, message: str, now: datetime) -> Decision:
    status = not_rendered(observed.workflow.status, short, now)
    return statuses.changed(observed.workflow, statuses.waits(status, reason, message, now=now))


def _disabled(observed: Observed, template: Template, now: datetime) -> Decision:
    """Keep a disabled Workflow in its state; only find its agent id, which the workflow service needs."""
    workflow = observed.workflow
    if workflow.metadata.annotations.get(ANNOTATION_RENDERED_FROM) != fingerprint(
        workflow, template, observed.hardware
    ):
        arguments = RenderArguments(workflow, template, observed.hardware, now)
        return do(Effect(TRY_RENDER, arguments, timeout_s=EFFECT_TIMEOUT_S))
    message = "spec.disabled is true. Remove it to start the Workflow."
    return statuses.changed(workflow, statuses.waits(workflow.status, Reason.DISABLED, message, now=now))

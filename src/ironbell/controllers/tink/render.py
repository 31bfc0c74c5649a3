"""Rendering: the effect that turns a Template into the tasks of a Workflow, and the addresses of custom boot media.

A template is a program: it may be slow and it may draw random values. So it runs elsewhere, for a bounded time, as an
effect whose outcome is stored before anything is done with it. A Template that does not render ends the Workflow as
FAILED with the message of the template engine, which names the line, or the limit that the Template exceeds.

Failure modes: everything that a text can do wrong is an outcome and not an error. What may be tried again raises: that
others go first, or that nothing renders at the moment.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/{reconciler,convert}.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import msgspec

from ironbell.api.bmc.action import Action as BmcAction
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.names import WorkflowConditionType
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import (
    WORKFLOW,
    TemplateRendering,
    Workflow,
    WorkflowState,
    WorkflowStatus,
    WorkflowTask,
)
from ironbell.base.clock import parse_rfc3339
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.servers.identity import IDENTITY, of_template
from ironbell.contract.servers.ineffective import Ineffective
from ironbell.controllers.tink import bootjob, running, states
from ironbell.controllers.tink import status as statuses
from ironbell.controllers.tink.bootjob import Plan, UnusableBootOptionsError
from ironbell.controllers.tink.identifiers import derived_ulid
from ironbell.controllers.tink.names import ANNOTATION_RENDERED_FROM, Reason
from ironbell.kube.decision import Action, MergePatch, do, patch
from ironbell.kube.reconciler import Performer

RENDER: Final = "render-workflow"
TRY_RENDER: Final = "find-agent"
RENDER_JOB: Final = "render-boot-job"
EFFECT_TIMEOUT_S: Final = 120.0
"""More than whoever renders takes until there is an outcome, waiting for a turn included."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a Template rendered to. Ids and states of tasks and actions are not set."""

    tasks: Sequence[WorkflowTask]
    global_timeout_s: int = 0
    ineffective: Sequence[Ineffective] = ()
    """Fields of the document that have no effect."""


class RenderError(IronbellError):
    """A text does not render, or to something that is no workflow. The message names the line and the remedy."""

    reason = Reason.TEMPLATE_NOT_RENDERED
    retry = Retry.NEVER


class Renderer(Protocol):
    """Who renders, in bounded time. Raises `IronbellError` that is `Retry.NEVER` for whatever is wrong with a text, and
    others for what may be tried again."""

    async def workflow(
        self, template: Template, hardware: Hardware | None, *, name: str, variables: Mapping[str, str]
    ) -> Rendered: ...

    async def media_url(self, text: str, hardware: Hardware) -> str:
        """Fill in the address of custom boot media."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RenderArguments:
    """What is rendered, as it was observed."""

    workflow: Workflow
    template: Template
    hardware: Hardware | None
    now: datetime


@dataclass(frozen=True, slots=True, eq=False)
class JobArguments:
    """A Job whose actions are to be filled in."""

    workflow: Workflow
    hardware: Hardware
    plan: Plan
    now: datetime


def performers(renderer: Renderer) -> Mapping[str, Performer]:
    """What carries out the effects of the Workflow controller."""

    async def render(arguments: RenderArguments) -> Sequence[Action]:
        return await _judged(rendered(renderer, arguments), lambda e: failed(arguments, e))

    async def find_agent(arguments: RenderArguments) -> Sequence[Action]:
        return await _judged(agent_found(renderer, arguments), lambda e: no_agent(arguments, e))

    async def render_job(arguments: JobArguments) -> Sequence[Action]:
        return await _judged(job_rendered(renderer, arguments), lambda e: job_failed(arguments, e))

    return {RENDER: render, TRY_RENDER: find_agent, RENDER_JOB: render_job}


async def _judged(
    work: Awaitable[Sequence[Action]], otherwise: Callable[[IronbellError], Sequence[Action]]
) -> Sequence[Action]:
    """Do it; what is wrong with a text becomes an outcome as well."""
    try:
        return await work
    except IronbellError as error:
        if error.retry is not Retry.NEVER:
            raise
        return otherwise(error)


async def rendered(renderer: Renderer, arguments: RenderArguments) -> Sequence[Action]:
    """Render; the actions that store what came out and set the Workflow going.

    Raises:
        IronbellError: the text is at fault.
    """
    workflow, now = arguments.workflow, arguments.now
    outcome = await _render(renderer, arguments)
    tasks = [_task(workflow, number, task) for number, task in enumerate(outcome.tasks)]
    status = msgspec.structs.replace(
        workflow.status,
        tasks=tasks,
        agent_id=tasks[0].agent_id,
        global_timeout=max(outcome.global_timeout_s, 0),
        template_rendering=TemplateRendering.SUCCESSFUL,
    )
    condition = WorkflowConditionType.TEMPLATE_RENDERED_SUCCESS
    status = statuses.noted(status, condition, True, "template rendered successfully", now=now)
    status = statuses.with_ineffective(status, outcome.ineffective, now=now)
    options = workflow.spec.boot_options
    if options.toggle_allow_netboot or options.boot_mode:
        status = statuses.waits(states.moved(status, WorkflowState.PREPARING), Reason.PREPARING, "preparing", now=now)
    else:
        status = running.waits_for_agent(workflow, states.moved(status, WorkflowState.PENDING), now)
    # First: whoever sees the tasks also sees how their machine is known.
    return do(_marked(arguments), *statuses.changed(workflow, status).actions).actions


def failed(arguments: RenderArguments, error: IronbellError) -> Sequence[Action]:
    """The actions that end a Workflow whose Template does not render."""
    message = f"error rendering template: {error.message}"
    status = not_rendered(arguments.workflow.status, message, arguments.now)
    status = statuses.ended(status, WorkflowState.FAILED, Reason.TEMPLATE_NOT_RENDERED, message, now=arguments.now)
    return statuses.changed(arguments.workflow, status).actions


async def agent_found(renderer: Renderer, arguments: RenderArguments) -> Sequence[Action]:
    """Render a disabled Workflow on trial; the actions that store its agent.

    Raises:
        IronbellError: the text is at fault.
    """
    workflow = arguments.workflow
    agent_id = (await _render(renderer, arguments)).tasks[0].agent_id
    status = msgspec.structs.replace(workflow.status, agent_id=agent_id)
    return do(_tried(arguments), statuses.written(workflow, status)).actions


def no_agent(arguments: RenderArguments, error: IronbellError) -> Sequence[Action]:
    """The actions that say that a disabled Workflow would not render."""
    message = f"error rendering template: {error.message}"
    status = not_rendered(arguments.workflow.status, message, arguments.now)
    return do(_tried(arguments), statuses.written(arguments.workflow, status)).actions


async def job_rendered(renderer: Renderer, arguments: JobArguments) -> Sequence[Action]:
    """Fill in a Job's actions; the actions that create it.

    Raises:
        IronbellError: a text is at fault.
    """
    plan = arguments.plan
    filled = tuple([await _filled(renderer, action, arguments.hardware) for action in plan.actions])
    try:
        return (bootjob.new_job(arguments.workflow, arguments.hardware, Plan(plan.name, filled)),)
    except UnusableBootOptionsError as error:
        raise RenderError(str(error), reason=error.reason) from error


def job_failed(arguments: JobArguments, error: IronbellError) -> Sequence[Action]:
    """The actions that end a Workflow whose custom boot cannot be rendered."""
    workflow, now = arguments.workflow, arguments.now
    message = f"job {arguments.plan.name}: {error.message}"
    status = statuses.noted(workflow.status, WorkflowConditionType.BOOT_JOB_SETUP_FAILED, True, message, now=now)
    reason = Reason.INVALID_BOOT_OPTIONS
    return statuses.changed(workflow, statuses.ended(status, WorkflowState.FAILED, reason, message, now=now)).actions


def not_rendered(status: WorkflowStatus, message: str, now: datetime) -> WorkflowStatus:
    """The status that says why there is nothing rendered."""
    status = msgspec.structs.replace(status, template_rendering=TemplateRendering.FAILED)
    return statuses.noted(status, WorkflowConditionType.TEMPLATE_RENDERED_SUCCESS, False, message, now=now)


def fingerprint(workflow: Workflow, template: Template, hardware: Hardware | None) -> str:
    """What a rendering depends on, in short."""
    machine = (hardware.metadata.uid, hardware.metadata.labels, hardware.spec) if hardware is not None else ()
    parts = (template.metadata.uid, template.spec.data, workflow.spec.hardware_map, machine)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]


async def _render(renderer: Renderer, arguments: RenderArguments) -> Rendered:
    workflow = arguments.workflow
    outcome = await renderer.workflow(
        arguments.template,
        arguments.hardware,
        name=workflow.metadata.name,
        variables=workflow.spec.hardware_map,
    )
    if not outcome.tasks:
        raise RenderError("tasks: there is none, so nothing would ever run")
    for number, task in enumerate(outcome.tasks):
        if not task.actions:
            raise RenderError(f"tasks[{number}].actions: task {task.name!r} has none, so it would never end")
    return outcome


def _task(workflow: Workflow, number: int, task: WorkflowTask) -> WorkflowTask:
    created = parse_rfc3339(workflow.metadata.creation_timestamp or "1970-01-01T00:00:00Z")
    uid = workflow.metadata.uid
    actions = [
        msgspec.structs.replace(
            action, id=derived_ulid(created, uid, str(number), str(position)), state=WorkflowState.PENDING
        )
        for position, action in enumerate(task.actions)
    ]
    return msgspec.structs.replace(task, id=derived_ulid(created, uid, str(number)), actions=actions)


def _marked(arguments: RenderArguments) -> MergePatch | None:
    """How the machine is known, where the Template says so and the Workflow does not."""
    said, workflow = of_template(arguments.template), arguments.workflow
    if not said or IDENTITY in workflow.metadata.annotations:
        return None
    return patch(WORKFLOW, workflow, {"metadata": {"annotations": {IDENTITY: said}}}, locked=True)


def _tried(arguments: RenderArguments) -> MergePatch:
    mark = fingerprint(arguments.workflow, arguments.template, arguments.hardware)
    return patch(
        WORKFLOW, arguments.workflow, {"metadata": {"annotations": {ANNOTATION_RENDERED_FROM: mark}}}, locked=True
    )


async def _filled(renderer: Renderer, action: BmcAction, hardware: Hardware) -> BmcAction:
    media = action.virtual_media_action
    if media is None or "{{" not in media.media_url:
        return action
    url = await renderer.media_url(media.media_url, hardware)
    return msgspec.structs.replace(action, virtual_media_action=msgspec.structs.replace(media, media_url=url))

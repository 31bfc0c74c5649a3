"""Rendering: the effect that turns a Template into the tasks of a Workflow, and the addresses of custom boot media.

A template is a program: it may be slow and it may draw random values. So it runs in a thread, for a bounded time, as
an effect whose outcome is stored before anything is done with it. A Template that does not render ends the Workflow
as FAILED with the message of the template engine, which names the line.

Failure modes: everything that a text can do wrong is an outcome and not an error; only a defect of the engine raises.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/{reconciler,convert}.go.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, TypeVar

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
from ironbell.contract.ineffective import Ineffective
from ironbell.controllers.tink import bootjob, running, states
from ironbell.controllers.tink import status as statuses
from ironbell.controllers.tink.bootjob import Plan, UnusableBootOptionsError
from ironbell.controllers.tink.identifiers import derived_ulid
from ironbell.controllers.tink.names import ANNOTATION_RENDERED_FROM, Reason
from ironbell.kube.decision import Action, MergePatch, do, patch
from ironbell.kube.reconciler import Performer

T = TypeVar("T")
RENDER: Final = "render-workflow"
TRY_RENDER: Final = "find-agent"
RENDER_JOB: Final = "render-boot-job"
RENDER_TIMEOUT_S: Final = 20.0
"""How long a text may take; the effect itself gets a little more, so that the outcome can be stored."""
EFFECT_TIMEOUT_S: Final = RENDER_TIMEOUT_S + 10.0


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
    """The template engine. Called in threads; raises `IronbellError` for whatever is wrong with a text."""

    def workflow(
        self, template: Template, hardware: Hardware | None, *, name: str, variables: Mapping[str, str]
    ) -> Rendered: ...

    def media_url(self, text: str, hardware: Hardware) -> str:
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


def performers(renderer: Renderer, *, timeout_s: float = RENDER_TIMEOUT_S) -> Mapping[str, Performer]:
    """What carries out the effects of the Workflow controller."""

    async def render(arguments: RenderArguments) -> Sequence[Action]:
        return await _bounded(lambda: rendered(renderer, arguments), lambda e: failed(arguments, e), timeout_s)

    async def find_agent(arguments: RenderArguments) -> Sequence[Action]:
        return await _bounded(lambda: agent_found(renderer, arguments), lambda e: no_agent(arguments, e), timeout_s)

    async def render_job(arguments: JobArguments) -> Sequence[Action]:
        return await _bounded(lambda: job_rendered(renderer, arguments), lambda e: job_failed(arguments, e), timeout_s)

    return {RENDER: render, TRY_RENDER: find_agent, RENDER_JOB: render_job}


async def _bounded(
    work: Callable[[], Sequence[Action]], otherwise: Callable[[IronbellError], Sequence[Action]], timeout_s: float
) -> Sequence[Action]:
    """Do it in a thread; what takes too long or raises becomes an outcome as well."""
    try:
        async with asyncio.timeout(timeout_s):
            return await asyncio.to_thread(work)
    except TimeoutError:
        return otherwise(RenderError(f"rendering took more than {timeout_s:g} s; make the template simpler"))
    except IronbellError as error:
        return otherwise(error)


def rendered(renderer: Renderer, arguments: RenderArguments) -> Sequence[Action]:
    """Render; the actions that store what came out and set the Workflow going.

    Raises:
        IronbellError: the text is at fault.
    """
    workflow, now = arguments.workflow, arguments.now
    outcome = _render(renderer, arguments)
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
    return statuses.changed(workflow, status).actions


def failed(arguments: RenderArguments, error: IronbellError) -> Sequence[Action]:
    """The actions that end a Workflow whose Template does not render."""
    message = f"error rendering template: {error.message}"
    status = not_rendered(arguments.workflow.status, message, arguments.now)
    status = statuses.ended(status, WorkflowState.FAILED, Reason.TEMPLATE_NOT_RENDERED, message, now=arguments.now)
    return statuses.changed(arguments.workflow, status).actions


def agent_found(renderer: Renderer, arguments: RenderArguments) -> Sequence[Action]:
    """Render a disabled Workflow on trial; the actions that store its agent.

    Raises:
        IronbellError: the text is at fault.
    """
    workflow = arguments.workflow
    agent_id = _render(renderer, arguments).tasks[0].agent_id
    status = msgspec.structs.replace(workflow.status, agent_id=agent_id)
    return do(_tried(arguments), statuses.written(workflow, status)).actions


def no_agent(arguments: RenderArguments, error: IronbellError) -> Sequence[Action]:
    """The actions that say that a disabled Workflow would not render."""
    message = f"error rendering template: {error.message}"
    status = not_rendered(arguments.workflow.status, message, arguments.now)
    return do(_tried(arguments), statuses.written(arguments.workflow, status)).actions


def job_rendered(renderer: Renderer, arguments: JobArguments) -> Sequence[Action]:
    """Fill in a Job's actions; the actions that create it.

    Raises:
        IronbellError: a text is at fault.
    """
    plan = arguments.plan
    filled = tuple(_filled(renderer, action, arguments.hardware) for action in plan.actions)
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


def _render(renderer: Renderer, arguments: RenderArguments) -> Rendered:
    workflow = arguments.workflow
    outcome = renderer.workflow(
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


def _tried(arguments: RenderArguments) -> MergePatch:
    mark = fingerprint(arguments.workflow, arguments.template, arguments.hardware)
    return patch(
        WORKFLOW, arguments.workflow, {"metadata": {"annotations": {ANNOTATION_RENDERED_FROM: mark}}}, locked=True
    )


def _filled(renderer: Renderer, action: BmcAction, hardware: Hardware) -> BmcAction:
    media = action.virtual_media_action
    if media is None or "{{" not in media.media_url:
        return action
    url = renderer.media_url(media.media_url, hardware)
    return msgspec.structs.replace(action, virtual_media_action=msgspec.structs.replace(media, media_url=url))

"""Rendering: the effect that turns a Template into the tasks of a Workflow, and the addresses of custom boot media.

A template is a program: it may be slow and it may use random values. It runs as an effect, for a limited time, and its
outcome is stored before it is used. If a Template does not render, the Workflow fails with the message of the template
engine, which names the line, or the limit that the Template exceeds.

Failure modes: errors in a text are an outcome, not an exception. Errors that a retry may resolve are raised: other
namespaces have their turn, or no process renders at the moment.

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
    WorkflowTask,
)
from ironbell.base.clock import parse_rfc3339
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.servers.identity import IDENTITY, of_template
from ironbell.contract.servers.ineffective import FIELDS_WITHOUT_EFFECT, Ineffective, listed
from ironbell.controllers.tink import bootjob, running
from ironbell.controllers.tink.bootjob import Plan, UnusableBootOptionsError
from ironbell.controllers.tink.names import ANNOTATION_RENDERED_FROM, Reason
from ironbell.controllers.tink.status import WorkflowDraft
from ironbell.kube.decision import Action, MergePatch, patch
from ironbell.kube.draft import replace
from ironbell.kube.reconciler import Performer

RENDER: Final = "render-workflow"
TRY_RENDER: Final = "find-agent"
RENDER_JOB: Final = "render-boot-job"
EFFECT_TIMEOUT_S: Final = 120.0
"""More than a renderer needs for an outcome, including the time in which it waits for a turn."""
_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@dataclass(frozen=True, slots=True)
class Rendered:
    """The result of rendering a Template. Ids and states of tasks and actions are not set."""

    tasks: Sequence[WorkflowTask]
    global_timeout_s: int = 0
    ineffective: Sequence[Ineffective] = ()
    """Fields of the document that have no effect."""


class RenderError(IronbellError):
    """A text does not render, or its result is not a valid workflow. The message names the line and the remedy."""

    reason = Reason.TEMPLATE_NOT_RENDERED
    retry = Retry.NEVER


class Renderer(Protocol):
    """Renders in a limited time. Raises `IronbellError` that is `Retry.NEVER` for errors in a text, and others for
    errors that a retry may resolve."""

    async def workflow(
        self, template: Template, hardware: Hardware | None, *, name: str, variables: Mapping[str, str]
    ) -> Rendered: ...

    async def media_url(self, text: str, hardware: Hardware) -> str:
        """Fill in the address of custom boot media."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RenderArguments:
    """The observed objects to render."""

    workflow: Workflow
    template: Template
    hardware: Hardware | None
    now: datetime

    def draft(self) -> WorkflowDraft:
        return WorkflowDraft(self.workflow, self.now)


@dataclass(frozen=True, slots=True, eq=False)
class JobArguments:
    """A Job whose actions have to be filled in."""

    workflow: Workflow
    hardware: Hardware
    plan: Plan
    now: datetime


def performers(renderer: Renderer) -> Mapping[str, Performer]:
    """The effects of the Workflow controller."""

    async def render(arguments: RenderArguments) -> Sequence[Action]:
        return await _outcome(rendered(renderer, arguments), lambda e: failed(arguments, e))

    async def find_agent(arguments: RenderArguments) -> Sequence[Action]:
        return await _outcome(agent_rendered(renderer, arguments), lambda e: no_agent(arguments, e))

    async def render_job(arguments: JobArguments) -> Sequence[Action]:
        return await _outcome(job_rendered(renderer, arguments), lambda e: job_failed(arguments, e))

    return {RENDER: render, TRY_RENDER: find_agent, RENDER_JOB: render_job}


async def _outcome(
    work: Awaitable[Sequence[Action]], otherwise: Callable[[IronbellError], Sequence[Action]]
) -> Sequence[Action]:
    """Return the actions of `work`, or those for an error in a text."""
    try:
        return await work
    except IronbellError as error:
        if error.retry is not Retry.NEVER:
            raise
        return otherwise(error)


async def rendered(renderer: Renderer, arguments: RenderArguments) -> Sequence[Action]:
    """Render a Workflow; return the actions that store the result and start the Workflow.

    Raises:
        IronbellError: the text has an error.
    """
    draft, options = arguments.draft(), arguments.workflow.spec.boot_options
    outcome = await _render(renderer, arguments)
    tasks = [_task(draft.obj, number, task) for number, task in enumerate(outcome.tasks)]
    draft.status = replace(
        draft.status,
        tasks=tasks,
        agent_id=tasks[0].agent_id,
        global_timeout=max(outcome.global_timeout_s, 0),
        template_rendering=TemplateRendering.SUCCESSFUL,
    )
    condition = WorkflowConditionType.TEMPLATE_RENDERED_SUCCESS
    draft.upstream(condition, True, "template rendered successfully")
    if outcome.ineffective:
        draft.set(FIELDS_WITHOUT_EFFECT, "True", "NotImplemented", listed(outcome.ineffective))
    if options.toggle_allow_netboot or options.boot_mode:
        draft.move(WorkflowState.PREPARING)
        draft.wait_for(Reason.PREPARING, "Preparing the boot of the server.")
    else:
        draft.move(WorkflowState.PENDING)
        running.wait_for_agent(draft)
    # The first write, so that a client that reads the tasks also reads how their server is identified.
    draft.first.append(_marked(arguments))
    return draft.decision().actions


def failed(arguments: RenderArguments, error: IronbellError) -> Sequence[Action]:
    """The actions that fail a Workflow whose Template does not render."""
    draft, message = arguments.draft(), f"error rendering template: {error.message}"
    report_not_rendered(draft, message)
    draft.end(WorkflowState.FAILED, Reason.TEMPLATE_NOT_RENDERED, message)
    return draft.decision().actions


async def agent_rendered(renderer: Renderer, arguments: RenderArguments) -> Sequence[Action]:
    """Render a disabled Workflow to find its agent; return the actions that store the agent id.

    Raises:
        IronbellError: the text has an error.
    """
    draft = arguments.draft()
    draft.status = replace(draft.status, agent_id=(await _render(renderer, arguments)).tasks[0].agent_id)
    draft.first.append(_tried(arguments))
    return draft.decision().actions


def no_agent(arguments: RenderArguments, error: IronbellError) -> Sequence[Action]:
    """The actions that report that a disabled Workflow does not render."""
    draft = arguments.draft()
    report_not_rendered(draft, f"error rendering template: {error.message}")
    draft.first.append(_tried(arguments))
    return draft.decision().actions


async def job_rendered(renderer: Renderer, arguments: JobArguments) -> Sequence[Action]:
    """Fill in the actions of a Job; return the actions that create it.

    Raises:
        IronbellError: a text has an error.
    """
    plan = arguments.plan
    filled = tuple([await _filled(renderer, action, arguments.hardware) for action in plan.actions])
    try:
        return (bootjob.new_job(arguments.workflow, arguments.hardware, Plan(plan.name, filled)),)
    except UnusableBootOptionsError as error:
        raise RenderError(str(error), reason=error.reason) from error


def job_failed(arguments: JobArguments, error: IronbellError) -> Sequence[Action]:
    """The actions that fail a Workflow whose custom boot does not render."""
    draft, message = WorkflowDraft(arguments.workflow, arguments.now), f"Job {arguments.plan.name}: {error.message}"
    draft.fail_job(WorkflowConditionType.BOOT_JOB_SETUP_FAILED, Reason.INVALID_BOOT_OPTIONS, message)
    return draft.decision().actions


def report_not_rendered(draft: WorkflowDraft, message: str) -> None:
    """Report the reason why the Template was not rendered."""
    draft.status = replace(draft.status, template_rendering=TemplateRendering.FAILED)
    draft.upstream(WorkflowConditionType.TEMPLATE_RENDERED_SUCCESS, False, message)


def fingerprint(workflow: Workflow, template: Template, hardware: Hardware | None) -> str:
    """A digest of the input of a rendering."""
    machine = (hardware.metadata.uid, hardware.metadata.labels, hardware.spec) if hardware is not None else ()
    parts = (template.metadata.uid, template.spec.data, workflow.spec.hardware_map, machine)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]


def derived_ulid(created: datetime, *path: str) -> str:
    """A ULID with the time of `created` whose 80 other bits are a digest of `path`.

    Upstream draws ids at random. A Workflow that is rendered again after a crash must give every action its previous
    id, so that an agent never receives a second id for an action. Source: ulid/spec for the text form.
    """
    milliseconds = int(created.timestamp() * 1000) & ((1 << 48) - 1)
    digest = hashlib.sha256("\0".join(path).encode()).digest()
    value = milliseconds << 80 | int.from_bytes(digest[:10], "big")
    return "".join(_CROCKFORD[(value >> shift) & 31] for shift in range(125, -5, -5))


async def _render(renderer: Renderer, arguments: RenderArguments) -> Rendered:
    workflow = arguments.workflow
    outcome = await renderer.workflow(
        arguments.template,
        arguments.hardware,
        name=workflow.metadata.name,
        variables=workflow.spec.hardware_map,
    )
    if not outcome.tasks:
        raise RenderError("tasks is empty; add at least one task")
    for number, task in enumerate(outcome.tasks):
        if not task.actions:
            raise RenderError(f"tasks[{number}].actions of task {task.name!r} is empty; add at least one action")
    return outcome


def _task(workflow: Workflow, number: int, task: WorkflowTask) -> WorkflowTask:
    created = parse_rfc3339(workflow.metadata.creation_timestamp or "1970-01-01T00:00:00Z")
    uid = workflow.metadata.uid
    actions = [
        replace(action, id=derived_ulid(created, uid, str(number), str(position)), state=WorkflowState.PENDING)
        for position, action in enumerate(task.actions)
    ]
    return replace(task, id=derived_ulid(created, uid, str(number)), actions=actions)


def _marked(arguments: RenderArguments) -> MergePatch | None:
    """The annotation of how the server is identified, if only the Template has it."""
    identity, workflow = of_template(arguments.template), arguments.workflow
    if not identity or IDENTITY in workflow.metadata.annotations:
        return None
    return patch(WORKFLOW, workflow, {"metadata": {"annotations": {IDENTITY: identity}}}, locked=True)


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
    return replace(action, virtual_media_action=replace(media, media_url=url))

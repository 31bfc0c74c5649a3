"""The gRPC service `proto.WorkflowService`: hands out actions and takes reports.

GetAction is held up to 60 s while there is nothing to do, and answers as soon as something changes; every other
answer is given at once. Decisions are made over the object as stored, never over the cache alone: an action whose end
was just reported through another replica is not handed out again.

Source: tinkerbell/tinkerbell: tink/server/internal/grpc/grpc.go.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from ironbell.api.client import ApiError, Conflict, TooManyRequests, Unavailable
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.rejections import Rejections
from ironbell.codec.proto import workflow_pb2
from ironbell.codec.proto.workflow_grpc import WorkflowServiceBase
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.identity import KNOWN_BY, Caller, Way
from ironbell.services.workflow import attributes, guard, metrics, names, response, selection
from ironbell.services.workflow import report as reports
from ironbell.services.workflow.annotator import Annotator, Refusals
from ironbell.services.workflow.changes import Change, Code
from ironbell.services.workflow.guard import Gate
from ironbell.services.workflow.liveness import Liveness, recorded
from ironbell.services.workflow.port import receive
from ironbell.services.workflow.port.receive import Agent
from ironbell.services.workflow.report import Accept, Ignore, Refuse, Verdict
from ironbell.services.workflow.selection import Choice, Interrupted, Nothing, Serve, Unrunnable
from ironbell.services.workflow.writer import WorkflowWriter

if TYPE_CHECKING:
    import grpclib.server

HOLD_S = 60.0

# Left of a client's own limit for the answer to travel.
_MARGIN_S = 1.0
# How long to wait for the cache when it and the stored object disagree.
_RECHECK_S = 0.5
# How often to look again while there is doubt about which machine is meant.
_DOUBT_S = 1.0

log = structlog.get_logger()


Keeper = Callable[[Workflow, str, bool], Awaitable[dict[str, str | None]]]
"""Annotations to write when an action (by its id) of a Workflow has ended, and whether the Workflow ends with it."""


async def keep_nothing(_workflow: Workflow, _action_id: str, _ends: bool) -> dict[str, str | None]:
    """For a service without logs."""
    return {}


class WorkflowService(WorkflowServiceBase):
    """The two methods."""

    def __init__(
        self,
        writer: WorkflowWriter,
        clock: Clock,
        *,
        keeper: Keeper = keep_nothing,
        hold_s: float = HOLD_S,
        finish_s: float = 0.0,
        directory: HardwareDirectory | None = None,
        gate: Gate | None = None,
        replica: str = "",
        liveness: Liveness | None = None,
        annotator: Annotator | None = None,
        rejections: Rejections | None = None,
    ) -> None:
        """`gate` knows who may speak for a machine; `replica` is who has the logs of agents that send some; `liveness`
        expects signs of life of agents; `annotator` notes on Workflows who was refused."""
        self._rejections = rejections or Rejections()
        # Apart, since people look for it: nothing else that the machine sends may hide it.
        self._held_back = Rejections()
        self._writer = writer
        self._index = writer.index
        self._clock = clock
        self._keeper = keeper
        self._replica = replica
        self._liveness = liveness
        self._hold_s = hold_s
        self._finish_s = finish_s
        self._directory = directory
        self._gate = gate or Gate(directory=directory, clock=clock)
        self._refusals = Refusals(annotator, clock)
        self._held = attributes.Held()

    async def GetAction(  # noqa: N802 - the name on the wire
        self, stream: grpclib.server.Stream[workflow_pb2.ActionRequest, workflow_pb2.ActionResponse]
    ) -> None:
        """Answer with the next action, once there is one."""
        with _answered("GetAction"):
            agent = await receive.action_request(stream, self._rejections)
            hold_s = self._hold_s
            if stream.deadline is not None:
                hold_s = min(hold_s, max(0.0, stream.deadline.time_remaining() - _MARGIN_S))
            with self._held.packed(agent.packed) as packed:
                agent = replace(agent, packed=packed)
                answer = await self._next(agent, hold_s=hold_s)
            await stream.send_message(answer)

    async def _next(self, agent: Agent, *, hold_s: float) -> workflow_pb2.ActionResponse:
        agent_id = agent.agent_id
        until = self._clock.monotonic() + hold_s
        while True:
            agent_ids = self._gate.agent_ids(agent_id)
            known = [workflow for name in agent_ids for workflow in self._index.workflows_for(name)]
            admitted, refused = self._gate.admitted(known, agent_id, agent.caller)
            choice = self._choose(admitted, agent)
            pause_s, why = hold_s, refused.why if refused is not None else None
            if isinstance(choice, Nothing):
                if refused is not None:
                    self._refusals.note(refused.workflow, agent.peer, refused.why)
                    choice, pause_s = Nothing(Code.PERMISSION_DENIED, refused.why), _DOUBT_S
            elif isinstance(choice, Serve) and (why := self._objection(choice, agent)) is not None:
                choice, pause_s = Nothing(Code.FAILED_PRECONDITION, why), _DOUBT_S
            else:
                choice = await self._settle(choice.workflow, agent)
                # The stored object said otherwise; the cache will follow.
                pause_s = _RECHECK_S
            if isinstance(choice, Serve):
                return await self._served(agent, choice)
            if isinstance(choice, Interrupted | Unrunnable):
                continue
            left_s = until - self._clock.monotonic()
            if left_s <= 0:
                if why is not None:
                    self._held_back.log(agent.peer, "action held back", agent=agent_id, why=why)
                raise GRPCError(Status[choice.code.value], choice.message)
            await self._wait(agent_ids, min(left_s, pause_s))

    def _choose(self, workflows: Sequence[Workflow], agent: Agent) -> Choice:
        now = rfc3339(self._clock.now())
        agent_ids = self._gate.agent_ids(agent.agent_id)
        return selection.choose(workflows, agent_ids, boot_id=agent.boot_id, builtin=agent.builtin, now=now)

    def _objection(self, choice: Serve, agent: Agent) -> str | None:
        if self._directory is None:
            return None
        is_ours = bool(agent.boot_id)
        return guard.objection(choice.workflow, agent.agent_id, self._directory, honours_keeping=is_ours)

    async def _settle(self, workflow: Workflow, agent: Agent) -> Choice:
        """Choose over the stored object and store what follows from it."""

        def decision(stored: Workflow | None) -> Choice:
            return self._choose([stored] if stored else [], agent)

        def change(choice: Choice) -> Change | None:
            if isinstance(choice, Nothing):
                return None
            if not isinstance(choice, Serve):
                return choice.change
            # Recorded in the write that there is anyhow.
            here = {**choice.change.annotations, **recorded(choice.workflow, choice.task.agent_id, agent.heartbeat_s)}
            if agent.boot_id and self._replica:
                # It is our own agent, which will send its log here.
                here[names.LOG_REPLICA] = self._replica
            return replace(choice.change, annotations=here)

        with _api_errors("error writing current state"):
            choice = await self._writer.decide(*workflow.key, decision=decision, change=change)
        if isinstance(choice, Interrupted):
            metrics.REBOOTS.inc()
            log.warning("machine rebooted in the middle", workflow="/".join(workflow.key), agent=agent.agent_id)
        if isinstance(choice, Unrunnable):
            log.warning("workflow failed before its first action", workflow="/".join(workflow.key), why=choice.message)
        return choice

    async def _served(self, agent: Agent, choice: Serve) -> workflow_pb2.ActionResponse:
        workflow, knows_us = choice.workflow, bool(agent.boot_id)
        namespace, name = workflow.metadata.namespace, guard.machine_of(workflow, agent.agent_id, self._directory)
        hardware: Hardware | None = None
        if name and (knows_us or choice.is_first or self._gate.needs_token(workflow)):
            with _api_errors("error getting hardware"):
                hardware = await self._writer.hardware(namespace, name)
        # what is stored decides: another replica may have revoked the token a moment ago
        if (why := self._gate.objection(workflow, agent.agent_id, agent.caller, stored=hardware)) is not None:
            raise GRPCError(Status.PERMISSION_DENIED, why)
        if hardware is not None:
            await self._keep(hardware, agent, self._gate.way(workflow, agent.agent_id, agent.caller))
        log.info(
            "action handed out",
            workflow="/".join(workflow.key),
            agent=agent.agent_id,
            task=choice.task.name,
            action=choice.action.name,
        )
        expected = response.expectations(hardware) if knows_us and hardware is not None else {}
        if knows_us:
            expected |= response.keeping(workflow, self._gate.agent_ids(agent.agent_id), hardware)
        return response.assemble(
            workflow, choice.task, choice.action, expected=expected, agent_id=agent.agent_id, token=agent.token
        )

    async def _keep(self, hardware: Hardware, agent: Agent, way: Way) -> None:
        """Note how the machine was known and what it is made of, if it is news. Failing to holds no Workflow up."""
        found = {KNOWN_BY: f"{way} {agent.peer}"}
        before = hardware.metadata.annotations
        if agent.packed is not None:
            text = attributes.renewed(attributes.unpack(agent.packed), before.get(ANNOTATION_AGENT_ATTRIBUTES, ""))
            if text is not None and len(text) > attributes.MAX_SIZE:
                log.warning("agent attributes are too large to keep", hardware="/".join(hardware.key), size=len(text))
            elif text is not None:
                found[ANNOTATION_AGENT_ATTRIBUTES] = text.decode()
        news = {name: value for name, value in found.items() if before.get(name) != value}
        if not news:
            return
        try:
            await self._writer.annotate_hardware(*hardware.key, news)
        except ApiError as error:
            log.warning("agent attributes not kept", hardware="/".join(hardware.key), error=error.message)

    async def ReportActionStatus(  # noqa: N802 - the name on the wire
        self, stream: grpclib.server.Stream[workflow_pb2.ActionStatusRequest, workflow_pb2.ActionStatusResponse]
    ) -> None:
        """Take a report; what it changes is stored before the answer."""
        with _answered("ReportActionStatus"):
            request = await receive.message(stream, workflow_pb2.ActionStatusRequest)
            if request.agent_id:
                receive.check_agent_id(request.agent_id)
            report = reports.Report(
                workflow_id=request.workflow_id,
                task_id=request.task_id,
                action_id=request.action_id,
                agent_id=request.agent_id,
                state=_state_name(request.action_state),
                message=request.message.message,
                duration=request.execution_duration,
                agent_ids=self._gate.agent_ids(request.agent_id),
            )
            verdict: Verdict | None = reports.check(report)
            if verdict is None:
                await self._admit(report, receive.caller_of(stream))
                self._heard(report)
                verdict = await self._judge(report)
            if isinstance(verdict, Refuse):
                raise GRPCError(Status[verdict.code.value], verdict.message)
            if isinstance(verdict, Ignore):
                metrics.IGNORED.labels(verdict.reason.value).inc()
                values = {"workflow": report.workflow_id, "agent": report.agent_id}
                self._rejections.log(receive.peer_of(stream), "report ignored", reason=verdict.message, **values)
            if report.is_result:
                await self._finished(report)
            await stream.send_message(workflow_pb2.ActionStatusResponse())

    async def _admit(self, report: reports.Report, caller: Caller) -> None:
        """Refuse a report for another machine; what the cache does not know yet is asked for."""
        workflow = self._index.get(*report.workflow_key)
        if workflow is None or self._gate.objection(workflow, report.agent_id, caller) is None:
            return
        name = guard.machine_of(workflow, report.agent_id, self._directory)
        with _api_errors("error getting hardware"):
            stored = await self._writer.hardware(workflow.metadata.namespace, name) if name else None
        if (why := self._gate.objection(workflow, report.agent_id, caller, stored=stored)) is not None:
            values = {"workflow": report.workflow_id, "agent": report.agent_id}
            self._rejections.log(caller.peer, "report rejected", why=why, **values)
            raise GRPCError(Status.PERMISSION_DENIED, why)

    def _heard(self, report: reports.Report) -> None:
        """A report is a sign of life, also while it cannot be stored: beats end with the action's process."""
        workflow = self._index.get(*report.workflow_key)
        if self._liveness is not None and workflow is not None:
            self._liveness.heard(workflow, report.agent_ids, report.action_id)

    async def _judge(self, report: reports.Report) -> Verdict:
        namespace, name = report.workflow_key
        kept: dict[str, str | None] = {}
        known = self._index.get(namespace, name)
        if report.is_result and known is not None:
            kept = await self._keeper(known, report.action_id, reports.ends_workflow(known, report))

        def decision(workflow: Workflow | None) -> Verdict:
            return reports.judge(workflow, report, now=rfc3339(self._clock.now()))

        def change(verdict: Verdict) -> Change | None:
            if not isinstance(verdict, Accept):
                return None
            if not verdict.ends_action:
                return verdict.change
            return replace(verdict.change, annotations={**verdict.change.annotations, **kept})

        with _api_errors("error writing report status"):
            verdict = await self._writer.decide(namespace, name, decision=decision, change=change)
        if isinstance(verdict, Accept):
            log.info(
                "action reported",
                workflow=report.workflow_id,
                agent=report.agent_id,
                action=report.action_id,
                state=report.state,
                message=report.message[:200],
            )
        return verdict

    async def _finished(self, report: reports.Report) -> None:
        """Hold the answer to the last result until the boot options are undone.

        An agent whose last action is a reboot leaves when it has this answer. Were netboot still allowed then, the
        machine would come back into the in-memory OS instead of what was just installed.
        """
        until = self._clock.monotonic() + self._finish_s
        while self._finish_s:
            workflow = self._index.get(*report.workflow_key)
            if workflow is None or workflow.status.state != WorkflowState.POST:
                return
            left_s = until - self._clock.monotonic()
            if left_s <= 0:
                raise GRPCError(Status.UNAVAILABLE, "the result is stored; the boot options are not undone yet")
            await self._wait([workflow.status.agent_id], left_s)

    async def _wait(self, agent_ids: Sequence[str], limit_s: float) -> None:
        with metrics.WAITING.track_inprogress(), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._index.changed(*agent_ids)


def _state_name(number: int) -> str:
    try:
        return workflow_pb2.ActionStatusRequest.StateType.Name(number)
    except ValueError:
        return str(number)


@contextlib.contextmanager
def _api_errors(what: str) -> Iterator[None]:
    """Failures of the API as codes that every agent takes up again later."""
    try:
        yield
    except ApiError as error:
        passing = isinstance(error, Unavailable | Conflict | TooManyRequests)
        status = Status.UNAVAILABLE if passing else Status.INTERNAL
        raise GRPCError(status, f"{what}: {error.message}") from error


@contextlib.contextmanager
def _answered(method: str) -> Iterator[None]:
    """Count the answer by its code."""
    code = Status.OK
    try:
        yield
    except GRPCError as error:
        code = error.status
        raise
    except asyncio.CancelledError:
        code = Status.CANCELLED
        raise
    finally:
        metrics.HANDLED.labels("proto.WorkflowService", method, code.name).inc()

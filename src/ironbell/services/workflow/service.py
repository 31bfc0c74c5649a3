"""The gRPC service `proto.WorkflowService`, which hands out actions and receives reports.

GetAction is held for up to 60 s while there is no action, and is answered as soon as there is one; other calls are
answered at once. Decisions are based on the stored object, never on the cache alone: an action whose result was just
reported through another replica is not handed out again.

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
from ironbell.services.workflow.annotator import Annotator, RejectionRecorder
from ironbell.services.workflow.changes import Change, Code
from ironbell.services.workflow.guard import Gate
from ironbell.services.workflow.liveness import Liveness, heartbeat_annotation
from ironbell.services.workflow.port import receive
from ironbell.services.workflow.port.receive import Agent
from ironbell.services.workflow.report import Accept, Decision, Ignore, Reject
from ironbell.services.workflow.selection import Choice, Interrupted, Nothing, Serve, Unrunnable
from ironbell.services.workflow.writer import WorkflowWriter

if TYPE_CHECKING:
    import grpclib.server

HOLD_S = 60.0

# Part of a client's deadline that is left for the answer to travel.
_MARGIN_S = 1.0
# Time to wait for the cache if it differs from the stored object.
_RECHECK_S = 0.5
# Interval of checks while an action is held back.
_DOUBT_S = 1.0

log = structlog.get_logger()


Keeper = Callable[[Workflow, str, bool], Awaitable[dict[str, str | None]]]
"""Returns the annotations to write with an action's result. Takes the action's id, and whether the Workflow ends."""


async def keep_nothing(_workflow: Workflow, _action_id: str, _ends: bool) -> dict[str, str | None]:
    """The `Keeper` of a service without logs."""
    return {}


class WorkflowService(WorkflowServiceBase):
    """The methods GetAction and ReportActionStatus."""

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
        """`gate` checks callers; `replica` names the replica that stores logs of agents; `liveness` receives signs of
        life; `annotator` records rejected agents on Workflows."""
        self._rejections = rejections or Rejections()
        # Separate, since users look for it: no other rejection of the machine may hide it.
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
        self._recorder = RejectionRecorder(annotator, clock)
        self._attributes = attributes.Budget()

    async def GetAction(  # noqa: N802 - the name on the wire
        self, stream: grpclib.server.Stream[workflow_pb2.ActionRequest, workflow_pb2.ActionResponse]
    ) -> None:
        """Respond with the next action, as soon as there is one."""
        with _answered("GetAction"):
            agent = await receive.action_request(stream, self._rejections)
            hold_s = self._hold_s
            if stream.deadline is not None:
                hold_s = min(hold_s, max(0.0, stream.deadline.time_remaining() - _MARGIN_S))
            with self._attributes.reserve(agent.packed) as packed:
                agent = replace(agent, packed=packed)
                answer = await self._next(agent, hold_s=hold_s)
            await stream.send_message(answer)

    async def _next(self, agent: Agent, *, hold_s: float) -> workflow_pb2.ActionResponse:
        agent_id = agent.agent_id
        until = self._clock.monotonic() + hold_s
        while True:
            agent_ids = self._gate.agent_ids(agent_id)
            known = [workflow for name in agent_ids for workflow in self._index.workflows_for(name)]
            admitted, rejected = self._gate.admitted(known, agent_id, agent.caller)
            choice = self._choose(admitted, agent)
            pause_s, reason = hold_s, rejected.reason if rejected is not None else None
            if isinstance(choice, Nothing):
                if rejected is not None:
                    self._recorder.record(rejected.workflow, agent.peer, rejected.reason)
                    choice, pause_s = Nothing(Code.PERMISSION_DENIED, rejected.reason), _DOUBT_S
            elif isinstance(choice, Serve) and (reason := self._objection(choice, agent)) is not None:
                choice, pause_s = Nothing(Code.FAILED_PRECONDITION, reason), _DOUBT_S
            else:
                choice = await self._settle(choice.workflow, agent)
                # The stored object differs from the cache, which will follow.
                pause_s = _RECHECK_S
            if isinstance(choice, Serve):
                return await self._served(agent, choice)
            if isinstance(choice, Interrupted | Unrunnable):
                continue
            left_s = until - self._clock.monotonic()
            if left_s <= 0:
                if reason is not None:
                    self._held_back.log(agent.peer, "action held back", agent=agent_id, reason=reason)
                raise GRPCError(Status[choice.code.value], choice.message)
            await self._wait(agent_ids, min(left_s, pause_s))

    def _choose(self, workflows: Sequence[Workflow], agent: Agent) -> Choice:
        now = rfc3339(self._clock.now())
        agent_ids = self._gate.agent_ids(agent.agent_id)
        return selection.choose(workflows, agent_ids, boot_id=agent.boot_id, builtin=agent.builtin, now=now)

    def _objection(self, choice: Serve, agent: Agent) -> str | None:
        if self._directory is None:
            return None
        honours_keeping = bool(agent.boot_id)
        return guard.objection(choice.workflow, agent.agent_id, self._directory, honours_keeping=honours_keeping)

    async def _settle(self, workflow: Workflow, agent: Agent) -> Choice:
        """Choose by the stored Workflow, and store the change of the choice."""

        def decide(stored: Workflow | None) -> Choice:
            return self._choose([stored] if stored else [], agent)

        def change(choice: Choice) -> Change | None:
            if isinstance(choice, Nothing):
                return None
            if not isinstance(choice, Serve):
                return choice.change
            # The write that hands the action out records the heartbeats and the log's replica as well.
            heartbeats = heartbeat_annotation(choice.workflow, choice.task.agent_id, agent.heartbeat_s)
            annotations = {**choice.change.annotations, **heartbeats}
            if agent.boot_id and self._replica:
                # Only our own agent sends its log.
                annotations[names.LOG_REPLICA] = self._replica
            return replace(choice.change, annotations=annotations)

        with _api_errors("error writing current state"):
            choice = await self._writer.decide(*workflow.key, decide=decide, change=change)
        if isinstance(choice, Interrupted):
            metrics.REBOOTS.inc()
            log.warning("machine rebooted during its workflow", workflow="/".join(workflow.key), agent=agent.agent_id)
        if isinstance(choice, Unrunnable):
            log.warning(
                "workflow failed before its first action", workflow="/".join(workflow.key), reason=choice.message
            )
        return choice

    async def _served(self, agent: Agent, choice: Serve) -> workflow_pb2.ActionResponse:
        workflow, is_own_agent = choice.workflow, bool(agent.boot_id)
        namespace, name = workflow.metadata.namespace, guard.machine_of(workflow, agent.agent_id, self._directory)
        hardware: Hardware | None = None
        if name and (is_own_agent or choice.is_first or self._gate.needs_token(workflow)):
            with _api_errors("error getting hardware"):
                hardware = await self._writer.hardware(namespace, name)
        # The stored Hardware decides: another replica may have revoked the token a moment ago.
        if (reason := self._gate.objection(workflow, agent.agent_id, agent.caller, stored=hardware)) is not None:
            raise GRPCError(Status.PERMISSION_DENIED, reason)
        if hardware is not None:
            await self._record_agent(hardware, agent, self._gate.way(workflow, agent.agent_id, agent.caller))
        log.info(
            "action handed out",
            workflow="/".join(workflow.key),
            agent=agent.agent_id,
            task=choice.task.name,
            action=choice.action.name,
        )
        expected = response.expectations(hardware) if is_own_agent and hardware is not None else {}
        if is_own_agent:
            expected |= response.keeping(workflow, self._gate.agent_ids(agent.agent_id), hardware)
        return response.assemble(
            workflow, choice.task, choice.action, expected=expected, agent_id=agent.agent_id, token=agent.token
        )

    async def _record_agent(self, hardware: Hardware, agent: Agent, way: Way) -> None:
        """Record the identification and the attributes of the machine on its Hardware. A failure delays no Workflow."""
        annotations = {KNOWN_BY: f"{way} {agent.peer}"}
        present = hardware.metadata.annotations
        if agent.packed is not None:
            text = attributes.changed_document(
                attributes.unpack(agent.packed), present.get(ANNOTATION_AGENT_ATTRIBUTES, "")
            )
            if text is not None and len(text) > attributes.MAX_SIZE:
                log.warning("agent attributes too large to record", hardware="/".join(hardware.key), size=len(text))
            elif text is not None:
                annotations[ANNOTATION_AGENT_ATTRIBUTES] = text.decode()
        changed = {name: value for name, value in annotations.items() if present.get(name) != value}
        if not changed:
            return
        try:
            await self._writer.annotate_hardware(*hardware.key, changed)
        except ApiError as error:
            log.warning("agent attributes not recorded", hardware="/".join(hardware.key), error=error.message)

    async def ReportActionStatus(  # noqa: N802 - the name on the wire
        self, stream: grpclib.server.Stream[workflow_pb2.ActionStatusRequest, workflow_pb2.ActionStatusResponse]
    ) -> None:
        """Receive a report; its change is stored before the response."""
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
            decision: Decision | None = reports.check(report)
            if decision is None:
                await self._admit(report, receive.caller_of(stream))
                self._record_sign_of_life(report)
                decision = await self._decide(report)
            if isinstance(decision, Reject):
                raise GRPCError(Status[decision.code.value], decision.message)
            if isinstance(decision, Ignore):
                metrics.IGNORED.labels(decision.reason.value).inc()
                values = {"workflow": report.workflow_id, "agent": report.agent_id}
                self._rejections.log(receive.peer_of(stream), "report ignored", reason=decision.message, **values)
            if report.is_result:
                await self._wait_for_post(report)
            await stream.send_message(workflow_pb2.ActionStatusResponse())

    async def _admit(self, report: reports.Report, caller: Caller) -> None:
        """Reject a report for another machine, also by the stored Hardware, which may be newer than the cache."""
        workflow = self._index.get(*report.workflow_key)
        if workflow is None or self._gate.objection(workflow, report.agent_id, caller) is None:
            return
        name = guard.machine_of(workflow, report.agent_id, self._directory)
        with _api_errors("error getting hardware"):
            stored = await self._writer.hardware(workflow.metadata.namespace, name) if name else None
        if (reason := self._gate.objection(workflow, report.agent_id, caller, stored=stored)) is not None:
            values = {"workflow": report.workflow_id, "agent": report.agent_id}
            self._rejections.log(caller.peer, "report rejected", reason=reason, **values)
            raise GRPCError(Status.PERMISSION_DENIED, reason)

    def _record_sign_of_life(self, report: reports.Report) -> None:
        """Record a report as a sign of life, even if it cannot be stored: heartbeats end with the action's process."""
        workflow = self._index.get(*report.workflow_key)
        if self._liveness is not None and workflow is not None:
            self._liveness.record(workflow, report.agent_ids, report.action_id)

    async def _decide(self, report: reports.Report) -> Decision:
        namespace, name = report.workflow_key
        kept: dict[str, str | None] = {}
        cached = self._index.get(namespace, name)
        if report.is_result and cached is not None:
            kept = await self._keeper(cached, report.action_id, reports.ends_workflow(cached, report))

        def decide(workflow: Workflow | None) -> Decision:
            return reports.decide(workflow, report, now=rfc3339(self._clock.now()))

        def change(decision: Decision) -> Change | None:
            if not isinstance(decision, Accept):
                return None
            if not decision.ends_action:
                return decision.change
            return replace(decision.change, annotations={**decision.change.annotations, **kept})

        with _api_errors("error writing report status"):
            decision = await self._writer.decide(namespace, name, decide=decide, change=change)
        if isinstance(decision, Accept):
            log.info(
                "action reported",
                workflow=report.workflow_id,
                agent=report.agent_id,
                action=report.action_id,
                state=report.state,
                message=report.message[:200],
            )
        return decision

    async def _wait_for_post(self, report: reports.Report) -> None:
        """Hold the response to the last result until the controller has reverted the boot options.

        An agent whose last action is a reboot reboots after this response. If netboot were still allowed, the machine
        would boot the in-memory OS again instead of the system that was just installed.
        """
        until = self._clock.monotonic() + self._finish_s
        while self._finish_s:
            workflow = self._index.get(*report.workflow_key)
            if workflow is None or workflow.status.state != WorkflowState.POST:
                return
            left_s = until - self._clock.monotonic()
            if left_s <= 0:
                raise GRPCError(Status.UNAVAILABLE, "the result is stored, but the boot options are not reverted yet")
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
def _api_errors(context: str) -> Iterator[None]:
    """Raise failures of the API as gRPC errors, with codes after which every agent retries."""
    try:
        yield
    except ApiError as error:
        is_transient = isinstance(error, Unavailable | Conflict | TooManyRequests)
        status = Status.UNAVAILABLE if is_transient else Status.INTERNAL
        raise GRPCError(status, f"{context}: {error.message}") from error


@contextlib.contextmanager
def _answered(method: str) -> Iterator[None]:
    """Count the response by its code."""
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

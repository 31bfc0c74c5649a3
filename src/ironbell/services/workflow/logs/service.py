"""The gRPC service `ironbell.LogService`, which receives the output of actions and the reports of machines.

Only the agent of a task may add to its actions' logs. Progress is written to an annotation, every two seconds at most
per Workflow, and less often if very many machines are active, so that it never dominates the writes.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from ironbell.api.client import ApiError
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowAction, WorkflowState
from ironbell.base.clock import Clock, rfc3339, rfc3339_micro
from ironbell.base.printable import one_line, printable
from ironbell.base.rejections import Rejections
from ironbell.codec.proto import log_pb2
from ironbell.codec.proto.log_grpc import LogServiceBase
from ironbell.contract.servers.boot_progress import LOG_PREFIX, PROGRESS
from ironbell.services.workflow import metrics, names
from ironbell.services.workflow.annotator import Annotator
from ironbell.services.workflow.guard import Gate
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.logs import file as logfile
from ironbell.services.workflow.logs.file import MAX_SEQUENCE, Source, TooManyExecutionsError
from ironbell.services.workflow.logs.store import BadLogNameError, LogKey, LogStore
from ironbell.services.workflow.port import receive

if TYPE_CHECKING:
    import grpclib.server

_SOURCES = {log_pb2.STDOUT: Source.OUT, log_pb2.STDERR: Source.ERR, log_pb2.AGENT: Source.AGENT}
_TERMINAL = {WorkflowState.SUCCESS, WorkflowState.FAILED, WorkflowState.TIMEOUT}
_MAX_LINES = 2000
_MAX_TEXT = 8192
_MAX_AGE_MS = 86_400_000
_EXECUTION = re.compile(r"[!-~]{1,64}")
_TAIL_LINE = 200
_TAIL_CHARACTERS = 3000
# All annotations of an object together may have 256 KiB.
_MAX_ANNOTATIONS: Final = 160 << 10
_MAX_REPORT = 2000
KEPT_WITHIN_S: Final = 10.0
"""Longest time until the end of an action's log is written to a Workflow that continues."""

log = structlog.get_logger()


class LogService(LogServiceBase):
    """The methods Append and ReportMachine, and the part of a log that is kept on its Workflow (`keep`)."""

    def __init__(
        self,
        index: WorkflowTable,
        store: LogStore,
        annotator: Annotator,
        clock: Clock,
        *,
        replica: str,
        gate: Gate | None = None,
        rejections: Rejections | None = None,
    ) -> None:
        self._index = index
        self._store = store
        self._annotator = annotator
        self._clock = clock
        self._replica = replica
        self._gate = gate or Gate()
        self._rejections = rejections or Rejections()
        self._reports = Rejections()

    async def Append(  # noqa: N802 - the name on the wire
        self, stream: grpclib.server.Stream[log_pb2.AppendRequest, log_pb2.AppendResponse]
    ) -> None:
        """Store a batch, and respond with the next number to send."""
        with self._rejected("log rejected", stream):
            request = await receive.message(stream, log_pb2.AppendRequest, longest=receive.MAX_LOG)
            receive.check_agent_id(request.agent_id)
            workflow, action = self._subject(request)
            self._admit(workflow, request.agent_id, stream)
            try:
                position = await self._store.append(log_key(workflow), self._batch(request))
            except BadLogNameError as error:
                raise GRPCError(Status.INVALID_ARGUMENT, error.message) from error
            except TooManyExecutionsError as error:
                raise GRPCError(Status.FAILED_PRECONDITION, error.message) from error
            except OSError as error:
                raise GRPCError(Status.RESOURCE_EXHAUSTED, f"the log cannot be written: {error.strerror}") from error
        self._record_progress(workflow, action, request)
        if request.end and action.state in _TERMINAL:
            # The result arrived first, as after an outage: the end of the log is complete only now.
            for name, value in (await self._end_of(workflow, action.id)).items():
                if workflow.metadata.annotations.get(name) != value:
                    self._annotator.put(workflow.key, name, value)
        await stream.send_message(
            log_pb2.AppendResponse(next_sequence=position.next, durable_sequence=position.durable)
        )

    @contextlib.contextmanager
    def _rejected(self, event: str, stream: grpclib.server.Stream[Any, Any]) -> Iterator[dict[str, str]]:
        """Log an error that is the response to a call, once a minute per machine, with the yielded values."""
        values: dict[str, str] = {}
        try:
            yield values
        except GRPCError as error:
            self._rejections.log(receive.peer_of(stream), event, reason=error.message or error.status.name, **values)
            raise

    def _admit(self, workflow: Workflow, agent_id: str, stream: grpclib.server.Stream[Any, Any]) -> None:
        if (reason := self._gate.objection(workflow, agent_id, receive.caller_of(stream))) is not None:
            raise GRPCError(Status.PERMISSION_DENIED, reason)

    def _subject(self, request: log_pb2.AppendRequest) -> tuple[Workflow, WorkflowAction]:
        namespace, _, name = request.workflow_id.partition("/")
        workflow = self._index.get(namespace, name)
        if workflow is None:
            raise GRPCError(Status.NOT_FOUND, "workflow not found")
        agent_ids = self._gate.agent_ids(request.agent_id)
        for task in workflow.status.tasks:
            if task.agent_id not in agent_ids:
                continue
            for action in task.actions:
                if action.id == request.action_id:
                    return workflow, action
        raise GRPCError(Status.NOT_FOUND, "action not found")

    def _batch(self, request: log_pb2.AppendRequest) -> logfile.Batch:
        if not _EXECUTION.fullmatch(request.execution_id):
            raise GRPCError(Status.INVALID_ARGUMENT, "the execution id is not 1 to 64 printable characters")
        if request.first_sequence + len(request.lines) > MAX_SEQUENCE:
            raise GRPCError(Status.INVALID_ARGUMENT, f"the number of a line is not below {MAX_SEQUENCE}")
        if len(request.lines) > _MAX_LINES:
            raise GRPCError(Status.INVALID_ARGUMENT, f"a batch may have at most {_MAX_LINES} lines")
        if request.oldest_sequence > request.first_sequence:
            raise GRPCError(Status.INVALID_ARGUMENT, "oldest sequence is after the first one")
        now = self._clock.now()
        lines = [
            logfile.Line(
                source=_SOURCES.get(line.stream, Source.OUT),
                text=line.text[:_MAX_TEXT],
                time=rfc3339_micro(now - timedelta(milliseconds=min(line.age_ms, _MAX_AGE_MS))),
            )
            for line in request.lines
        ]
        return logfile.Batch(
            action=request.action_id,
            execution=request.execution_id,
            first=request.first_sequence,
            oldest=request.oldest_sequence,
            lines=lines,
            ends=request.end,
            exit_code=request.exit_code if request.HasField("exit_code") else None,
        )

    def _record_progress(self, workflow: Workflow, action: WorkflowAction, request: log_pb2.AppendRequest) -> None:
        """Record the replica of the log, and the progress of the action, on the Workflow."""
        if workflow.metadata.annotations.get(names.LOG_REPLICA) != self._replica:
            self._annotator.put(workflow.key, names.LOG_REPLICA, self._replica)
        if not request.HasField("progress") or action.state != WorkflowState.RUNNING:
            return
        progress = request.progress
        document: dict[str, object] = {"action": action.name, "actionID": action.id}
        if progress.HasField("percent"):
            document["percent"] = round(min(100.0, max(0.0, progress.percent)), 1)
        document["bytes"] = progress.done_bytes
        if progress.HasField("total_bytes"):
            document["totalBytes"] = progress.total_bytes
        document["bytesPerSecond"] = progress.bytes_per_second
        document["time"] = rfc3339(self._clock.now())
        self._annotator.put(workflow.key, PROGRESS, msgspec.json.encode(document).decode())

    async def ReportMachine(  # noqa: N802 - the name on the wire
        self, stream: grpclib.server.Stream[log_pb2.MachineReport, log_pb2.MachineReportResponse]
    ) -> None:
        """Store a machine's report in the log of its Workflow, and on the Workflow, unless that has ended."""
        with self._rejected("machine report rejected", stream) as values:
            request = await receive.message(stream, log_pb2.MachineReport)
            text = request.text[-_MAX_REPORT:]
            values |= {"agent": request.agent_id, "text": text}
            receive.check_agent_id(request.agent_id)
            workflow = self._concerned(request.agent_id)
            if workflow is not None:
                self._admit(workflow, request.agent_id, stream)
                if workflow.status.state in _TERMINAL:
                    raise GRPCError(Status.FAILED_PRECONDITION, "the Workflow of this machine has ended")
            kind = log_pb2.MachineReport.Kind.Name(request.kind) if request.kind in _REPORT_KINDS else "UNSPECIFIED"
            metrics.MACHINE_REPORTS.labels(kind).inc()
            if workflow is not None:
                await self._keep_report(workflow, kind, text)
        # Only some are logged here; the Workflow's log contains all.
        self._reports.log(receive.peer_of(stream), "machine report", agent=request.agent_id, kind=kind, text=text)
        await stream.send_message(log_pb2.MachineReportResponse())

    def _concerned(self, agent_id: str) -> Workflow | None:
        """Return the running Workflow of a machine, else the pending one, else the newest."""
        order = {WorkflowState.RUNNING.value: 2, WorkflowState.PENDING.value: 1}
        return max(
            (workflow for name in self._gate.agent_ids(agent_id) for workflow in self._index.workflows_for(name)),
            key=lambda w: (order.get(w.status.state, 0), w.metadata.creation_timestamp or "", w.key),
            default=None,
        )

    async def _keep_report(self, workflow: Workflow, kind: str, text: str) -> None:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            is_kept = await self._store.append_report(log_key(workflow), Source.MACHINE, lines)
        except BadLogNameError as error:
            raise GRPCError(Status.INVALID_ARGUMENT, error.message) from error
        except OSError as error:
            raise GRPCError(Status.RESOURCE_EXHAUSTED, f"the log cannot be written: {error.strerror}") from error
        if not is_kept:
            raise GRPCError(Status.RESOURCE_EXHAUSTED, "the log has reached its limit for reports of this machine")
        document = {"kind": kind, "text": printable(text), "time": rfc3339(self._clock.now())}
        self._annotator.put(workflow.key, names.MACHINE_REPORT, msgspec.json.encode(document).decode())

    async def keep(self, workflow: Workflow, action_id: str, ends: bool) -> dict[str, str | None]:
        """Return the annotations to write with the result of an action: the ends of all logs if the Workflow `ends`.

        Before that, the end of an action's log is written within `KEPT_WITHIN_S`, several at once.
        """
        self._annotator.forget(workflow.key, PROGRESS)
        if not ends:
            for name, value in (await self._end_of(workflow, action_id)).items():
                self._annotator.put(workflow.key, name, value, within_s=KEPT_WITHIN_S)
            return {}
        kept: dict[str, str] = {}
        for action in (action for task in workflow.status.tasks for action in task.actions):
            is_complete = action.id == action_id or action.state in _TERMINAL
            if is_complete and LOG_PREFIX + action.id not in workflow.metadata.annotations:
                kept |= await self._end_of(workflow, action.id, sum(map(len, kept.values())))
        for name in kept:
            self._annotator.forget(workflow.key, name)
        return dict(kept)

    async def _end_of(self, workflow: Workflow, action_id: str, beside: int = 0) -> dict[str, str]:
        """Return the annotation with the end of an action's log; empty without a log, or without room on the Workflow.

        `beside` is the size of annotations that are written together with it.
        """
        try:
            summary = await self._store.summary(log_key(workflow), action_id)
        except (OSError, BadLogNameError, ApiError) as error:
            log.error("log cannot be read", workflow="/".join(workflow.key), error=str(error))
            return {}
        if summary is None:
            return {}
        present = sum(len(key) + len(value) for key, value in workflow.metadata.annotations.items())
        if present + beside > _MAX_ANNOTATIONS:
            return {}
        document: dict[str, object] = {"lines": _shortened(summary.lines), "count": summary.count}
        if summary.exit_code is not None:
            document["exitCode"] = summary.exit_code
        document["digest"] = summary.digest
        document["replica"] = self._replica
        return {LOG_PREFIX + action_id: msgspec.json.encode(document).decode()}


_REPORT_KINDS = frozenset(log_pb2.MachineReport.Kind.values())


def log_key(workflow: Workflow) -> LogKey:
    """Return the key of a Workflow's log."""
    return LogKey(workflow.metadata.namespace, workflow.metadata.name, workflow.metadata.uid)


def _shortened(lines: list[str]) -> list[str]:
    """Return as many of the last lines as fit, each shortened."""
    kept: list[str] = []
    left = _TAIL_CHARACTERS
    for line in map(one_line, reversed(lines)):
        text = line if len(line) <= _TAIL_LINE else line[: _TAIL_LINE - 1] + "…"
        if len(text) > left:
            break
        left -= len(text)
        kept.append(text)
    return kept[::-1]

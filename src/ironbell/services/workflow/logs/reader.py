"""Reading of a Workflow's log, for the API server's log endpoint and the command line.

A log is followed until its Workflow has completed, has failed or was deleted. The log of another replica is fetched
from there.

`log_routes` returns aiohttp routes: `GET /logs/{namespace}/{workflow}` with `follow=true`, `action=NAME or id`,
`tail=N`, `timestamps=true`, `format=text|json`. Text is one line per line, prefixed by the action's name; JSON is one
object per line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import aiohttp
import msgspec
from aiohttp import web

from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.quantities import decimal
from ironbell.services.workflow import names
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.logs.file import Record, Source
from ironbell.services.workflow.logs.store import BadLogNameError, LogStore

FORWARDED_HEADER = "x-ironbell-forwarded"
_TERMINAL = {WorkflowState.SUCCESS, WorkflowState.FAILED, WorkflowState.TIMEOUT}
_CONNECT_S = 10.0
_DIGITS = 9


class LogLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One line for a reader."""

    time: str
    action: str = ""
    """Name of the action; its id if the Workflow was deleted; empty for reports of the machine."""
    source: Source = Source.OUT
    text: str = ""
    exit_code: int | None = None


@dataclass
class _Follow:
    """Follows a log until its Workflow is in a terminal state or was deleted."""

    index: WorkflowTable
    namespace: str
    name: str

    def is_complete(self) -> bool:
        workflow = self.index.get(self.namespace, self.name)
        return workflow is None or workflow.status.state in _TERMINAL

    async def changed(self) -> None:
        """Wait for a change, unless the log is complete: it may have become so while it was read."""
        workflow = self.index.get(self.namespace, self.name)
        if workflow is not None and not self.is_complete():
            await self.index.changed(workflow.status.agent_id)


@dataclass(frozen=True)
class LogReader:
    """Reads logs of this replica, and finds the replicas of other logs."""

    store: LogStore
    index: WorkflowTable
    replica: str
    address_of: Callable[[str], str | None] = field(default=lambda _replica: None)
    """Returns the HTTP address (`http://host:port`) of another replica by its name; None if it is not known."""

    async def tail(
        self, namespace: str, name: str, *, follow: bool = False, action: str = "", last: int | None = None
    ) -> AsyncIterator[LogLine]:
        """Yield the lines of a Workflow's log; of the existing lines only the last `last`, if set.

        Raises:
            BadLogNameError: the name is not valid for a Workflow.
        """
        workflow = self.index.get(namespace, name)
        uid = workflow.metadata.uid if workflow else ""
        if last is not None:
            kept: deque[LogLine] = deque(maxlen=last)
            count = 0
            async for record in self.store.tail(namespace, name, uid=uid):
                count += 1
                if (line := self._line(record, namespace, name, action=action)) is not None:
                    kept.append(line)
            for line in kept:
                yield line
            if not follow:
                return
        else:
            count = 0
        until = _Follow(self.index, namespace, name) if follow else None
        async for record in self.store.tail(namespace, name, uid=uid, follow=until):
            if count:
                count -= 1
            elif (line := self._line(record, namespace, name, action=action)) is not None:
                yield line

    def _line(self, record: Record, namespace: str, name: str, *, action: str) -> LogLine | None:
        label = _action_name(self.index.get(namespace, name), record.action)
        if action and action not in {record.action, label}:
            return None
        return LogLine(
            time=record.time, action=label, source=record.source, text=record.text, exit_code=record.exit_code
        )

    def elsewhere(self, namespace: str, name: str) -> str | None:
        """Return the address of the replica that stores a log; None if it is this one."""
        workflow = self.index.get(namespace, name)
        holder = workflow.metadata.annotations.get(names.LOG_REPLICA, "") if workflow else ""
        return self.address_of(holder) if holder and holder != self.replica else None


def _action_name(workflow: Workflow | None, action_id: str) -> str:
    if workflow is not None:
        for task in workflow.status.tasks:
            for action in task.actions:
                if action.id == action_id:
                    return action.name
    return action_id


def as_text(line: LogLine, *, timestamps: bool) -> str:
    """Format a line for people; empty for records that are only for programs."""
    if line.source is Source.END:
        return ""
    prefix = f"{line.time} " if timestamps else ""
    label = line.action or line.source.value
    text = f"[{line.text}]" if line.source is Source.REMARK else line.text
    # Text after a newline within a line must not look like another action's line.
    return "".join(f"{prefix}{label} | {part}\n" for part in text.split("\n"))


def log_routes(reader: LogReader) -> list[web.RouteDef]:
    """Return the routes for an aiohttp application, which has to authorize its clients."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return await _handle(reader, request)

    return [web.get("/logs/{namespace}/{workflow}", handle)]


async def _handle(reader: LogReader, request: web.Request) -> web.StreamResponse:
    namespace, name = request.match_info["namespace"], request.match_info["workflow"]
    tail = request.query.get("tail", "")
    last = decimal(tail, digits=_DIGITS) if tail else None
    if tail and last is None:
        raise web.HTTPBadRequest(text=f"tail is not a number of at most {_DIGITS} digits\n")
    try:
        address = None if FORWARDED_HEADER in request.headers else reader.elsewhere(namespace, name)
        if address is not None:
            return await _forward(address, request)
        if reader.index.get(namespace, name) is None and reader.store.find(namespace, name) is None:
            raise web.HTTPNotFound(text=f"workflow {namespace}/{name} has no log\n")
    except BadLogNameError as error:
        raise web.HTTPBadRequest(text=f"{error.message}\n") from error
    as_json = request.query.get("format") == "json"
    timestamps = request.query.get("timestamps") == "true"
    answer = web.StreamResponse(headers={"content-type": _content_type(as_json=as_json)})
    await answer.prepare(request)
    lines = reader.tail(
        namespace,
        name,
        follow=request.query.get("follow") == "true",
        action=request.query.get("action", ""),
        last=last,
    )
    async for line in lines:
        body = msgspec.json.encode(line) + b"\n" if as_json else as_text(line, timestamps=timestamps).encode()
        if body:
            await answer.write(body)
    await answer.write_eof()
    return answer


def _content_type(*, as_json: bool) -> str:
    return "application/x-ndjson" if as_json else "text/plain; charset=utf-8"


async def _forward(address: str, request: web.Request) -> web.StreamResponse:
    """Forward the request to another replica, which does not forward it again."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{address}{request.path_qs}", headers={FORWARDED_HEADER: "1"}) as response,
        ):
            answer = web.StreamResponse(status=response.status, headers={"content-type": response.content_type})
            await answer.prepare(request)
            async for chunk in response.content.iter_any():
                await answer.write(chunk)
            await answer.write_eof()
            return answer
    except (TimeoutError, aiohttp.ClientError) as error:
        raise web.HTTPBadGateway(text=f"the replica that holds the log cannot be reached: {error}\n") from error

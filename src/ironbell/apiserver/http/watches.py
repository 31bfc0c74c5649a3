"""Watches: changes as a stream of JSON lines, or of messages in protocol buffers with their lengths.

An error before anything was sent is an ordinary error response; later ones are an ERROR event, which ends the stream. A
client that does not read is disconnected, so that it holds no memory.

Source: kubernetes/apiserver: pkg/endpoints/handlers/watch.go; KEP-3157 (sendInitialEvents).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from ironbell.api.client import ApiError, EventType, Expired, ListOptions, TimedOut, WatchEvent
from ironbell.apiserver.http.content.media import PROTOBUF, Format, View
from ironbell.apiserver.http.content.sending import ChunkStream, chunk
from ironbell.apiserver.http.exchange import Exchange
from ironbell.apiserver.http.parameters import WatchParameters, named, watch_parameters
from ironbell.apiserver.http.protobuf.writer import watch_frame
from ironbell.apiserver.http.server.message import Response
from ironbell.apiserver.http.views import include, table_printer
from ironbell.apiserver.status import status_object
from ironbell.apiserver.tables import table as tables

_SHORTEST_S = 1800
_END_OF_INITIAL_EVENTS = msgspec.json.encode({"annotations": {"k8s.io/initial-events-end": "true"}})
"""Metadata of the bookmark after the present objects."""


async def watch(exchange: Exchange) -> Response:
    """Stream changes until the client leaves, the time limit passes, or the server stops."""
    shown, parameters = exchange.format(watching=True), watch_parameters(exchange.query)
    writer = _Writer(exchange, shown, parameters)
    async with aclosing(_events(exchange, parameters)) as events:
        first = asyncio.ensure_future(anext(events))
        try:
            # One turn of the loop: an early error is raised before the first suspension, and so becomes an HTTP error.
            await asyncio.sleep(0)
            if first.done() and not isinstance(first.exception(), Expired | TimedOut):
                first.result()
            return await _stream(exchange, writer, first, events, parameters)
        finally:
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)


async def _stream(
    exchange: Exchange,
    writer: _Writer,
    first: asyncio.Future[WatchEvent],
    events: AsyncIterator[WatchEvent],
    parameters: WatchParameters,
) -> Response:
    headers = {"Content-Type": writer.content_type, "Cache-Control": "no-cache, private"}
    stream = ChunkStream(exchange.request, headers)
    async with exchange.streams.until(_lifetime_s(exchange, parameters)):
        try:
            await _send(stream, writer, await first)
            async for event in events:
                await _send(stream, writer, event)
        except StopAsyncIteration:
            pass
        except ApiError as error:
            await stream.send(chunk(writer.framed("ERROR", msgspec.json.encode(status_object(error)))))
    return stream.end()


async def _send(stream: ChunkStream, writer: _Writer, event: WatchEvent) -> None:
    encoded = writer.chunk(event)
    if encoded:
        await stream.send(encoded)


async def _events(exchange: Exchange, parameters: WatchParameters) -> AsyncGenerator[WatchEvent, None]:
    """Changes, after the present objects and their end mark when the client requests those."""
    chosen = named(parameters.selector, exchange.target.name) if exchange.target.name else parameters.selector
    where, namespace, version = exchange.info.collection, exchange.target.namespace, parameters.resource_version
    if parameters.initial_events or (parameters.initial_events is not None and version in {"", "0"}):
        page = await exchange.api.list(where, namespace, ListOptions(chosen, resource_version=version))
        version = page.resource_version
        if parameters.initial_events:
            for item in page.items:
                yield WatchEvent(EventType.ADDED, item, version)
            yield WatchEvent(EventType.BOOKMARK, _END_OF_INITIAL_EVENTS, version)
    async for event in exchange.api.changes(where, namespace, resource_version=version, selector=chosen):
        yield event


def _lifetime_s(exchange: Exchange, parameters: WatchParameters) -> float:
    """The client's time limit, else 30 to 60 minutes, spread so that clients do not reconnect all at once."""
    if parameters.timeout_s:
        return parameters.timeout_s
    return _SHORTEST_S * (1 + exchange.server.randomness.fraction())


class _Writer:
    """Encodes events in the client's representation; the first table carries the headers."""

    def __init__(self, exchange: Exchange, shown: Format, parameters: WatchParameters) -> None:
        self._exchange, self._shown, self._lines = exchange, shown, exchange.streams.lines
        self._bookmarks = parameters.bookmarks
        self._printer = table_printer(exchange.info)
        self._include = include(exchange.query)
        self._headers = True
        self._is_protobuf = shown.media_type == PROTOBUF
        self.framed: Callable[[str, bytes], bytes] = watch_frame if self._is_protobuf else _line
        """Encodes an event of a type with the JSON of its object."""

    @property
    def content_type(self) -> str:
        """The media type of the stream."""
        return f"{PROTOBUF};stream=watch" if self._is_protobuf else "application/json"

    def chunk(self, event: WatchEvent) -> bytes:
        """One event as it is sent; empty for a bookmark that the client did not request."""
        if event.type is EventType.BOOKMARK:
            return chunk(self.framed("BOOKMARK", self._bookmark(event))) if self._bookmarks else b""
        if self._shown.view is View.TABLE:
            return chunk(_line(event.type.value, self._table(event.body)))
        # An event belongs to one version, so the key needs no version.
        view = self._shown.meta_api_version if self._shown.view is View.METADATA else ""
        key = (id(event), f"{self._shown.media_type} {view}")
        line = self._lines.get(key)
        if line is None:
            line = event, chunk(self._line(event))
            self._lines.put(key, line, size=len(line[1]))
        return line[1]

    def _line(self, event: WatchEvent) -> bytes:
        if self._shown.view is View.OBJECT:
            return self.framed(event.type.value, event.body)
        body = tables.partial_metadata(event.body, api_version=self._shown.meta_api_version)
        return self.framed(event.type.value, body)

    def _bookmark(self, event: WatchEvent) -> bytes:
        more: dict[str, Any] = msgspec.json.decode(event.body) if event.body else {}
        meta = {"resourceVersion": event.resource_version, **more}
        kind, api_version = self._exchange.info.kind, self._exchange.info.api_version
        if self._shown.view is View.METADATA:
            kind, api_version = "PartialObjectMetadata", self._shown.meta_api_version
        mark = msgspec.json.encode({"kind": kind, "apiVersion": api_version, "metadata": meta})
        if self._shown.view is not View.TABLE:
            return mark
        # The end mark of the present objects is in the metadata of the row's object.
        is_bare = bool(more) and self._include is tables.Include.NONE
        return self._table(mark, include=tables.Include.METADATA if is_bare else self._include)

    def _table(self, body: bytes, *, include: tables.Include | None = None) -> bytes:
        headers, self._headers = self._headers, False
        return tables.table(
            self._printer,
            [body],
            list_meta={"resourceVersion": tables.resource_version(body)},
            now=self._exchange.server.clock.now(),
            include=include or self._include,
            headers=headers,
            api_version=self._shown.meta_api_version,
        )


def _line(event_type: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (event_type.encode(), body)

"""Watches: changes as a stream of JSON lines.

A refusal that is known before anything was sent is an ordinary error answer; later ones are an ERROR event, after which
the stream ends. A client that does not read is disconnected, so that it holds no memory.

Source: kubernetes/apiserver: pkg/endpoints/handlers/watch.go; KEP-3157 (sendInitialEvents).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec

from ironbell.api.client import ApiError, EventType, Expired, ListOptions, TimedOut, WatchEvent
from ironbell.apiserver import tables
from ironbell.apiserver.http.call import Call
from ironbell.apiserver.http.media import Format, View
from ironbell.apiserver.http.parameters import WatchParameters, named, watch_parameters
from ironbell.apiserver.http.sending import ChunkStream, chunk
from ironbell.apiserver.http.server.message import Response
from ironbell.apiserver.http.views import include, plain_list, table_printer
from ironbell.apiserver.status import status_object

_SHORTEST_S = 1800


async def watch(call: Call) -> Response:
    """Stream changes until the client leaves, its time is over, or the server stops."""
    shown, wanted = call.format(watching=True), watch_parameters(call.query)
    writer = _Writer(call, shown, wanted)
    async with aclosing(_events(call, wanted)) as events:
        first = asyncio.ensure_future(anext(events))
        try:
            # One turn of the loop: a refusal raises before the first suspension and so becomes an HTTP error.
            await asyncio.sleep(0)
            if first.done() and not isinstance(first.exception(), Expired | TimedOut):
                first.result()
            return await _stream(call, writer, first, events, wanted)
        finally:
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)


async def _stream(
    call: Call,
    writer: _Writer,
    first: asyncio.Future[WatchEvent],
    events: AsyncIterator[WatchEvent],
    wanted: WatchParameters,
) -> Response:
    headers = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
    stream = ChunkStream(call.request, headers)
    async with call.streams.until(_lifetime_s(call, wanted)):
        try:
            await _send(stream, writer, await first)
            async for event in events:
                await _send(stream, writer, event)
        except StopAsyncIteration:
            pass
        except ApiError as error:
            await stream.send(chunk(_line("ERROR", msgspec.json.encode(status_object(error)))))
    return stream.end()


async def _send(stream: ChunkStream, writer: _Writer, event: WatchEvent) -> None:
    made = writer.chunk(event)
    if made:
        await stream.send(made)


async def _events(call: Call, wanted: WatchParameters) -> AsyncGenerator[WatchEvent, None]:
    """Changes, after the present objects and their end mark when the client asked for those."""
    chosen = named(wanted.selector, call.target.name) if call.target.name else wanted.selector
    where, namespace, version = call.info.collection, call.target.namespace, wanted.resource_version
    if wanted.initial_events or (wanted.initial_events is not None and version in {"", "0"}):
        page = await call.api.list(where, namespace, ListOptions(chosen, resource_version=version))
        version = page.resource_version
        if wanted.initial_events:
            for item in page.items:
                yield WatchEvent(EventType.ADDED, item, version)
            yield WatchEvent(EventType.BOOKMARK, _end_of_initial_events(call), version)
    async for event in call.api.watch(where, namespace, resource_version=version, selector=chosen):
        yield event


def _end_of_initial_events(call: Call) -> bytes:
    """Metadata of the bookmark after the present objects; with an empty list, which client-go before 1.34 fills."""
    empty = base64.b64encode(plain_list(call.info, [], {})).decode()
    annotations = {"k8s.io/initial-events-end": "true", "kubernetes.io/initial-events-list-blueprint": empty}
    return msgspec.json.encode({"annotations": annotations})


def _lifetime_s(call: Call, wanted: WatchParameters) -> float:
    """What the client asked for, else 30 to 60 minutes, spread so that clients do not come back all at once."""
    if wanted.timeout_s:
        return wanted.timeout_s
    return _SHORTEST_S * (1 + call.server.randomness.fraction())


class _Writer:
    """Events to lines in the client's representation; the first table carries the headers."""

    def __init__(self, call: Call, shown: Format, wanted: WatchParameters) -> None:
        self._call, self._shown, self._lines = call, shown, call.streams.lines
        self._bookmarks = wanted.bookmarks
        self._printer = table_printer(call.info)
        self._include = include(call.query)
        self._headers = True

    def chunk(self, event: WatchEvent) -> bytes:
        """One event as it is sent; empty for a bookmark that the client does not want."""
        if event.type is EventType.BOOKMARK:
            return chunk(_line("BOOKMARK", self._bookmark(event))) if self._bookmarks else b""
        if self._shown.view is View.TABLE:
            table = self._table([event.body], {"resourceVersion": event.resource_version})
            return chunk(_line(event.type.value, table))
        # The version in which an object is shown is known by the event, which is never made for two versions.
        key = (id(event), self._shown.meta_api_version if self._shown.view is View.METADATA else "")
        found = self._lines.get(key)
        if found is None:
            found = event, chunk(self._line(event))
            self._lines.put(key, found, size=len(found[1]))
        return found[1]

    def _line(self, event: WatchEvent) -> bytes:
        if self._shown.view is View.OBJECT:
            return _line(event.type.value, event.body)
        body = tables.partial_metadata(event.body, api_version=self._shown.meta_api_version)
        return _line(event.type.value, body)

    def _bookmark(self, event: WatchEvent) -> bytes:
        more: dict[str, Any] = msgspec.json.decode(event.body) if event.body else {}
        meta = {"resourceVersion": event.resource_version, **more}
        if self._shown.view is View.TABLE:
            return self._table([], {"resourceVersion": event.resource_version})
        kind, api_version = self._call.info.kind, self._call.info.api_version
        if self._shown.view is View.METADATA:
            kind, api_version = "PartialObjectMetadata", self._shown.meta_api_version
        return msgspec.json.encode({"kind": kind, "apiVersion": api_version, "metadata": meta})

    def _table(self, items: list[bytes], meta: dict[str, Any]) -> bytes:
        headers, self._headers = self._headers, False
        return tables.table(
            self._printer,
            items,
            list_meta=meta,
            now=self._call.server.clock.now(),
            include=self._include,
            headers=headers,
            api_version=self._shown.meta_api_version,
        )


def _line(event_type: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (event_type.encode(), body)

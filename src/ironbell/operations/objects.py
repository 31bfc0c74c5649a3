"""Objects of any kind as the API server returns them: as tables, as stored, and as they change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from ironbell.api.client import Api, Expired, NotFound, Unavailable
from ironbell.api.kind import Kind
from ironbell.kube.transport.frames import FrameSplitter
from ironbell.kube.transport.http import SILENCE_S, HttpApi
from ironbell.operations.discovered import Object
from ironbell.operations.namespaces import elsewhere

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
LISTED, DELETED, DISCONNECTED = "LISTED", "DELETED", "DISCONNECTED"
RETRY_S: Final = 1.0

Answer = dict[str, Any]
"""An object, a list, or a table of either."""


@dataclass(frozen=True, slots=True)
class TableEvent:
    """New rows of a table, or that the API cannot be reached."""

    type: str
    """`LISTED` for all rows; `ADDED`, `MODIFIED` or `DELETED` for one; `DISCONNECTED` once while the API does not
    answer."""
    table: Answer = field(default_factory=dict)
    message: str = ""
    """The reason why the API cannot be reached."""


async def find_object(api: Api, kind: Kind[Any], namespace: str, name: str) -> Object | None:
    """One object with its kind; None if it does not exist."""
    try:
        body = await api.get(kind.collection, namespace, name)
    except NotFound:
        return None
    return {"kind": kind.kind, "apiVersion": kind.api_version, **msgspec.json.decode(body)}


async def read_objects(
    api: HttpApi,
    kinds: Sequence[Kind[Any]],
    names: Sequence[str] = (),
    *,
    namespace: str = "",
    selector: str = "",
    as_tables: bool = False,
) -> list[list[Answer]]:
    """For each kind, the responses for all names, or the one for the list; an empty namespace means all.

    Raises:
        NotFound: an object does not exist; the message names the namespaces that have one.
    """
    query = {"labelSelector": selector} if selector else {}
    accept = TABLE if as_tables else "application/json"
    answers = []
    for kind in kinds:
        space = namespace if kind.namespaced else ""
        paths = [kind.collection.path(space, name) for name in names] or [kind.collection.path(space)]
        try:
            bodies = [await api.raw("GET", path, query=dict(query), accept=accept) for path in paths]
        except NotFound as error:
            if not names:
                raise
            hints = [await elsewhere(api, kind.collection, space, name) for name in names]
            raise NotFound(" ".join([error.message, *dict.fromkeys(filter(None, hints))])) from None
        answers.append([msgspec.json.decode(body) for body in bodies])
    return answers


async def watch_table(
    api: HttpApi, kind: Kind[Any], name: str = "", *, namespace: str = "", selector: str = "", retry_s: float = RETRY_S
) -> AsyncIterator[TableEvent]:
    """The table of a kind, or of one object, and its changes, until cancelled.

    A watch may end, and the API server may be restarted: the objects are then listed again.
    """
    query = {"labelSelector": selector} if selector else {}
    query |= {"fieldSelector": f"metadata.name={name}"} if name else {}
    path = kind.collection.path(namespace if kind.namespaced else "")
    is_disconnected = False
    while True:
        try:
            table = msgspec.json.decode(await api.raw("GET", path, query=dict(query), accept=TABLE))
            is_disconnected = False
            yield TableEvent(LISTED, table)
            version = str(table.get("metadata", {}).get("resourceVersion", ""))
            async for event in _watch(api, path, {**query, "resourceVersion": version}):
                yield event
        except Expired:
            continue
        except Unavailable as error:
            if not is_disconnected:
                yield TableEvent(DISCONNECTED, message=error.message)
            is_disconnected = True
        await asyncio.sleep(retry_s)


async def _watch(api: HttpApi, path: str, query: dict[str, str]) -> AsyncIterator[TableEvent]:
    splitter = FrameSplitter()
    parameters = {**query, "watch": "true", "allowWatchBookmarks": "true"}
    async for chunk in api.stream(path, query=parameters, accept=TABLE, silence_s=SILENCE_S):
        for frame in splitter.feed(chunk):
            event = msgspec.json.decode(frame)
            if event["type"] == "ERROR":
                return  # the objects are listed again
            if event["type"] != "BOOKMARK":
                yield TableEvent(event["type"], event["object"])

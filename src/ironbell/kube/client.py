"""A typed client over any `Api`: structs in and out.

For services, commands and tests; controllers act through decisions instead (`kube.decision`).
Every call may raise an `ApiError`, and `UndecodableError` for an answer of the wrong form.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from ironbell.api.client import (
    EVERYTHING,
    NO_OPTIONS,
    NO_PRECONDITIONS,
    Api,
    EventType,
    ListOptions,
    NotFound,
    PatchType,
    Preconditions,
    Propagation,
    Selector,
    WriteOptions,
)
from ironbell.api.kind import Kind
from ironbell.api.meta import Resource
from ironbell.api.unstructured import plain
from ironbell.kube.cache.informer import PAGE
from ironbell.kube.decision import AnyKind, Fields
from ironbell.kube.decode import decode_object

R = TypeVar("R", bound=Resource)


@dataclass(frozen=True, slots=True)
class Listing(Generic[R]):
    """All objects of a list, and the version from which to watch on."""

    items: list[R]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Change(Generic[R]):
    """One watch event; the object is None for a bookmark."""

    type: EventType
    object: R | None
    resource_version: str


@dataclass(frozen=True, slots=True)
class Client:
    """Reads and writes objects of any kind."""

    api: Api

    async def get(self, kind: Kind[R], namespace: str, name: str) -> R:
        return decode_object(kind, await self.api.get(kind.collection, namespace, name))

    async def find(self, kind: Kind[R], namespace: str, name: str) -> R | None:
        """Return the same as `get`, with None for an object that does not exist."""
        try:
            return await self.get(kind, namespace, name)
        except NotFound:
            return None

    async def list(self, kind: Kind[R], namespace: str = "", *, selector: Selector = EVERYTHING) -> Listing[R]:
        """All objects, fetched page by page; an empty namespace means all."""
        items: list[R] = []
        options = ListOptions(selector, PAGE)
        while True:
            page = await self.api.list(kind.collection, namespace, options)
            items += [decode_object(kind, body) for body in page.items]
            if not page.continue_token:
                return Listing(items, page.resource_version)
            options = ListOptions(selector, PAGE, page.continue_token)

    async def watch(
        self, kind: Kind[R], namespace: str = "", *, resource_version: str, selector: Selector = EVERYTHING
    ) -> AsyncIterator[Change[R]]:
        """Changes after a version, until the server ends it. For a lasting view use an informer.

        Raises:
            Expired: the version is too old; list again.
        """
        events = self.api.changes(kind.collection, namespace, resource_version=resource_version, selector=selector)
        async for event in events:
            bookmark = event.type is EventType.BOOKMARK
            yield Change(event.type, None if bookmark else decode_object(kind, event.body), event.resource_version)

    async def create(self, kind: Kind[R], obj: R | Fields, *, options: WriteOptions = NO_OPTIONS) -> R:
        """Create an object in its own namespace, with `apiVersion` and `kind` filled in."""
        body = _body(kind, obj)
        namespace = str(body["metadata"].get("namespace", "")) if kind.namespaced else ""
        answer = await self.api.create(kind.collection, namespace, msgspec.json.encode(body), options)
        return decode_object(kind, answer)

    async def merge_patch(self, kind: Kind[R], namespace: str, name: str, *, body: Fields, subresource: str = "") -> R:
        """Change some fields; put `metadata.resourceVersion` into the body for a precondition."""
        answer = await self.api.patch(
            kind.collection,
            namespace,
            name,
            msgspec.json.encode(body),
            patch_type=PatchType.MERGE,
            subresource=subresource,
        )
        return decode_object(kind, answer)

    async def apply(self, kind: Kind[R], obj: Fields, *, field_manager: str, force: bool = False) -> R:
        """Server-side apply: create it, or change the fields that it has and this manager owns."""
        body = _body(kind, obj)
        metadata = body["metadata"]
        answer = await self.api.patch(
            kind.collection,
            metadata.get("namespace", "") if kind.namespaced else "",
            metadata["name"],
            msgspec.json.encode(body),
            patch_type=PatchType.APPLY,
            options=WriteOptions(field_manager=field_manager, force=force),
        )
        return decode_object(kind, answer)

    async def delete(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Ask for deletion; finalizers may hold the object for a while."""
        await self.api.delete(kind.collection, namespace, name, preconditions=preconditions, propagation=propagation)


def _body(kind: AnyKind, obj: Resource | Fields) -> dict[str, Any]:
    fields = plain(obj) if isinstance(obj, Resource) else obj
    return {**fields, "apiVersion": kind.api_version, "kind": kind.kind}

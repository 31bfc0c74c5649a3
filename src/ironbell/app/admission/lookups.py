"""Look up other objects for admission: from the embedded API in its own process, or from the API server.

Reads are fresh, not from a cache: an object is applied right after those that it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from ironbell.api.client import ApiError, ListOptions, NotFound, Page, Selector
from ironbell.api.core import CUSTOM_RESOURCE_DEFINITION
from ironbell.api.kind import Collection
from ironbell.base.errors import Retry
from ironbell.contract.admission_lookups import ListLookup, Lookup, LookupResults, ObjectLookup, ReferenceLookup

Object = dict[str, Any]
PATIENCE_S: Final = 5.0
"""Time that an object gets to reach its expected state, and the server to answer; less than the time of webhooks."""
_POLL_S: Final = 0.1
_TOO_MANY_REQUESTS: Final = 429
_INTERNAL_ERROR: Final = 500


class NoContractError(ApiError):
    """A definition has no label with the contract of Cluster API that its versions have."""

    retry = Retry.NEVER


class Reader(Protocol):
    """The part of an `Api` that is needed."""

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes: ...

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = ...) -> Page: ...


class Lookups:
    """Looks up objects for admission."""

    def __init__(self, reader: Reader, *, patience_s: float = PATIENCE_S) -> None:
        self._reader, self._patience_s = reader, patience_s

    async def find(self, requested: Sequence[Lookup]) -> LookupResults:
        """Return the requested objects, as far as they exist.

        Raises:
            ApiError: an object cannot be read; the message names it.
        """
        return LookupResults({lookup: await self._results(lookup) for lookup in requested})

    async def _results(self, lookup: Lookup) -> Sequence[Object]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        while True:
            try:
                return await self._read(lookup)
            except NotFound:
                return ()
            except ApiError as error:
                if _may_pass(error) and loop.time() < deadline:
                    await asyncio.sleep(_POLL_S)
                    continue
                message = f"{lookup} could not be looked up: {error.message}"
                raise ApiError(message, code=error.code, reason=error.reason) from error

    async def _read(self, lookup: Lookup) -> Sequence[Object]:
        if isinstance(lookup, ListLookup):
            options = ListOptions(Selector(labels=lookup.labels))
            page = await self._reader.list(lookup.kind.collection, lookup.namespace, options)
            return [_decoded(body) for body in page.items]
        obj = await (self._referred(lookup) if isinstance(lookup, ReferenceLookup) else self._awaited(lookup))
        return () if obj is None else (obj,)

    async def _awaited(self, lookup: ObjectLookup) -> Object | None:
        """The object once it has the expected state; after a while, its current state."""
        if not lookup.name:
            return None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        while True:
            obj = await self._get(lookup)
            if lookup.until is None or (obj is not None and lookup.until(obj)) or loop.time() >= deadline:
                return obj
            await asyncio.sleep(_POLL_S)

    async def _get(self, lookup: ObjectLookup) -> Object | None:
        try:
            return _decoded(await self._reader.get(lookup.kind.collection, lookup.namespace, lookup.name))
        except NotFound:
            return None

    async def _referred(self, lookup: ReferenceLookup) -> Object | None:
        if not lookup.name:
            return None
        # these need Cluster API's kinds, which the start of the API does without
        from ironbell.contract.clusters.references import contracted_version, definition_name

        name = definition_name(lookup.api_group, lookup.kind)
        definition = _decoded(await self._reader.get(CUSTOM_RESOURCE_DEFINITION.collection, "", name))
        contracted = contracted_version(definition["metadata"].get("labels") or {})
        if contracted is None:
            raise NoContractError(f"CustomResourceDefinition {name} has no label that names a contract")
        where = Collection(lookup.api_group, contracted[1], definition["spec"]["names"]["plural"], namespaced=True)
        return _decoded(await self._reader.get(where, lookup.namespace, lookup.name))


def _may_pass(error: ApiError) -> bool:
    """Return whether the API server may answer the same read soon, for instance while a kind's storage is set up
    again."""
    return error.retry is not Retry.NEVER and (error.code == _TOO_MANY_REQUESTS or error.code >= _INTERNAL_ERROR)


def _decoded(body: bytes) -> Object:
    decoded: Object = msgspec.json.decode(body)
    return decoded

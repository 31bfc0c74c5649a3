"""Reads what admission wants to see of other objects: from the embedded API in its own process, or from the API server.

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
"""How long an object is given to become what it should be, and the server to answer; less than webhooks may take."""
_LOOK_AGAIN_S: Final = 0.1
_TOO_MANY_REQUESTS: Final = 429
_INTERNAL_ERROR: Final = 500


class NoContractError(ApiError):
    """A definition does not say which contract of Cluster API its versions keep."""

    retry = Retry.NEVER


class Reader(Protocol):
    """The part of an `Api` that is needed."""

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes: ...

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = ...) -> Page: ...


class Lookups:
    """Look-ups for admission."""

    def __init__(self, reader: Reader, *, patience_s: float = PATIENCE_S) -> None:
        self._reader, self._patience_s = reader, patience_s

    async def find(self, wanted: Sequence[Lookup]) -> LookupResults:
        """What is wanted, as far as it is there.

        Raises:
            ApiError: something cannot be read; its message says what.
        """
        return LookupResults({one: await self._found(one) for one in wanted})

    async def _found(self, wanted: Lookup) -> Sequence[Object]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        while True:
            try:
                return await self._read(wanted)
            except NotFound:
                return ()
            except ApiError as error:
                if _may_pass(error) and loop.time() < deadline:
                    await asyncio.sleep(_LOOK_AGAIN_S)
                    continue
                message = f"{wanted} could not be looked up: {error.message}"
                raise ApiError(message, code=error.code, reason=error.reason) from error

    async def _read(self, wanted: Lookup) -> Sequence[Object]:
        if isinstance(wanted, ListLookup):
            options = ListOptions(Selector(labels=wanted.labels))
            page = await self._reader.list(wanted.kind.collection, wanted.namespace, options)
            return [_decoded(body) for body in page.items]
        one = await (self._referred(wanted) if isinstance(wanted, ReferenceLookup) else self._awaited(wanted))
        return () if one is None else (one,)

    async def _awaited(self, wanted: ObjectLookup) -> Object | None:
        """The object, once it is as it should be; after a while as it is."""
        if not wanted.name:
            return None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        while True:
            found = await self._one(wanted)
            if wanted.until is None or (found is not None and wanted.until(found)) or loop.time() >= deadline:
                return found
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _one(self, wanted: ObjectLookup) -> Object | None:
        try:
            return _decoded(await self._reader.get(wanted.kind.collection, wanted.namespace, wanted.name))
        except NotFound:
            return None

    async def _referred(self, wanted: ReferenceLookup) -> Object | None:
        if not wanted.name:
            return None
        # these need Cluster API's kinds, which the start of the API does without
        from ironbell.contract.clusters.references import contracted_version, definition_name

        name = definition_name(wanted.api_group, wanted.kind)
        definition = _decoded(await self._reader.get(CUSTOM_RESOURCE_DEFINITION.collection, "", name))
        contracted = contracted_version(definition["metadata"].get("labels") or {})
        if contracted is None:
            raise NoContractError(f"CustomResourceDefinition {name} has no label that names a contract")
        where = Collection(wanted.api_group, contracted[1], definition["spec"]["names"]["plural"], namespaced=True)
        return _decoded(await self._reader.get(where, wanted.namespace, wanted.name))


def _may_pass(error: ApiError) -> bool:
    """Whether the API server may answer the same read in a moment, as where a kind's storage is being set up anew."""
    return error.retry is not Retry.NEVER and (error.code == _TOO_MANY_REQUESTS or error.code >= _INTERNAL_ERROR)


def _decoded(body: bytes) -> Object:
    found: Object = msgspec.json.decode(body)
    return found

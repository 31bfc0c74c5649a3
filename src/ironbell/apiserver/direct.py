"""The direct transport: the API as one identity sees it, without HTTP.

Each call is authorised, then carried out by the verbs. What is not allowed raises `Forbidden` before anything else
is looked at. A write is refused for what others wrote once that is stored: until then it could still be lost, and
readers do not see it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import TypeVar

from ironbell.api.client import (
    EVERYTHING,
    NO_OPTIONS,
    AlreadyExists,
    ApiError,
    ListOptions,
    MethodNotAllowed,
    NotFound,
    Page,
    PatchType,
    Preconditions,
    Propagation,
    Selector,
    WatchEvent,
    WriteOptions,
)
from ironbell.api.kind import Collection
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.connect import ConnectRequest, ConnectResponse
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.identity import Identity
from ironbell.apiserver.roles import Attributes, refusal
from ironbell.apiserver.selectors import selected_name
from ironbell.apiserver.surface import Stored
from ironbell.apiserver.verbs import create, delete, lists, patch, read, scale, update

_NO_PRECONDITIONS = Preconditions()
_ALL = ListOptions()
_T = TypeVar("_T")


class DirectApi:
    """`surface.ServerApi` for one identity."""

    def __init__(self, context: Context, identity: Identity) -> None:
        self._context = context
        self._identity = identity

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        request = self._request("get", where, namespace, name=name, subresource=subresource)
        if subresource == "scale":
            return await scale.get(self._context, request)
        return await read.get(self._context, request)

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = _ALL) -> Page:
        request = self._request("list", where, namespace, name=selected_name(options.selector))
        return await lists.list_objects(self._context, request, options)

    async def watch(
        self, where: Collection, namespace: str = "", *, resource_version: str, selector: Selector = EVERYTHING
    ) -> AsyncIterator[WatchEvent]:
        request = self._request("watch", where, namespace, name=selected_name(selector))
        async for event in read.watch(self._context, request, resource_version=resource_version, selector=selector):
            yield event

    async def create(self, where: Collection, namespace: str, body: bytes, options: WriteOptions = NO_OPTIONS) -> bytes:
        request = self._request("create", where, namespace, options=options)
        return await self._decided(create.create(self._context, request, body))

    async def replace(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes:
        return (await self.put(where, namespace, name, body, subresource=subresource, options=options)).body

    async def put(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Stored:
        request = self._request("update", where, namespace, name=name, subresource=subresource, options=options)
        return await self._decided(self._put(request, body))

    async def _put(self, request: Request, body: bytes) -> Stored:
        if request.subresource == "scale":
            return Stored(await scale.replace_scale(self._context, request, body), created=False)
        if request.info.created_by_update and not request.subresource and self._is_missing(request):
            self._authorize("create", request)
            with suppress(AlreadyExists):  # somebody else was first: theirs is replaced
                return Stored(await create.create_missing(self._context, request, body), created=True)
        return Stored(await update.replace_object(self._context, request, body), created=False)

    def _is_missing(self, request: Request) -> bool:
        return self._context.store.latest(request.info.store_key, request.key) is None

    async def patch(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        patch_type: PatchType,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes:
        request = self._request("patch", where, namespace, name=name, subresource=subresource, options=options)
        return await self._decided(self._patch(request, body, patch_type))

    async def _patch(self, request: Request, body: bytes, patch_type: PatchType) -> bytes:
        if request.subresource == "scale":
            return await scale.patch_scale(self._context, request, body, patch_type)
        if patch_type is PatchType.APPLY:
            return (await self._apply(request, body)).body
        return await patch.patch(self._context, request, body, patch_type)

    async def apply(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Stored:
        request = self._request("patch", where, namespace, name=name, subresource=subresource, options=options)
        return await self._decided(self._apply(request, body))

    async def _apply(self, request: Request, body: bytes) -> Stored:
        if request.subresource == "scale":
            return Stored(await scale.patch_scale(self._context, request, body, PatchType.APPLY), created=False)
        is_new = self._is_missing(request)
        if is_new:
            self._authorize("create", request)
        return Stored(await patch.patch(self._context, request, body, PatchType.APPLY), created=is_new)

    async def delete(
        self,
        where: Collection,
        namespace: str,
        name: str,
        *,
        preconditions: Preconditions = _NO_PRECONDITIONS,
        propagation: Propagation = Propagation.BACKGROUND,
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes:
        request = self._request("delete", where, namespace, name=name, options=options)
        deleting = delete.delete(self._context, request, preconditions=preconditions, propagation=propagation)
        return await self._decided(deleting)

    async def delete_collection(
        self,
        where: Collection,
        namespace: str,
        *,
        what: ListOptions = _ALL,
        preconditions: Preconditions = _NO_PRECONDITIONS,
        propagation: Propagation = Propagation.BACKGROUND,
        options: WriteOptions = NO_OPTIONS,
    ) -> Page:
        request = self._request("deletecollection", where, namespace, options=options)
        deleting = delete.delete_collection(
            self._context, request, options=what, preconditions=preconditions, propagation=propagation
        )
        return await self._decided(deleting)

    async def connect(self, where: Collection, request: ConnectRequest) -> ConnectResponse:
        info = self._context.resources.find(where)
        handler = self._context.connects.find(info.group, info.plural, subresource=request.subresource)
        verb = "get" if request.method == "GET" else "create"
        self._authorize(verb, Request(self._identity, info, request.namespace, request.name, request.subresource))
        if handler is None:
            raise NotFound("the server could not find the requested resource")
        if self._context.admission.concerns(info):
            review = AdmissionRequest(
                Operation.CONNECT, info, request.namespace, request.name, self._identity, None,
                subresource=request.subresource,
            )  # fmt: skip
            await self._context.admission.mutate(review)
            await self._context.admission.review(review)
        return await handler(request)

    async def act(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str,
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes:
        info = self._context.resources.find(where)
        request = Request(self._identity, info, namespace if info.namespaced else "", name, subresource, options)
        self._authorize("create", request)
        action = self._context.actions.find(info.group, info.plural, subresource=subresource)
        if action is None:
            raise NotFound("the server could not find the requested resource")
        return await action.perform(request, body)

    def _request(
        self,
        verb: str,
        where: Collection,
        namespace: str,
        *,
        name: str = "",
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Request:
        info = self._context.resources.find(where)
        request = Request(self._identity, info, namespace if info.namespaced else "", name, subresource, options)
        self._authorize(verb, request)
        if subresource and subresource not in info.subresources:
            raise NotFound("the server could not find the requested resource")
        if verb not in info.verbs and not subresource:
            raise MethodNotAllowed(f'{verb} is not supported on resources of kind "{info.resource}"')
        return request

    async def _decided(self, write: Awaitable[_T]) -> _T:
        """The answer to a write; a refusal was decided on the newest state, and waits until that is stored.

        Raises:
            Unavailable: it could not be stored, so that there may have been no reason to refuse.
        """
        try:
            return await write
        except ApiError:
            await self._context.store.settle()
            raise

    def _authorize(self, verb: str, request: Request) -> None:
        info = request.info
        wanted = Attributes(verb, info.group, info.plural, request.namespace, request.name, request.subresource)
        decision = self._context.authorizer.decide(self._identity, wanted)
        if not decision.allowed:
            raise refusal(self._identity, wanted, reason=decision.reason)

"""The direct transport: the API as one identity sees it, without HTTP.

Each call is authorised, then carried out by the verbs. A call that is not allowed raises `Forbidden` before anything
else is checked. A write that fails because of another write is rejected once the other write is stored: until then that
could still be lost, and readers do not see it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress

from ironbell.api.client import (
    AlreadyExists,
    Answer,
    Api,
    ApiError,
    Call,
    MethodNotAllowed,
    NotFound,
    PatchType,
    Verb,
    WatchEvent,
)
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes, forbidden_error
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.selectors.selectors import selected_name
from ironbell.apiserver.subresources import ConnectRequest, ConnectResponse
from ironbell.apiserver.verbs import create, delete, lists, patch, read, scale, update


class DirectApi(Api):
    """The whole API as one identity sees it, authorisation and admission applied."""

    def __init__(self, context: Context, identity: Identity) -> None:
        self._context = context
        self._identity = identity

    async def call(self, call: Call) -> Answer:
        """Carry out any call but a watch.

        The rejection of a write is based on the newest state, and waits until that is stored.

        Raises:
            Unavailable: the state could not be stored, so there may have been no reason for a rejection.
        """
        verb = call.verb
        if verb is Verb.GET:
            getter = scale.get if call.subresource == "scale" else read.get
            return Answer(await getter(self._context, self._request(call, call.name)))
        if verb is Verb.LIST:
            request = self._request(call, selected_name(call.selection.selector))
            return Answer(listed=await lists.list_objects(self._context, request, call.selection))
        request = self._request(call, call.name)
        if verb is Verb.CREATE and call.subresource:
            return await self._act(request, call)
        try:
            return await self._write(request, call)
        except ApiError:
            await self._context.store.settle()
            raise

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        """Watch as `Api.watch` does; with an empty version or `0` the current objects come first, as ADDED.

        An error is raised at the first step of the iteration. A single object is watched by the field selector
        `metadata.name=NAME`, which is also the name that is authorised.
        """
        version, selector = call.selection.resource_version, call.selection.selector
        request = self._request(call, selected_name(selector))
        async for event in read.watch(self._context, request, resource_version=version, selector=selector):
            yield event

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

    async def _act(self, request: Request, call: Call) -> Answer:
        action = self._context.actions.find(request.info.group, request.info.plural, subresource=call.subresource)
        if action is None:
            raise NotFound("the server could not find the requested resource")
        return Answer(await action.perform(request, call.body))

    async def _write(self, request: Request, call: Call) -> Answer:
        context, verb = self._context, call.verb
        if verb is Verb.CREATE:
            return Answer(await create.create(context, request, call.body), created=True)
        if verb is Verb.PATCH:
            return await self._patch(request, call)
        if verb is Verb.UPDATE:
            return await self._update(request, call.body)
        preconditions, propagation = call.preconditions, call.propagation
        if verb is Verb.DELETE:
            return Answer(await delete.delete(context, request, preconditions=preconditions, propagation=propagation))
        page = await delete.delete_collection(
            context, request, options=call.selection, preconditions=preconditions, propagation=propagation
        )
        return Answer(listed=page)

    async def _update(self, request: Request, body: bytes) -> Answer:
        if request.subresource == "scale":
            return Answer(await scale.replace_scale(self._context, request, body))
        if request.info.created_by_update and not request.subresource and self._is_missing(request):
            self._authorize("create", request)
            with suppress(AlreadyExists):  # another client created it first: its object is replaced
                return Answer(await create.create_missing(self._context, request, body), created=True)
        return Answer(await update.replace_object(self._context, request, body))

    async def _patch(self, request: Request, call: Call) -> Answer:
        if request.subresource == "scale":
            return Answer(await scale.patch_scale(self._context, request, call.body, call.patch_type))
        is_new = call.patch_type is PatchType.APPLY and self._is_missing(request)
        if is_new:
            self._authorize("create", request)
        return Answer(await patch.patch(self._context, request, call.body, call.patch_type), created=is_new)

    def _is_missing(self, request: Request) -> bool:
        return self._context.store.latest(request.info.store_key, request.key) is None

    def _request(self, call: Call, name: str) -> Request:
        verb, subresource, info = call.verb, call.subresource, self._context.resources.find(call.collection)
        namespace = call.namespace if info.namespaced else ""
        request = Request(self._identity, info, namespace, name, subresource, call.options)
        self._authorize(verb, request)
        if not subresource:
            if verb not in info.verbs:
                raise MethodNotAllowed(f'{verb} is not supported on resources of kind "{info.resource}"')
        elif verb is not Verb.CREATE and subresource not in info.subresources:  # of creates, the actions decide
            raise NotFound("the server could not find the requested resource")
        return request

    def _authorize(self, verb: str, request: Request) -> None:
        info = request.info
        attributes = Attributes(verb, info.group, info.plural, request.namespace, request.name, request.subresource)
        decision = self._context.authorizer.decide(self._identity, attributes)
        if not decision.allowed:
            raise forbidden_error(self._identity, attributes, reason=decision.reason)

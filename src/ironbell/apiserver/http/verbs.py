"""The verbs of resources over HTTP: GET, POST, PUT, PATCH, DELETE, and connect subresources.

Source: kubernetes/apiserver: pkg/endpoints/handlers/get.go, create.go, update.go, patch.go, delete.go.
"""

from __future__ import annotations

from dataclasses import replace as replace_fields

from ironbell.api.client import LIST_ALL, Answer, Call, ListOptions, PatchType, Verb, WriteOptions
from ironbell.apiserver.http.content import bodies
from ironbell.apiserver.http.content.answers import answer
from ironbell.apiserver.http.content.media import Format, plain_media_type
from ironbell.apiserver.http.content.sending import ChunkStream, chunk
from ironbell.apiserver.http.deletions import delete_parameters
from ironbell.apiserver.http.exchange import Exchange
from ironbell.apiserver.http.parameters import default_manager, list_options, write_options
from ironbell.apiserver.http.server.message import Response
from ironbell.apiserver.http.views import list_body, object_body
from ironbell.apiserver.subresources import ConnectRequest
from ironbell.apiserver.warnings import warn


async def get(exchange: Exchange) -> Response:
    """One object or one of its subresources."""
    shown, target = exchange.format(), exchange.target
    body = await exchange.api.get(
        exchange.info.collection, target.namespace, target.name, subresource=target.subresource
    )
    return await answer(exchange.request, object_body(exchange, body, shown), media_type=shown.media_type)


async def list_(exchange: Exchange) -> Response:
    """One page of a collection."""
    shown, options = exchange.format(), list_options(exchange.query)
    page = await exchange.api.list(exchange.info.collection, exchange.target.namespace, options)
    return await answer(exchange.request, await list_body(exchange, page, shown), media_type=shown.media_type)


async def connect(exchange: Exchange) -> Response:
    """Call the subresource's handler and stream its response until it ends, the client leaves or the server stops."""
    target, request = exchange.target, exchange.request
    call = ConnectRequest(
        identity=exchange.identity,
        namespace=target.namespace,
        name=target.name,
        subresource=target.subresource,
        method=request.method,
        query={key: tuple(request.query.getall(key)) for key in request.query},
        body=await bodies.read(request) if request.method != "GET" else b"",
    )
    answered = await exchange.api.connect(exchange.info.collection, call)
    headers = {"Content-Type": answered.content_type, "Cache-Control": "no-cache, private"}
    stream = ChunkStream(request, headers, status=answered.status)
    async with exchange.streams.until(None):
        async for piece in answered.chunks:
            if piece:  # an empty chunk is the last one
                await stream.send(chunk(piece))
    return stream.end()


async def create(exchange: Exchange) -> Response:
    """Store a new object."""
    shown, options = exchange.format(), write_options(exchange.query, exchange.user_agent, kind="CreateOptions")
    created = await _write(exchange, Verb.CREATE, await bodies.read_body(exchange.request), options)
    if exchange.info.creation_warning:
        warn(exchange.info.creation_warning)
    return await _respond(exchange, created, shown)


async def act(exchange: Exchange) -> Response:
    """Create a subresource that is not stored."""
    options = write_options(exchange.query, exchange.user_agent, kind="CreateOptions")
    media_type = plain_media_type(exchange.accept)
    body = bodies.Body(await bodies.read_object(exchange.request))
    answered = await _write(exchange, Verb.CREATE, body, options)
    return await answer(exchange.request, answered.body, status=201, media_type=media_type)


async def replace(exchange: Exchange) -> Response:
    """Store an object in place of the present one, or, for some kinds, create it."""
    shown, options = exchange.format(), write_options(exchange.query, exchange.user_agent, kind="UpdateOptions")
    return await _respond(
        exchange, await _write(exchange, Verb.UPDATE, await bodies.read_body(exchange.request), options), shown
    )


async def patch(exchange: Exchange) -> Response:
    """Change parts of an object."""
    shown = exchange.format()
    body, patch_type = await bodies.read_patch(exchange.request)
    applies = patch_type is PatchType.APPLY
    options = write_options(exchange.query, exchange.user_agent, kind="PatchOptions", applies=applies)
    return await _respond(exchange, await _write(exchange, Verb.PATCH, body, options, patch_type), shown)


async def delete(exchange: Exchange) -> Response:
    """Delete an object, or mark it if finalizers hold it."""
    shown = exchange.format()
    answered = await _delete(exchange, Verb.DELETE, LIST_ALL)
    return await answer(exchange.request, answered.body, media_type=shown.media_type)


async def delete_collection(exchange: Exchange) -> Response:
    """Delete the objects of a list."""
    shown, selection = exchange.format(), list_options(exchange.query)
    page = (await _delete(exchange, Verb.DELETE_COLLECTION, selection)).page
    return await answer(exchange.request, await list_body(exchange, page, shown), media_type=shown.media_type)


async def _write(
    exchange: Exchange, verb: Verb, body: bodies.Body, options: WriteOptions, patch_type: PatchType = PatchType.MERGE
) -> Answer:
    if body.set_twice:
        options = replace_fields(options, set_twice=body.set_twice)
    where, target = exchange.info.collection, exchange.target
    return await exchange.api.call(
        Call(
            verb, where, target.namespace, target.name, target.subresource, body.content, options, patch_type=patch_type
        )
    )


async def _delete(exchange: Exchange, verb: Verb, selection: ListOptions) -> Answer:
    given = delete_parameters(exchange.query, await bodies.read_object(exchange.request))
    return await exchange.api.call(
        Call(
            verb,
            exchange.info.collection,
            exchange.target.namespace,
            exchange.target.name,
            options=WriteOptions(field_manager=default_manager(exchange.user_agent), dry_run=given.dry_run),
            selection=selection,
            preconditions=given.preconditions,
            propagation=given.propagation,
        )
    )


async def _respond(exchange: Exchange, answered: Answer, shown: Format) -> Response:
    body, status = object_body(exchange, answered.body, shown), 201 if answered.created else 200
    return await answer(exchange.request, body, status=status, media_type=shown.media_type)

"""POST, PUT, PATCH and DELETE.

Source: kubernetes/apiserver: pkg/endpoints/handlers/create.go, update.go, patch.go, delete.go.
"""

from __future__ import annotations

from dataclasses import replace as replace_fields

from ironbell.api.client import LIST_ALL, Answer, ListOptions, PatchType, Verb, WriteOptions
from ironbell.api.client import Call as ApiCall
from ironbell.apiserver.http import bodies
from ironbell.apiserver.http.answers import answer
from ironbell.apiserver.http.call import Call
from ironbell.apiserver.http.deletions import delete_parameters
from ironbell.apiserver.http.media import Format, plain_media_type
from ironbell.apiserver.http.parameters import default_manager, list_options, write_options
from ironbell.apiserver.http.server.message import Response
from ironbell.apiserver.http.views import list_body, object_body
from ironbell.apiserver.warnings import warn


async def create(call: Call) -> Response:
    """Store a new object."""
    shown, options = call.format(), write_options(call.query, call.user_agent, kind="CreateOptions")
    made = await _write(call, Verb.CREATE, await bodies.read_body(call.request), options)
    if call.info.creation_warning:
        warn(call.info.creation_warning)
    return await _respond(call, made, shown)


async def act(call: Call) -> Response:
    """Create a subresource that is not stored."""
    options = write_options(call.query, call.user_agent, kind="CreateOptions")
    media_type = plain_media_type(call.accept)
    body = bodies.Body(await bodies.read_object(call.request))
    answered = await _write(call, Verb.CREATE, body, options)
    return await answer(call.request, answered.body, status=201, media_type=media_type)


async def replace(call: Call) -> Response:
    """Store an object in place of the present one, or, of some kinds, where there is none."""
    shown, options = call.format(), write_options(call.query, call.user_agent, kind="UpdateOptions")
    return await _respond(call, await _write(call, Verb.UPDATE, await bodies.read_body(call.request), options), shown)


async def patch(call: Call) -> Response:
    """Change parts of an object."""
    shown = call.format()
    body, patch_type = await bodies.read_patch(call.request)
    applies = patch_type is PatchType.APPLY
    options = write_options(call.query, call.user_agent, kind="PatchOptions", applies=applies)
    return await _respond(call, await _write(call, Verb.PATCH, body, options, patch_type), shown)


async def delete(call: Call) -> Response:
    """Delete an object, or mark it if finalizers hold it."""
    shown = call.format()
    answered = await _delete(call, Verb.DELETE, LIST_ALL)
    return await answer(call.request, answered.body, media_type=shown.media_type)


async def delete_collection(call: Call) -> Response:
    """Delete what a list finds."""
    shown, selection = call.format(), list_options(call.query)
    page = (await _delete(call, Verb.DELETE_COLLECTION, selection)).page
    return await answer(call.request, await list_body(call, page, shown), media_type=shown.media_type)


async def _write(
    call: Call, verb: Verb, body: bodies.Body, options: WriteOptions, patch_type: PatchType = PatchType.MERGE
) -> Answer:
    if body.set_twice:
        options = replace_fields(options, set_twice=body.set_twice)
    where, target = call.info.collection, call.target
    return await call.api.call(
        ApiCall(
            verb, where, target.namespace, target.name, target.subresource, body.content, options, patch_type=patch_type
        )
    )


async def _delete(call: Call, verb: Verb, selection: ListOptions) -> Answer:
    given = delete_parameters(call.query, await bodies.read_object(call.request))
    return await call.api.call(
        ApiCall(
            verb,
            call.info.collection,
            call.target.namespace,
            call.target.name,
            options=WriteOptions(field_manager=default_manager(call.user_agent), dry_run=given.dry_run),
            selection=selection,
            preconditions=given.preconditions,
            propagation=given.propagation,
        )
    )


async def _respond(call: Call, answered: Answer, shown: Format) -> Response:
    body, status = object_body(call, answered.body, shown), 201 if answered.created else 200
    return await answer(call.request, body, status=status, media_type=shown.media_type)

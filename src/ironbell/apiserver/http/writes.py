"""POST, PUT, PATCH and DELETE.

Source: kubernetes/apiserver: pkg/endpoints/handlers/create.go, update.go, patch.go, delete.go.
"""

from __future__ import annotations

from dataclasses import replace as replace_fields

from ironbell.api.client import PatchType, WriteOptions
from ironbell.apiserver.http import bodies
from ironbell.apiserver.http.answers import answer
from ironbell.apiserver.http.call import Call
from ironbell.apiserver.http.deletions import DeleteParameters, delete_parameters
from ironbell.apiserver.http.media import plain_media_type
from ironbell.apiserver.http.parameters import default_manager, list_options, write_options
from ironbell.apiserver.http.server.message import Response
from ironbell.apiserver.http.views import list_body, object_body
from ironbell.apiserver.surface import Stored
from ironbell.apiserver.warnings import warn


async def create(call: Call) -> Response:
    """Store a new object."""
    shown, options = call.format(), write_options(call.query, call.user_agent, kind="CreateOptions")
    body = await bodies.read_body(call.request)
    options = replace_fields(options, set_twice=body.set_twice)
    made = await call.api.create(call.info.collection, call.target.namespace, body.content, options)
    if call.info.creation_warning:
        warn(call.info.creation_warning)
    made = object_body(call, made, shown)
    return await answer(call.request, made, status=201, media_type=shown.media_type)


async def act(call: Call) -> Response:
    """Create a subresource that is not stored."""
    options, target = write_options(call.query, call.user_agent, kind="CreateOptions"), call.target
    media_type = plain_media_type(call.accept)
    body = await bodies.read_object(call.request)
    answered = await call.api.act(
        call.info.collection, target.namespace, target.name, body, subresource=target.subresource, options=options
    )
    return await answer(call.request, answered, status=201, media_type=media_type)


async def replace(call: Call) -> Response:
    """Store an object in place of the present one, or, of some kinds, where there is none."""
    shown, target = call.format(), call.target
    options = write_options(call.query, call.user_agent, kind="UpdateOptions")
    body = await bodies.read_body(call.request)
    stored = await call.api.put(
        call.info.collection,
        target.namespace,
        target.name,
        body.content,
        subresource=target.subresource,
        options=replace_fields(options, set_twice=body.set_twice),
    )
    status = 201 if stored.created else 200
    return await answer(call.request, object_body(call, stored.body, shown), status=status, media_type=shown.media_type)


async def patch(call: Call) -> Response:
    """Change parts of an object."""
    shown, target = call.format(), call.target
    body, patch_type = await bodies.read_patch(call.request)
    applies = patch_type is PatchType.APPLY
    options = write_options(call.query, call.user_agent, kind="PatchOptions", applies=applies)
    options = replace_fields(options, set_twice=body.set_twice)
    place = (call.info.collection, target.namespace, target.name, body.content)
    if applies:
        stored = await call.api.apply(*place, subresource=target.subresource, options=options)
    else:
        patched = await call.api.patch(*place, patch_type=patch_type, subresource=target.subresource, options=options)
        stored = Stored(patched, created=False)
    status = 201 if stored.created else 200
    return await answer(call.request, object_body(call, stored.body, shown), status=status, media_type=shown.media_type)


async def delete(call: Call) -> Response:
    """Delete an object, or mark it if finalizers hold it."""
    shown, target = call.format(), call.target
    given = delete_parameters(call.query, await bodies.read_object(call.request))
    answered = await call.api.delete(
        call.info.collection,
        target.namespace,
        target.name,
        preconditions=given.preconditions,
        propagation=given.propagation,
        options=_delete_options(call, given),
    )
    return await answer(call.request, answered, media_type=shown.media_type)


async def delete_collection(call: Call) -> Response:
    """Delete what a list finds."""
    shown, what = call.format(), list_options(call.query)
    given = delete_parameters(call.query, await bodies.read_object(call.request))
    page = await call.api.delete_collection(
        call.info.collection,
        call.target.namespace,
        what=what,
        preconditions=given.preconditions,
        propagation=given.propagation,
        options=_delete_options(call, given),
    )
    return await answer(call.request, await list_body(call, page, shown), media_type=shown.media_type)


def _delete_options(call: Call, given: DeleteParameters) -> WriteOptions:
    return WriteOptions(field_manager=default_manager(call.user_agent), dry_run=given.dry_run)

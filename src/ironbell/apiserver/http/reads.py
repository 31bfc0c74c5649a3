"""GET of one object and of a collection.

Source: kubernetes/apiserver: pkg/endpoints/handlers/get.go.
"""

from __future__ import annotations

from ironbell.apiserver.http.answers import answer
from ironbell.apiserver.http.call import Call
from ironbell.apiserver.http.parameters import list_options
from ironbell.apiserver.http.server.message import Response
from ironbell.apiserver.http.views import list_body, object_body


async def get(call: Call) -> Response:
    """One object or one of its subresources."""
    shown, target = call.format(), call.target
    body = await call.api.get(call.info.collection, target.namespace, target.name, subresource=target.subresource)
    return await answer(call.request, object_body(call, body, shown), media_type=shown.media_type)


async def list_(call: Call) -> Response:
    """One page of a collection."""
    shown, options = call.format(), list_options(call.query)
    page = await call.api.list(call.info.collection, call.target.namespace, options)
    return await answer(call.request, await list_body(call, page, shown), media_type=shown.media_type)

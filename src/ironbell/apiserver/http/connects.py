"""Connect subresources: what a handler answers, passed on as it comes, such as the log of a workflow."""

from __future__ import annotations

from aiohttp import web

from ironbell.apiserver.connect import ConnectRequest
from ironbell.apiserver.http import bodies
from ironbell.apiserver.http.call import Call
from ironbell.apiserver.http.sending import open_stream, send


async def connect(call: Call) -> web.StreamResponse:
    """Call the subresource's handler and stream its answer until it ends, the client leaves or the server stops."""
    target, request = call.target, call.request
    asked = ConnectRequest(
        identity=call.identity,
        namespace=target.namespace,
        name=target.name,
        subresource=target.subresource,
        method=request.method,
        query={key: tuple(request.query.getall(key)) for key in request.query},
        body=await bodies.read(request) if request.method != "GET" else b"",
    )
    answered = await call.api.connect(call.info.collection, asked)
    headers = {"Content-Type": answered.content_type, "Cache-Control": "no-cache, private"}
    response = await open_stream(request, headers, status=answered.status)
    async with call.streams.until(None):
        async for chunk in answered.chunks:
            await send(response, chunk)
    await response.write_eof()
    return response

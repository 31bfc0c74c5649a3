"""Connect subresources: what a handler answers, passed on as it comes, such as the log of a workflow."""

from __future__ import annotations

from ironbell.apiserver.connect import ConnectRequest
from ironbell.apiserver.http import bodies
from ironbell.apiserver.http.call import Call
from ironbell.apiserver.http.sending import ChunkStream, chunk
from ironbell.apiserver.http.server.message import Response


async def connect(call: Call) -> Response:
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
    stream = ChunkStream(request, headers, status=answered.status)
    async with call.streams.until(None):
        async for piece in answered.chunks:
            if piece:  # an empty chunk is the last one
                await stream.send(chunk(piece))
    return stream.end()

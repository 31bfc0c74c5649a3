"""Connect subresources: a handler's response, streamed as it is produced, such as the log of a workflow."""

from __future__ import annotations

from ironbell.apiserver.connect import ConnectRequest
from ironbell.apiserver.http.content import bodies
from ironbell.apiserver.http.content.sending import ChunkStream, chunk
from ironbell.apiserver.http.exchange import Exchange
from ironbell.apiserver.http.server.message import Response


async def connect(exchange: Exchange) -> Response:
    """Call the subresource's handler and stream its response until it ends, the client leaves or the server stops."""
    target, request = exchange.target, exchange.request
    request_ = ConnectRequest(
        identity=exchange.identity,
        namespace=target.namespace,
        name=target.name,
        subresource=target.subresource,
        method=request.method,
        query={key: tuple(request.query.getall(key)) for key in request.query},
        body=await bodies.read(request) if request.method != "GET" else b"",
    )
    answered = await exchange.api.connect(exchange.info.collection, request_)
    headers = {"Content-Type": answered.content_type, "Cache-Control": "no-cache, private"}
    stream = ChunkStream(request, headers, status=answered.status)
    async with exchange.streams.until(None):
        async for piece in answered.chunks:
            if piece:  # an empty chunk is the last one
                await stream.send(chunk(piece))
    return stream.end()

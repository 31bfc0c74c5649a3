"""Responses: encoded objects and errors over HTTP.

Large bodies are compressed in a thread when the client accepts gzip, so that the event loop is not blocked.

Source: kubernetes/apiserver: pkg/endpoints/handlers/responsewriters/writers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from isal import isal_zlib

from ironbell.api.client import ApiError
from ironbell.apiserver.http.content.media import JSON, PROTOBUF, YAML, NotAcceptable, plain_media_type, ranges
from ironbell.apiserver.http.content.sending import send_whole
from ironbell.apiserver.http.protobuf import writer as protobuf_writer
from ironbell.apiserver.http.server.message import Request, Response
from ironbell.apiserver.status import status_object
from ironbell.apiserver.threads import in_thread

GZIP_FROM_BYTES = 128 * 1024
_THREAD_FROM_BYTES = 64 * 1024
_GZIP_LEVEL = 1
_GZIP_CONTAINER = 31
_PRETTY_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_NO_CACHE = "no-cache, private"


async def answer(
    request: Request,
    body: bytes,
    *,
    status: int = 200,
    media_type: str = JSON,
    headers: Mapping[str, str] | None = None,
    pretty: bool = True,
) -> Response:
    """Encoded JSON as a response, as YAML or protocol buffers if that is the media type, indented or compressed as the
    client requests.

    Without `pretty` the body is never indented.
    """
    if media_type == YAML:
        body = await in_thread(_yaml, body)
    elif media_type == PROTOBUF:
        body = await _protobuf(body)
    elif pretty and _is_pretty_requested(request):
        body = msgspec.json.format(body, indent=2) + b"\n"
    sent = {"Content-Type": media_type, "Cache-Control": _NO_CACHE, **(headers or {})}
    if len(body) > GZIP_FROM_BYTES and _takes_gzip(request):
        body = await in_thread(_gzip, body)
        sent |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return await send_whole(request, body, status=status, headers=sent)


async def answer_value(request: Request, value: Any, *, status: int = 200, media_type: str = JSON) -> Response:
    """A plain value as a response."""
    return await answer(request, msgspec.json.encode(value) + b"\n", status=status, media_type=media_type)


async def error_response(request: Request, error: ApiError) -> Response:
    """An error as a `Status` response; in JSON if the client accepts nothing that is offered."""
    headers: dict[str, str] = {}
    if error.code == 429:
        headers["Retry-After"] = "1"
    if error.code == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="ironbell"'
    try:
        media_type = plain_media_type(request.headers.get("Accept", ""))
    except NotAcceptable:
        media_type = JSON
    body = msgspec.json.encode(status_object(error))
    return await answer(request, body, status=error.code, media_type=media_type, headers=headers)


def text(body: str, *, status: int = 200) -> Response:
    """Plain text."""
    return Response(
        status=status,
        body=body.encode(),
        headers={"Content-Type": "text/plain; charset=utf-8", "Cache-Control": _NO_CACHE},
    )


async def _protobuf(body: bytes) -> bytes:
    if len(body) < _THREAD_FROM_BYTES:
        return protobuf_writer.from_json(body)
    return await in_thread(protobuf_writer.from_json, body)


def _yaml(body: bytes) -> bytes:
    from ironbell.codec import goyaml  # few clients request YAML

    return goyaml.dump(msgspec.json.decode(body)).encode()


def _gzip(body: bytes) -> bytes:
    compressor = isal_zlib.compressobj(_GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_CONTAINER)
    return bytes(compressor.compress(body) + compressor.flush())


def _takes_gzip(request: Request) -> bool:
    accepted = request.headers.get("Accept-Encoding", "")
    return bool(accepted) and any(accepted_range.media_type in {"gzip", "*"} for accepted_range in ranges(accepted))


def _is_pretty_requested(request: Request) -> bool:
    pretty = request.query.get("pretty")
    if pretty:
        return pretty in {"1", "t", "T", "true", "TRUE", "True"}
    return request.headers.get("User-Agent", "").startswith(_PRETTY_AGENTS)

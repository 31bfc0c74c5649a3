"""Request bodies: read within limits of size and time, and brought to JSON.

Source: kubernetes/apiserver: pkg/endpoints/handlers/rest.go (3 MiB), patch.go (patch types).
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec

from ironbell.api.client import ApiError, BadRequest, PatchType, UnsupportedMediaType
from ironbell.apiserver.http.content.media import JSON, PROTOBUF, content_type
from ironbell.apiserver.http.protobuf import codec as protobuf
from ironbell.apiserver.http.server.message import MAX_BODY_BYTES, BodyMalformed, BodyTooLarge, Request
from ironbell.apiserver.threads import in_thread
from ironbell.apiserver.verbs.duplicates import text_faults

READ_TIMEOUT_S = 60

_YAML_TYPES = {"application/yaml", "application/x-yaml", "text/yaml"}
_THREAD_FROM_BYTES = 16 * 1024
_PATCHES = {patch.value: patch for patch in PatchType}


class RequestTooLarge(ApiError):  # noqa: N818 - as the API's reason
    code, reason = 413, "RequestEntityTooLarge"


class RequestTimeout(ApiError):  # noqa: N818 - as the API's reason
    code, reason = 408, "Timeout"


async def read(request: Request) -> bytes:
    """The whole body as it was sent.

    Raises:
        RequestTooLarge: the body is longer than 3 MiB.
        BadRequest: the framing is broken.
        RequestTimeout: the body did not arrive within a minute.
    """
    try:
        if request.has_arrived:
            return await request.read()
        async with asyncio.timeout(READ_TIMEOUT_S):
            return await request.read()
    except BodyTooLarge as error:
        raise RequestTooLarge(f"Request entity too large: limit is {MAX_BODY_BYTES}") from error
    except BodyMalformed as error:
        raise BadRequest("the request's body is malformed") from error
    except TimeoutError as error:
        raise RequestTimeout(f"the request's body did not arrive within {READ_TIMEOUT_S} seconds") from error


class Body(NamedTuple):
    """A request's body, in JSON."""

    content: bytes
    set_twice: tuple[str, ...] = ()
    """Messages about keys that a YAML text has twice, as upstream's YAML reader words them."""


async def read_object(request: Request) -> bytes:
    """The body of a delete or an action, as JSON.

    Raises:
        UnsupportedMediaType: the media type is not supported.
        BadRequest: it does not have the form of its media type.
    """
    return (await read_body(request)).content


async def read_body(request: Request) -> Body:
    """The body of a create or replace.

    Raises:
        UnsupportedMediaType: the media type is not supported.
        BadRequest: it does not have the form of its media type.
    """
    media_type = content_type(request.headers.get("Content-Type", ""))
    if media_type == JSON:
        return Body(await read(request))
    if media_type in _YAML_TYPES:
        return await _from_yaml(await read(request))
    if media_type == PROTOBUF:
        body = await read(request)
        return Body(protobuf.to_json(body) if body else b"")
    raise UnsupportedMediaType(_unsupported([JSON, "application/yaml", PROTOBUF]))


async def read_patch(request: Request) -> tuple[Body, PatchType]:
    """The body of a patch, with its type.

    Raises:
        UnsupportedMediaType: the content type is not a patch type.
        BadRequest: an apply configuration is not YAML.
    """
    media_type = content_type(request.headers.get("Content-Type", ""))
    patch_type = _PATCHES.get(media_type)
    if patch_type is None:
        raise UnsupportedMediaType("415: Unsupported Media Type")
    body = await read(request)
    if patch_type is not PatchType.APPLY or _is_plain(body):
        return Body(body), patch_type
    try:
        return await _from_yaml(body), patch_type
    except BadRequest as error:
        raise BadRequest(f"error decoding YAML: {error.message}") from error


async def _from_yaml(body: bytes) -> Body:
    if len(body) > _THREAD_FROM_BYTES:
        return await in_thread(_convert, body)
    return _convert(body)


def _convert(body: bytes) -> Body:
    from ironbell.codec import goyaml  # few clients send YAML

    try:
        value, duplicates = goyaml.load_with_duplicates(body)
        return Body(
            msgspec.json.encode(value),
            tuple(f'line {line}: key "{key}" already set in map' for line, key in duplicates),
        )
    except goyaml.YamlError as error:
        raise BadRequest(f"error converting YAML to JSON: {error}") from error


def _is_plain(body: bytes) -> bool:
    """Return whether a text is JSON without duplicate keys, so that it need not be read as YAML."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return not text_faults(body, value).duplicates


def _unsupported(accepted: list[str]) -> str:
    listed = ", ".join(accepted)
    return f"the body of the request was in an unknown format - accepted media types include: {listed}"

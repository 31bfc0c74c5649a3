"""Bodies in and out: decoded and checked against the request, brought from one version to another."""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.client import ApiError, BadRequest
from ironbell.apiserver.context import Request
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.store.entry import Entry

MAX_BODY_BYTES = 3 << 20


def decode_mapping(body: bytes, *, what: str = "object") -> dict[str, Any]:
    """A JSON object.

    Raises:
        BadRequest: the body is something else.
    """
    if len(body) > MAX_BODY_BYTES:
        raise ApiError(f"Request entity too large: limit is {MAX_BODY_BYTES}", code=413, reason="RequestEntityTooLarge")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the {what} provided is unrecognized (must be JSON): {error}") from error
    if not isinstance(value, dict):
        raise BadRequest(f"the {what} provided is unrecognized: it must be a JSON object")
    return value


def check_address(request: Request, value: dict[str, Any]) -> None:
    """The object must be what the URL says it is; what it leaves out is filled in.

    Raises:
        BadRequest: it says it is another.
    """
    info = request.info
    found = value.setdefault("apiVersion", info.api_version)
    if found != info.api_version:
        raise BadRequest(
            f"the API version in the data ({found}) does not match the expected API version ({info.api_version})"
        )
    if value.setdefault("kind", info.kind) != info.kind:
        raise BadRequest(f"the kind in the data ({value['kind']}) does not match the expected kind ({info.kind})")
    meta = value.get("metadata")
    if meta is None:
        meta = value["metadata"] = {}
    if not isinstance(meta, dict):
        raise BadRequest("metadata is malformed: it must be an object")
    if info.namespaced and meta.setdefault("namespace", request.namespace) != request.namespace:
        if meta["namespace"]:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = request.namespace
    if request.name and meta.setdefault("name", request.name) != request.name:
        raise BadRequest(f"the name of the object ({meta['name']}) does not match the name on the URL ({request.name})")


def to_version(info: ResourceInfo, value: dict[str, Any]) -> dict[str, Any]:
    """An object as the version of the request shows it; may change `value`."""
    return _converted(info, value, info.api_version)


def to_storage(info: ResourceInfo, value: dict[str, Any]) -> dict[str, Any]:
    """An object as it is stored; may change `value`."""
    return _converted(info, value, info.storage_api_version)


def _converted(info: ResourceInfo, value: dict[str, Any], api_version: str) -> dict[str, Any]:
    if value.get("apiVersion") == api_version:
        return value
    if info.convert is not None:
        return info.convert(value, api_version)
    value["apiVersion"] = api_version
    return value


def body_of(info: ResourceInfo, entry: Entry) -> bytes:
    """An entry as the version of the request shows it."""
    if info.is_stored_version:
        return entry.body
    return msgspec.json.encode(to_version(info, entry.decode()))

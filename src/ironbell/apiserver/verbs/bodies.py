"""Bodies of requests and responses: decoded, checked against the request, and converted between versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ironbell.api.client import ApiError, BadRequest
from ironbell.apiserver import status
from ironbell.apiserver.context import Request
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.store.entry import Entry

MAX_BODY_BYTES = 3 << 20


def decode_mapping(body: bytes, *, kind: str = "", error_prefix: str = "error decoding patch") -> dict[str, Any]:
    """Decode a JSON object; an error names `kind`, or else begins with `error_prefix`.

    Raises:
        BadRequest: the body is not a JSON object.
    """
    if len(body) > MAX_BODY_BYTES:
        raise ApiError(f"Request entity too large: limit is {MAX_BODY_BYTES}", code=413, reason="RequestEntityTooLarge")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unrecognized(kind, error_prefix, str(error)) from error
    if not isinstance(value, dict):
        raise _unrecognized(
            kind, error_prefix, f"json: cannot unmarshal {_JSON_NAMES.get(type(value), 'null')}: no object"
        )
    return value


_JSON_NAMES = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def _unrecognized(kind: str, error_prefix: str, detail: str) -> BadRequest:
    if not kind:
        return BadRequest(f"{error_prefix}: {detail}")
    return BadRequest(
        f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
        f"json parse error: {detail}"
    )


def require_name(request: Request, value: dict[str, Any]) -> None:
    """Check that an object that replaces another has its own name, and not only the URL's.

    Raises:
        BadRequest: the object has no name.
    """
    if not name_of(value):
        raise status.unnamed(request.name)


def check_address(request: Request, value: dict[str, Any]) -> None:
    """Check that the object's kind, name and namespace are the URL's; missing ones are set.

    Raises:
        BadRequest: the object has another kind, name or namespace.
    """
    info = request.info
    version, kind = value.setdefault("apiVersion", info.api_version), value.setdefault("kind", info.kind)
    if not info.custom and (version, kind) != (info.api_version, info.kind):
        plain = str(version).rpartition("/")[2]
        raise BadRequest(
            f'{kind} in version "{plain}" cannot be handled as a {info.kind}: it is a {kind} of {version}, and not a '
            f"{info.kind} of {info.api_version}"
        )
    if version != info.api_version:
        raise BadRequest(
            f"the API version in the data ({version}) does not match the expected API version ({info.api_version})"
        )
    if kind != info.kind:
        raise status.wrong_kind(info, request.name or name_of(value), str(kind))
    meta = value.get("metadata")
    if meta is None:
        meta = value["metadata"] = {}
    if not isinstance(meta, dict):
        raise BadRequest("metadata is malformed: it must be an object")
    if info.namespaced and meta.setdefault("namespace", request.namespace) != request.namespace:
        if meta["namespace"]:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = request.namespace
    if request.name and not meta.get("name"):
        meta["name"] = request.name
    elif request.name and meta["name"] != request.name:
        raise BadRequest(f"the name of the object ({meta['name']}) does not match the name on the URL ({request.name})")


def name_of(value: dict[str, Any]) -> str:
    """The object's own name, or empty."""
    meta = value.get("metadata")
    return str(meta.get("name", "")) if isinstance(meta, dict) else ""


async def converted(info: ResourceInfo, value: dict[str, Any], api_version: str) -> dict[str, Any]:
    """Convert an object to another version of its kind; may change `value`. Waits only where a webhook converts."""
    if value.get("apiVersion") == api_version:
        return value
    if info.converter is not None:
        return await info.converter.convert(value, api_version)
    return _converted(info, value, api_version)


async def shown_object(info: ResourceInfo, entry: Entry) -> dict[str, Any]:
    """A stored object, decoded, in the version of the request."""
    if not info.is_converted:
        return value_of(info, entry)
    value: dict[str, Any] = msgspec.json.decode(await body_of(info, entry))
    return value


async def storable(info: ResourceInfo, value: dict[str, Any]) -> dict[str, Any]:
    """An object in the form in which it is stored; may change `value`."""
    return await converted(info, value, info.storage_api_version)


async def bodies_of(info: ResourceInfo, entries: Sequence[Entry]) -> list[bytes]:
    """Entries in the version of the request."""
    if info.converter is None or info.is_stored_version:
        return [plain_body(info, entry) for entry in entries]
    bodies = await info.converter.bodies(entries, info.api_version)
    return [_with_defaults(info, body) for body in bodies] if info.compiled.has_defaults else bodies


def _with_defaults(info: ResourceInfo, body: bytes) -> bytes:
    value = msgspec.json.decode(body)
    info.compiled.default(value)
    return msgspec.json.encode(value)


async def body_of(info: ResourceInfo, entry: Entry) -> bytes:
    """An entry in the version of the request."""
    if info.converter is None or info.is_stored_version:
        return plain_body(info, entry)
    return (await bodies_of(info, (entry,)))[0]


def to_version(info: ResourceInfo, value: dict[str, Any]) -> dict[str, Any]:
    """An object in the version of the request, where no webhook converts; may change `value`."""
    return _converted(info, value, info.api_version)


def _converted(info: ResourceInfo, value: dict[str, Any], api_version: str) -> dict[str, Any]:
    if value.get("apiVersion") == api_version:
        return value
    if info.convert is not None:
        return info.convert(value, api_version)
    value["apiVersion"] = api_version
    return value


def value_of(info: ResourceInfo, entry: Entry) -> dict[str, Any]:
    """An entry in the version of the request, decoded, with the defaults that it lacks on disk.

    For kinds that no webhook converts.
    """
    value = to_version(info, entry.decode())
    if info.custom and _may_lack_defaults(info, entry):
        info.compiled.default(value)
    return value


def _may_lack_defaults(info: ResourceInfo, entry: Entry) -> bool:
    return (entry.version < info.changed_at or not info.is_stored_version) and info.compiled.has_defaults


def plain_body(info: ResourceInfo, entry: Entry) -> bytes:
    """An entry in the version of the request, where no webhook converts."""
    if info.is_stored_version and not (info.custom and _may_lack_defaults(info, entry)):
        return entry.body
    return msgspec.json.encode(value_of(info, entry))

"""Objects from a server's bytes, as forgiving as Go's typed decoder.

Our structs are strict where Go is not: an explicit `null` for a field that is not optional means "absent" there, and
`1.0` is an integer. The strict decoder is tried first, as both are rare; only then is the object tidied as plain data.

Failure modes: `UndecodableError`, when a field that the struct knows has another type. One such object must not stop
the rest; informers leave it out and log it.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ironbell.api.kind import Kind
from ironbell.api.meta import Resource
from ironbell.base.errors import IronbellError, Retry

R = TypeVar("R", bound=Resource)


class UndecodableError(IronbellError):
    """An object of the API does not have the form that its kind says."""

    reason = "Undecodable"
    retry = Retry.NEVER


class _Head(msgspec.Struct):
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


def decode_object(kind: Kind[R], body: bytes) -> R:
    """Bytes of one object to its struct.

    Raises:
        UndecodableError: a field has a wrong type, or the bytes are no JSON object.
    """
    try:
        return kind.decode(body)
    except msgspec.ValidationError:
        try:
            return kind.convert(_tidy(msgspec.json.decode(body)))
        except msgspec.ValidationError as error:
            raise UndecodableError(f"{kind} {'/'.join(object_key(body))}: {error}") from error
    except msgspec.DecodeError as error:
        raise UndecodableError(f"{kind}: the answer is no JSON: {error}") from error


def object_key(body: bytes) -> tuple[str, str]:
    """(namespace, name) of an encoded object, empty where it has none."""
    try:
        metadata = msgspec.json.decode(body, type=_Head).metadata
    except msgspec.DecodeError:
        return ("", "")
    return (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def _tidy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _tidy(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_tidy(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value

"""Zero values out of plain data, as Go leaves them out when it writes the stored version.

Which fields have a zero that means nothing follows from the structs: those with a default other than None.

Source: kubernetes-sigs/cluster-api: api/*/v1beta2 (json tags omitempty and omitzero).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_origin

import msgspec

from ironbell.api.conversion.paths import Body
from ironbell.api.crd.markers import Always
from ironbell.api.crd.schema import unwrap

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class _Field:
    zero: Any
    optional: bool
    """Whether null is the same as not there."""
    shape: _Shape | None


@dataclass(frozen=True, slots=True)
class _Shape:
    fields: dict[str, _Field] | None = None
    entries: _Shape | None = None


def pruned(body: Body, model: type[msgspec.Struct]) -> Body:
    """The object without zero values in spec and status; it changes `body`."""
    shape = _struct(model)
    fields = shape.fields or {}
    for name in ("spec", "status"):
        if name in body and name in fields:
            body[name] = _prune(body[name], fields[name].shape)
            if body[name] == {}:
                del body[name]
    return body


def _prune(value: Any, shape: _Shape | None) -> Any:
    if shape is None:
        return value
    if shape.fields is None:
        if isinstance(value, list):
            return [_prune(entry, shape.entries) for entry in value]
        if isinstance(value, dict):
            return {key: _prune(entry, shape.entries) for key, entry in value.items()}
        return value
    if not isinstance(value, dict):
        return value
    kept: Body = {}
    for name, entry in value.items():
        field = shape.fields.get(name)
        if field is None:
            kept[name] = entry
            continue
        left = _prune(entry, field.shape)
        if not ((left is None and field.optional) or (type(left) is type(field.zero) and left == field.zero)):
            kept[name] = left
    return kept


@cache
def _struct(model: type[msgspec.Struct]) -> _Shape:
    return _Shape(fields={place.encode_name: _field(place) for place in msgspec.structs.fields(model)})


def _field(place: msgspec.structs.FieldInfo) -> _Field:
    zero: Any = _NOTHING
    if isinstance(place.default_factory, Always):
        value = place.default_factory()
        zero = {} if isinstance(value, msgspec.Struct) else _NOTHING
    elif place.default_factory is not msgspec.NODEFAULT:
        zero = place.default_factory()
    elif place.default is not None:
        zero = {} if isinstance(place.default, msgspec.Struct) else place.default
    return _Field(zero, unwrap(place.type)[0] is not Any, _shape(place.type))


def _shape(hint: Any) -> _Shape | None:
    bare, _ = unwrap(hint)
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return _struct(bare)
    if get_origin(bare) in (list, dict):
        entries = _shape(get_args(bare)[-1])
        return None if entries is None else _Shape(entries=entries)
    return None

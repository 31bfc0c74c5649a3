"""Whether a schema is structural, and can be compiled.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema/validation.go;
kubernetes.io: Custom Resources, "Specifying a structural schema".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, forbidden, invalid, not_supported, required
from ironbell.codec.re2 import PatternError, compile_pattern

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_COMBINED = ("allOf", "anyOf", "oneOf")
_LIST_TYPES = ("atomic", "map", "set")
_KEYWORD_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), (int,)),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), (int, float)),
    **dict.fromkeys(("nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum"), (bool,)),
    **dict.fromkeys(("x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"), (bool,)),
    **dict.fromkeys(("type", "format", "pattern", "description", "x-kubernetes-map-type"), (str,)),
    **dict.fromkeys(("required", "enum", "allOf", "anyOf", "oneOf", "x-kubernetes-validations"), (list,)),
    "x-kubernetes-embedded-resource": (bool,),
    "x-kubernetes-list-map-keys": (list,),
    "properties": (dict,),
    "items": (dict,),
    "additionalProperties": (dict, bool),
}
_STRING_LISTS = ("required", "x-kubernetes-list-map-keys")
_UNSUPPORTED = ("$ref", "definitions", "dependencies", "patternProperties", "additionalItems", "id")


def structural_faults(schema: Any, path: str) -> list[FieldError]:
    """Faults of the schema of a whole object."""
    if not isinstance(schema, Mapping) or not schema:
        return [required(path, "schemas are required")]
    if schema.get("type") != "object":
        found = schema.get("type")
        return (
            [required(f"{path}.type", "must not be empty at the root")]
            if not found
            else [invalid(f"{path}.type", found, "must be object at the root")]
        )
    return list(_faults(schema, path, value_only=False))


def _faults(schema: Any, path: str, *, value_only: bool) -> Iterator[FieldError]:
    if not isinstance(schema, Mapping):
        yield invalid(path, "", "must be a schema")
        return
    yield from (forbidden(f"{path}.{name}", "is not supported") for name in _UNSUPPORTED if name in schema)
    misfits = list(_keyword_faults(schema, path))
    if misfits:
        yield from misfits
        return
    yield from _type_faults(schema, path, value_only=value_only)
    yield from _list_faults(schema, path)
    yield from _pattern_faults(schema, path)
    for name in _COMBINED:
        for index, sub in enumerate(schema.get(name) or ()):
            yield from _faults(sub, f"{path}.{name}[{index}]", value_only=True)
    if "not" in schema:
        yield from _faults(schema["not"], f"{path}.not", value_only=True)
    yield from _child_faults(schema, path, value_only=value_only)


def _keyword_faults(schema: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for name, types in _KEYWORD_TYPES.items():
        if name in schema and type(schema[name]) not in types:
            yield invalid(f"{path}.{name}", "", f"must be of type {' or '.join(one.__name__ for one in types)}")
    for name in _STRING_LISTS:
        words = schema.get(name)
        if isinstance(words, list) and not all(isinstance(word, str) for word in words):
            yield invalid(f"{path}.{name}", "", "must be a list of strings")


def _type_faults(schema: Mapping[str, Any], path: str, *, value_only: bool) -> Iterator[FieldError]:
    kind = schema.get("type")
    either = schema.get("x-kubernetes-int-or-string")
    if kind is None:
        if not value_only and not either and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield required(f"{path}.type", "must not be empty for specified object fields")
    elif either:
        yield forbidden(f"{path}.type", "must be empty if x-kubernetes-int-or-string is true")
    elif kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if schema.get("properties") and schema.get("additionalProperties"):
        yield forbidden(f"{path}.additionalProperties", "must not be used together with properties")


def _list_faults(schema: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    if schema.get("type") == "array" and "items" not in schema:
        yield required(f"{path}.items", "must be specified")
    if kind is None:
        return
    if kind not in _LIST_TYPES:
        yield not_supported(f"{path}.x-kubernetes-list-type", kind, _LIST_TYPES)
    if schema.get("type") != "array":
        yield invalid(f"{path}.type", schema.get("type", ""), "must be array if x-kubernetes-list-type is specified")
    if kind == "map" and not schema.get("x-kubernetes-list-map-keys"):
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")


def _pattern_faults(schema: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    pattern = schema.get("pattern")
    if not pattern:
        return
    try:
        compile_pattern(pattern)
    except PatternError as error:
        yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


def _child_faults(schema: Mapping[str, Any], path: str, *, value_only: bool) -> Iterator[FieldError]:
    for name, sub in schema.get("properties", {}).items():
        yield from _faults(sub, f"{path}.properties[{name}]", value_only=value_only)
    if isinstance(schema.get("items"), Mapping):
        yield from _faults(schema["items"], f"{path}.items", value_only=value_only)
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from _faults(schema["additionalProperties"], f"{path}.additionalProperties", value_only=value_only)

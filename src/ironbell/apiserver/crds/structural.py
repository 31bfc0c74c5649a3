"""Checks that a schema is structural: types outside of combinations, combinations about values only.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema/validation.go, complete.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, forbidden, invalid, required
from ironbell.codec.re2 import PatternError, compile_pattern

Schema = Mapping[str, Any]

ROOT, ITEM, FIELD = "at the root", "for specified array items", "for specified object fields"
_JUNCTORS = ("anyOf", "allOf", "oneOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_META_NAMES = {"name", "generateName"}
_EMPTY_IN_JUNCTORS = (
    ("title", "must be empty"), ("description", "must be empty"), ("nullable", "must be false"),
    ("x-kubernetes-preserve-unknown-fields", "must be false"), ("x-kubernetes-embedded-resource", "must be false"),
    ("x-kubernetes-int-or-string", "must be false"), ("x-kubernetes-list-map-keys", "must be empty"),
    ("x-kubernetes-list-type", "must be undefined"), ("x-kubernetes-map-type", "must be undefined"),
    ("x-kubernetes-validations", "must be empty"),
)  # fmt: skip


def structural_faults(schema: Schema, path: str) -> list[FieldError]:
    """Problems of the schema of a whole object, sorted."""
    return sorted([*_invariants(schema, path, ROOT), *_completeness(schema, schema, path, path)], key=str)


def sub_schemas(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The schemas of a value's parts, with their place."""
    if isinstance(schema.get("items"), Mapping):
        yield ".items", schema["items"]
    for name, sub in (schema.get("properties") or {}).items():
        yield f".properties[{name}]", sub
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield ".additionalProperties", schema["additionalProperties"]


def _invariants(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    if kind == "array" and not schema.get("items"):
        yield required(f"{path}.items", "must be specified")
    for place, sub in sub_schemas(schema):
        yield from _invariants(sub, path + place, ITEM if place == ".items" else FIELD)
    if schema.get("additionalProperties") is not None and level == ROOT:
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    yield from _extensions(schema, path)
    yield from _values(schema, path)
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    elif not kind and not any(schema.get(f"x-kubernetes-{w}") for w in ("int-or-string", "preserve-unknown-fields")):
        yield required(f"{path}.type", f"must not be empty {level}")
    if embedded and schema.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if level == ROOT and kind not in ("", "object"):
        yield invalid(f"{path}.type", kind, "must be object at the root")
    yield from _resource_fields(schema, path, level, embedded=embedded)


def _resource_fields(schema: Schema, path: str, level: str, *, embedded: bool) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    if level == ROOT or embedded:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type", "") != "string":
                where = f"{path}.properties[{name}].type"
                yield invalid(where, properties[name].get("type", ""), "must be string")
        if "metadata" in properties and properties["metadata"].get("type", "") != "object":
            where = f"{path}.properties[metadata].type"
            yield invalid(where, properties["metadata"].get("type", ""), "must be object")
    if level == ROOT and "metadata" in properties and not _is_plain_metadata(properties["metadata"]):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{path}.properties[metadata]", detail)
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not properties:
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", detail)


def _is_plain_metadata(metadata: Schema) -> bool:
    names = set(metadata.get("properties") or {})
    return names <= _META_NAMES and not any(
        value for word, value in metadata.items() if word not in ("type", "properties", "default")
    )


def _extensions(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-int-or-string"):
        for word in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(word):
                yield invalid(f"{path}.{word}", True, "must be false if x-kubernetes-int-or-string is true")


def _values(schema: Schema, path: str, *, skip_any: bool | None = None) -> Iterator[FieldError]:
    any_of, all_of = schema.get("anyOf") or [], schema.get("allOf") or []
    skip = any_of == _INT_OR_STRING if skip_any is None else skip_any
    skip_first = skip_any is None and bool(all_of) and all_of[0].get("anyOf") == _INT_OR_STRING
    for name in _JUNCTORS:
        for index, sub in enumerate(schema.get(name) or ()):
            if name == "anyOf" and skip:
                continue
            first = name == "allOf" and skip_first and index == 0
            yield from _nested(sub, f"{path}.{name}[{index}]", skip_any=first)
    if isinstance(schema.get("not"), Mapping):
        yield from _nested(schema["not"], f"{path}.not", skip_any=False)
    fault = _pattern_fault(schema.get("pattern") or "")
    if fault:
        detail = f"must be a valid regular expression, but isn't: {fault}"
        yield invalid(f"{path}.pattern", schema["pattern"], detail)


def _pattern_fault(pattern: str) -> str:
    """Return why a text is not a regular expression, with the message of Go's parser where it is known; or empty."""
    try:
        compile_pattern(pattern)
    except PatternError as error:
        return f"error parsing regexp: {error.in_go}"
    return ""


def _nested(schema: Schema, path: str, *, skip_any: bool) -> Iterator[FieldError]:
    yield from _values(schema, path, skip_any=skip_any)
    for place, sub in sub_schemas(schema):
        if place != ".additionalProperties":
            yield from _nested(sub, path + place, skip_any=False)
    if schema.get("type"):
        yield forbidden(f"{path}.type", "must be empty to be structural")
    for word in ("additionalProperties", "default"):
        if schema.get(word) is not None:
            yield forbidden(f"{path}.{word}", "must be undefined to be structural")
    for word, detail in _EMPTY_IN_JUNCTORS:
        if schema.get(word):
            yield forbidden(f"{path}.{word}", f"{detail} to be structural")
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(values: Schema, schema: Schema, path: str, values_path: str) -> Iterator[FieldError]:
    """Fields that a combination at the root names must exist outside of it (only there, as upstream has it)."""
    for name in _JUNCTORS:
        for index, sub in enumerate(values.get(name) or ()):
            yield from _nested_completeness(sub, schema, path, f"{values_path}.{name}[{index}]")
    if isinstance(values.get("not"), Mapping):
        yield from _nested_completeness(values["not"], schema, path, f"{values_path}.not")


def _nested_completeness(values: Schema, schema: Schema | None, path: str, values_path: str) -> Iterator[FieldError]:
    if schema is None:
        yield required(path, f"because it is defined in {values_path}")
        return
    yield from _completeness(values, schema, path, values_path)
    if isinstance(values.get("items"), Mapping):
        items = schema.get("items")
        inner = items if isinstance(items, Mapping) else None
        yield from _nested_completeness(values["items"], inner, f"{path}.items", f"{values_path}.items")
    known = schema.get("properties") or {}
    for name, sub in (values.get("properties") or {}).items():
        place = f".properties[{name}]"
        if name in known:
            yield from _nested_completeness(sub, known[name], path + place, values_path + place)
        else:
            yield required(path + place, f"because it is defined in {values_path}{place}")

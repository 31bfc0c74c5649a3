"""The keywords of a schema inside a definition, and the types of their values.

A schema may hold schemas without end, so no schema can describe it. This part of a definition's decoding handles them:
values of the wrong type are rejected, unknown keywords are dropped, and zero values vanish.

Source: kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/v1/types_jsonschema.go, marshal.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_STRUCT = "JSONSchemaProps"
_SCALARS: dict[str, tuple[str, tuple[type, ...]]] = {
    **dict.fromkeys(
        ("id", "$schema", "$ref", "description", "type", "format", "title", "pattern", "x-kubernetes-list-type",
         "x-kubernetes-map-type"),
        ("string", (str,)),
    ),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), ("float64", (int, float))),
    **dict.fromkeys(
        ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), ("int64", (int,))
    ),
    **dict.fromkeys(
        ("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable", "x-kubernetes-preserve-unknown-fields",
         "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
        ("bool", (bool,)),
    ),
}  # fmt: skip
_STRING_LISTS = ("required", "x-kubernetes-list-map-keys")
_SCHEMA_LISTS = ("allOf", "oneOf", "anyOf")
_SCHEMA_MAPS = ("properties", "patternProperties", "definitions")
_SCHEMAS = ("not", "items", "additionalProperties", "additionalItems")
_FREE = ("default", "example", "enum", "externalDocs", "dependencies")
_RULE: dict[str, tuple[str, type]] = {
    "rule": ("string", str), "message": ("string", str), "messageExpression": ("string", str),
    "reason": ("string", str), "fieldPath": ("string", str), "optionalOldSelf": ("bool", bool),
}  # fmt: skip
_RULES = "x-kubernetes-validations"
_KNOWN = frozenset({*_SCALARS, *_STRING_LISTS, *_SCHEMA_LISTS, *_SCHEMA_MAPS, *_SCHEMAS, *_FREE, _RULES})
_POINTERS = frozenset({
    "maximum", "minimum", "multipleOf", "maxLength", "minLength", "maxItems", "minItems", "maxProperties",
    "minProperties", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type", "x-kubernetes-map-type", "$ref",
    "not", "items", "additionalProperties", "additionalItems", "default", "example",
})  # fmt: skip
_NAMES = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_PLACE = "spec.versions.schema.openAPIV3Schema"


def definition_misfit(value: dict[str, Any]) -> str:
    """Return why the schemas of a definition cannot be decoded, or empty."""
    return next((fault for _, schema in _schemas(value) if (fault := _misfit(schema, _PLACE))), "")


def prune_definition(value: dict[str, Any]) -> list[str]:
    """Drop unknown keywords and zero values from the schemas of a definition; return the paths of the unknown ones."""
    dropped: list[str] = []
    for index, schema in _schemas(value):
        _prune(schema, f"spec.versions[{index}].schema.openAPIV3Schema", dropped)
    return dropped


def _schemas(value: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    spec = value.get("spec")
    versions = spec.get("versions") if isinstance(spec, dict) else None
    for index, version in enumerate(versions if isinstance(versions, list) else ()):
        holder = version.get("schema") if isinstance(version, dict) else None
        schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
        if isinstance(schema, dict):
            yield index, schema


def _wrong(value: Any, place: str, expected: str, struct: str = _STRUCT) -> str:
    actual = _NAMES.get(type(value), "null")
    if expected == "int64" and isinstance(value, float):
        actual = f"number {value}"
    return f"json: cannot unmarshal {actual} into Go struct field {struct}.{place} of type {expected}"


def _misfit(schema: Any, place: str) -> str:
    if not isinstance(schema, dict):
        return _wrong(schema, place, f"v1.{_STRUCT}")
    for word, value in schema.items():
        fault = "" if value is None else _word_misfit(word, value, f"{place}.{word}")
        if fault:
            return fault
    return ""


def _word_misfit(word: str, value: Any, place: str) -> str:
    if word in _SCALARS:
        expected, types = _SCALARS[word]
        return "" if type(value) in types else _wrong(value, place, expected)
    if word in _STRING_LISTS:
        if not isinstance(value, list):
            return _wrong(value, place, "[]string")
        return next((_wrong(element, place, "string") for element in value if not isinstance(element, str)), "")
    if word in _SCHEMA_LISTS:
        if not isinstance(value, list):
            return _wrong(value, place, f"[]v1.{_STRUCT}")
        return _first_problem(_misfit(element, place) for element in value)
    if word in _SCHEMA_MAPS:
        if not isinstance(value, dict):
            return _wrong(value, place, f"map[string]v1.{_STRUCT}")
        return _first_problem(_misfit(element, place) for element in value.values())
    if word in _SCHEMAS:
        return _schema_misfit(word, value, place)
    if word == "enum" and not isinstance(value, list):
        return _wrong(value, place, "[]v1.JSON")
    return _rules_misfit(value, place) if word == _RULES else ""


def _first_problem(faults: Iterator[str]) -> str:
    return next((fault for fault in faults if fault), "")


def _schema_misfit(word: str, value: Any, place: str) -> str:
    if word == "items" and isinstance(value, list):
        return _first_problem(_misfit(element, place) for element in value)
    if word in ("additionalProperties", "additionalItems") and isinstance(value, bool):
        return ""
    if word != "not" and not isinstance(value, dict):
        return "boolean or JSON schema expected" if word != "items" else _wrong(value, place, f"v1.{_STRUCT}")
    return _misfit(value, place)


def _rules_misfit(rules: Any, place: str) -> str:
    if not isinstance(rules, list):
        return _wrong(rules, place, "v1.ValidationRules")
    for rule in rules:
        if not isinstance(rule, dict):
            return _wrong(rule, place, "v1.ValidationRule")
        for word, value in rule.items():
            expected, python_type = _RULE.get(word, ("", object))
            if expected and value is not None and type(value) is not python_type:
                return _wrong(value, f"{place}.{word}", expected, "ValidationRule")
    return ""


def _prune(schema: dict[str, Any], place: str, dropped: list[str]) -> None:
    for word in list(schema):
        value = schema[word]
        if word not in _KNOWN:
            dropped.append(f"{place}.{word}")
        elif value is not None and (value or word in _POINTERS):
            _prune_word(word, value, f"{place}.{word}", dropped)
            continue
        del schema[word]


def _prune_word(word: str, value: Any, place: str, dropped: list[str]) -> None:
    if word in _SCHEMA_MAPS:
        for name, sub in value.items():
            _prune(sub, f"{place}.{name}", dropped)
    elif word in _SCHEMA_LISTS or (word in _SCHEMAS and isinstance(value, list)):
        for index, sub in enumerate(value):
            _prune(sub, f"{place}[{index}]", dropped)
    elif word in _SCHEMAS and isinstance(value, dict):
        _prune(value, place, dropped)
    elif word == _RULES:
        for index, rule in enumerate(value):
            for name in [name for name in rule if name not in _RULE or rule[name] is None]:
                if name not in _RULE:
                    dropped.append(f"{place}[{index}].{name}")
                del rule[name]

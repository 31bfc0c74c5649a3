"""Problems of a version's schema beyond its structure: keywords, lists, defaults; and of its rules.

Source: kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/validation/validation.go,
pkg/apiserver/schema/defaulting/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ironbell.apiserver.crds.expressions import rules_faults
from ironbell.apiserver.crds.structural import Schema, structural_faults, sub_schemas
from ironbell.apiserver.fielderrors import FieldError, forbidden, invalid, not_supported, required
from ironbell.apiserver.schema.prune import compile_prune
from ironbell.apiserver.schema.rules import CompileRule, check_rules, compile_rules
from ironbell.apiserver.schema.validate import compile_check
from ironbell.base.errors import IronbellError
from ironbell.codec import effort

_ALLOWANCE_S = 0.5
"""Limit of processor time, for the rules of one default."""
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_UNSUPPORTED = ("$ref", "definitions", "dependencies", "patternProperties", "additionalItems", "id")
_SET_ITEM = "must be atomic as item of a list with x-kubernetes-list-type=set"


def schema_faults(
    schema: Schema, path: str, *, compile_rule: CompileRule | None, judge_each: bool = True
) -> list[FieldError]:
    """All problems of the schema of a whole object; rules are checked only if the rest is valid.

    With `judge_each`, no rule may be too expensive by itself; all together may never be.
    """
    keyword_errors = list(_keyword_faults(schema, path))
    # A schema with an unknown keyword has no known structure.
    foreign = any(fault.field.rpartition(".")[2] in _UNSUPPORTED for fault in keyword_errors)
    errors = [] if foreign else structural_faults(schema, path)
    if not errors and not foreign:
        errors = list(_default_faults(schema, path, compile_rule=compile_rule))
    structural = not errors
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    errors += keyword_errors
    if structural and not keyword_errors and compile_rule is not None:
        errors += rules_faults(schema, path, compile_rule, judge_each=judge_each)
    return errors


def _keyword_faults(schema: Schema, path: str) -> Iterator[FieldError]:
    for word in _UNSUPPORTED:
        if schema.get(word):
            yield forbidden(f"{path}.{word}", f"{word} is not supported")
    kind = schema.get("type", "")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    elif kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    additional = schema.get("additionalProperties")
    if schema.get("properties") and additional is not None and additional is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", detail)
    for place, sub in sub_schemas(schema):
        yield from _keyword_faults(sub, path + place)
    if isinstance(schema.get("not"), Mapping):
        yield from _keyword_faults(schema["not"], f"{path}.not")
    for word in ("allOf", "oneOf", "anyOf"):
        for index, sub in enumerate(schema.get(word) or ()):
            yield from _keyword_faults(sub, f"{path}.{word}[{index}]")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    yield from _map_type_faults(schema, path)
    yield from _list_type_faults(schema, path)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        yield from _rule_text_faults(rule, f"{path}.x-kubernetes-validations[{index}]")


def _needs_type(schema: Schema, path: str, expected: str, word: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if kind != expected:
        detail = f"must be {expected} if {word} is specified"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)


def _map_type_faults(schema: Schema, path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-map-type")
    if kind is None:
        return
    yield from _needs_type(schema, path, "object", "x-kubernetes-map-type")
    if kind not in ("atomic", "granular"):
        yield not_supported(f"{path}.x-kubernetes-map-type", kind, ("atomic", "granular"))


def _list_type_faults(schema: Schema, path: str) -> Iterator[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    items = schema.get("items") if isinstance(schema.get("items"), Mapping) else None
    if kind is not None:
        misplaced = list(_needs_type(schema, path, "array", "x-kubernetes-list-type"))
        yield from misplaced
        if not misplaced and kind == "set" and items is not None:
            yield from _set_faults(items, f"{path}.items")
        if kind not in ("atomic", "set", "map"):
            yield not_supported(f"{path}.x-kubernetes-list-type", kind, ("atomic", "set", "map"))
    if keys and kind != "map":
        detail, where = "must be map if x-kubernetes-list-map-keys is non-empty", f"{path}.x-kubernetes-list-type"
        yield required(where, detail) if kind is None else invalid(where, kind, detail)
    if kind == "map":
        yield from _map_faults(schema, items, keys, path)
    if kind in ("map", "set") and items is not None and items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {kind}")


def _set_faults(items: Schema, path: str) -> Iterator[FieldError]:
    if items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
        yield invalid(f"{path}.x-kubernetes-list-type", items["x-kubernetes-list-type"], _SET_ITEM)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield invalid(f"{path}.x-kubernetes-map-type", items.get("x-kubernetes-list-type"), _SET_ITEM)


def _map_faults(schema: Schema, items: Schema | None, keys: Any, path: str) -> Iterator[FieldError]:
    words = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield required(words, "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    kind = items.get("type", "")
    if kind != "object":
        yield invalid(f"{path}.items.type", kind, "must be object if parent array's x-kubernetes-list-type is map")
        return
    properties, needed = items.get("properties") or {}, items.get("required") or ()
    seen: set[str] = set()
    for key in keys:
        key_schema = properties.get(key)
        if key_schema is None:
            yield invalid(words, list(keys), "entries must all be names of item properties")
        elif key_schema.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", kind, detail)
        if key in seen:
            yield invalid(words, list(keys), "must not contain duplicate entries")
        seen.add(key)
    for key in keys:
        key_schema = properties.get(key)
        if key_schema is None:
            continue
        if key not in needed and key_schema.get("default") is None:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield required(f"{path}.items.properties[{key}].default", detail)
        if key_schema.get("nullable"):
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield forbidden(f"{path}.items.properties[{key}].nullable", detail)


def _rule_text_faults(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    text, message = rule.get("rule", ""), rule.get("message", "")
    if not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif "\n" in text.strip() and not message.strip():
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression", "")
    if expression and not expression.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.get("reason") and rule["reason"] not in _REASONS:
        yield not_supported(f"{path}.reason", rule["reason"], _REASONS)


def _default_faults(schema: Schema, path: str, *, compile_rule: CompileRule | None) -> Iterator[FieldError]:
    """Defaults must be valid values of their own schema, with nothing unknown in them."""
    default = schema.get("default")
    if default is not None:
        where = f"{path}.default"
        copy = msgspec.json.decode(msgspec.json.encode(default))
        prune = compile_prune(schema)
        if prune is not None:
            prune(copy, None, [])
        if copy != default:
            yield invalid(where, default, "must not have unknown fields")
        yield from _value_faults(schema, default, where, compile_rule=compile_rule)
    for place, sub in sub_schemas(schema):
        if place != ".additionalProperties":
            yield from _default_faults(sub, path + place, compile_rule=compile_rule)


def _value_faults(schema: Schema, value: Any, where: str, *, compile_rule: CompileRule | None) -> Iterator[FieldError]:
    errors: list[FieldError] = []
    check = compile_check(schema)
    if check is not None:
        check(value, None, errors)
    if not errors:
        try:
            rules = compile_rules(schema, compile_rule)
        except (IronbellError, ValueError, TypeError, LookupError, RecursionError):
            rules = None  # reported at the path of the rule
        if rules is not None:
            with effort.limited(_ALLOWANCE_S):
                check_rules(rules, value, None, errors)
    for fault in errors:
        place = f"{where}.{fault.field}" if fault.field and fault.field != "<nil>" else where
        yield FieldError(fault.kind, place, fault.body)

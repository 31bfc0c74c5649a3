"""What is unknown goes, what is missing comes."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.apiserver.schema.compiled import compile_schema

PLAIN = {"type": "object", "properties": {"a": {"type": "string"}, "o": {"type": "object", "properties": {}}}}
OPEN = {**PLAIN, "x-kubernetes-preserve-unknown-fields": True}
INNER = {"type": "object", "default": {}, "properties": {"a": {"default": 1}}}


def schema_of(spec: dict[str, Any]) -> Any:
    return compile_schema({"type": "object", "properties": {"spec": spec}})


@pytest.mark.parametrize(
    ("spec", "value", "left", "dropped"),
    [
        (PLAIN, {"a": "x", "b": 1}, {"a": "x"}, ["spec.b"]),
        (PLAIN, {"o": {"deep": 1}}, {"o": {}}, ["spec.o.deep"]),
        (
            {**PLAIN, "x-kubernetes-preserve-unknown-fields": True},
            {"b": 1, "o": {"c": 1}},
            {"b": 1, "o": {}},
            ["spec.o.c"],
        ),
        ({"type": "array", "items": PLAIN}, [{"b": 1}], [{}], ["spec[0].b"]),
        ({"type": "object", "additionalProperties": PLAIN}, {"k": {"b": 1}}, {"k": {}}, ["spec.k.b"]),
        ({"type": "object", "additionalProperties": True}, {"k": {"b": 1}}, {"k": {"b": 1}}, []),
        (PLAIN, {"a": None}, {}, []),
        ({"type": "object", "properties": {"a": {"type": "string", "nullable": True}}}, {"a": None}, {"a": None}, []),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
            {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "other": 1},
            {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}},
            ["spec.other"],
        ),
    ],
)
def test_prunes(spec: dict[str, Any], value: Any, left: Any, dropped: list[str]) -> None:
    whole = {"kind": "K", "apiVersion": "g/v1", "metadata": {"name": "n", "labels": {}}, "spec": value}
    assert schema_of(spec).prune(whole) == dropped
    assert whole["spec"] == left
    assert whole["metadata"] == {"name": "n", "labels": {}}


@pytest.mark.parametrize(
    ("spec", "value", "filled"),
    [
        ({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}, {}, {"a": "x"}),
        ({"type": "array", "items": {"type": "string", "default": "x"}}, ["a", None], ["a", "x"]),
        ({"type": "array", "items": {"type": "string", "default": "x", "nullable": True}}, [None], [None]),
        ({"type": "object", "additionalProperties": INNER}, {"k": None}, {"k": {"a": 1}}),
        ({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}, {"a": "y"}, {"a": "y"}),
        (
            {"type": "object", "properties": {"o": {"type": "object", "properties": {"a": {"default": 1}}}}},
            {},
            {},
        ),
        (
            {
                "type": "object",
                "properties": {"o": {"type": "object", "default": {}, "properties": {"a": {"default": 1}}}},
            },
            {},
            {"o": {"a": 1}},
        ),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {"default": 1}}}}, [{}], [{"a": 1}]),
        ({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}, {"a": None}, {"a": "x"}),
    ],
)
def test_fills_in_defaults(spec: dict[str, Any], value: Any, filled: Any) -> None:
    whole = {"spec": value}
    compiled = schema_of(spec)
    compiled.prune(whole)
    compiled.default(whole)
    assert whole["spec"] == filled


def test_a_default_is_never_shared_between_objects() -> None:
    compiled = schema_of({"type": "object", "properties": {"o": {"type": "object", "default": {"k": []}}}})
    first: dict[str, Any] = {"spec": {}}
    second: dict[str, Any] = {"spec": {}}
    compiled.default(first)
    first["spec"]["o"]["k"].append(1)
    compiled.default(second)
    assert second["spec"]["o"] == {"k": []}

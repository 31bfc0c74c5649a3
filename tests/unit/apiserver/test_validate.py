"""Validation says what Kubernetes says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.apiserver.schema.compiled import compile_schema
from ironbell.apiserver.schema.formats import format_check
from ironbell.codec.re2 import compile_pattern

STRING = {"type": "string"}


def faults(schema: dict[str, Any], value: Any) -> list[str]:
    root = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": schema}}}}
    return [str(error) for error in compile_schema(root).validate({"spec": {"x": value}})]


TABLE: list[tuple[dict[str, Any], Any, str]] = [
    (STRING, 1, 'spec.x: Invalid value: "integer": spec.x in body must be of type string: "integer"'),
    (STRING, None, 'spec.x: Invalid value: "null": spec.x in body must be of type string: "null"'),
    ({"type": "integer"}, "1", 'spec.x: Invalid value: "string": spec.x in body must be of type integer: "string"'),
    ({"type": "integer"}, True, 'spec.x: Invalid value: "boolean": spec.x in body must be of type integer: "boolean"'),
    ({"type": "boolean"}, 1, 'spec.x: Invalid value: "integer": spec.x in body must be of type boolean: "integer"'),
    ({"type": "object"}, [], 'spec.x: Invalid value: "array": spec.x in body must be of type object: "array"'),
    ({"type": "string", "minLength": 3, "maxLength": 1}, "ab", "spec.x: Too long: may not be more than 1 byte"),
    (
        {"type": "object", "required": ["name"]},
        {},
        "spec.x.name: Required value",
    ),
    (
        {"type": "array", "items": {"type": "object", "required": ["name"]}},
        [{"name": 1}, {}],
        "spec.x[1].name: Required value",
    ),
    (
        {"type": "string", "pattern": "^[a-z]+$"},
        "A1",
        "spec.x: Invalid value: \"A1\": spec.x in body should match '^[a-z]+$'",
    ),
    (
        {"type": "string", "minLength": 2},
        "a",
        'spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long',
    ),
    ({"type": "string", "maxLength": 1}, "ab", "spec.x: Too long: may not be more than 1 byte"),
    (
        {"type": "string", "enum": ["a", "b"]},
        "c",
        'spec.x: Unsupported value: "c": supported values: "a", "b"',
    ),
    (
        {"type": "integer", "minimum": 1},
        0,
        "spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1",
    ),
    (
        {"type": "integer", "maximum": 5, "exclusiveMaximum": True},
        5,
        "spec.x: Invalid value: 5: spec.x in body should be less than 5",
    ),
    ({"type": "integer", "multipleOf": 2}, 3, "spec.x: Invalid value: 3: spec.x in body should be a multiple of 2"),
    ({"type": "array", "maxItems": 1}, [1, 2], "spec.x: Too many: 2: must have at most 1 item"),
    ({"type": "array", "minItems": 1}, [], "spec.x: Invalid value: 0: spec.x in body should have at least 1 items"),
    ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 2}, "spec.x: Too many: 2: must have at most 1 item"),
    (
        {"type": "string", "format": "date-time"},
        "yesterday",
        'spec.x: Invalid value: "yesterday": spec.x in body must be of type date-time: "yesterday"',
    ),
    (
        {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        ["a", "b", "a"],
        'spec.x[2]: Duplicate value: "a"',
    ),
    (
        {
            "type": "array",
            "items": {"type": "object"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
        [{"k": 1}, {"k": 1}],
        'spec.x[1]: Duplicate value: {"k":1}',
    ),
    (
        {"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
        "c",
        '<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)',
    ),
    (
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"a": 1, "b": 1},
        '<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives',
    ),
    (
        {"type": "object", "not": {"required": ["a"]}},
        {"a": 1},
        '<nil>: Invalid value: "": "spec.x" must not validate the schema (not)',
    ),
    (
        {"x-kubernetes-int-or-string": True},
        1.5,
        'spec.x: Invalid value: "number": spec.x in body must be of type integer,string: "number"',
    ),
    (
        {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        {"kind": "A"},
        "spec.x.apiVersion: Required value",
    ),
]


@pytest.mark.parametrize(("schema", "value", "text"), TABLE, ids=[text[:60] for _, _, text in TABLE])
def test_names_a_fault_in_kubernetes_words(schema: dict[str, Any], value: Any, text: str) -> None:
    assert faults(schema, value)[0] == text


ACCEPTED: list[tuple[dict[str, Any], Any]] = [
    ({"type": "integer"}, 2.0),
    ({"type": "number"}, 2),
    ({"type": "string", "nullable": True}, None),
    ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, "50%"),
    ({"x-kubernetes-int-or-string": True}, 3),
    ({"type": "string", "format": "something-else"}, "x"),
    ({"x-kubernetes-preserve-unknown-fields": True}, [1, {"a": None}]),
    ({"type": "object", "additionalProperties": STRING}, {"a": "b"}),
    ({"type": "array", "x-kubernetes-list-type": "set", "items": {}}, [1, True, "1"]),
]


@pytest.mark.parametrize(("schema", "value"), ACCEPTED)
def test_accepts_what_kubernetes_accepts(schema: dict[str, Any], value: Any) -> None:
    assert faults(schema, value) == []


def test_reports_all_faults_of_an_object() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"b": STRING, "c": {"type": "integer", "minimum": 1}}}
    assert len(faults(schema, {"b": 1, "c": 0})) == 3


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        (r"^\d+$", "٣", False),
        ("^[[:alpha:]]+$", "abc", True),
        ("^[^]a]$", "b", True),
        (r"^a\z", "a", True),
        (r"\$", "a$", True),
        ("[$]", "$", True),
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern: str, text: str, matches: bool) -> None:
    assert compile_pattern(pattern).matches(text) is matches


@given(st.text(max_size=30))
def test_any_text_is_a_pattern_or_a_value_error(text: str) -> None:
    try:
        compile_pattern(text)
    except ValueError:
        return


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-01-02T03:04:05.123Z", "2026-13-02T03:04:05Z"),
        ("uri", "https://example.org/a", "no spaces here"),
        ("byte", "aGk=", "aGk"),
        ("ipv4", "192.0.2.1", "192.0.2.256"),
        ("ipv6", "2001:db8::1", "192.0.2.1"),
        ("cidr", "192.0.2.0/24", "192.0.2.0"),
        ("mac", "52:54:00:12:34:56", "52:54:00"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("hostname", "a.example.org", "-a"),
        ("duration", "1h30m", "soon"),
    ],
)
def test_formats(name: str, good: str, bad: str) -> None:
    check = format_check(name)
    assert check is not None
    assert check(good)
    assert not check(bad)


SHORT = {"type": "string", "maxLength": 3, "pattern": "^[a-z]+$"}
ITEM = {"type": "object", "required": ["name"], "properties": {"name": SHORT, "size": {"type": "integer"}}}
PART = {
    "type": "object",
    "required": ["name"],
    "maxProperties": 3,
    "properties": {
        "name": SHORT,
        "at": {"type": "string", "format": "date-time"},
        "items": {
            "type": "array",
            "maxItems": 2,
            "items": ITEM,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    },
}
WHOLE = {"type": "object", "required": ["spec"], "properties": {"spec": PART, "status": PART}}
names = st.sampled_from(["a", "bb", "cccc", "A", 1, None])
parts = st.fixed_dictionaries(
    {},
    optional={
        "name": names,
        "at": st.sampled_from(["2026-01-01T00:00:00Z", "yesterday", 3]),
        "items": st.lists(
            st.fixed_dictionaries({}, optional={"name": names, "size": st.sampled_from([1, True, "x"])}), max_size=3
        ),
    },
)
objects = st.fixed_dictionaries({}, optional={"spec": parts, "status": parts})


@given(objects, objects, st.sampled_from(["", "spec", "status"]))
def test_a_look_at_what_changed_finds_what_a_look_at_all_finds(
    old: dict[str, Any], new: dict[str, Any], kept: str
) -> None:
    if kept in old:
        new = {**new, kept: old[kept]}
    by_parts = compile_schema(WHOLE)
    as_whole = msgspec.structs.replace(by_parts, _check_parts=None)
    assert by_parts.validate(new, old) == as_whole.validate(new, old)


def test_what_a_schema_says_of_the_whole_is_looked_at_as_a_whole() -> None:
    both = compile_schema({**WHOLE, "maxProperties": 1})
    value = {"spec": {"name": "a"}, "status": {"name": "a"}}
    assert [error.kind for error in both.validate(value, {"spec": {"name": "a"}})] == ["FieldValueTooMany"]


def test_a_string_that_is_good_in_one_field_is_not_in_another_and_bad_ones_stay_bad() -> None:
    schema = {"type": "object", "properties": {"short": SHORT, "digits": {**SHORT, "pattern": "^[0-9]+$"}}}
    compiled = compile_schema({"type": "object", "properties": {"spec": schema}})
    many = [f"{a}{b}{c}" for a in "abcdefgh" for b in "abcdefgh" for c in "abcdefgh"]
    for text in [*many, *many]:
        assert compiled.validate({"spec": {"short": text}}) == []
        (fault,) = compiled.validate({"spec": {"digits": text}})
        assert fault.field == "spec.digits"
    for _ in range(2):
        assert len(compiled.validate({"spec": {"short": "abcd"}})) == 1


@pytest.mark.parametrize("key", ["a", 'a"b', "a.b", '" must validate'])
def test_an_old_error_of_a_combination_is_tolerated_whatever_its_place_is_called(key: str) -> None:
    choice = {"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]}
    schema = compile_schema(
        {"type": "object", "properties": {"map": {"type": "object", "additionalProperties": choice}}}
    )
    old = {"map": {key: "c", "z": "a"}}
    assert schema.validate(old)
    assert schema.validate({"map": {key: "c", "z": "b"}}, old) == []
    assert schema.validate({"map": {key: "d", "z": "a"}}, old)

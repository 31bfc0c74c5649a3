"""Validation rules are asked through an injected compiler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironbell.apiserver.schema.compiled import compile_schema
from ironbell.apiserver.schema.rules import Rule
from ironbell.codec.cel.errors import CelError, NoOverloadError


def compile_python(rule: str, schema: Mapping[str, Any], *, optional_old: bool = False, gives: str = "") -> Rule:
    code = compile(rule, "rule", "eval")
    return lambda self, old: eval(code, {"self": self, "oldSelf": old})  # noqa: S307 - rules of this test


def check(rule: dict[str, Any], value: Any, old: Any = None, **more: Any) -> list[str]:
    spec = {"type": "object", "x-kubernetes-validations": [rule], **more}
    schema = compile_schema({"type": "object", "properties": {"spec": spec}}, compile_rule=compile_python)
    previous = None if old is None else {"spec": old}
    return [str(error) for error in schema.validate({"spec": value}, previous)]


def test_a_rule_that_does_not_hold_names_its_message() -> None:
    result = check({"rule": "self['a'] > 1", "message": "a is too small"}, {"a": 1})
    assert result == ["spec: Invalid value: a is too small"]


def test_without_a_message_the_rule_is_shown() -> None:
    assert check({"rule": "False"}, {}) == ["spec: Invalid value: failed rule: False"]


def test_field_path_and_reason_are_used() -> None:
    rule = {"rule": "False", "message": "no", "fieldPath": ".a", "reason": "FieldValueForbidden"}
    assert check(rule, {}) == ["spec.a: Forbidden: no"]


def test_a_message_expression_is_evaluated() -> None:
    rule = {"rule": "False", "messageExpression": "'a is ' + str(self['a'])", "message": "fallback"}
    assert check(rule, {"a": 7}) == ["spec: Invalid value: a is 7"]


def test_a_transition_rule_is_asked_on_update_only() -> None:
    rule = {"rule": "self == oldSelf", "message": "immutable"}
    assert check(rule, {"a": 1}) == []
    assert check(rule, {"a": 1}, {"a": 1}) == []
    assert check(rule, {"a": 2}, {"a": 1}) == ["spec: Invalid value: immutable"]


def test_an_optional_old_self_is_asked_on_creation_as_well() -> None:
    rule = {"rule": "oldSelf is not None", "message": "no", "optionalOldSelf": True}
    assert check(rule, {}) == ["spec: Invalid value: no"]


def test_items_of_a_map_find_their_old_selves() -> None:
    items = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["n"],
        "items": {"type": "object", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "immutable"}]},
    }
    rule = {"rule": "True"}
    old = {"l": [{"n": 1, "v": 1}, {"n": 2, "v": 2}]}
    new = {"l": [{"n": 2, "v": 3}, {"n": 3, "v": 1}]}
    result = check(rule, new, old, properties={"l": items})
    assert result == ["spec.l[0]: Invalid value: immutable"]


def test_rules_wait_for_a_sound_structure() -> None:
    rule = {"rule": "self['a'] > 1"}
    result = check(rule, {"a": "x"}, properties={"a": {"type": "integer"}})
    assert len(result) == 2
    assert "must be of type integer" in result[0]


def test_a_rule_that_cannot_be_evaluated_is_a_fault() -> None:
    result = check({"rule": "self['missing'] > 1"}, {})
    assert result == ["spec: Invalid value: \"object\": 'missing' evaluating rule: self['missing'] > 1"]


def test_the_type_of_an_error_decides_its_message_and_not_its_text() -> None:
    def failing(error: Exception) -> str:
        def rule(self: object, old: object) -> bool:
            raise error

        spec = {"type": "object", "x-kubernetes-validations": [{"rule": "r"}]}
        schema = compile_schema(spec, compile_rule=lambda *_, **__: rule)
        return str(schema.validate({}, None)[0])

    assert "arguments did not match a supported operator" in failing(NoOverloadError("int < string"))
    assert failing(CelError("no such overload: x")).endswith("no such overload: x evaluating rule: r")


def test_a_value_of_a_map_is_named_by_its_key() -> None:
    values = {"type": "object", "x-kubernetes-validations": [{"rule": "False", "message": "no"}]}
    result = check({"rule": "True"}, {"k": {}}, additionalProperties=values)
    assert result == ["spec[k]: Invalid value: no"]


def test_an_old_value_that_no_rule_asks_for_is_not_looked_at() -> None:
    requested: list[Any] = []

    def compiled(rule: str, schema: Mapping[str, Any], *, optional_old: bool = False, gives: str = "") -> Rule:
        return lambda self, old: requested.append(old) or True

    for rule in ("self.a", "self == oldSelf"):
        spec = {"type": "object", "x-kubernetes-validations": [{"rule": rule}]}
        schema = compile_schema({"type": "object", "properties": {"spec": spec}}, compile_rule=compiled)
        assert schema.validate({"spec": {}}, {"spec": {"old": 1}}) == []
    assert requested == [None, {"old": 1}]


def test_what_was_stored_is_tolerated_only_where_that_is_wanted() -> None:
    spec = {"type": "object", "x-kubernetes-validations": [{"rule": "False", "message": "no"}]}
    root = {"type": "object", "properties": {"spec": spec}}
    for ratchets, expected in ((True, []), (False, ["spec: Invalid value: no"])):
        schema = compile_schema(root, compile_rule=compile_python, ratchets=ratchets)
        assert [str(entry) for entry in schema.validate({"spec": {"a": 1}}, {"spec": {"a": 1}})] == expected

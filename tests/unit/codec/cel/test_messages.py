"""Objects and JSON patches that expressions make."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.codec.cel import CelError, CelSyntaxError, compile_expression, expression_type
from ironbell.codec.cel.types import DYN
from ironbell.codec.cel.values.messages import PATCH_TYPES, MessageValue

KNOWN = ("object", PATCH_TYPES)


def made(text: str, value: Any = None) -> Any:
    return compile_expression(text, KNOWN)({"object": value})


def type_of(text: str) -> str:
    return str(expression_type(text, dict.fromkeys(KNOWN, DYN)))


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("Object{}", "Object", {}),
        ("Object{spec: Object.spec{replicas: 1 + 2},}", "Object", {"spec": {"replicas": 3}}),
        ("Object{?a: optional.none(), ?b: object.?c, ?d: optional.of(1)}", "Object", {"d": 1}),
        ("Object{a: [1, 2]}.a.sum()", "dyn", 3),
        ("has(Object{a: 1}.a) && !has(Object{}.a)", "bool", True),
        ("Object{}.?a.orValue('b')", "string", "b"),
        ("[1].map(i, JSONPatch{op: 'add', path: '/' + string(i)})", "list(JSONPatch)", [{"op": "add", "path": "/1"}]),
        ("false ? [] : [JSONPatch{op: 'a'}]", "list(JSONPatch)", [{"op": "a"}]),
        ("false ? [JSONPatch{op: 'a'}] : []", "list(JSONPatch)", []),
        ("JSONPatch{op: 'a'}.op", "string", "a"),
        ("jsonpatch.escapeKey('a/b~c')", "string", "a~1b~0c"),
        ("Object{a: 1} == Object{a: 1}", "bool", True),
    ],
)
def test_made(text: str, type_: str, value: Any) -> None:
    assert (type_of(text), made(text, {})) == (type_, value)


def test_what_is_made_has_its_type_s_name() -> None:
    found = made("Object{spec: Object.spec{}}")
    assert isinstance(found, MessageValue)
    assert (found.type_name, found["spec"].type_name) == ("Object", "Object.spec")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Wrong{}", "1:6: undeclared reference to 'Wrong' (in container '')"),
        ("Object{a: Objects{}}", "1:18: undeclared reference to 'Objects' (in container '')"),
        ("JSONPatch{op: 1}", "1:13: expected type of field 'op' is 'string' but provided type is 'int'"),
        ("JSONPatch{no: 1}", "1:13: undefined field 'no'"),
        ("Object{?a: 1}", "1:12: expected type 'optional_type(int)' but found 'int'"),
        ("Object{a}", "1:9: Syntax error: mismatched input '}' expecting ':'"),
        ("Object{a: 1", "1:12: Syntax error: mismatched input '<EOF>' expecting {'}', ','}"),
    ],
)
def test_none_is_made(text: str, fault: str) -> None:
    with pytest.raises(CelSyntaxError) as raised:
        type_of(text)
    assert raised.value.message.startswith(f"ERROR: <input>:{fault}\n")


@pytest.mark.parametrize("text", ["Object{}", "JSONPatch{}", "jsonpatch.escapeKey('a')"])
def test_they_are_not_there_for_other_rules(text: str) -> None:
    with pytest.raises(CelSyntaxError, match="undeclared reference"):
        expression_type(text, {"self": DYN})


@pytest.mark.parametrize("text", ["JSONPatch{op: object}", "Object{?a: object}", "jsonpatch.escapeKey(object)"])
def test_values_of_another_type(text: str) -> None:
    with pytest.raises(CelError):
        made(text, 1)

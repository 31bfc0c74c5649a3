"""Rules say the same here as in kube-apiserver: which compile, what they find, and which fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ironbell.apiserver.schema.rules import compile_rules
from ironbell.codec.cel import compile_rule
from support.programs.upstream import definitions, systems

from .conftest import Answer, Oracle

PROPERTIES: dict[str, Any] = {
    "i": {"type": "integer"},
    "j": {"type": "integer"},
    "n": {"type": "number"},
    "s": {"type": "string"},
    "t": {"type": "string"},
    "b": {"type": "boolean"},
    "l": {"type": "array", "items": {"type": "integer"}},
    "ls": {"type": "array", "items": {"type": "string"}},
    "m": {"type": "object", "additionalProperties": {"type": "string"}},
    "o": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}},
    "lo": {
        "type": "array",
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
    },
    "d": {"type": "string", "format": "date-time"},
    "du": {"type": "string", "format": "duration"},
    "by": {"type": "string", "format": "byte"},
    "ios": {"x-kubernetes-int-or-string": True},
    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
}
VALUE: dict[str, Any] = {
    "i": 3, "j": 0, "n": 2, "s": "abc", "t": "b", "b": True, "l": [1, 2, 3], "ls": ["a", "b"],
    "m": {"a": "1", "b": "2"}, "o": {"x": 1, "y": "z"}, "lo": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
    "d": "2026-01-02T03:04:05Z", "du": "1h30m", "by": "aGk=", "ios": "5", "set": ["a", "b"],
}  # fmt: skip
EXPRESSIONS = (Path(__file__).with_name("expressions.txt")).read_text().splitlines()


def schema_with(rule: str) -> dict[str, Any]:
    return {"type": "object", "properties": PROPERTIES, "x-kubernetes-validations": [{"rule": rule}]}


def outcome(faults: list[str]) -> str:
    if not faults:
        return "holds"
    return "does not hold" if "failed rule" in faults[0] else "fails"


def ours(rule: str) -> str:
    try:
        ask = compile_rules(schema_with(rule), compile_rule)
    except ValueError:
        return "does not compile"
    assert ask is not None
    errors: list[Any] = []
    ask(VALUE, None, None, errors)
    return outcome([error.body for error in errors])


def theirs(answer: Answer) -> str:
    if answer.compile or answer.broken or answer.values is None:
        return "does not compile"
    return outcome([fault["detail"] for fault in answer.values[0]])


def differences(oracle: Oracle, rules: list[str]) -> dict[str, tuple[str, str]]:
    answers = oracle([{"schema": schema_with(rule), "values": [{"value": VALUE}]} for rule in rules])
    pairs = {rule: (theirs(answer), ours(rule)) for rule, answer in zip(rules, answers, strict=True)}
    return {rule: pair for rule, pair in pairs.items() if pair[0] != pair[1]}


def test_expressions_say_the_same(oracle: Oracle) -> None:
    assert differences(oracle, EXPRESSIONS) == {}


ATOMS = [
    *("self.i", "self.j", "self.n", "self.s", "self.t", "self.b", "self.l", "self.ls", "self.m", "self.o.x"),
    *("self.l[0]", "self.ls[1]", "1", "0", "2.5", "'abc'", "''", "true", "[1, 2]", "['a']", "size(self.s)"),
]
OPERATORS = ["+", "-", "*", "==", "!=", "<", ">=", "&&", "||", "in"]
EXPRESSION = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(OPERATORS), inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("{}.size()".format, inner),
        st.builds("{}.startsWith({})".format, inner, inner),
        st.builds("{}.all(x, x == {})".format, inner, inner),
        st.builds("{}.map(x, {}).size()".format, inner, inner),
        st.builds("string({})".format, inner),
        st.builds("int({})".format, inner),
    ),
    max_leaves=4,
)


@settings(max_examples=4, deadline=None)
@given(st.lists(EXPRESSION, min_size=60, max_size=120))
def test_any_expression_says_the_same(oracle: Oracle, rules: list[str]) -> None:
    assert differences(oracle, rules) == {}


def _ruled(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if isinstance(node.get("x-kubernetes-validations"), list) and "type" in node:
            yield node
        for value in node.values():
            yield from _ruled(value)
    elif isinstance(node, list):
        for value in node:
            yield from _ruled(value)


def test_every_upstream_rule_compiles_in_both(oracle: Oracle) -> None:
    schemas = [schema for system in systems() for document in definitions(system) for schema in _ruled(document)]
    assert len(schemas) > 20
    for schema, answer in zip(schemas, oracle([{"schema": one, "values": []} for one in schemas]), strict=True):
        assert (answer.compile, answer.broken) == ([], ""), answer
        compile_rules(schema, compile_rule)

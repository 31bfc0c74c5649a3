"""Expressions: values, operators, macros, functions, errors; any text is an expression or a syntax error."""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.codec import effort
from ironbell.codec.cel import CelError, CelSyntaxError, compile_expression, compile_rule
from ironbell.codec.cel.costs.meter import CallLimitExceeded
from ironbell.codec.cel.tokens import Uint
from ironbell.codec.effort import TooMuchEffort
from support.programs.upstream import definitions, systems


def evaluate(text: str, **variables: Any) -> Any:
    return compile_expression(text, tuple(variables))(variables)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7.0 / 2.0", 3.5),
        ("10u - 3u", Uint(7)),
        ("0x1F", 31),
        ("'a' + \"b\"", "ab"),
        ("'\\u00e9\\n'", "é\n"),
        ("r'\\d'", "\\d"),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("{'a': 1}['a']", 1),
        ("size('é')", 1),
        ("1 == 1.0", True),
        ("1 == '1'", False),
        ("true == 1", False),
        ("1 < 2.5", True),
        ("'a' < 'b'", True),
        ("2 in [1, 2]", True),
        ("'a' in {'a': 1}", True),
        ("true ? 1 : 2", 1),
        ("false || true && false", False),
        ("!true || !!true", True),
        ("1 > 2 ? 'x' : 1 < 2 ? 'y' : 'z'", "y"),
        ("[1, 2, 3].filter(x, x > 1)", [2, 3]),
        ("[1, 2, 3].map(x, x * 2)", [2, 4, 6]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("[1, 2].all(x, x > 0)", True),
        ("[1, 2].exists(x, x > 1)", True),
        ("[1, 2, 2].exists_one(x, x == 2)", False),
        ("{'a': 1, 'b': 2}.all(k, k != 'c')", True),
        ("'hello'.startsWith('he') && 'hello'.endsWith('lo') && 'hello'.contains('ll')", True),
        ("'abc123'.matches('[0-9]+$')", True),
        ("'a,b'.split(',')", ["a", "b"]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'a1b2'.findAll('[a-z]', 1)", ["a"]),
        ("'abcabc'.indexOf('c', 3)", 5),
        ("'abcabc'.lastIndexOf('c', 3)", 2),
        ("'%s-%d-%.2f %%'.format(['a', 1, 1.234])", "a-1-1.23 %"),
        ("'%e %b %x %X %o'.format([1234.5, 5, 255, 'a', 8])", "1.234500e+03 101 ff 61 10"),
        ("'%s %s'.format([[1, 'a', true], {'b': 1, 'a': 2.5}])", "[1, a, true] {a: 2.5, b: 1}"),
        ("'%d %d %s'.format([1000000.0, 0.0000001, null])", "1000000 0.0000001 null"),
        ("['a', 'b'].join('-')", "a-b"),
        ("int('12') + int(3.9)", 15),
        ("string(1.5)", "1.5"),
        ("url('https://h.example:80/p').getScheme()", "https"),
        ("isURL('no url')", False),
        ("[3, 1].min()", 1),
        ("type(1u)", "uint"),
        ("optional.of(1).orValue(1 / 0)", 1),
        ("optional.of(1).or(optional.of(1 / 0)).value()", 1),
    ],
)
def test_value(text: str, value: Any) -> None:
    assert evaluate(text) == value
    assert type(evaluate(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0",
        "1 + 'a'",
        "1 + 1.0",
        "9223372036854775807 + 1",
        "[1][1]",
        "{'a': 1}.b",
        "'a' < 1",
        "1 && true",
        "size(1)",
        "'a'.matches('(?=x)')",
        "!1",
        "-'a'",
        "int('x')",
        "int('9223372036854775808')",
        "uint('+1')",
        "duration('1')",
        "duration('')",
        "duration('1h 1s')",
    ],
)
def test_evaluation_error(text: str) -> None:
    with pytest.raises(CelError):
        evaluate(text)


@pytest.mark.parametrize("conversion", ["int", "uint", "duration", "timestamp"])
def test_a_text_of_many_digits_is_rejected_at_once(conversion: str) -> None:
    """Such a text may be a field of an object that anybody creates, and a constant in a rule."""
    digits, began = "9" * 5000, time.process_time()
    with pytest.raises(CelError):
        evaluate(f"{conversion}(x)", x=digits)
    with pytest.raises(CelSyntaxError):
        evaluate(f"{conversion}('{digits}')")
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h30m", 5400), ("-1.5s", -1.5), ("+.5m", 30), ("1.h", 3600), ("0", 0), ("-0", 0), ("1s500ms2us", 1.500002)],
)
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert evaluate(f"duration('{text}')").total_seconds() == seconds


@pytest.mark.parametrize(
    "text", ["", "1 +", "(1", "a b", "[1, 2", "nosuch", "nosuch(1)", "'a'.nosuch()", "has(x)", "[1].all(1, true)", "'a"]
)
def test_syntax_error(text: str) -> None:
    with pytest.raises(CelSyntaxError):
        evaluate(text)


def test_errors_are_forgiven_when_the_other_side_decides() -> None:
    assert evaluate("1 / 0 > 0 || true") is True
    assert evaluate("1 / 0 > 0 && false") is False
    assert evaluate("[0, 1].exists(x, 1 / x == 1)") is True
    assert evaluate("[0, 1].all(x, 1 / x == 2)") is False
    with pytest.raises(CelError, match="division by zero"):
        evaluate("1 / 0 > 0 || false")


def test_fields_and_has() -> None:
    rule = compile_rule("has(self.a) && self.a != '' && !has(self.b)", {})
    assert rule({"a": "x"}, None) is True
    assert rule({"a": "x", "b": 1}, None) is False
    assert rule({}, None) is False
    assert compile_rule("self.namespace == 'x'", {})({"namespace": "x"}, None) is True
    assert compile_rule("self.__namespace__ == 'x'", {})({"namespace": "x"}, None) is True
    assert compile_rule("self.a__dash__b == 1", {})({"a-b": 1}, None) is True


def test_transition_rule() -> None:
    rule = compile_rule("self == oldSelf", {})
    assert rule({"a": [1]}, {"a": [1]}) is True
    assert rule({"a": [1]}, {"a": [2]}) is False


def test_runaway_rule_ends() -> None:
    rule = compile_rule("self.all(a, self.all(b, self.all(c, a + b + c >= 0)))", {})
    with pytest.raises(CallLimitExceeded):
        rule(list(range(200)), None)


@pytest.mark.parametrize(
    "expression",
    [
        "[self.text]" + ".map(x, x + x)" * 40 + "[0].size() > 0",
        "[self.list]" + ".map(x, x + x)" * 40 + "[0].size() > 0",
        "[self.text]" + ".map(x, x.replace('a', 'aaaaaaaaaa'))" * 9 + "[0].size() > 0",
        "[self.text]" + ".map(x, x.replace('', 'aaaaaaaaaa'))" * 9 + "[0].size() > 0",
        "[self.list]" + ".map(x, [x.map(y, y).join(self.text)])" * 30 + "[0].size() > 0",
        "[self.text]" + ".map(x, [x, x, x, x, x, x, x, x].join())" * 12 + "[0].size() > 0",
        "self.list.all(x, self.list == self.list + [])",
        "self.list.all(x, !(-1 in self.list))",
        "self.list.all(x, self.list.indexOf(-1) == -1)",
        "self.list.all(x, self.list.sum() != self.list.min())",
        "self.list.all(x, (self.text + self.text).contains('b') && self.list.all(y, y != x + 100000))",
        "self.list.all(x, self.text.findAll('').size() > 0)",
        "self.list.all(x, self.list.map(y, self.list).size() > 0 || self.list.exists_one(y, y == x))",
    ],
)
def test_growth_and_repetition_end(expression: str) -> None:
    # The error must not be forgiven by the other side either.
    for shape in (expression, f"{expression} || true" if "||" not in expression else expression):
        rule = compile_rule(shape, {})
        text = "".join(random.Random(1).choices("ab", k=2000))
        with pytest.raises((TooMuchEffort, CallLimitExceeded)), effort.limited(0.3):
            rule({"text": text, "list": list(range(3000))}, None)


def test_one_allowance_holds_for_all_rules_of_an_object() -> None:
    rule = compile_rule("self.all(a, self.exists(b, b == a))", {})
    values = list(range(250))
    assert rule(values, None) is True
    with pytest.raises(TooMuchEffort), effort.limited(0.5):  # noqa: PT012 - which call overdraws does not matter
        for _ in range(100):
            rule(values, None)
    assert rule(values, None) is True


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(CelSyntaxError, match="deeper"):
        evaluate("(" * 500 + "1" + ")" * 500)
    with pytest.raises(CelError, match="chain"):
        evaluate("+".join(["1"] * 20_000))


@given(st.text(alphabet="ab1. ()[]{}?:'\"+-*/%<>=!&|,\\ruin", max_size=40))
def test_any_text_evaluates_or_fails_cleanly(text: str) -> None:
    with contextlib.suppress(CelError):
        evaluate(text, a=1, b="x")


def test_every_upstream_rule_compiles() -> None:
    rules = [rule for system in systems() for document in definitions(system) for rule in _rules(document)]
    assert len(rules) > 20
    for rule in rules:
        compile_rule(rule, {})


def _rules(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = node.get("x-kubernetes-validations", [])
        found = [r["rule"] for r in own if isinstance(r, dict)] if isinstance(own, list) else []
        return found + [rule for value in node.values() for rule in _rules(value)]
    if isinstance(node, list):
        return [rule for value in node for rule in _rules(value)]
    return []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("'%s %s'.format(['a'])", "index 1 out of range"),
        ("'%d'.format(['a'])", "decimal clause can only be used on numbers, was given string"),
        ("'%q'.format(['a'])", 'unrecognized formatting clause "q"'),
        ("'%.2000f'.format([1.0])", "longer than 1000"),
    ],
)
def test_what_cannot_be_formatted_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(CelError, match=problem):
        evaluate(text)


def test_only_arguments_of_format_may_be_of_several_types() -> None:
    assert compile_rule("'%s %d'.format([self, 1])", {"type": "string"}, gives="string")("a", None) == "a 1"
    with pytest.raises(CelSyntaxError, match="expected type 'string' but found 'int'"):
        compile_rule("size([self, 1]) == 2", {"type": "string"})

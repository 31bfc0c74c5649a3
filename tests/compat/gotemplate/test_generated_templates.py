"""Templates made from a grammar over the whole function set give Go's bytes, or fail where Go fails."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ironbell.codec.gotemplate import FUNCTIONS, Int64, P, TemplateError, render
from ironbell.codec.gotemplate.golib.gojson import floats
from ironbell.codec.gotemplate.values import encode

DATA: dict[str, Any] = {
    "s": "str",
    "f": 2.5,
    "f1": 1,
    "i": {"$int": 5},
    "b": True,
    "nil": None,
    "big": 1000000,
    "small": 0.00001,
    "l": ["a", "b", "c"],
    "ll": [[1, 2], [3, 4]],
    "m": {"a": "A", "n": 1},
    "deep": {"x": {"y": [1, {"z": "q"}]}, "list": ["a", True, None, 1.5]},
    "empty": [],
}
# What differs from call to call, and what asks for a clock.
_UNSTABLE = frozenset(
    """
    keys values randInt shuffle ago bcrypt htpasswd encryptAES derivePassword buildCustomCert call genPrivateKey genCA
    genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey
    """.split()  # noqa: SIM905
)
_BOUNDED = "a date or layout of more than"
"""In the error about a bound of ours, which docs/guide/templates.md lists."""
_MERGING = ("set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite")
_STRINGS = [
    '"a"', '""', '"abc"', '"Hello World"', '"HTTPServer fooBar_baz-Qux9"', '"1"', '"010"', '"1.5"', '"a,b,c"', '","',
    '"x\\ny"', '"é ü"', "`raw\\x`", '"true"', '"1.2.3"', '"^1.2 || >=2.0.0-beta"', '"https://u:p@h.com:80/p/a?q=1#f"',
    '"/a/../b//c.tar.gz"', '"[a-c]+x?"', '"(a)(b*)"', '"$1-${2}"', '"2h45m30.5s"', '"2006-01-02 15:04:05"',
    '"2017-12-31 10:11:12"', '"%v-%d"', '"%5.2f|%-6s|%+d"', '"%q %x"', '"{\\"a\\":[1,2.5,null]}"',
    '"a: 1\\nb: [x, yes]"', '"YWJj"', '"MFRGG==="', '"255.255.255.0"', '"/dev/sda"', '"<&>\'"', '"  trim  "', '"-5"',
    '"0x1f"', '"1e3"', '"\\U0001F600z"', '"a b"', '"_x__y_"', '"ABC1def2"',
]  # fmt: skip
_INTS = ["0", "1", "2", "3", "-1", "5", "10", "100", "0x1F", "-7", "1_000", "'a'", "07"]
_FLOATS = ["1.5", "0.0", "-2.5", "1e3", "1e21", "1.0", "123456789.0", "1e-7", "0.1", ".5", "3.14159"]
_FIELDS = [
    ".s", ".f", ".f1", ".i", ".b", ".nil", ".big", ".small", ".l", ".ll", ".m", ".deep", ".deep.x", ".deep.list",
    ".empty", ".m.a", ".m.n", ".deep.x.y", ".nope", ".m.nope", ".s.x", ".nil.x", "$.s",
]  # fmt: skip
_COLLECTIONS = [
    '(list 1 "a" 2.5 nil)', '(dict "a" 1 "b" (list 1 2))', "(until 3)", '(splitList "," "a,b")', '(split "," "a,b")',
    "(list)", "(dict)", '(list "b" "a" "c" "a")', "(list 3 1 2)", "(int64 7)", "(add 1 2)", "(list .s .f)",
]  # fmt: skip
_MAPS = ['(dict "a" 1 "b" "x")', "(dict)", '(dict "a" (dict "c" 2))', '(dict "a" "" "z" 0)', '(fromJson "{\\"a\\":1}")']
_RANGES = [".l", ".m", "until 3", "3", ".deep", ".empty", 'list 1 "a" nil', ".s", ".ll", 'dict "b" 1 "a" 2']
_BY_TYPE = {
    P.STRING: _STRINGS,
    P.INT: _INTS,
    P.UINT32: _INTS,
    P.BOOL: ["true", "false", ".b", "(eq 1 1)"],
    P.FLOAT: _FLOATS + _INTS,
    P.MAP: [".m", ".deep", ".deep.x", *_MAPS],
    P.LIST: [".l", "(list 1 2)", "(list)", ".empty"],
    P.TIME: ['(toDate "2006-01-02" "2017-12-31")'],
}


class Grammar:
    """Makes templates that mostly parse, often execute, and now and then are wrong on purpose."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._functions = [function for name, function in sorted(FUNCTIONS.items()) if name not in _UNSTABLE]
        self._variables: list[str] = []

    def template(self) -> str:
        self._variables = []
        return "".join(self._node(2, in_range=False) for _ in range(self._random.randint(1, 2)))

    def _pick(self, items: Sequence[str]) -> str:
        return self._random.choice(items)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _literal(self) -> str:
        kind = self._pick(["s", "s", "s", "i", "i", "f", "w"])
        return self._pick({"s": _STRINGS, "i": _INTS, "f": _FLOATS, "w": ["true", "false", "nil"]}[kind])

    def _argument(self, param: P, depth: int) -> str:
        if self._chance(0.15) or param not in _BY_TYPE:
            return self._anything(depth)
        if param in (P.STRING, P.INT) and self._chance(0.25):
            return self._parenthesised(depth)
        return self._pick(_BY_TYPE[param])

    def _anything(self, depth: int) -> str:
        choice = self._random.random()
        if choice < 0.3 or depth <= 0:
            return self._literal()
        if choice < 0.6:
            return self._pick(_FIELDS)
        if self._variables and choice < 0.68:
            return self._pick(self._variables)
        return self._pick(_COLLECTIONS) if choice < 0.76 else self._parenthesised(depth)

    def _parenthesised(self, depth: int) -> str:
        field = "." + self._pick(["a", "b", "x", "_0"]) if self._chance(0.05) else ""
        return f"({self._pipeline(depth - 1)}){field}"

    def _command(self, depth: int, *, piped: bool) -> str:
        function = self._random.choice(self._functions)
        if function.name in _MERGING:
            # Fresh maps only: a map that holds itself ends the oracle.
            if function.name.endswith("set"):
                return f'{function.name} {self._pick(_MAPS)} "k"' + ("" if function.name == "unset" else " (list 1)")
            return " ".join([function.name, *(self._pick(_MAPS) for _ in range(self._random.randint(1, 3)))])
        params = list(function.params)[: len(function.params) - piped]
        if function.rest is not None:
            params += [function.rest] * self._random.randint(0, 3)
        if self._chance(0.03):
            params = params[:-1]
        elif self._chance(0.02):
            params.append(P.ANY)
        return " ".join([function.name, *(self._argument(param, depth - 1) for param in params)])

    def _pipeline(self, depth: int) -> str:
        text = self._anything(depth) if self._chance(0.25) else self._command(depth, piped=False)
        while self._chance(0.3):
            text += " | " + self._command(depth, piped=True)
        return text

    def _node(self, depth: int, *, in_range: bool) -> str:
        left, right = self._pick(["{{ "] * 8 + ["{{- "]), self._pick([" }}"] * 8 + [" -}}"])
        choice = self._random.random()
        if choice < 0.55 or depth <= 0:
            return left + self._pipeline(2) + right
        if choice < 0.62:
            return self._pick([" text ", "\n", "x", "{", "é"])
        if choice < 0.7:
            name = f"$v{self._random.randint(0, 2)}"
            text = f"{left}{name} := {self._pipeline(2)}{right}"
            self._variables.append(name)
            return text
        if choice < 0.73 and self._variables:
            return f"{left}{self._pick(self._variables)} = {self._pipeline(2)}{right}"
        if choice < 0.97:
            return self._block(depth, left, right, in_range=in_range)
        if in_range:
            return self._pick(["{{ break }}", "{{ continue }}"])
        return f'{{{{ define "t{self._random.randint(0, 1)}" }}}}T{{{{ . }}}}{{{{ end }}}}{{{{ template "t0" .s }}}}'

    def _block(self, depth: int, left: str, right: str, *, in_range: bool) -> str:
        known = len(self._variables)
        word = self._pick(["if", "with", "range"])
        if word == "range":
            declared = self._pick(["", "$e := ", "$i, $e := ", "$i, $e := "])
            text = f"{left}range {declared}{self._pick([*_RANGES, self._anything(1)])}{right}"
            self._variables += [name for name in ("$e", "$i") if name in declared]
        else:
            text = f"{left}{word} {self._pipeline(1)}{right}"
        text += self._body(depth - 1, in_range=in_range or word == "range")
        if word != "range" and self._chance(0.3):
            text += f"{{{{ else {word} {self._pipeline(1)} }}}}" + self._body(depth - 1, in_range=in_range)
        del self._variables[known:]
        if self._chance(0.4):
            text += "{{ else }}" + self._body(depth - 1, in_range=in_range)
        return text + "{{ end }}"

    def _body(self, depth: int, *, in_range: bool) -> str:
        return "".join(self._node(depth, in_range=in_range) for _ in range(self._random.randint(1, 2)))


def go_value(value: Any) -> Any:
    """JSON with marked integers, as the oracle reads it."""
    if isinstance(value, dict):
        return Int64(value["$int"]) if set(value) == {"$int"} else {key: go_value(item) for key, item in value.items()}
    return [go_value(item) for item in value] if isinstance(value, list) else floats(value)


class _BeyondBoundError(Exception):
    """The template exceeds a bound that Go does not have."""


def ours(template: str) -> bytes | None:
    try:
        return re.sub(rb"0x[0-9a-f]{6,}", b"ADDRESS", encode(render(template, go_value(DATA))))
    except TemplateError as error:
        if _BOUNDED in error.problem:
            raise _BeyondBoundError from error
        return None


def compare(oracle: Callable[..., list[Any]], seed: int, count: int) -> None:
    grammar = Grammar(seed)
    templates = [grammar.template() for _ in range(count)]
    answers = oracle([_case(template) for template in templates])
    rendered = sum(answer.output is not None for answer in answers)
    assert rendered > count // 5, "the grammar makes too few templates that render"
    bounded = 0
    for template, answer in zip(templates, answers, strict=True):
        try:
            assert ours(template) == answer.comparable, f"{template}\nGo says: {answer.error}"
        except _BeyondBoundError:
            bounded += 1
    assert bounded <= count // 1000, "most templates must stay within the bounds"


def test_generated_templates_render_as_in_go(oracle: Callable[..., list[Any]]) -> None:
    compare(oracle, seed=2026, count=3000)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_many_generated_templates_render_as_in_go(oracle: Callable[..., list[Any]], seed: int) -> None:
    compare(oracle, seed=seed, count=10_000)


def test_functions_of_one_string_take_bytes_that_are_no_text(oracle: Callable[..., list[Any]]) -> None:
    """Each with bytes that are no UTF-8, alone and among letters."""
    # upstream's library glues such bytes to the next character when it looks for words; ours takes them as they are
    words = {"snakecase", "kebabcase"}
    names = [
        name
        for name, function in sorted(FUNCTIONS.items())
        if tuple(function.params) == (P.STRING,) and function.rest is None and name not in _UNSTABLE | words
    ]
    # "\xff", "ab\xff cD", "\xc3(é", "e\xe2\x82 x"
    texts = ["/w==", "YWL/IGNE", "wyjDqQ==", "ZeKCIHg="]
    templates = [f'{{{{ b64dec "{text}" | {name} }}}}' for name in names for text in texts]
    answers = oracle([_case(template) for template in templates])
    differ = {
        template: (ours(template), answer.comparable)
        for template, answer in zip(templates, answers, strict=True)
        if ours(template) != answer.comparable
    }
    assert differ == {}


def _case(template: str) -> dict[str, Any]:
    return {"mode": "render", "text": template, "data": DATA}

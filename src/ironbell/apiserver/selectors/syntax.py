"""The text form of label selectors, such as `a in (b, c),!d,e!=f`: read into predicates over labels.

Source: kubernetes/apimachinery: pkg/labels/selector.go (Lexer, Parser; messages).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ironbell.api.client import BadRequest
from ironbell.apiserver.fielderrors import invalid
from ironbell.apiserver.metadata import label_value_fault, qualified_fault

LabelMatch = Callable[[Mapping[str, str]], bool]

_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<sign>==|!=|[=!<>(),])|(?P<word>[^=!<>(), \t\r\n]+)|$)")
_OPERATORS = ("in", "notin", "=", "==", "!=", "gt", "lt")
_SIGNS = {"=": "=", "==": "=", "!=": "!=", ">": ">", "<": "<", "in": "in", "notin": "notin"}
_MAX_TEXT = 1 << 20


def parse_labels(text: str) -> LabelMatch | None:
    """A label selector as a predicate over labels; None for the empty one, which matches everything.

    Raises:
        BadRequest: the text is not a label selector.
    """
    if len(text) > _MAX_TEXT:
        raise BadRequest(f"the label selector is longer than {_MAX_TEXT} characters")
    requirements = list(_Parser(text).requirements())
    if not requirements:
        return None
    if len(requirements) == 1:
        return requirements[0]
    return lambda labels: all(requirement(labels) for requirement in requirements)


class _Parser:
    """One pass over the tokens of a selector; the empty one stands for the end."""

    def __init__(self, text: str) -> None:
        self._tokens = [token["sign"] or token["word"] or "" for token in _TOKEN.finditer(text)]
        self._position = 0

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _take(self) -> str:
        part = self._peek()
        self._position += 1
        return part

    def requirements(self) -> Iterator[LabelMatch]:
        while part := self._peek():
            if not _is_word(part) and part != "!":
                raise BadRequest(f"found '{part}', expected: !, identifier, or 'end of string'")
            try:
                yield self._requirement()
            except _Unreadable as error:
                raise BadRequest(f"unable to parse requirement: {error}") from error
            part = self._take()
            if not part:
                return
            if part != ",":
                raise BadRequest(f"found '{part}', expected: ',' or 'end of string'")
            after = self._peek()
            if not _is_word(after) and after != "!":
                raise BadRequest(f"found '{after}', expected: identifier after ','")

    def _requirement(self) -> LabelMatch:
        part = self._take()
        absent = part == "!"
        key = self._take() if absent else part
        if not _is_word(key):
            raise _Unreadable(f"found '{key}', expected: identifier")
        if fault := qualified_fault(key):
            raise _Unreadable(str(invalid("<nil>", key, fault)))
        if absent:
            return lambda labels: key not in labels
        if self._peek() in ("", ","):
            return lambda labels: key in labels
        operator = self._take()
        if operator not in _SIGNS:
            raise _Unreadable(f"found '{operator}', expected: {', '.join(_OPERATORS)}")
        values = self._values() if operator in ("in", "notin") else {self._value()}
        return _predicate(key, _SIGNS[operator], values)

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        part = self._take()
        if not _is_word(part):
            raise _Unreadable(f"found '{part}', expected: identifier")
        return part

    def _values(self) -> set[str]:
        part = self._take()
        if part != "(":
            raise _Unreadable(f"found '{part}' expected: '('")
        values: set[str] = set()
        while True:
            part = self._peek()
            if _is_word(part):
                values.add(self._take())
            elif part in (",", ")"):
                values.add("")
            else:
                raise _Unreadable(f"found '{part}', expected: ',', ')' or identifier")
            part = self._take()
            if part == ")":
                return values
            if part != ",":
                raise _Unreadable(f"found '{part}', expected: ',' or ')'")


class _Unreadable(Exception):  # noqa: N818 - says what is wrong with one requirement
    pass


def _is_word(part: str) -> bool:
    return bool(part) and part[0] not in "=!<>(),"


def _predicate(key: str, operator: str, values: set[str]) -> LabelMatch:
    if operator in (">", "<"):
        return _compare(key, next(iter(values)), greater=operator == ">")
    for position, value in enumerate(sorted(values)):
        if fault := label_value_fault(value):
            raise _Unreadable(str(invalid(f"values[{position}][{key}]", value, fault)))
    if operator in ("in", "="):
        return lambda labels: labels.get(key) in values
    return lambda labels: key not in labels or labels[key] not in values


def _compare(key: str, bound: str, *, greater: bool) -> LabelMatch:
    try:
        limit = int(bound)
    except ValueError as error:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise _Unreadable(str(invalid("values[0]", bound, detail))) from error

    def match(labels: Mapping[str, str]) -> bool:
        try:
            value = int(labels[key])
        except (KeyError, ValueError):
            return False
        return value > limit if greater else value < limit

    return match

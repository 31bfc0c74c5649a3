"""The JSONPath subset of printer columns: fields, indexes, slices, wildcards and simple filters.

A path is compiled once per column and then evaluated for every row, so each step is a closure from a list of values to
a list of values. A missing key and a value of the wrong type yield no value, because a table must print whatever an
object holds.

Failure modes: `PathError` for a path outside the subset, never for data.

Source: kubernetes/client-go: util/jsonpath/parser.go, util/jsonpath/jsonpath.go.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from ironbell.base.errors import IronbellError, Retry

Step = Callable[[list[Any]], list[Any]]

_FIELD = re.compile(r"(?:\\.|[^\s.\[\]()'\"@?*$\\])+")
_QUOTED = re.compile(r"\s*(?:'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\")\s*")
_INDEXES = re.compile(r"\s*(-?\d+)?\s*(:\s*(-?\d+)?\s*(?::\s*(\d+)?\s*)?)?")
_COMPARISON = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?$")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class PathError(IronbellError):
    """The text is not a path of the subset."""

    reason, retry = "InvalidJSONPath", Retry.NEVER


class Path:
    """A compiled path."""

    def __init__(self, text: str) -> None:
        """Compile `text`, with or without the surrounding braces.

        Raises:
            PathError: the text is outside the subset.
        """
        inner = text.strip()
        if inner.startswith("{") and inner.endswith("}"):
            inner = inner[1:-1].strip()
        self._steps = _parse(inner.removeprefix("$"), text)

    def find(self, data: Any) -> list[Any]:
        """All values that the path reaches, in order; empty when there is none."""
        values = [data]
        for step in self._steps:
            values = step(values)
            if not values:
                break
        return values


def _parse(path: str, whole: str) -> list[Step]:
    steps: list[Step] = []
    position = 0
    while position < len(path):
        if path[position] == "[":
            end = _closing(path, position, whole)
            steps.append(_bracket(path[position + 1 : end], whole))
            position = end + 1
            continue
        if path[position] == ".":
            position += 1
            if position == len(path):
                break
            if path[position] == "[":
                continue
            if path[position] == "*":
                steps.append(_wildcard)
                position += 1
                continue
        match = _FIELD.match(path, position)
        if match is None:
            raise PathError(f"JSONPath {whole!r} is not understood at {path[position:]!r}")
        steps.append(_field(re.sub(r"\\(.)", r"\1", match.group())))
        position = match.end()
    return steps


def _closing(path: str, start: int, whole: str) -> int:
    """The index of the bracket that closes the one at `start`, quotes and nesting respected."""
    depth, quote, position = 0, "", start
    while position < len(path):
        character = path[position]
        if character == "\\":
            position += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                return position
        position += 1
    raise PathError(f"JSONPath {whole!r} has an unclosed bracket")


def _bracket(inner: str, whole: str) -> Step:
    stripped = inner.strip()
    if stripped == "*":
        return _wildcard
    if stripped.startswith("?(") and stripped.endswith(")"):
        return _filter(stripped[2:-1], whole)
    quoted = _QUOTED.fullmatch(inner)
    if quoted:
        return _field(_unquote(quoted))
    if not _INDEXES.fullmatch(inner) or not stripped:
        raise PathError(f"JSONPath {whole!r} has an unknown selector [{inner}]")
    return _slice(inner)


def _unquote(match: re.Match[str]) -> str:
    return re.sub(r"\\(.)", r"\1", match.group(1) if match.group(1) is not None else match.group(2))


def _field(name: str) -> Step:
    def step(values: list[Any]) -> list[Any]:
        return [value[name] for value in values if isinstance(value, dict) and name in value]

    return step


def _wildcard(values: list[Any]) -> list[Any]:
    children: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            children.extend(value.values())
        elif isinstance(value, list):
            children.extend(value)
    return children


def _slice(inner: str) -> Step:
    match = _INDEXES.fullmatch(inner)
    assert match is not None  # noqa: S101 - the caller has matched it
    start = int(match.group(1)) if match.group(1) else None
    if match.group(2) is None:
        return _index(start or 0)
    stop = int(match.group(3)) if match.group(3) else None
    stride = int(match.group(4)) if match.group(4) else 1

    def step(values: list[Any]) -> list[Any]:
        return [item for value in values if isinstance(value, list) for item in value[start : stop : stride or 1]]

    return step


def _index(index: int) -> Step:
    def step(values: list[Any]) -> list[Any]:
        return [value[index] for value in values if isinstance(value, list) and -len(value) <= index < len(value)]

    return step


def _filter(expression: str, whole: str) -> Step:
    parts = _COMPARISON.split(expression, maxsplit=1)
    left = _operand(parts[0], whole)
    if len(parts) == 1:
        return _matching(lambda item: bool(left(item)))
    compare, right = _COMPARE[parts[1]], _operand(parts[2], whole)

    def matches(item: Any) -> bool:
        lefts, rights = left(item), right(item)
        if len(lefts) != 1 or len(rights) != 1:
            return False
        return _compared(compare, lefts[0], rights[0])

    return _matching(matches)


def _compared(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    try:
        return compare(left, right)
    except TypeError:
        return False


def _matching(matches: Callable[[Any], bool]) -> Step:
    def step(values: list[Any]) -> list[Any]:
        return [item for value in values if isinstance(value, list) for item in value if matches(item)]

    return step


def _operand(text: str, whole: str) -> Callable[[Any], list[Any]]:
    text = text.strip()
    if text.startswith("@"):
        steps = _parse(text[1:], whole)

        def reach(item: Any) -> list[Any]:
            values = [item]
            for step in steps:
                values = step(values)
            return values

        return reach
    literal = _literal(text, whole)
    return lambda _item: [literal]


def _literal(text: str, whole: str) -> Any:
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return _unquote(quoted)
    if text in {"true", "false"}:
        return text == "true"
    if _LITERAL.match(text):
        return float(text) if "." in text else int(text)
    raise PathError(f"JSONPath {whole!r} compares with {text!r}: expected a string, a number, a boolean or an @ path")

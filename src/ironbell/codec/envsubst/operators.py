"""What the operators of `${...}` do with a value. Lengths and offsets count bytes, patterns whole characters.

Source: drone/envsubst: funcs.go, path/match.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

_NUMBER = re.compile(r"[+-]?[0-9]+")


def default(value: str, operands: Sequence[str]) -> str:
    """The value; its operands in a row where it is empty."""
    return value or "".join(operands)


def _length(value: str) -> str:
    return str(len(_bytes(value)))


def _substring(value: str, operands: Sequence[str]) -> str:
    """From an offset, which counts from the end where it is negative; the whole value where a number is none."""
    if not all(_NUMBER.fullmatch(operand) for operand in operands):
        return value
    data, (offset, *length) = _bytes(value), [int(operand) for operand in operands]
    begin = max(0, len(data) + offset) if offset < 0 else offset
    end = begin + length[0] if length else len(data)
    return data[begin : max(begin, end)].decode("utf-8", "surrogateescape")


def _replace_prefix(value: str, operands: Sequence[str]) -> str:
    if len(operands) != _BOTH or not value.startswith(operands[0]):
        return value
    return operands[1] + value[len(operands[0]) :]


def _replace_suffix(value: str, operands: Sequence[str]) -> str:
    if len(operands) != _BOTH or not value.endswith(operands[0]):
        return value
    return value[: len(value) - len(operands[0])] + operands[1]


_BOTH = 2


def _replace(count: int) -> Callable[[str, Sequence[str]], str]:
    return lambda value, operands: value.replace(operands[0], "".join(operands[1:]), count)


def _cut_prefix(value: str, pattern: str, lengths: range) -> str:
    """Without the first of its beginnings, of these lengths, that the pattern describes in whole."""
    regex = _regex(pattern)
    for length in lengths:
        if regex is not None and regex.fullmatch(value, 0, length):
            return value[length:]
    return value


def _shortest(value: str) -> range:
    return range(1, len(value) + 1)


def _longest(value: str) -> range:
    return range(len(value), 0, -1)


def _cut(
    lengths: Callable[[str], range], turn: Callable[[str], str] = lambda text: text
) -> Callable[[str, Sequence[str]], str]:
    return lambda value, operands: turn(_cut_prefix(turn(value), turn(operands[0]), lengths(value)))


def _reverse(text: str) -> str:
    return text[::-1]


def _regex(pattern: str) -> re.Pattern[str] | None:
    """A pattern of `*`, `?`, `[a-z]`, `[^a]` and `\\` as a regular expression; None where it is malformed."""
    parts, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            parts.append(".*")
        elif char == "?":
            parts.append(".")
        elif char == "[":
            found = _class(pattern, at)
            if found is None:
                return None
            part, at = found
            parts.append(part)
        elif char == "\\":
            if at == len(pattern):
                return None
            parts.append(re.escape(pattern[at]))
            at += 1
        else:
            parts.append(re.escape(char))
    return re.compile("".join(parts), re.DOTALL)


def _class(pattern: str, at: int) -> tuple[str, int] | None:
    """The class of characters that begins here, and where it ends."""
    negated = pattern.startswith("^", at)
    at += negated
    ranges: list[str] = []
    while not (ranges and pattern.startswith("]", at)):
        low = _member(pattern, at)
        if low is None:
            return None
        char, at = low
        last = char
        if pattern.startswith("-", at):
            high = _member(pattern, at + 1)
            if high is None:
                return None
            last, at = high
        ranges.append(f"{re.escape(char)}-{re.escape(last)}" if char <= last else "")
    inside = "".join(ranges)
    if not inside:  # only ranges that hold nothing
        return ("." if negated else "(?!)"), at + 1
    return f"[{'^' * negated}{inside}]", at + 1


def _member(pattern: str, at: int) -> tuple[str, int] | None:
    """A character of a class, and where it ends: it needs something after it."""
    if pattern[at : at + 1] in ("", "-", "]"):
        return None
    at += pattern[at] == "\\"
    return (pattern[at], at + 1) if at + 1 < len(pattern) else None


def _first(change: Callable[[str], str]) -> Callable[[str, Sequence[str]], str]:
    return lambda value, operands: change(value[:1]) + value[1:]


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _hash(value: str, operands: Sequence[str]) -> str:
    """`${#NAME}` has no operand, `${NAME#PATTERN}` has one."""
    return _cut(_shortest)(value, operands) if operands else _length(value)


OPERATORS: Mapping[str, Callable[[str, Sequence[str]], str]] = {
    ",": _first(str.lower),
    ",,": lambda value, operands: value.lower(),
    "^": _first(str.upper),
    "^^": lambda value, operands: value.upper(),
    "#": _hash,
    "##": _cut(_longest),
    "%": _cut(_shortest, _reverse),
    "%%": _cut(_longest, _reverse),
    ":": _substring,
    "/": _replace(1),
    "//": _replace(-1),
    "/#": _replace_prefix,
    "/%": _replace_suffix,
}

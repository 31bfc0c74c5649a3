"""Operators of `${...}` on a value. Lengths and offsets are in bytes, patterns match whole characters.

Source: drone/envsubst: funcs.go, path/match.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from ironbell.base.quantities import decimal
from ironbell.codec.envsubst.patterns import glob


def default(value: str, operands: Sequence[str]) -> str:
    """The value; its operands in a row where it is empty."""
    return value or "".join(operands)


def _length(value: str) -> str:
    return str(len(_bytes(value)))


def _substring(value: str, operands: Sequence[str]) -> str:
    """Return the value from an offset, which is from the end if negative; the whole value if a number is invalid."""
    numbers = [number for operand in operands if (number := _number(operand)) is not None]
    if len(numbers) != len(operands):
        return value
    data, (offset, *length) = _bytes(value), numbers
    begin = max(0, len(data) + offset) if offset < 0 else offset
    end = begin + length[0] if length else len(data)
    return data[begin : max(begin, end)].decode("utf-8", "surrogateescape")


def _number(text: str) -> int | None:
    """Parse a number with or without sign; None if the text is not a number or exceeds 64 bits, as in Go."""
    number = decimal(text.removeprefix("-").removeprefix("+") if text[:2] not in ("-+", "+-") else text)
    return number if number is None or not text.startswith("-") else -number


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


def _cut_prefix(value: str, pattern: str, *, longest: bool) -> str:
    """Remove the shortest or longest prefix that the pattern matches in whole."""
    matcher = glob(pattern)
    lengths = list(_first_of(matcher.lengths(value), all_=longest)) if matcher is not None else []
    return value[lengths[-1] :] if lengths else value


def _first_of(lengths: Iterator[int], *, all_: bool) -> Iterator[int]:
    return lengths if all_ else islice(lengths, 1)


def _cut(*, longest: bool, turn: Callable[[str], str] = lambda text: text) -> Callable[[str, Sequence[str]], str]:
    return lambda value, operands: turn(_cut_prefix(turn(value), turn(operands[0]), longest=longest))


def _reverse(text: str) -> str:
    return text[::-1]


def _on_first_character(change: Callable[[str], str]) -> Callable[[str, Sequence[str]], str]:
    return lambda value, operands: change(value[:1]) + value[1:]


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _hash(value: str, operands: Sequence[str]) -> str:
    """`${#NAME}` has no operand, `${NAME#PATTERN}` has one."""
    return _cut(longest=False)(value, operands) if operands else _length(value)


OPERATORS: Mapping[str, Callable[[str, Sequence[str]], str]] = {
    ",": _on_first_character(str.lower),
    ",,": lambda value, operands: value.lower(),
    "^": _on_first_character(str.upper),
    "^^": lambda value, operands: value.upper(),
    "#": _hash,
    "##": _cut(longest=True),
    "%": _cut(longest=False, turn=_reverse),
    "%%": _cut(longest=True, turn=_reverse),
    ":": _substring,
    "/": _replace(1),
    "//": _replace(-1),
    "/#": _replace_prefix,
    "/%": _replace_suffix,
}

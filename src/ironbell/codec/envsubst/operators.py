"""What the operators of `${...}` do with a value. Lengths and offsets count bytes, patterns whole characters.

Source: drone/envsubst: funcs.go, path/match.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from ironbell.base.numbers import decimal
from ironbell.codec.envsubst.patterns import glob


def default(value: str, operands: Sequence[str]) -> str:
    """The value; its operands in a row where it is empty."""
    return value or "".join(operands)


def _length(value: str) -> str:
    return str(len(_bytes(value)))


def _substring(value: str, operands: Sequence[str]) -> str:
    """From an offset, which counts from the end where it is negative; the whole value where a number is none."""
    numbers = [number for operand in operands if (number := _number(operand)) is not None]
    if len(numbers) != len(operands):
        return value
    data, (offset, *length) = _bytes(value), numbers
    begin = max(0, len(data) + offset) if offset < 0 else offset
    end = begin + length[0] if length else len(data)
    return data[begin : max(begin, end)].decode("utf-8", "surrogateescape")


def _number(text: str) -> int | None:
    """With or without sign; None for what is none, or fits into no 64 bits, as in Go."""
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
    """Without the shortest or longest of its beginnings that the pattern describes in whole."""
    matcher = glob(pattern)
    found = list(_first_of(matcher.lengths(value), all_=longest)) if matcher is not None else []
    return value[found[-1] :] if found else value


def _first_of(lengths: Iterator[int], *, all_: bool) -> Iterator[int]:
    return lengths if all_ else islice(lengths, 1)


def _cut(*, longest: bool, turn: Callable[[str], str] = lambda text: text) -> Callable[[str, Sequence[str]], str]:
    return lambda value, operands: turn(_cut_prefix(turn(value), turn(operands[0]), longest=longest))


def _reverse(text: str) -> str:
    return text[::-1]


def _first(change: Callable[[str], str]) -> Callable[[str, Sequence[str]], str]:
    return lambda value, operands: change(value[:1]) + value[1:]


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _hash(value: str, operands: Sequence[str]) -> str:
    """`${#NAME}` has no operand, `${NAME#PATTERN}` has one."""
    return _cut(longest=False)(value, operands) if operands else _length(value)


OPERATORS: Mapping[str, Callable[[str, Sequence[str]], str]] = {
    ",": _first(str.lower),
    ",,": lambda value, operands: value.lower(),
    "^": _first(str.upper),
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

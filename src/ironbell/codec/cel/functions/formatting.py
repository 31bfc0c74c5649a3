"""`format` of strings: `'%s has %d'.format([name, count])`.

Source: google/cel-go: ext/strings.go (format), ext/formatting_v2.go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from ironbell.codec.cel.errors import CelError, NoOverloadError
from ironbell.codec.cel.values.values import number_of, pay_for_characters, type_name

_CLAUSE: Final = re.compile(r"%(?:\.(\d+))?(.?)", re.DOTALL)
_PRECISION: Final = 6
_MOST_DIGITS: Final = 1000


def formatted(text: Any, arguments: Any) -> str:
    """The text with its clauses replaced by the arguments, one after the other.

    Raises:
        CelError: a clause is invalid, has no argument, or does not fit its type.
    """
    if not isinstance(text, str) or not isinstance(arguments, list):
        raise NoOverloadError("format needs a string and a list")
    rest = iter(arguments)

    def replaced(match: re.Match[str]) -> str:
        precision, verb = match[1], match[2]
        if verb == "%" and precision is None:
            return "%"
        formatter = _VERBS.get(verb)
        if formatter is None:
            raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
        digits = _PRECISION if precision is None else int(precision)
        if digits > _MOST_DIGITS:
            raise CelError(f"precision specifier is longer than {_MOST_DIGITS} digits")
        try:
            argument = next(rest)
        except StopIteration:
            raise CelError(f"index {len(arguments)} out of range") from None
        result = formatter(argument, digits)
        pay_for_characters(len(result))
        return result

    return _CLAUSE.sub(replaced, text)


def _text(value: Any, _digits: int = 0) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        entries = sorted((_text(key), _text(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in entries) + "}"
    if isinstance(value, timedelta):
        return f"{_plain(value.total_seconds())}s"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return _decimal(value)


def _plain(number: float) -> str:
    """Format with as few digits as distinguish the value from its neighbours, without an exponent."""
    if not math.isfinite(number):
        return _not_finite(number)
    text = format(number, ".0f") if number.is_integer() else repr(number)
    return format(number, f".{_places(text)}f") if "e" in text else text


def _places(text: str) -> int:
    mantissa, _, exponent = text.partition("e")
    return max(0, len(mantissa.partition(".")[2]) - int(exponent))


def _not_finite(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _number(value: Any, verb_name: str) -> int | float:
    number = number_of(value)
    if number is None:
        raise CelError(
            f"error during formatting: {verb_name} clause can only be used on numbers, was given {type_name(value)}"
        )
    return number


def _decimal(value: Any, _digits: int = 0) -> str:
    number = _number(value, "decimal")
    return _plain(number) if isinstance(number, float) else str(number)


def _fixed(value: Any, digits: int) -> str:
    number = float(_number(value, "fixed-point"))
    return f"{number:.{digits}f}" if math.isfinite(number) else _not_finite(number)


def _scientific(value: Any, digits: int) -> str:
    number = float(_number(value, "scientific"))
    return f"{number:.{digits}e}" if math.isfinite(number) else _not_finite(number)


def _in_base(code: str, verb_name: str) -> Callable[[Any, int], str]:
    def format_number(value: Any, _digits: int) -> str:
        if code == "b" and isinstance(value, bool):
            return "1" if value else "0"
        if code in "xX" and isinstance(value, str | bytes):
            text = (value.encode() if isinstance(value, str) else value).hex()
            return text.upper() if code == "X" else text
        number = number_of(value)
        if not isinstance(number, int):
            raise CelError(f"error during formatting: {verb_name} clause cannot be used on {type_name(value)}")
        return format(number, code)

    return format_number


_VERBS: Final[dict[str, Callable[[Any, int], str]]] = {
    "s": _text,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _in_base("b", "binary"),
    "x": _in_base("x", "hex"),
    "X": _in_base("X", "hex"),
    "o": _in_base("o", "octal"),
}

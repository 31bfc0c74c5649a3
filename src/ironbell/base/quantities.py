"""Numbers in text: decimals, and quantities such as `500m` and `16Gi`, as Kubernetes reads and writes them.

Source: kubernetes/apimachinery: pkg/api/resource/quantity.go, suffix.go (canonical form).
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

MOST_DIGITS = 18
"""Digits that fit into 64 bits whatever they are."""


def decimal(text: str, *, digits: int = MOST_DIGITS) -> int | None:
    """The number that a text of ASCII digits is; None for any other text, or one that is longer than `digits`."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?[0-9]{1,3})?"
)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_MOST = Decimal(2**63 - 1)
_LONGEST = 64


def is_quantity(value: str | float) -> bool:
    """Return whether a JSON value can be read as a quantity."""
    text = _text(value)
    return len(text) <= _LONGEST and _QUANTITY.fullmatch(text) is not None


def amount(value: str | float) -> Decimal:
    """The number that a quantity is.

    Raises:
        ValueError: the text is not a quantity.
    """
    text = _text(value)
    match = _QUANTITY.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        raise ValueError(f"{text!r} is not a quantity")
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY:
        return number * Decimal(1024 ** _BINARY[suffix])
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return number * Decimal(10) ** int(suffix[1:])
    return number * Decimal(10) ** _DECIMAL[suffix]


def canonical(value: str | float) -> str:
    """A quantity as Kubernetes writes it: no fraction, the greatest suffix that leaves none, its family kept."""
    text = _text(value)
    match = _QUANTITY.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        return text
    number, suffix = amount(text), match[2] or ""
    if suffix in _BINARY:
        return _binary(number)
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return _scientific(number)
    return _decimal(number)


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else repr(value)


def _whole(number: Decimal, *, unit: int) -> int:
    """The number in units of 10^unit, rounded away from zero, and within what 64 bits hold."""
    limited = min(abs(number), _MOST)
    scaled = (limited / Decimal(10) ** unit).to_integral_value(rounding=ROUND_CEILING)
    return int(scaled) if number >= 0 else -int(scaled)


def _triples(number: Decimal) -> tuple[int, int]:
    count, exponent = _whole(number, unit=-9), -9
    while count and count % 1000 == 0 and exponent < 18:
        count, exponent = count // 1000, exponent + 3
    return (count, exponent) if count else (0, 0)


def _decimal(number: Decimal) -> str:
    count, exponent = _triples(number)
    return f"{count}{_SUFFIXES[exponent]}"


def _scientific(number: Decimal) -> str:
    count, exponent = _triples(number)
    return f"{count}e{exponent}" if exponent else str(count)


def _binary(number: Decimal) -> str:
    # Fractions and small numbers are written in the decimal family, as upstream does.
    if number != number.to_integral_value() or abs(number) < 1024:
        return _decimal(number)
    count, power = _whole(number, unit=0), 0
    while count and count % 1024 == 0 and power < 6:
        count, power = count // 1024, power + 1
    suffix = next((name for name, value in _BINARY.items() if value == power), "")
    return f"{count}{suffix}"

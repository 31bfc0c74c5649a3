"""Go's literals: quoted strings, characters, numbers.

Source: golang/go: src/strconv/quote.go, src/strconv/atoi.go, src/text/template/parse/node.go (newNumber).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ironbell.codec.gotemplate.values import decode, encode

_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "'": 39, '"': 34}
_WIDTHS = {"x": 2, "u": 4, "U": 8}
_DECIMAL = re.compile(r"[-+]?(?:[0-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9_]+)?|[-+]?\.[0-9_]+(?:[eE][-+]?[0-9_]+)?")
_HEX_FLOAT = re.compile(r"[-+]?0[xX][0-9a-fA-F_]*\.?[0-9a-fA-F_]*[pP][-+]?[0-9]+")
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX](_?[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|0[bB](_?[01]+(?:_[01]+)*)"
    r"|0[oO](_?[0-7]+(?:_[0-7]+)*)|0(_?[0-7]+(?:_[0-7]+)*)|([1-9][0-9]*(?:_[0-9]+)*|0))"
)
_UNDERSCORES_FINE = re.compile(r"(?!.*(?:__|_$|_[.eE+\-]|[.eE+\-]_|^_)).*")


def unquote(literal: str) -> str:
    """The text of a "quoted" or `raw` string literal.

    Raises:
        ValueError: an escape that Go does not know.
    """
    if literal[0] == "`":
        return literal[1:-1].replace("\r", "")
    out = bytearray()
    position, end = 1, len(literal) - 1
    while position < end:
        char = literal[position]
        if char != "\\":
            out += encode(char)
            position += 1
            continue
        code, is_byte, position = _escape(literal, position, quote='"')
        out += bytes((code,)) if is_byte else encode(chr(code))
    return decode(bytes(out))


def unquote_char(literal: str) -> int:
    """The code point of a character literal such as 'a' or '\\n'."""
    body = literal[1:-1]
    if len(body) == 1 and body not in "\\'\n":
        return ord(body)
    if body.startswith("\\"):
        code, _, position = _escape(literal, 1, quote="'")
        if position == len(literal) - 1:
            return code
    raise ValueError("malformed character constant")


def _escape(literal: str, position: int, *, quote: str) -> tuple[int, bool, int]:
    """The code, whether it is a byte rather than a code point, and the position behind the escape."""
    kind = literal[position + 1] if position + 1 < len(literal) - 1 else ""
    if kind in _SIMPLE and kind:
        if kind in "'\"" and kind != quote:
            raise ValueError("invalid syntax")
        return _SIMPLE[kind], False, position + 2
    if kind in _WIDTHS and kind:
        width = _WIDTHS[kind]
        digits = literal[position + 2 : position + 2 + width]
        if not re.fullmatch(f"[0-9a-fA-F]{{{width}}}", digits):
            raise ValueError("invalid syntax")
        code = int(digits, 16)
        if kind != "x" and (code > 0x10FFFF or 0xD800 <= code < 0xE000):
            raise ValueError("invalid syntax")
        return code, kind == "x", position + 2 + width
    digits = literal[position + 1 : position + 4]
    if re.fullmatch("[0-7]{3}", digits) and int(digits, 8) < 256:
        return int(digits, 8), True, position + 4
    raise ValueError("invalid syntax")


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric literal: what it is as an integer and as a float, either of which may not exist."""

    text: str
    as_int: int | None
    as_uint: int | None
    as_float: float | None

    @property
    def is_float_like(self) -> bool:
        """Return whether an untyped place takes it as a float64."""
        is_hex_int = self.text[:2].lower() == "0x" and len(self.text) > 2 and not re.search("[pP]", self.text)
        return (
            self.as_float is not None
            and not is_hex_int
            and self.text[0] != "'"
            and re.search("[.eEpP]", self.text) is not None
        )


def number(text: str) -> Number:
    """A number or character literal's value.

    Raises:
        ValueError: the text is not a number, or is an integer beyond 64 bits.
    """
    if text[0] == "'":
        code = unquote_char(text)
        return Number(text, code, code, float(code))
    match = _INTEGER.fullmatch(text)
    if match is not None:
        return _integer(text, match)
    value = parse_float(text)
    if value is None or not re.search("[.eEpP]", text):
        raise ValueError(f"illegal number syntax: {text}")
    as_int = int(value) if value == math.floor(value) and -(2**63) <= value < 2**63 else None
    as_uint = int(value) if value == math.floor(value) and 0 <= value < 2**64 else None
    return Number(text, as_int, as_uint, value)


def _integer(text: str, match: re.Match[str]) -> Number:
    sign, *digits = match.groups()
    bases = zip(digits, (16, 2, 8, 8, 10), strict=True)
    value = next(int(run.replace("_", ""), base) for run, base in bases if run is not None)
    signed = -value if sign == "-" else value
    as_int = signed if -(2**63) <= signed < 2**63 else None
    as_uint = value if not sign and value < 2**64 else (0 if as_int == 0 else None)
    if as_int is None and as_uint is None:
        raise ValueError(f"integer overflow: {text}")
    return Number(text, as_int, as_uint, float(as_int if as_int is not None else value))


def parse_float(text: str) -> float | None:
    """Go's ParseFloat on digits, with underscores as in literals; None if the text is not a float or too large."""
    if _HEX_FLOAT.fullmatch(text):
        try:
            return float.fromhex(text.replace("_", ""))
        except (ValueError, OverflowError):
            return None
    if not _DECIMAL.fullmatch(text):
        return None
    if not _UNDERSCORES_FINE.fullmatch(text):
        return None
    value = float(text.replace("_", ""))
    return None if math.isinf(value) else value

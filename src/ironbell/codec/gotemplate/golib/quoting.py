"""Go's quoting of strings and characters, %q and %+q.

Source: golang/go: src/strconv/quote.go (appendQuotedWith), src/strconv/isprint.go.
"""

from __future__ import annotations

import unicodedata

_NAMED = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v"}
_PRINTABLE = frozenset(("L", "M", "N", "P", "S"))


def is_print(char: str) -> bool:
    """Go's IsPrint: letters, marks, numbers, punctuation, symbols and the ASCII space."""
    return char == " " or unicodedata.category(char)[0] in _PRINTABLE


def quote(text: str, *, ascii_only: bool = False) -> str:
    """A double-quoted Go string."""
    return '"' + "".join(_char(char, '"', ascii_only=ascii_only) for char in text) + '"'


def quote_rune(code: int, *, ascii_only: bool = False) -> str:
    """A single-quoted Go character."""
    char = chr(code) if 0 <= code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\ufffd"
    return "'" + _char(char, "'", ascii_only=ascii_only) + "'"


def _char(char: str, delimiter: str, *, ascii_only: bool) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if char == delimiter or char == "\\":
        return "\\" + char
    if (code < 0x80 or not ascii_only) and is_print(char):
        return char
    if code in _NAMED:
        return _NAMED[code]
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def can_backquote(text: str) -> bool:
    """Return whether a raw string literal can hold the text."""
    for char in text:
        code = ord(char)
        if code > 0x7F:
            if char == "\ufeff" or 0xDC80 <= code <= 0xDCFF:
                return False
        elif (code < 0x20 and char != "\t") or char in "`\x7f":
            return False
    return True

"""Go's simple character mappings and classes, where Python's differ.

Source: golang/go: src/unicode/letter.go, src/unicode/graphic.go.
"""

from __future__ import annotations

import re

SPACE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))


_NO_UTF8 = re.compile("[\udc80-\udcff]")


def runes(text: str) -> str:
    """The characters that Go takes from a string one by one: bytes that are no UTF-8 are U+FFFD each."""
    return _NO_UTF8.sub("\N{REPLACEMENT CHARACTER}", text)


def to_upper(char: str) -> str:
    """The one character that is this one's upper case; Python's may be several."""
    upper = char.upper()
    if len(upper) == 1:
        return upper
    title = char.title()
    return title if len(title) == 1 else char


def to_title(char: str) -> str:
    """The one character that is this one's title case."""
    title = char.title()
    return title if len(title) == 1 else char


def to_lower(char: str) -> str:
    """The one character that is this one's lower case."""
    return char.lower()[0] if char == "\u0130" else char.lower()

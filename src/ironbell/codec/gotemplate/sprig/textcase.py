"""Strings: letter case, words, wrapping, abbreviating.

Several of these work on bytes in Go and take each byte for a character; so they do here.

Source: Masterminds/sprig v3.3.0: strings.go; Masterminds/goutils v1.1.1: wordutils.go, stringutils.go;
golang/go: src/strings/strings.go (Title).
"""

from __future__ import annotations

import random
import unicodedata

from ironbell.codec.gotemplate.errors import check_chars
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.sprig.casewords import lower_words, pascal_case
from ironbell.codec.gotemplate.sprig.runes import SPACE, runes, to_lower, to_title, to_upper
from ironbell.codec.gotemplate.values import decode, encode

TEXTCASE = Library()
_add = TEXTCASE.add


_add("upper", P.STRING)(lambda text: "".join(map(to_upper, runes(text))))
_add("lower", P.STRING)(lambda text: "".join(map(to_lower, runes(text))))


@_add("title", P.STRING)
def _title(text: str) -> str:
    result, previous = [], " "
    for char in runes(text):
        result.append(to_title(char) if _separates(previous) else char)
        previous = char
    return "".join(result)


def _separates(char: str) -> bool:
    if char < "\x80":
        return not (char.isalnum() or char == "_")
    return not (char.isalpha() or char.isdecimal()) and char in SPACE


@_add("untitle", P.STRING)
def _untitle(text: str) -> str:
    result, begins = [], True
    for char in runes(text):
        is_space = char in SPACE
        result.append(to_lower(char) if begins and not is_space else char)
        begins = is_space
    return "".join(result)


@_add("swapcase", P.STRING)
def _swapcase(text: str) -> str:
    result, after_space = [], True
    for char in runes(text):
        category = unicodedata.category(char)
        if category in ("Lu", "Lt"):
            result.append(to_lower(char))
        elif category == "Ll":
            result.append(to_title(char) if after_space else to_upper(char))
        else:
            result.append(char)
            after_space = char in SPACE
            continue
        after_space = False
    return "".join(result)


_add("shuffle", P.STRING, factor=4)(lambda text: "".join(random.sample(text, len(text))))
_add("snakecase", P.STRING, factor=6)(lambda text: lower_words(text, "_"))
_add("kebabcase", P.STRING, factor=6)(lambda text: lower_words(text, "-"))
_add("camelcase", P.STRING, factor=3)(lambda text: pascal_case(runes(text)))


@_add("initials", P.STRING)
def _initials(text: str) -> str:
    result, after_gap = [], True
    for char in encode(text).decode("latin-1"):
        if char in SPACE:
            after_gap = True
        elif after_gap:
            result.append(char)
            after_gap = False
    return "".join(result)


@_add("nospace", P.STRING)
def _nospace(text: str) -> str:
    chars = encode(text).decode("latin-1")
    kept = "".join(char for char in chars if char not in SPACE)
    return text if len(kept) == len(chars) else kept


@_add("abbrev", P.INT, P.STRING)
def _abbrev(width: int, text: str) -> str:
    return text if width < 4 else decode(_abbreviate(encode(text), 0, width))


@_add("abbrevboth", P.INT, P.INT, P.STRING)
def _abbrevboth(left: int, right: int, text: str) -> str:
    if right < 4 or (left > 0 and right < 7):
        return text
    return decode(_abbreviate(encode(text), left, right))


def _abbreviate(text: bytes, offset: int, width: int) -> bytes:
    if len(text) <= width:
        return text
    if width < 4:
        return b""
    offset = min(offset, len(text))
    if len(text) - offset < width - 3:
        offset = len(text) - (width - 3)
    if offset <= 4:
        return text[: width - 3] + b"..."
    if width < 7:
        return b""
    if offset + width - 3 < len(text):
        return b"..." + _abbreviate(text[offset:], 0, width - 3)
    return b"..." + text[len(text) - (width - 3) :]


@_add("wrap", P.INT, P.STRING)
def _wrap(width: int, text: str) -> str:
    return decode(_wrapped(encode(text), width, b"\n", long_words=False))


@_add("wrapWith", P.INT, P.STRING, P.STRING)
def _wrap_with(width: int, newline: str, text: str) -> str:
    return decode(_wrapped(encode(text), width, encode(newline) or b"\n", long_words=True))


def _wrapped(text: bytes, width: int, newline: bytes, *, long_words: bool) -> bytes:
    width = max(width, 1)
    check_chars(len(text) + (len(text) // width + 1) * len(newline))
    offset, parts = 0, []
    while len(text) - offset > width:
        if text[offset] == 0x20:
            offset += 1
            continue
        space = text.rfind(b" ", offset, offset + width + 1)
        if space >= offset:
            parts.append(text[offset:space] + newline)
            offset = space + 1
        elif long_words:
            parts.append(text[offset : offset + width] + newline)
            offset += width
        else:
            space = text.find(b" ", offset + width)
            if space < 0:
                break
            parts.append(text[offset:space] + newline)
            offset = space + 1
    parts.append(text[offset:])
    return b"".join(parts)

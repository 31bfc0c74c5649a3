"""Strings: cutting, padding, replacing.

Source: Masterminds/sprig v3.3.0: strings.go, functions.go; golang/go: src/strings.
"""

from __future__ import annotations

from typing import Any

from ironbell.codec.gotemplate.errors import CallError, check_chars
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.golib.printing import sprint_one
from ironbell.codec.gotemplate.golib.quoting import quote
from ironbell.codec.gotemplate.meter import charge
from ironbell.codec.gotemplate.sprig.convert import text_of
from ironbell.codec.gotemplate.sprig.runes import SPACE
from ironbell.codec.gotemplate.values import decode, encode

STRINGS = Library()
_add = STRINGS.add
_TRIMMED = "".join(SPACE)


_add("trim", P.STRING)(lambda text: text.strip(_TRIMMED))


@_add("trimAll trimall", P.STRING, P.STRING)
def _trim_all(chars: str, text: str) -> str:
    distinct = "".join(set(chars))
    # Each character of the text is looked for among them.
    charge(len(chars) / 8 + len(text) * len(distinct) / 1000)
    return text.strip(distinct) if distinct else text


_add("trimSuffix", P.STRING, P.STRING)(lambda suffix, text: text.removesuffix(suffix))
_add("trimPrefix", P.STRING, P.STRING)(lambda prefix, text: text.removeprefix(prefix))


@_add("trunc", P.INT, P.STRING)
def _trunc(count: int, text: str) -> str:
    data = encode(text)
    if count < 0 and len(data) + count > 0:
        return decode(data[count:])
    return decode(data[:count]) if 0 <= count < len(data) else text


@_add("substr", P.INT, P.INT, P.STRING)
def _substr(start: int, end: int, text: str) -> str:
    data = encode(text)
    if start < 0:
        start = 0
        if end < 0 or end > len(data):
            raise CallError("slice bounds out of range")
    elif end < 0 or end > len(data):
        end = len(data)
    if start > end:
        raise CallError("slice bounds out of range")
    return decode(data[start:end])


@_add("repeat", P.INT, P.STRING)
def _repeat(count: int, text: str) -> str:
    if count < 0:
        raise CallError("negative repeat count")
    check_chars(count * len(text))
    return text * count


_add("contains", P.STRING, P.STRING)(lambda part, text: part in text)
_add("hasPrefix", P.STRING, P.STRING)(lambda prefix, text: text.startswith(prefix))
_add("hasSuffix", P.STRING, P.STRING)(lambda suffix, text: text.endswith(suffix))


@_add("quote", rest=P.ANY)
def _quote(*values: Any) -> str:
    return " ".join(quote(text_of(value)) for value in values if value is not None)


@_add("squote", rest=P.ANY)
def _squote(*values: Any) -> str:
    return " ".join(f"'{sprint_one(value)}'" for value in values if value is not None)


_add("cat", rest=P.ANY)(lambda *values: " ".join(sprint_one(value) for value in values if value is not None))
_add("toString", P.ANY)(text_of)


@_add("indent", P.INT, P.STRING)
def _indent(spaces: int, text: str) -> str:
    if spaces < 0:
        raise CallError("negative repeat count")
    check_chars((text.count("\n") + 1) * spaces + len(text))
    pad = " " * spaces
    return pad + text.replace("\n", "\n" + pad)


_add("nindent", P.INT, P.STRING)(lambda spaces, text: "\n" + _indent(spaces, text))


@_add("replace", P.STRING, P.STRING, P.STRING)
def _replace(old: str, new: str, text: str) -> str:
    check_chars(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    return text.replace(old, new)


_add("plural", P.STRING, P.STRING, P.INT)(lambda singular, many, count: singular if count == 1 else many)

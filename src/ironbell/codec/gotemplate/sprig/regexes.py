"""Regular expressions.

Source: Masterminds/sprig v3.3.0: regex.go.
"""

from __future__ import annotations

from typing import Any

from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.golib.goregexp import Regex, RegexError, quote_meta
from ironbell.codec.gotemplate.values import TypedList

REGEXES = Library()
_add = REGEXES.add


def _compile(expression: str) -> Regex:
    try:
        return Regex(expression)
    except RegexError as error:
        raise CallError(f"error parsing regexp: {error}") from None


@_add("regexMatch", P.STRING, P.STRING)
def _regex_match(expression: str, text: str) -> bool:
    try:
        regex = Regex(expression)
    except RegexError:
        return False
    return regex.is_in(text)


_add("mustRegexMatch", P.STRING, P.STRING)(lambda expression, text: _compile(expression).is_in(text))


@_add("regexFind mustRegexFind", P.STRING, P.STRING)
def _regex_find(expression: str, text: str) -> str:
    return "".join(_compile(expression).find_all(text, 1))


@_add("regexFindAll mustRegexFindAll", P.STRING, P.STRING, P.INT)
def _regex_find_all(expression: str, text: str, count: int) -> list[Any]:
    matches = _compile(expression).find_all(text, count)
    return TypedList(matches, elem="string", is_nil=not matches)


@_add("regexReplaceAll mustRegexReplaceAll", P.STRING, P.STRING, P.STRING)
def _regex_replace_all(expression: str, text: str, replacement: str) -> str:
    return _compile(expression).replace(text, replacement)


@_add("regexReplaceAllLiteral mustRegexReplaceAllLiteral", P.STRING, P.STRING, P.STRING)
def _regex_replace_all_literal(expression: str, text: str, replacement: str) -> str:
    return _compile(expression).replace(text, replacement, is_literal=True)


@_add("regexSplit mustRegexSplit", P.STRING, P.STRING, P.INT)
def _regex_split(expression: str, text: str, count: int) -> list[Any]:
    parts = _compile(expression).split(text, count)
    return TypedList(parts or (), elem="string", is_nil=parts is None)


_add("regexQuoteMeta", P.STRING)(quote_meta)

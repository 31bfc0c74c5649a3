"""Regular expressions.

Source: Masterminds/sprig v3.3.0: regex.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.limits import check_chars, check_items
from ironbell.codec.gotemplate.regex import Regex, RegexError, quote_meta
from ironbell.codec.gotemplate.values import TypedList

T = TypeVar("T")

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
        return Regex(expression).search(text) is not None
    except RegexError:
        return False


@_add("mustRegexMatch", P.STRING, P.STRING)
def _must_regex_match(expression: str, text: str) -> bool:
    return _guard(lambda: _compile(expression).search(text)) is not None


@_add("regexFind mustRegexFind", P.STRING, P.STRING)
def _regex_find(expression: str, text: str) -> str:
    match = _guard(lambda: _compile(expression).search(text))
    return text[match[0] : match[1]] if match is not None else ""


@_add("regexFindAll mustRegexFindAll", P.STRING, P.STRING, P.INT)
def _regex_find_all(expression: str, text: str, count: int) -> list[Any]:
    regex = _compile(expression)
    found = _guard(lambda: [text[match[0] : match[1]] for match in regex.find_all(text, count)])
    check_items(len(found))
    return TypedList(found, elem="string", is_nil=not found)


@_add("regexReplaceAll mustRegexReplaceAll", P.STRING, P.STRING, P.STRING)
def _regex_replace_all(expression: str, text: str, replacement: str) -> str:
    regex = _compile(expression)
    check_chars((len(text) + 1) * max(1, replacement.count("$")) + len(replacement))
    return _guard(lambda: regex.replace(text, lambda match: regex.expand(replacement, text, match)))


@_add("regexReplaceAllLiteral mustRegexReplaceAllLiteral", P.STRING, P.STRING, P.STRING)
def _regex_replace_all_literal(expression: str, text: str, replacement: str) -> str:
    regex = _compile(expression)
    return _guard(lambda: regex.replace(text, lambda _: replacement))


@_add("regexSplit mustRegexSplit", P.STRING, P.STRING, P.INT)
def _regex_split(expression: str, text: str, count: int) -> list[Any]:
    regex = _compile(expression)
    parts = _guard(lambda: regex.split(text, count))
    check_items(len(parts or ()))
    return TypedList(parts or (), elem="string", is_nil=parts is None)


@_add("regexQuoteMeta", P.STRING)
def _regex_quote_meta(text: str) -> str:
    return quote_meta(text)


def _guard(action: Callable[[], T]) -> T:
    try:
        return action()
    except RegexError as error:
        raise CallError(str(error)) from None

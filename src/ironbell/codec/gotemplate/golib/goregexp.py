"""Go's regexp package over RE2: leftmost match, first alternative first; empty matches, `$1` and splitting as in Go.

RE2 takes time linear in the text. What remains, a large program over a long text and one search for each match, is
charged (`meter`).

Source: golang/go: src/regexp/regexp.go (allMatches, replaceAll, expand, Split), src/regexp/syntax/parse.go.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import re2

from ironbell.codec.gotemplate.errors import CallError, check_chars, check_items
from ironbell.codec.gotemplate.meter import charge, charge_measured
from ironbell.codec.gotemplate.values import decode, encode
from ironbell.codec.re2 import fault_in_go

_REFERENCE: Final = re.compile(r"\$(?:\$|([\w]+)|\{(\w+)\})")
_NO_UTF8: Final = re.compile("[\udc80-\udcff]")
_ONE_BYTE: Final = re.compile(r"(?:[^\\]|\\[^C])*\\C", re.DOTALL)
_META: Final = re.compile(r"([\\.+*?()|\[\]{}^$])")
_MAX_PROGRAM: Final = 50_000
_COMPILE_STEPS: Final = 50
_BYTES_PER_STEP: Final = 1_000
"""Bytes of text times instructions of the program."""

Match = Sequence[int]
"""Positions of the whole match and of each group, -1 for a group that took no part."""


class RegexError(CallError):
    """A text is not a regular expression; the message is Go's, without the offending part, which may be a secret."""


class Regex:
    """A compiled expression."""

    def __init__(self, expression: str) -> None:
        """Compile.

        Raises:
            RegexError: the text is not a regular expression.
            LimitExceeded: it is too long for the rest of the template's limit.
        """
        charge(_COMPILE_STEPS + len(expression))
        self._expression = expression
        if _NO_UTF8.search(expression):
            raise RegexError("invalid UTF-8")
        if _ONE_BYTE.match(expression):
            raise RegexError("invalid escape sequence")  # RE2 has it, Go does not
        try:
            self._compiled = re2.compile(expression, options=_options())
        except re2.error as error:
            raise RegexError(fault_in_go(error, quoting=False)) from None
        self._size = int(self._compiled.programsize)
        if self._size > _MAX_PROGRAM:
            raise RegexError("expression too large")
        charge(self._size / 10)
        self._groups = range(self._compiled.groups + 1)
        self._names: dict[str, int] = dict(self._compiled.groupindex)

    def is_in(self, text: str) -> bool:
        """Return whether the expression matches in a text."""
        return next(_Searched(self, text).matches(1), None) is not None

    def find_all(self, text: str, count: int) -> list[str]:
        """Return the matches in a text, without overlap; all of them if the count is negative."""
        searched = _Searched(self, text)
        matches = [searched.substring(match[0], match[1]) for match in searched.matches(count)]
        check_items(len(matches))
        return matches

    def replace(self, text: str, template: str, *, is_literal: bool = False) -> str:
        """The text with each match replaced, by a template whose `$1`, `${1}` and `$name` are filled in (unknown ones
        are empty) unless it is literal."""
        searched = _Searched(self, text)
        parts: list[str] = []
        last_end = size = 0
        for match in searched.replaced():
            start, end = match[0], match[1]
            parts.append(searched.substring(last_end, start))
            if end > last_end or start == 0:
                parts.append(template if is_literal else self._expand(template, searched, match))
                size += len(parts[-1])
                check_chars(size)
                charge(1 + len(parts[-1]) / 64)
            last_end = end
        parts.append(searched.substring(last_end, searched.end))
        return "".join(parts)

    def split(self, text: str, count: int) -> list[str] | None:
        """The parts between matches; None for a count of 0."""
        if count == 0:
            return None
        if self._expression and not text:
            return [""]
        searched = _Searched(self, text)
        parts: list[str] = []
        begin = end = 0
        for match in searched.matches(count):
            if count > 0 and len(parts) == count - 1:
                break
            end = match[0]
            if match[1] != 0:
                parts.append(searched.substring(begin, end))
                check_items(len(parts))
            begin = match[1]
        if end != searched.end:
            parts.append(searched.substring(begin, searched.end))
        return parts

    def search(self, data: bytes, position: int, *, with_groups: bool) -> Match | None:
        """The leftmost match at or behind a position; positions are of bytes."""
        began = time.perf_counter()
        match: Any = self._compiled.search(data, position)
        charge_measured(time.perf_counter() - began)
        if match is None:
            return None
        return [place for group in self._groups for place in match.span(group)] if with_groups else match.span()

    @property
    def size(self) -> int:
        """Instructions of the program."""
        return self._size

    def _expand(self, template: str, searched: _Searched, match: Match) -> str:
        def value(reference: re.Match[str]) -> str:
            name = reference[1] or reference[2]
            if name is None:
                return "$"
            if name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and len(name) < 9:
                index = int(name)
            else:
                index = self._names.get(name, -1)
            if 0 <= 2 * index < len(match) and match[2 * index] >= 0:
                return searched.substring(match[2 * index], match[2 * index + 1])
            return ""

        charge(len(template) / 8)
        return _REFERENCE.sub(value, template)


class _Searched:
    """A text that is searched, as bytes. What is no UTF-8 in it is matched as Go does it, as U+FFFD for each byte."""

    def __init__(self, regex: Regex, text: str) -> None:
        self._regex = regex
        charge(len(text) * regex.size / _BYTES_PER_STEP)
        self._data = encode(text)
        self._own: bytes | None = None
        self._places: list[int] = []
        if _NO_UTF8.search(text):
            self._own = self._data
            self._data = _NO_UTF8.sub("\N{REPLACEMENT CHARACTER}", text).encode()
            self._places = _places(text)
        self.end = len(self._data)

    def substring(self, start: int, end: int) -> str:
        """The text between two positions."""
        if self._own is None:
            return self._data[start:end].decode()
        return decode(self._own[self._places[start] : self._places[end]])

    def matches(self, count: int) -> Iterator[Match]:
        """Matches that do not overlap; a negative count for all of them."""
        position, previous_end, given = 0, -1, 0
        while position <= self.end and given != count:
            match = self._search(position, with_groups=False)
            if match is None:
                return
            accept = True
            if match[1] == position:
                # No empty match right behind another match.
                accept = match[0] != previous_end
                position = self._next(position)
            else:
                position = match[1]
            previous_end = match[1]
            if accept:
                given += 1
                yield match

    def replaced(self) -> Iterator[Match]:
        """Matches as replacing looks for them, each with its groups."""
        position = 0
        while position <= self.end:
            match = self._search(position, with_groups=True)
            if match is None:
                return
            yield match
            position = max(self._next(position), match[1])

    def _search(self, position: int, *, with_groups: bool) -> Match | None:
        while True:
            charge(1)
            match = self._regex.search(self._data, position, with_groups=with_groups)
            if match is None or match[0] < match[1] or not self._is_within_character(match[0]):
                return match
            # RE2 finds \B between the bytes of one character.
            position = self._next(match[0])

    def _is_within_character(self, position: int) -> bool:
        return position < self.end and self._data[position] & 0xC0 == 0x80

    def _next(self, position: int) -> int:
        position += 1
        while self._is_within_character(position):
            position += 1
        return position


def quote_meta(text: str) -> str:
    """An expression that matches this text and nothing else."""
    return _META.sub(r"\\\1", text)


def _places(text: str) -> list[int]:
    """For each byte of the text that is searched, its place in the bytes of the text itself."""
    charge(len(text))
    places: list[int] = []
    own = 0
    for char in text:
        if "\udc80" <= char <= "\udcff":
            places += (own, own, own)
            own += 1
        else:
            size = len(char.encode())
            places += range(own, own + size)
            own += size
    places.append(own)
    return places


@lru_cache(maxsize=1)
def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options

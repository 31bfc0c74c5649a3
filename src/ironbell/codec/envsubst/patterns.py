"""Patterns of `*`, `?`, `[a-z]`, `[^a]` and `\\`, matched in time that grows with text and pattern, and no faster.

A regular expression with several `.*` tries every way to split a text between them: 120 characters took seconds. Here
all places in the pattern that may be reached are followed at once.

Source: drone/envsubst: path/match.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Single:
    """One character out of ranges, or out of all others."""

    ranges: tuple[tuple[str, str], ...] = ()
    is_negated: bool = True

    def takes(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) != self.is_negated


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern; None stands for any number of characters."""

    parts: tuple[_Single | None, ...]

    def lengths(self, text: str) -> Iterator[int]:
        """The lengths, from 1 on, of the beginnings of a text that the pattern describes in whole, ascending."""
        reached = self._with_stars({0})
        for length, char in enumerate(text, 1):
            reached = self._with_stars(self._after(reached, char))
            if not reached:
                return
            if len(self.parts) in reached:
                yield length

    def _after(self, reached: set[int], char: str) -> set[int]:
        following = set()
        for place in reached:
            part = self.parts[place] if place < len(self.parts) else _NOTHING
            if part is None:
                following.add(place)
            elif part.takes(char):
                following.add(place + 1)
        return following

    def _with_stars(self, reached: set[int]) -> set[int]:
        """Also what follows a star that takes nothing more."""
        for place in sorted(reached):
            at = place
            while at < len(self.parts) and self.parts[at] is None:
                at += 1
                reached.add(at)
        return reached


_NOTHING = _Single((), is_negated=False)
_ANY = _Single()


def glob(pattern: str) -> Glob | None:
    """The pattern; None where it is malformed."""
    parts: list[_Single | None] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            if not parts or parts[-1] is not None:
                parts.append(None)
        elif char == "?":
            parts.append(_ANY)
        elif char == "[":
            character_class = _class(pattern, at)
            if character_class is None:
                return None
            part, at = character_class
            parts.append(part)
        elif char == "\\":
            if at == len(pattern):
                return None
            parts.append(_literal(pattern[at]))
            at += 1
        else:
            parts.append(_literal(char))
    return Glob(tuple(parts))


def _literal(char: str) -> _Single:
    return _Single(((char, char),), is_negated=False)


def _class(pattern: str, at: int) -> tuple[_Single, int] | None:
    """The class of characters that begins here, and where it ends."""
    negated = pattern.startswith("^", at)
    at += negated
    ranges: list[tuple[str, str]] = []
    while not (ranges and pattern.startswith("]", at)):
        low = _member(pattern, at)
        if low is None:
            return None
        char, at = low
        last = char
        if pattern.startswith("-", at):
            high = _member(pattern, at + 1)
            if high is None:
                return None
            last, at = high
        ranges.append((char, last))
    return _Single(tuple(ranges), is_negated=negated), at + 1


def _member(pattern: str, at: int) -> tuple[str, int] | None:
    """A character of a class, and where it ends: it needs something after it."""
    if pattern[at : at + 1] in ("", "-", "]"):
        return None
    at += pattern[at] == "\\"
    return (pattern[at], at + 1) if at + 1 < len(pattern) else None

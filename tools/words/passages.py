"""Passages: the text and the identifiers that rules are applied to, with their lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from words.rules import Place


@dataclass(frozen=True)
class Passage:
    """A paragraph or an identifier: text in one line, with single spaces."""

    place: Place
    text: str
    lines: tuple[tuple[int, int], ...]
    """Offset in the text and line number of each line of the file, in ascending order."""
    kind: str = ""
    """Kind of an identifier: class, function, argument, variable, attribute or module. For the first
    paragraph of a docstring, the kind of its owner; for that of a string literal, `string`. Else empty."""

    def line_at(self, offset: int) -> int:
        """Return the line number of an offset in the text."""
        return self.lines[bisect_right(self.lines, (offset, 1 << 30)) - 1][1]


def identifier(kind: str, name: str, line: int) -> Passage:
    return Passage(Place.IDENTIFIER, name, ((0, line),), kind)


def paragraphs(place: Place, lines: Iterable[tuple[int, str]], kind: str = "") -> Iterable[Passage]:
    """Join numbered lines into paragraphs; an empty line ends a paragraph. The kind is that of the first."""
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    offset = 0
    for number, line in (*lines, (0, "")):
        words = " ".join(line.split())
        if words:
            parts.append(words)
            places.append((offset, number))
            offset += len(words) + 1
        elif parts:
            yield Passage(place, " ".join(parts), tuple(places), kind)
            parts, places, offset, kind = [], [], 0, ""

"""A rule of the table of banned words: where it applies, what to write instead, and why.

A rule must have few false positives; each has an example that it finds and another that it does not, and a test runs
both. Rules for identifiers (`identifier_rules`) are lists of words: `told` is found in `told`, `_told_at` and `ToldAt`,
and not in `untold`. Rules for text (`text_rules`) are regular expressions; passages reach them in one line, with single
spaces and without code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class Place(Enum):
    """Where a passage stands; the value is how a finding names it."""

    IDENTIFIER = "identifier"
    DOCSTRING = "docstring"
    COMMENT = "comment"
    STRING = "string"
    DOCS = "docs"


@dataclass(frozen=True)
class Rule:
    """Words that are banned in some places."""

    name: str
    places: frozenset[Place]
    instead: str
    reason: str
    bad: str
    """An example that the rule finds."""
    good: str
    """The example, corrected: the rule does not find it."""
    words: tuple[str, ...] = ()
    """In identifiers: words, or words joined by underscores."""
    unless: tuple[str, ...] = ()
    """In identifiers: longer sequences of words that have another meaning, such as `look_up`."""
    whole: bool = False
    """In identifiers: only if the words are the whole name."""
    kinds: frozenset[str] = frozenset()
    """Kinds of definitions (class, function, argument, variable, attribute, module) that the identifier, or the
    docstring that begins with the passage, belongs to; `string` for string literals; empty for all."""
    pattern: str = ""
    """In text: a regular expression."""
    packages: tuple[str, ...] = ()
    """Folders that the rule is limited to; empty is all."""

    @cached_property
    def expression(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def applies(self, place: Place, kind: str, path: str) -> bool:
        """Return whether the rule applies to passages of this place and kind in the file with this path."""
        return (
            place in self.places
            and (not self.kinds or kind in self.kinds)
            and (not self.packages or path.startswith(self.packages))
        )

    def matches_name(self, name: str) -> bool:
        """Return whether an identifier, given in lower case with underscores, has one of the words."""
        if self.whole:
            return name in self.words
        padded = f"_{name}_"
        for words in self.unless:
            padded = padded.replace(f"_{words}_", "_")
        return any(f"_{word}_" in padded for word in self.words)

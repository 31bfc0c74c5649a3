"""Sets of characters: ranges, Perl's and POSIX's names, Unicode categories, case folding.

Source: golang/go: src/regexp/syntax/perl_groups.go, src/regexp/syntax/parse.go.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

_DIGIT, _LOWER, _UPPER = ("0", "9"), ("a", "z"), ("A", "Z")
_WORD = (_DIGIT, _UPPER, ("_", "_"), _LOWER)
PERL = {"d": (_DIGIT,), "s": (("\t", "\n"), ("\f", "\r"), (" ", " ")), "w": _WORD}
POSIX = {
    "alnum": (_DIGIT, _UPPER, _LOWER),
    "alpha": (_UPPER, _LOWER),
    "ascii": (("\0", "\x7f"),),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": (_DIGIT,),
    "graph": (("!", "~"),),
    "lower": (_LOWER,),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (_UPPER,),
    "word": _WORD,
    "xdigit": (_DIGIT, ("A", "F"), ("a", "f")),
}
CATEGORIES = frozenset(
    (
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cs",
        "L",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "M",
        "Mc",
        "Me",
        "Mn",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Pe",
        "Pf",
        "Pi",
        "Po",
        "Ps",
        "S",
        "Sc",
        "Sk",
        "Sm",
        "So",
        "Z",
        "Zl",
        "Zp",
        "Zs",
        "Any",
    )
)
_ALSO_FOLDS = {"k": "\u212a", "K": "\u212a", "s": "\u017f", "S": "\u017f", "\u212a": "kK", "\u017f": "sS"}


@dataclass(slots=True)
class CharClass:
    """A set of characters: ranges, categories, and negated parts."""

    ranges: list[tuple[str, str]] = field(default_factory=list)
    without: list[tuple[tuple[str, str], ...]] = field(default_factory=list)
    """Each of these adds every character outside its ranges."""
    categories: list[tuple[str, bool]] = field(default_factory=list)
    """Unicode categories, and whether it is the others that are added."""
    negated: bool = False
    fold: bool = False

    def __contains__(self, char: str) -> bool:
        chars = folds(char) if self.fold else (char,)
        return any(map(self._has, chars)) != self.negated

    def _has(self, char: str) -> bool:
        if _within(char, self.ranges) or any(not _within(char, ranges) for ranges in self.without):
            return True
        if not self.categories:
            return False
        category = unicodedata.category(char)
        return any((name == "Any" or category.startswith(name)) != negated for name, negated in self.categories)


def _within(char: str, ranges: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> bool:
    return any(low <= char <= high for low, high in ranges)


def folds(char: str) -> tuple[str, ...]:
    """The characters that equal this one without regard to case."""
    found = {char, *(form for form in (char.lower(), char.upper(), char.title()) if len(form) == 1)}
    for form in tuple(found):
        found.update(_ALSO_FOLDS.get(form, ""))
    return tuple(found)


def is_word(char: str) -> bool:
    """What \\b looks at."""
    return _within(char, _WORD)

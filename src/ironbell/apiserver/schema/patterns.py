"""Regular expressions of schemas: Go's RE2 syntax brought to Python's.

Differences that matter: `$` means the very end of the text, classes such as \\d are ASCII, POSIX class names and
`\\z` do not exist in Python.

Source: github.com/google/re2: doc/syntax.txt.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7F", "blank": "\\t ", "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_POSIX_CLASS = re.compile(r"\[:([a-z]+):\]")


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that is to be searched for (it is not anchored by itself).

    Raises:
        ValueError: it is no regular expression, or uses syntax that cannot be brought over.
    """
    try:
        with warnings.catch_warnings():
            # Python warns of set operations that it may bring one day; the syntax here is Go's.
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(_translate(pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is not a usable regular expression: {error}") from error


def _translate(pattern: str) -> str:
    parts: list[str] = []
    position = 0
    inside = False
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            escape = pattern[position : position + 2]
            parts.append("\\Z" if escape == "\\z" else escape)
            position += 2
            continue
        if inside:
            named = _POSIX_CLASS.match(pattern, position)
            if named is not None and named[1] in _POSIX:
                parts.append(_POSIX[named[1]])
                position = named.end()
                continue
            parts.append("\\[" if char == "[" else char)
            inside = char != "]"
        elif char == "[":
            opening = re.match(r"\[\^?\]?", pattern[position:])
            text = opening[0] if opening else "["
            parts.append(text.replace("]", "\\]"))
            position += len(text)
            inside = True
            continue
        else:
            parts.append("\\Z" if char == "$" else char)
        position += 1
    return "".join(parts)

"""Passages of a Markdown page: its prose, without code, addresses of links and comments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from words.passages import Passage, paragraphs
from words.rules import Place

_FENCED = re.compile(r"^(?P<fence> *(?:```+|~~~+)).*?^(?P=fence)", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n)+")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"``[^`]+``|`[^`]+`")
_TARGET = re.compile(r"\]\([^)]*\)")
_ITEM = re.compile(r"^(?: *(?:[-*+]|\d+\.) |\||#)", re.MULTILINE)


def passages(text: str) -> Iterable[Passage]:
    """Paragraphs, items of lists, headings and rows of tables; lines are those of the page."""
    for pattern, replacement in ((_FENCED, ""), (_INDENTED, ""), (_COMMENT, ""), (_CODE, "``"), (_TARGET, "]()")):
        text = _replace(pattern, replacement, text)
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if _ITEM.match(line):
            lines.append((number, ""))
        if line.startswith("|"):
            for cell in line.strip("|").split("|"):
                lines += (number, cell), (number, "")
        else:
            lines.append((number, line))
    return paragraphs(Place.DOCS, lines)


def _replace(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    """Replace what a pattern matches; lines stay."""
    return pattern.sub(lambda match: replacement + "\n" * match[0].count("\n"), text)

"""Applying the rules to files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from words import markdown_text, python_text
from words.exceptions import EXCEPTIONS
from words.identifier_rules import IDENTIFIERS
from words.passages import Passage
from words.rules import Place, Rule
from words.text_rules import TEXTS

GUIDE = "docs/contributing/words.md"
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, order=True)
class Finding:
    """A banned word in a file."""

    path: str
    line: int
    place: str
    text: str
    rule: str
    instead: str

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: {self.place} "{self.text}": write {self.instead} ({GUIDE})'


class UnreadableError(Exception):
    """A file cannot be read or parsed."""


def check_files(root: Path, files: Iterable[Path]) -> Iterator[Finding]:
    """Check files below the root of a repository.

    Raises:
        UnreadableError: a file is not UTF-8, or not Python.
    """
    for file in files:
        path = file.relative_to(root).as_posix()
        try:
            source = file.read_text(encoding="utf-8")
            yield from check_text(path, source)
        except (OSError, UnicodeDecodeError, SyntaxError) as error:
            raise UnreadableError(f"{path}: {error}") from error


def check_text(path: str, source: str) -> list[Finding]:
    """Return the findings in the text of a file, by line; `path` is relative to the root of the repository."""
    passages = markdown_text.passages(source) if path.endswith(".md") else python_text.passages(path, source)
    return sorted(finding for passage in passages for finding in _findings(path, passage))


def _findings(path: str, passage: Passage) -> Iterator[Finding]:
    if any(exception.covers(path, passage) for exception in EXCEPTIONS):
        return
    if passage.place is Place.IDENTIFIER:
        name = _HUMPS.sub("_", passage.text).lower().strip("_")
        for rule in IDENTIFIERS:
            if rule.applies(passage.place, passage.kind, path) and rule.matches_name(name):
                yield _finding(path, passage, rule, 0, len(passage.text))
                return
        return
    for rule in TEXTS:
        if rule.applies(passage.place, passage.kind, path):
            for match in rule.expression.finditer(passage.text):
                if not any(exempt.covers_part(path, passage, *match.span()) for exempt in EXCEPTIONS):
                    yield _finding(path, passage, rule, *match.span())


def _finding(path: str, passage: Passage, rule: Rule, start: int, end: int) -> Finding:
    return Finding(path, passage.line_at(start), passage.place.value, passage.text[start:end], rule.name, rule.instead)

"""Counts of findings: per rule, and per package and place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from words.checking import Finding
from words.rules import Place

_SOURCE = ("src", "ironbell")


def package_of(path: str) -> str:
    """The package of a file, at most two levels deep; of a page, its folder."""
    parts = PurePosixPath(path).parent.parts
    if parts[:2] == _SOURCE:
        return "/".join(parts[2:4]) or "ironbell"
    return "/".join(parts[:2]) or "."


def statistics(findings: Sequence[Finding]) -> str:
    """Two tables: rules with their counts, and packages with the counts of each place."""
    rules = Counter((_class(finding), finding.rule) for finding in findings)
    head = [f"{'rule':<28} {'count':>7}"]
    rows = [f"{f'{name} ({where})':<28} {count:>7}" for (where, name), count in rules.most_common()]
    places = [place.value for place in Place]
    headings = ("identifiers", "docstrings", "comments", "strings", "docs")
    cells = Counter((package_of(finding.path), finding.place) for finding in findings)
    names = sorted({package for package, _ in cells})
    packages = [_row(name, [cells[name, place] for place in places]) for name in names]
    total = _row("all", [sum(cells[name, place] for name in names) for place in places])
    columns = f"{'package':<28} {'all':>7}" + "".join(f" {heading:>11}" for heading in headings)
    return "\n".join((*head, *rows, "", columns, *packages, total)) + "\n"


def _class(finding: Finding) -> str:
    return "identifiers" if finding.place == Place.IDENTIFIER.value else "text"


def _row(name: str, counts: Iterable[int]) -> str:
    numbers = list(counts)
    return f"{name:<28} {sum(numbers):>7}" + "".join(f" {number:>11}" for number in numbers)

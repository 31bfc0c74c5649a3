"""Two written surfaces side by side: a unified diff for each file that differs, and a table of the parts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from surface.texts import differ_in_prose_only, without_help

LINES = ("metrics", "names", "options")
"""Parts whose items are the lines of their files; those of the others are files."""
_CONTEXT = 3


@dataclass(frozen=True)
class Comparison:
    """How two surfaces differ."""

    text: str
    differs: bool


@dataclass
class _Part:
    items: int = 0
    differences: int = 0
    in_order_only: int = 0
    in_prose_only: int = 0


@dataclass
class _Hunks:
    """The changes shown so far: one that several files share is shown once."""

    first: dict[str, str] = field(default_factory=dict)

    def shown(self, name: str, hunk: list[str]) -> Iterator[str]:
        head, body = hunk[0], "".join(hunk[1:])
        if (seen := self.first.setdefault(body, name)) == name:
            yield from hunk
        else:
            yield f"{head.rstrip()} the same change as in {seen}\n"


def compare(before: Path, after: Path) -> Comparison:
    """Compare two folders that `writing.write` has filled."""
    parts: dict[str, _Part] = {}
    hunks, shown = _Hunks(), []
    for name in sorted(_files(before) | _files(after)):
        part = parts.setdefault(name.partition("/")[0], _Part())
        old, new = _text(before / name), _text(after / name)
        changes = _changes(old, new)
        by_line = name.partition("/")[0] in LINES
        part.items += len(set(old) | set(new)) if by_line else 1
        if not changes:
            continue
        # lines that have only changed places are a difference, too
        part.differences += max(1, len(set(old) ^ set(new))) if by_line else 1
        part.in_order_only += int(not by_line and sorted(_bare(old)) == sorted(_bare(new)))
        part.in_prose_only += (
            _prose_only(name, old, new) if by_line else int(differ_in_prose_only(name, "".join(old), "".join(new)))
        )
        shown += [f"--- before/{name}\n", f"+++ after/{name}\n"]
        for hunk in changes:
            shown += hunks.shown(name, hunk)
    return Comparison("".join([*shown, *_table(parts)]), any(part.differences for part in parts.values()))


def _prose_only(name: str, old: list[str], new: list[str]) -> int:
    """How many of the lines that differ do so only in a metric's help."""
    gone, come = set(old) - set(new), set(new) - set(old)
    both = {without_help(line) for line in gone} & {without_help(line) for line in come}
    return sum(without_help(line) in both and without_help(line) != line for line in gone | come)


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _text(path: Path) -> list[str]:
    """The lines of a file; none if it is missing. A last line without an end is marked, as diff does."""
    if not path.exists():
        return []
    text = path.read_bytes().decode()
    found = text.splitlines(keepends=True)
    return found if not text or text.endswith("\n") else [*found[:-1], f"{found[-1]} (no end of line)\n"]


def _bare(lines: list[str]) -> list[str]:
    """Lines without what changes where items of a list change places."""
    return [line.strip().rstrip(",") for line in lines]


def _changes(old: list[str], new: list[str]) -> list[list[str]]:
    """The hunks of a unified diff."""
    found: list[list[str]] = []
    if old == new:
        return found
    for line in list(difflib.unified_diff(old, new, n=_CONTEXT))[2:]:
        if line.startswith("@@"):
            found.append([])
        found[-1].append(line)
    return found


def _table(parts: dict[str, _Part]) -> Iterator[str]:
    total = _Part()
    for part in parts.values():
        total.items += part.items
        total.differences += part.differences
        total.in_order_only += part.in_order_only
        total.in_prose_only += part.in_prose_only
    yield f"{'part':<16}{'items':>8}{'differences':>14}{'in order only':>16}{'in prose only':>16}\n"
    for name, part in [*sorted(parts.items()), ("all", total)]:
        yield f"{name:<16}{part.items:>8}{part.differences:>14}{part.in_order_only:>16}{part.in_prose_only:>16}\n"

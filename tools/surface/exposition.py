"""Metrics: families in the text that Prometheus reads, and those of docs/reference/metrics.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? \S+")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:\\.|[^"\\])*)"')
_ROW = re.compile(r"^\| `([^`]+)` \| (\w+) \| ([^|]*) \| (.*) \|$")
_OF_TYPE = frozenset({"le", "quantile"})
"""Labels that a histogram or a summary has by its type."""
_OF_FAMILY = ("_bucket", "_count", "_sum", "_total")


@dataclass
class Family:
    """A metric without its values."""

    name: str
    type: str = "untyped"
    help: str = ""
    labels: set[str] = field(default_factory=set)
    has_samples: bool = False


def families(text: str) -> dict[str, Family]:
    """The families of an exposition. Times of creation, `*_created`, are left out: each comes with a first sample."""
    found: dict[str, Family] = {}
    for line in text.splitlines():
        if line.startswith(("# HELP ", "# TYPE ")):
            _, keyword, name, *rest = line.split(" ", 3)
            family = found.setdefault(name, Family(name))
            if keyword == "TYPE":
                family.type = "".join(rest)
            else:
                family.help = "".join(rest)
        elif match := _SAMPLE.match(line):
            family = _family_of(match[1], found)
            family.has_samples = True
            family.labels |= {name for name, _ in _LABEL.findall(match[2] or "")} - _OF_TYPE
    return {name: family for name, family in found.items() if not name.endswith("_created")}


def _family_of(sample: str, found: dict[str, Family]) -> Family:
    for suffix in _OF_FAMILY:
        if sample not in found and sample.removesuffix(suffix) in found:
            return found[sample.removesuffix(suffix)]
    return found.setdefault(sample, Family(sample))


def label_values(text: str, metric: str, label: str) -> set[str]:
    """The values that a label of a metric has in an exposition."""
    return {
        value
        for line in text.splitlines()
        if (match := _SAMPLE.match(line)) and match[1] == metric
        for name, value in _LABEL.findall(match[2] or "")
        if name == label
    }


def documented(page: str) -> dict[str, Family]:
    """The families in the tables of docs/reference/metrics.md."""
    rows = (_ROW.match(line) for line in page.splitlines())
    return {
        row[1]: Family(row[1], row[2], row[4], set(re.findall(r"`(\w+)`", row[3])))
        for row in rows
        if row and row[1] != "process"
    }


def lines(found: Mapping[str, Family], page: Mapping[str, Family] | None = None) -> Iterator[str]:
    """Type, help and labels of each family, a line each.

    Which samples there are depends on what has happened by chance. So a family of `page` is shown with the labels that
    it has there, and with those of its samples only where they are others.
    """
    for name, family in sorted(found.items()):
        yield f"{name} type {family.type}"
        yield f"{name} help {family.help}"
        described = (page or {}).get(name)
        yield f"{name} labels {_names((described or family).labels)}"
        if described is not None and family.has_samples and family.labels != described.labels:
            yield f"{name} has samples with other labels {_names(family.labels)}"


def _names(labels: set[str]) -> str:
    return ",".join(sorted(labels)) or "-"

"""Label selectors: the text form of `metav1.LabelSelector`, parsed and matched.

Source: kubernetes/apimachinery: pkg/labels/selector.go for the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ironbell.base.errors import IronbellError, Retry

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_KEY = rf"(?:{_NAME}/)?{_NAME}"
_VALUE = rf"(?:{_NAME})?"
_SET = re.compile(rf"(?P<key>{_KEY})\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(rf"(?P<key>{_KEY})\s*(?P<op>==|=|!=)\s*(?P<value>{_VALUE})(?=\s*(?:,|$))")
_EXISTS = re.compile(rf"(?P<not>!?)\s*(?P<key>{_KEY})(?=\s*(?:,|$))")
_SPACE = re.compile(r"\s*")


class SelectorError(IronbellError):
    """A selector's text is malformed."""

    reason = "BadRequest"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term: the key must be (`is_required`), or must not be, present with one of `values` (None: any value)."""

    key: str
    is_required: bool
    values: frozenset[str] | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        present = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return present == self.is_required


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A conjunction of requirements; empty selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_selector(text: str) -> LabelSelector:
    """Read a selector such as `app=web,tier!=db,zone in (a,b),!old`.

    Raises:
        SelectorError: the text is malformed, naming the place.
    """
    requirements: list[Requirement] = []
    position = _skip(text, 0)
    while position < len(text):
        requirement, position = _requirement(text, position)
        requirements.append(requirement)
        position = _skip(text, position)
        if position < len(text):
            if text[position] != "," or _skip(text, position + 1) == len(text):
                raise SelectorError(f"label selector {text!r}: unexpected text at character {position + 1}")
            position = _skip(text, position + 1)
    return LabelSelector(tuple(requirements))


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _requirement(text: str, position: int) -> tuple[Requirement, int]:
    if match := _SET.match(text, position):
        values = frozenset(value.strip() for value in match["values"].split(","))
        if not all(re.fullmatch(_VALUE, value) for value in values):
            raise SelectorError(f"label selector {text!r}: {match['values']!r} is not a list of label values")
        return Requirement(match["key"], match["op"] == "in", values), match.end()
    if match := _EQUAL.match(text, position):
        return Requirement(match["key"], match["op"] != "!=", frozenset((match["value"],))), match.end()
    if match := _EXISTS.match(text, position):
        return Requirement(match["key"], not match["not"]), match.end()
    raise SelectorError(f"label selector {text!r}: no requirement at character {position + 1}")

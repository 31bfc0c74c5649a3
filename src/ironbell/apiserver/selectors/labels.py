"""Label selectors as objects write them: `matchLabels` and `matchExpressions`.

Source: kubernetes/apimachinery: pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector), meta/v1/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ironbell.apiserver.fielderrors import FieldError, forbidden, invalid, required

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """One `matchExpressions` item."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy it."""
        match self.operator:
            case "In":
                return labels.get(self.key) in (self.values or ())
            case "NotIn":
                return labels.get(self.key) not in (self.values or ())
            case "Exists":
                return self.key in labels
        return self.operator == "DoesNotExist" and self.key not in labels


class LabelSelector(msgspec.Struct, frozen=True, gc=False):
    """A selector; an empty one takes everything."""

    matchLabels: dict[str, str] | None = None  # noqa: N815 - as in the object
    matchExpressions: tuple[Requirement, ...] | None = None  # noqa: N815

    @property
    def is_empty(self) -> bool:
        return not self.matchLabels and not self.matchExpressions

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy all of it."""
        if any(labels.get(name) != value for name, value in (self.matchLabels or {}).items()):
            return False
        return all(requirement.holds(labels) for requirement in self.matchExpressions or ())


def selector_faults(selector: Any, path: str) -> Iterator[FieldError]:
    """Faults of a selector that has its schema's shape."""
    for index, requirement in enumerate((selector or {}).get("matchExpressions") or ()):
        where, operator, values = (
            f"{path}.matchExpressions[{index}]",
            requirement.get("operator", ""),
            requirement.get("values"),
        )
        if operator not in _OPERATORS:
            yield invalid(f"{where}.operator", operator, "not a valid selector operator")
        elif operator in ("In", "NotIn") and not values:
            yield required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            yield forbidden(f"{where}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")

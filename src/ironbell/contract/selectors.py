"""Label selectors as API objects hold them, compiled to what matches labels.

Source: kubernetes/apimachinery: pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector), pkg/labels/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ironbell.base.labels import LabelSelector, Requirement, SelectorError

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")
_EXPECTED: Final = {"In": True, "NotIn": False, "Exists": True, "DoesNotExist": False}


class ExpressionLike(Protocol):
    """One item of `matchExpressions`."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str]: ...


class SelectorLike(Protocol):
    """A `metav1.LabelSelector`."""

    @property
    def match_labels(self) -> Mapping[str, str]: ...
    @property
    def match_expressions(self) -> Sequence[ExpressionLike]: ...


@dataclass(frozen=True, slots=True)
class PlainExpression:
    """One item of `matchExpressions`, from plain data."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlainSelector:
    """A selector from plain data, as admission sees it."""

    match_labels: Mapping[str, str]
    match_expressions: tuple[PlainExpression, ...] = ()

    @staticmethod
    def of(fields: Mapping[str, Any]) -> PlainSelector:
        """The selector of a schema-checked object."""
        expressions = fields.get("matchExpressions") or ()
        return PlainSelector(
            fields.get("matchLabels") or {},
            tuple(PlainExpression(e["key"], e["operator"], tuple(e.get("values") or ())) for e in expressions),
        )


def text(selector: SelectorLike) -> str:
    """The selector as `kubectl -l` takes it; what `status.selector` of scalable objects holds."""
    terms = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    for requirement in selector.match_expressions:
        values = ",".join(sorted(requirement.values))
        shown = {"In": f" in ({values})", "NotIn": f" notin ({values})"}.get(requirement.operator, "")
        terms.append(
            (requirement.key, f"{'!' if requirement.operator == 'DoesNotExist' else ''}{requirement.key}{shown}")
        )
    return ",".join(term for _, term in sorted(terms, key=lambda item: item[0]))


def compiled(selector: SelectorLike) -> LabelSelector:
    """The selector, ready to match; an empty one matches everything.

    Raises:
        SelectorError: a key, an operator or a list of values is invalid.
    """
    return LabelSelector(
        (
            *(_requirement(key, "In", (value,)) for key, value in sorted(selector.match_labels.items())),
            *(
                _requirement(requirement.key, requirement.operator, requirement.values)
                for requirement in selector.match_expressions
            ),
        )
    )


def matches(selector: SelectorLike | None, labels: Mapping[str, str]) -> bool:
    """Return whether labels satisfy a selector; a missing or empty one is satisfied by all.

    Raises:
        SelectorError: the selector is invalid.
    """
    return selector is None or compiled(selector).matches(labels)


def _requirement(key: str, operator: str, values: Sequence[str]) -> Requirement:
    expected = _EXPECTED.get(operator)
    if expected is None:
        raise SelectorError(f'"{operator}" is not a valid label selector operator')
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
        raise SelectorError(f'key: Invalid value: "{key}": must be a label key: [PREFIX/]NAME')
    if operator in ("In", "NotIn"):
        if not values:
            raise SelectorError("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
        for value in values:
            if value and not _NAME.fullmatch(value):
                raise SelectorError(f'values[{key}]: Invalid value: "{value}": must be empty or a label value')
        return Requirement(key, expected, frozenset(values))
    if values:
        raise SelectorError("values: Invalid value: values set must be empty for exists and does not exist")
    return Requirement(key, expected)

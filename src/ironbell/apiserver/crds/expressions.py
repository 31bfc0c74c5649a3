"""Problems of the rules in a version's schema: expressions that do not compile, and expressions that could become
expensive.

Source: kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/validation/validation.go, cel_validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ironbell.apiserver.crds.structural import Schema, sub_schemas
from ironbell.apiserver.fielderrors import FieldError, forbidden, invalid
from ironbell.apiserver.schema.rules import CompileRule
from ironbell.base.errors import IronbellError
from ironbell.codec.cel import CelResultError, most_often, plus, rule_cost, times

RULE_LIMIT: Final = 10_000_000
"""Limit of the estimated cost of one rule, for all values of one object."""
SCHEMA_LIMIT: Final = 100_000_000
"""Limit of the estimated cost of all rules of a schema."""
_BLAMED: Final = 4
_BLAMED_FROM: Final = SCHEMA_LIMIT // 100
_ADVICE: Final = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared"
)
_BLAME: Final = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
_WHOLE: Final = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
_OLD_SELF: Final = re.compile(r"\boldSelf\b")


def rules_faults(schema: Schema, path: str, compile_rule: CompileRule, *, judge_each: bool) -> list[FieldError]:
    """All problems of the rules of a schema that is valid otherwise; see `schema_faults`."""
    costs: list[_Cost] = []
    errors = list(_Rules(compile_rule, costs, judge_each=judge_each).faults(schema, path, _Place(is_root=True)))
    total = plus(*(cost.cost for cost in costs))
    if total > SCHEMA_LIMIT:
        dear = sorted((cost for cost in costs if cost.cost >= _BLAMED_FROM), key=lambda cost: -cost.cost)
        errors += [forbidden(cost.path, _BLAME) for cost in dear[:_BLAMED]]
        errors.append(forbidden(path, _excess(_WHOLE, total, SCHEMA_LIMIT)))
    return errors


class _Cost(NamedTuple):
    """The estimate of an expression."""

    path: str
    cost: int


class _Place(NamedTuple):
    """The place of a schema's values in a whole object."""

    most: int | None = 1
    """The largest possible number of values; None if no list or map around them has a limit."""
    uncorrelatable: str = ""
    """The list around them whose items have no old ones."""
    is_root: bool = False


def _excess(subject: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{subject} exceeds budget by factor of {shown} ({_ADVICE})"


def _most_parts(schema: Schema) -> int | None:
    """Return how many values each part of a schema stands for, in one value of it."""
    word = ""
    if schema.get("type") == "array":
        word = "maxItems"
    elif schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        word = "maxProperties"
    if not word:
        return 1
    limit = schema.get(word)
    return None if limit is None else max(int(limit), 0)


class _Rules:
    def __init__(self, compile_rule: CompileRule, costs: list[_Cost], *, judge_each: bool) -> None:
        self._compile_rule = compile_rule
        self._costs = costs
        self._judge_each = judge_each

    def faults(self, schema: Schema, path: str, place: _Place) -> Iterator[FieldError]:
        parts = _most_parts(schema)
        most = None if place.most is None or parts is None else times(place.most, parts)
        for where, sub in sub_schemas(schema):
            alone = where == ".items" and schema.get("x-kubernetes-list-type") != "map"
            inner = _Place(most, place.uncorrelatable or (path if alone else ""))
            yield from self.faults(sub, path + where, inner)
        for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
            if rule.get("rule", "").strip():
                yield from self._rule_faults(rule, schema, f"{path}.x-kubernetes-validations[{index}]", place)

    def _rule_faults(self, rule: Mapping[str, Any], schema: Schema, path: str, place: _Place) -> Iterator[FieldError]:
        uses_old = bool(_OLD_SELF.search(rule["rule"]))
        try:
            self._compile_rule(rule["rule"], schema, optional_old=bool(rule.get("optionalOldSelf")), gives="bool")
            most = most_often(schema) if place.most is None else place.most
            cost = times(self._estimate(rule["rule"], rule, schema, place), most)
            yield from self._observe(cost, f"{path}.rule", "estimated rule cost")
            yield from self._message_faults(rule, schema, path, place)
        except _FAULTS as error:
            yield invalid(f"{path}.rule", _as_go_shows(rule), _error_text(error))
            uses_old = False
        if uses_old and place.uncorrelatable:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelatable}"
            yield invalid(f"{path}.rule", rule["rule"], detail)
        if not uses_old and rule.get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], detail)

    def _message_faults(
        self, rule: Mapping[str, Any], schema: Schema, path: str, place: _Place
    ) -> Iterator[FieldError]:
        """Problems of a `messageExpression`, which is evaluated for one value only, after its rule."""
        text = rule.get("messageExpression", "")
        if not text.strip():
            return
        try:
            self._compile_rule(text, schema, optional_old=bool(rule.get("optionalOldSelf")), gives="string")
        except _FAULTS as error:
            yield invalid(f"{path}.messageExpression", _as_go_shows(rule), _error_text(error, "messageExpression "))
            return
        cost = self._estimate(text, rule, schema, place)
        yield from self._observe(cost, f"{path}.messageExpression", "estimated messageExpression cost")

    def _estimate(self, text: str, rule: Mapping[str, Any], schema: Schema, place: _Place) -> int:
        return rule_cost(text, schema, optional_old=bool(rule.get("optionalOldSelf")), resource=place.is_root)

    def _observe(self, cost: int, path: str, subject: str) -> Iterator[FieldError]:
        self._costs.append(_Cost(path, cost))
        if self._judge_each and cost > RULE_LIMIT:
            yield forbidden(path, _excess(subject, cost, RULE_LIMIT))


_FAULTS: Final = (IronbellError, ValueError, TypeError, LookupError, RecursionError)


def _error_text(error: Exception, subject: str = "") -> str:
    return str(error) if isinstance(error, CelResultError) else f"{subject}compilation failed: {error}"


def _as_go_shows(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule as kube-apiserver shows it in its error messages: by the names of its own type's fields."""
    texts = {f"{word[0].upper()}{word[1:]}": rule.get(word, "") for word in ("rule", "message", "messageExpression")}
    return texts | {
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }

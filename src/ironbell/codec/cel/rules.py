"""Rules of schemas: expressions over self and oldSelf, asked of values, and what they may cost.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema/cel/compilation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ironbell.codec.cel import syntax
from ironbell.codec.cel.adapt import compile_adapt
from ironbell.codec.cel.check import Checked, check
from ironbell.codec.cel.compile import compile_expression, evaluator
from ironbell.codec.cel.costs.estimate import estimate
from ironbell.codec.cel.costs.expand import expand
from ironbell.codec.cel.costs.sizes import most_elements_at
from ironbell.codec.cel.errors import CelResultError, placing_faults
from ironbell.codec.cel.types import RESOURCE, Type, declared, optional_of
from ironbell.codec.cel.values.optional import NONE, Optional

_VARIABLES = ("self", "oldSelf")


def compile_rule(
    rule: str, schema: Mapping[str, Any], *, optional_old: bool = False, gives: str = "bool"
) -> Callable[[Any, Any], Any]:
    """A closure over (self, oldSelf), as the embedded API asks its schemas' rules.

    With `optional_old`, oldSelf is an optional value; `gives` names the type that the expression must have.

    Raises:
        CelSyntaxError: see `compile_expression`; and if the types in it do not fit.
    """
    own, adapt = declared(schema), compile_adapt(schema)
    if own is None:
        evaluate = compile_expression(rule, _VARIABLES)
    else:
        evaluate = _checked_rule(rule, _with_resource(own), optional_old=optional_old, gives=gives)

    def apply(value: Any, old: Any) -> Any:
        if adapt is not None:
            value, old = adapt(value), None if old is None else adapt(old)
        if optional_old:
            old = NONE if old is None else Optional(True, old)
        return evaluate({"self": value, "oldSelf": old})

    return apply


def rule_cost(rule: str, schema: Mapping[str, Any], *, optional_old: bool = False, resource: bool = False) -> int:
    """Return the highest cost of a rule for one value of a schema, in kube-apiserver's units; 0 if it is unknown.

    Args:
        rule: an expression over self and oldSelf.
        schema: of the value.
        optional_old: see `compile_rule`.
        resource: whether the value is a whole object.

    Raises:
        CelSyntaxError: see `compile_rule`.
    """
    own = declared(schema)
    if own is None:
        return 0
    with placing_faults(rule):
        checked = _checked(rule, _with_resource(own), optional_old=optional_old)
        return estimate(expand(checked), lambda path: most_elements_at(schema, path[1:], resource=resource))


def _with_resource(own: Type) -> Type:
    """Every whole object has these fields, whether its schema speaks of them or not."""
    return Type(own.name, own.of, {**RESOURCE, **own.fields}, own.schema) if own.fields is not None else own


def _checked_rule(rule: str, own: Type, *, optional_old: bool, gives: str) -> Callable[[Mapping[str, Any]], Any]:
    with placing_faults(rule):
        checked = _checked(rule, own, optional_old=optional_old)
        if checked.type.name not in (gives, "dyn"):
            name = "cel expression" if gives == "bool" else "messageExpression"
            raise CelResultError(f"{name} must evaluate to a {gives}")
        return evaluator(checked.tree, _VARIABLES, checked.calls)


def _checked(rule: str, own: Type, *, optional_old: bool) -> Checked:
    return check(syntax.parse(rule), {"self": own, "oldSelf": optional_of(own) if optional_old else own})

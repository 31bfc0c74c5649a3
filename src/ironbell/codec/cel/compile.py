"""Texts of expressions to closures over values.

Source: google/cel-spec: doc/langdef.md, "Evaluation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ironbell.codec import effort
from ironbell.codec.cel import syntax
from ironbell.codec.cel.check import check
from ironbell.codec.cel.costs.meter import CallLimitExceeded, Meter
from ironbell.codec.cel.errors import CelError, CelSyntaxError, placing_faults
from ironbell.codec.cel.functions.macros import METER
from ironbell.codec.cel.steps import Calls, compile_tree
from ironbell.codec.cel.types import DYN, Type

ALLOWANCE_S: Final = 1.5
"""Processor time for one evaluation: a limit for what kube-apiserver's units underestimate."""


def compile_expression(text: str, variables: tuple[str, ...]) -> Callable[[Mapping[str, Any]], Any]:
    """A closure that evaluates an expression over variables.

    What it costs is taken from the budget around it (`codec.cel.costs.meter`). Of variables nothing is known, so their
    types are not checked.

    Raises:
        CelSyntaxError: no expression, or it names a variable or a function that does not exist.
    """
    with placing_faults(text):
        tree = syntax.parse(text)
        try:
            calls: Calls = check(tree, dict.fromkeys(variables, DYN)).calls
        except CelSyntaxError:
            calls = {}
        return evaluator(tree, variables, calls)


def evaluator(tree: syntax.Node, variables: Iterable[str], calls: Calls) -> Callable[[Mapping[str, Any]], Any]:
    """A closure that evaluates a tree over variables; `calls` is what each call may be, where that was checked.

    Raises:
        CelSyntaxError: it names a variable or a function that does not exist.
    """
    step = compile_tree(tree, frozenset(variables), calls)

    def evaluate(values: Mapping[str, Any]) -> Any:
        meter = Meter()
        with effort.limited(ALLOWANCE_S):
            try:
                checked = step({**values, METER: meter})
            except RecursionError:
                raise CelError("the expression is too long a chain") from None
            except (CelError, CallLimitExceeded):
                meter.close()
                raise
            meter.close()
        return checked

    return evaluate


def expression_type(text: str, variables: Mapping[str, Type]) -> Type:
    """The type of an expression over variables of these types.

    Raises:
        CelSyntaxError: see `compile_expression`; and if the types in it do not fit.
    """
    with placing_faults(text):
        tree = syntax.parse(text)
        checked = check(tree, variables)
        compile_tree(tree, frozenset(variables), checked.calls)
    return checked.type

"""The Common Expression Language, as far as rules in Kubernetes schemas use it.

`compile_expression(text)` reads an expression once and gives a closure over variable bindings. Values are plain JSON
data. Errors of an expression's text are `CelSyntaxError`; errors of its evaluation are `CelError`, which is also a
`ValueError`, so that the caller of a rule need not know this package.

Source: google/cel-spec: doc/langdef.md; kubernetes/apiserver: pkg/cel/library (the functions that Kubernetes adds).
"""

from ironbell.codec.cel.compile import compile_expression, expression_type
from ironbell.codec.cel.costs.sizes import most_often
from ironbell.codec.cel.errors import CelError, CelResultError, CelSyntaxError
from ironbell.codec.cel.rules import compile_rule, rule_cost
from ironbell.codec.cel.values.ranges import plus, times

__all__ = [
    "CelError",
    "CelResultError",
    "CelSyntaxError",
    "compile_expression",
    "compile_rule",
    "expression_type",
    "most_often",
    "plus",
    "rule_cost",
    "times",
]

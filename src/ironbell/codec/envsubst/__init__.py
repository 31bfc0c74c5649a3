"""Templates with `${VAR}` and a shell's operators, as clusterctl reads cluster templates.

Variables are replaced everywhere, in comments too. A name may have spaces around it (`${ NAME }`); `$$` stands for one
dollar. What a default (`${A:=${B}}`) refers to need not be set: it is empty then.

Source: drone/envsubst: parse/parse.go, template.go; kubernetes-sigs/cluster-api:
cmd/clusterctl/client/yamlprocessor/simple_processor.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.envsubst.operators import OPERATORS, default
from ironbell.codec.envsubst.syntax import Node, SubstitutionError, Variable, parse

__all__ = ["MissingVariablesError", "SubstitutionError", "substitute", "variables"]

_SPACED = re.compile(r"\$\{[\t\n\f\r ]*([A-Za-z0-9_$]+)[\t\n\f\r ]*\}")


class MissingVariablesError(IronbellError):
    """Variables that have neither a value nor a default.

    Attributes:
        names: all of them, sorted.
    """

    reason = "MissingVariables"
    retry = Retry.NEVER

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(
            f"no value for {', '.join(names)}: give each with --set NAME=VALUE, or set it in the environment"
        )
        self.names = names


def variables(text: str) -> dict[str, str | None]:
    """The variables of a template, sorted, each with its default; None where it needs a value.

    Raises:
        SubstitutionError: the template is malformed.
    """
    return dict(sorted(_defaults(_parsed(text)).items()))


def substitute(text: str, values: Mapping[str, str]) -> str:
    """The text of a template with the variables' values in it. Values that it does not ask for are left alone.

    Raises:
        SubstitutionError: the template is malformed.
        MissingVariablesError: naming all variables without a value.
    """
    nodes = _parsed(text)
    missing = sorted(name for name, value in _defaults(nodes).items() if value is None and name not in values)
    if missing:
        raise MissingVariablesError(tuple(missing))
    return "".join(_rendered(node, values) for node in nodes)


def _parsed(text: str) -> tuple[Node, ...]:
    return parse(_SPACED.sub(lambda match: f"${{{match[1]}}}", text))


def _defaults(nodes: tuple[Node, ...]) -> dict[str, str | None]:
    """Return variables with their defaults, from their first appearance; None stands for an empty default."""
    defaults: dict[str, str | None] = {}
    for node in nodes:
        if isinstance(node, Variable) and node.name not in defaults:
            parts = (operand if isinstance(operand, str) else f"${{{operand.name}}}" for operand in node.operands)
            defaults[node.name] = "".join(parts) or None
    return defaults


def _rendered(node: Node, values: Mapping[str, str]) -> str:
    if isinstance(node, str):
        return node
    operands = [_rendered(operand, values) for operand in node.operands]
    return OPERATORS.get(node.operator, default)(values.get(node.name, ""), operands)

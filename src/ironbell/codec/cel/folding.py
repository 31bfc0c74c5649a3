"""Conversions of constants, which are computed when an expression is compiled: `int('abc')` is not a valid expression.

Source: google/cel-go: interpreter/decorators.go (decOptimize, maybeOptimizeConstUnary).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ironbell.codec.cel.errors import CelError, CelResultError, CelSyntaxError

CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
LITERALS: Final = frozenset({"duration", "timestamp"})
"""Conversions of literals that cel-go looks at before it computes anything."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A step of a compiled expression whose value does not depend on any variable."""

    value: Any

    def __call__(self, _: Mapping[str, Any]) -> Any:
        return self.value


def converted(name: str, function: Callable[..., Any], constant: Constant, *, offset: int) -> Constant:
    """The constant that the conversion `name` makes of a constant.

    Raises:
        CelSyntaxError: the constant has no such value.
    """
    try:
        return Constant(function(constant.value))
    except (CelError, TypeError) as error:
        if name in LITERALS:
            raise CelSyntaxError(f"invalid {name} argument", offset=offset) from error
        if isinstance(constant.value, str):
            message = f"program instantiation failed: type conversion error from 'string' to '{name}'"
            raise CelResultError(message) from error
        raise CelSyntaxError(f"{name}() of a constant fails: {error}", offset=offset) from error

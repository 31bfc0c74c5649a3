"""Actual costs of calls, by the values that they are called with.

Source: google/cel-go: interpreter/runtimecost.go (costCall), ext/lists.go, ext/sets.go; kubernetes/apiserver:
pkg/cel/library/cost.go (CallCost).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from math import ceil
from typing import Any, Final
from urllib.parse import SplitResult

from ironbell.codec.cel.functions.library import Quantity
from ironbell.codec.cel.signatures import Signature
from ironbell.codec.cel.values.network import Network
from ironbell.codec.cel.values.optional import Optional

CallCost = Callable[[Sequence[Any], Any], int]
"""Cost by the arguments, the target first, and the result."""

FAILED: Final = object()
"""Stands for a value that could not be computed."""
_SIMPLE: Final = frozenset({int, bool, float})
_TRAVERSAL: Final = 0.1
_REGEX: Final = 0.25
_TEXTS: Final = ("string", "bytes")


def call_cost(function: str, overloads: Sequence[Signature]) -> CallCost | int:
    """The cost of calls of a function: a number, or what gives it for values.

    Args:
        function: its name, or an operator.
        overloads: the possible overloads, by the types. With several, the one that runs is not determined.
    """
    cost = _ALWAYS.get(function)
    if cost is not None:
        return cost
    parameters = overloads[0][0] if len(overloads) == 1 else ()
    by_types = _BY_TYPES.get(function)
    return by_types(tuple(parameter.name for parameter in parameters)) if by_types is not None and parameters else 1


def size(value: Any) -> int:
    """The number of characters, items or entries; 1 for what has none."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    if isinstance(value, IPv4Address | IPv6Address):
        return len(value.packed)
    if isinstance(value, Network):
        return len(value.interface.packed)
    if isinstance(value, Optional) and value.present:
        return size(value.held)
    return 1


def compared(arguments: Sequence[Any], _: Any = None) -> int:
    """Return the cost of comparing two values."""
    if type(arguments[0]) is str and type(arguments[1]) is str:
        return ceil(min(len(arguments[0]), len(arguments[1])) * _TRAVERSAL)
    return ceil(min(size(arguments[0]), size(arguments[1])) * _TRAVERSAL)


def equality(arguments: Sequence[Any], result: Any = None) -> int:
    """Return the cost of `==`."""
    kind = type(arguments[0])
    if kind in _SIMPLE and type(arguments[1]) in _SIMPLE:
        return 1
    if kind is str:
        return compared(arguments, result)
    if isinstance(arguments[0], Quantity | IPv4Address | IPv6Address | Network | SplitResult):
        return 1
    return compared(arguments, result)


def _traversal(value: Any) -> int:
    """Going through all that is in a value."""
    if isinstance(value, str):
        return int(len(value.encode()) * _TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * _TRAVERSAL)
    if isinstance(value, list):
        return sum(map(_traversal, value))
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(item) for key, item in value.items())
    return 1


def _of_first(factor: float) -> CallCost:
    return lambda arguments, _: ceil(size(arguments[0]) * factor * _TRAVERSAL)


def _search_cost(arguments: Sequence[Any], _: Any) -> int:
    return ceil((1.0 + size(arguments[0])) * _TRAVERSAL) * ceil(size(arguments[1]) * _REGEX)


def _parsed(cost: CallCost, by_types: bool) -> CallCost:
    """Return the cost, with that of reading the second argument if it is a text."""
    if not by_types:
        return cost
    return lambda arguments, result: cost(arguments, result) + ceil(size(arguments[1]) * _TRAVERSAL)


def _contains_ip(arguments: Sequence[Any], _: Any) -> int:
    return ceil(2 * size(arguments[0]) * _TRAVERSAL)


def _contains_cidr(arguments: Sequence[Any], result: Any) -> int:
    return _contains_ip(arguments, result) + ceil(size(arguments[0]) * _TRAVERSAL) + 1


def _allocated(factor: float, items: int) -> int:
    return int(items * factor) + 11


def _listed(_: Sequence[Any], result: Any) -> int:
    return _allocated(1, size(result))


def _flattened(arguments: Sequence[Any], _: Any) -> int:
    depth = arguments[1] if len(arguments) == 2 and isinstance(arguments[1], int) else 1
    return _allocated(float(depth), size(arguments[0]))


def _each_with_each(arguments: Sequence[Any], _: Any) -> int:
    items = arguments[0] if isinstance(arguments[0], list) else []
    texts = bool(items) and isinstance(items[0], str | bytes)
    return _allocated(2 + _TRAVERSAL if texts else 2.0, len(items) ** 2)


def _sets(factor: float) -> CallCost:
    return lambda arguments, _: 1 + int(size(arguments[0]) * size(arguments[1]) * factor)


def _joined(arguments: Sequence[Any], _: Any) -> int:
    return ceil((size(arguments[0]) + size(arguments[1])) * _TRAVERSAL)


def _contained(arguments: Sequence[Any], _: Any) -> int:
    return ceil(size(arguments[0]) * _TRAVERSAL) * ceil(size(arguments[1]) * _TRAVERSAL)


_FIRST: Final = _of_first(1)
_ALWAYS: Final[dict[str, CallCost]] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda arguments, _: _traversal(arguments[0])
    ),
    **dict.fromkeys(
        (
            "url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "quantity", "isQuantity",
        ),
        _FIRST,
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _of_first(2)),
    "join": lambda _, result: ceil(size(result) * 2 * _TRAVERSAL),
    **dict.fromkeys(("find", "findAll"), _search_cost),
    "ip": lambda arguments, _: 1 if isinstance(arguments[0], Network) else ceil(size(arguments[0]) * _TRAVERSAL),
    "flatten": _flattened,
    "==": equality,
    "!=": compared,
    "or": lambda *_: 0,
    "orValue": lambda *_: 0,
}  # fmt: skip
"""Costs of functions whose types do not matter."""

_BY_TYPES: Final[dict[str, Callable[[tuple[str, ...]], CallCost | int]]] = {
    "containsIP": lambda types: _parsed(_contains_ip, types[1] == "string"),
    "containsCIDR": lambda types: _parsed(_contains_cidr, types[1] == "string"),
    **dict.fromkeys(("startsWith", "endsWith", "format", "strings.quote"), lambda _: _FIRST),
    "bytes": lambda types: _FIRST if types == ("string",) else 1,
    "string": lambda types: _FIRST if types == ("bytes",) else 1,
    "in": lambda types: (lambda arguments, _: size(arguments[1])) if types[1] == "list" else 1,
    **dict.fromkeys(
        ("<", "<=", ">", ">="), lambda types: compared if types[0] == types[1] and types[0] in _TEXTS else 1
    ),
    "+": lambda types: _joined if types[0] in _TEXTS else 1,
    "matches": lambda _: _search_cost,
    "contains": lambda _: _contained,
    **dict.fromkeys(("slice", "lists.range", "reverse"), lambda _: _listed),
    **dict.fromkeys(("distinct", "sort"), lambda _: _each_with_each),
    **dict.fromkeys(("sets.contains", "sets.intersects"), lambda _: _sets(1)),
    "sets.equivalent": lambda _: _sets(2),
}
"""Costs of functions of which each overload has its own cost."""

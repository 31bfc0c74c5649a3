"""The highest possible costs of function calls, and the largest possible sizes of their results.

Source: google/cel-go: checker/cost.go (functionCost), ext/lists.go, ext/sets.go; kubernetes/apiserver:
pkg/cel/library/cost.go (EstimateCallCost).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ironbell.codec.cel.costs.expand import Expr, Literal
from ironbell.codec.cel.types import Type
from ironbell.codec.cel.values.ranges import MOST, UNKNOWN, Size, fixed, plus, scaled, times, wrapped

TRAVERSAL: Final = 0.1
"""Cost of one character."""
REGEX: Final = 0.25
"""Cost of one character of a pattern."""
_ADDRESS: Final = Size(4, 16)
"""Bytes of an address of IPv4 or IPv6."""

SizeOf = Callable[[Sequence[str]], Size | None]


@dataclass(frozen=True, slots=True)
class Node:
    """A target or argument of a call."""

    expr: Expr
    path: Callable[[], list[str]]
    size: Size | None

    @property
    def size_or_unknown(self) -> Size:
        return UNKNOWN if self.size is None else self.size


Estimate = tuple[int, Size | None]
_Cost = Callable[[tuple[Type, ...], Node | None, list[Node], SizeOf], Estimate | None]


def call_cost(
    function: str, types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf
) -> Estimate:
    """The cost of a call by itself, and the size of what it gives, if known.

    Args:
        function: its name, or an operator.
        types: the types that the called overload takes, the target first.
        target: of a method.
        arguments: the others.
        size_of: gives the size of what a path leads to.
    """
    cost = _COSTS.get(function)
    estimate = cost(types, target, arguments, size_of) if cost is not None else None
    return (1, None) if estimate is None else estimate


def _size(node: Node, size_of: SizeOf) -> Size:
    return node.size or size_of(node.path()) or UNKNOWN


def _traversal(factor: float, *, sized: bool = False, of_argument: bool) -> _Cost:
    """Going through the characters of the target or first argument; with `sized`, the result is as large."""

    def cost(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
        node = (arguments[0] if arguments else None) if of_argument else target
        if node is None:
            return None
        size = _size(node, size_of)
        return scaled(size.most, factor), size if sized else None

    return cost


def _over_elements(
    types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf
) -> Estimate | None:
    if target is None:
        return None
    count = _size(target, size_of).most
    element = _element(target)
    if element is None:
        return scaled(count, TRAVERSAL), None
    per_element = 1
    if element.name in ("string", "bytes"):
        per_element = plus(1, scaled(_element_size(target, size_of).most, TRAVERSAL))
    return times(count, per_element), None


def _element(node: Node) -> Type | None:
    return node.expr.type.of[0] if node.expr.type.of else None


def _element_size(node: Node, size_of: SizeOf) -> Size:
    path = node.path()
    return (size_of([*path, "@items"]) if path else None) or UNKNOWN


def _replace(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if target is None or len(arguments) < 2:
        return None
    size, old, new = (_size(node, size_of) for node in (target, *arguments[:2]))
    most, kept_most = 0, 0
    if old.least == 0:
        most, kept_most = plus(size.most, 1), size.most
    elif new.most <= old.least:
        kept_most = size.most
    else:
        most = math.ceil(float(size.most) / float(old.least))
    least, kept_least = 0, 0
    if old.most == 0:
        least, kept_least = plus(size.least, 1), size.least
    elif old.most <= new.least:
        kept_least = size.least
    else:
        least = math.ceil(float(size.least) / float(old.most))
    result = Size(least, min(most, MOST)).times(new).plus(Size(kept_least, kept_most))
    return scaled(size.most, 2 * TRAVERSAL), result


def _split(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if target is None:
        return None
    size = _size(target, size_of)
    most = wrapped(_whole(arguments[1], size.most)) if len(arguments) > 1 else size.most
    return scaled(size.most, 2 * TRAVERSAL), Size(0, most)


def _whole(node: Node, otherwise: int) -> int:
    """The number that an argument is written as."""
    expr = node.expr
    return expr.value if isinstance(expr, Literal) and type(expr.value) is int else otherwise


def _join(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if target is None:
        return None
    count, result = _size(target, size_of), fixed(0)
    if _element(target) is not None:
        result = count.times(_element_size(target, size_of))
    if arguments:
        separators = Size(max(count.least - 1, 0), max(count.most - 1, 0))
        result = result.plus(_size(arguments[0], size_of).times(separators))
    return scaled(result.most, TRAVERSAL), result


def _find(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if target is None or not arguments:
        return None
    size = _size(target, size_of)
    pattern = scaled(_size(arguments[0], size_of).most, REGEX)
    return times(scaled(plus(size.most, 1), TRAVERSAL), pattern), Size(0, size.most)


def _matches(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if target is None or len(arguments) != 1:
        return None
    text = scaled(plus(target.size_or_unknown.most, 1), TRAVERSAL)
    return times(text, scaled(arguments[0].size_or_unknown.most, REGEX)), None


def _contains(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if target is None or len(arguments) != 1:
        return None
    both = (target, arguments[0])
    text, part = (scaled(node.size_or_unknown.most, TRAVERSAL) for node in both)
    return times(text, part), None


def _affix(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    return (scaled(arguments[0].size_or_unknown.most, TRAVERSAL), None) if len(arguments) == 1 else None


def _format(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    return (scaled(target.size_or_unknown.most, TRAVERSAL), None) if target is not None else None


def _ip(types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    return None if target is not None else _TRAVERSED(types, target, arguments, size_of)


def _containing(own: int) -> _Cost:
    """Return the cost of testing whether a network contains an address or network; one that is a text is read first."""

    def cost(types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
        if types[1].name != "string":
            return own, None
        return plus(own, scaled(_size(arguments[0], size_of).most, TRAVERSAL)), None

    return cost


def _equals(types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    left, right = arguments
    compared = (left.expr.type, right.expr.type)
    if compared[0] == compared[1]:
        if compared[0].name in ("ip", "cidr", "quantity"):
            return 1, None
        if compared[0].name == "url":
            size = right.size or fixed(1)
            return scaled(size.most, TRAVERSAL), None
    return _compared(types, target, arguments, size_of)


def _compared(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate:
    left, right = arguments
    return scaled(min(left.size_or_unknown.most, right.size_or_unknown.most), TRAVERSAL), None


def _ordered(types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if types[0] == types[1] and types[0].name in ("string", "bytes"):
        return _compared(types, target, arguments, size_of)
    return None


def _add(types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if types[0].name not in ("string", "bytes", "list"):
        return None
    left, right = arguments
    size = left.size_or_unknown.plus(right.size_or_unknown)
    return 1 if types[0].name == "list" else scaled(size.most, TRAVERSAL), size


def _in(types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    return (arguments[1].size_or_unknown.most, None) if types[1].name == "list" else None


def _either(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate:
    return 0, None


def _bytes(types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if types[0].name != "string":
        return None
    size = arguments[0].size_or_unknown
    return scaled(size.most, TRAVERSAL), Size(size.least, wrapped(size.most * 4))


def _string(types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if types[0].name != "bytes":
        return None
    size = arguments[0].size_or_unknown
    return scaled(size.most, TRAVERSAL), Size(size.least // 4, size.most)


def _quote(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    size = arguments[0].size_or_unknown
    return scaled(size.most, TRAVERSAL), Size(wrapped(size.least + 2), wrapped(size.most * 2 + 2))


def _allocated(factor: float, size: Size) -> Estimate:
    return plus(scaled(size.most, factor), 11), size


def _slice(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if target is None or len(arguments) != 2:
        return None
    start, end = max(_whole(arguments[0], 0), 0), max(_whole(arguments[1], _size(target, size_of).most), 0)
    return _allocated(1, fixed(wrapped(end - start)))


def _range(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    return _allocated(1, fixed(max(_whole(arguments[0], MOST), 0)))


def _reverse(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    return _allocated(1, _size(target, size_of)) if target is not None else None


def _flatten(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    depth = max(_whole(arguments[0], MOST), 0) if arguments else 1
    return _allocated(float(depth), _size(target, size_of)) if target is not None else None


def _distinct(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if target is None:
        return None
    size = _size(target, size_of)
    return _allocated(2, size.times(size))


def _sort(types: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate | None:
    if target is None:
        return None
    size = _size(target, size_of)
    texts = bool(types and types[0].of) and types[0].of[0].name in ("string", "bytes")
    return _allocated(2 + TRAVERSAL if texts else 2, size.times(size))


def _sets(factor: float) -> _Cost:
    def cost(_: tuple[Type, ...], target: Node | None, arguments: list[Node], size_of: SizeOf) -> Estimate:
        left, right = (_size(node, size_of) for node in arguments)
        return plus(scaled(left.times(right).most, factor), 1), None

    return cost


_TRAVERSED: Final = _traversal(TRAVERSAL, of_argument=True)
_COSTS: Final[dict[str, _Cost]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _over_elements),
    "url": _traversal(TRAVERSAL, sized=True, of_argument=True),
    **dict.fromkeys(
        ("lowerAscii", "upperAscii", "substring", "trim"), _traversal(TRAVERSAL, sized=True, of_argument=False)
    ),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity"), _TRAVERSED),
    "ip": _ip,
    "ip.isCanonical": _traversal(2 * TRAVERSAL, of_argument=True),
    "containsIP": _containing(scaled(2 * _ADDRESS.most, TRAVERSAL)),
    "containsCIDR": _containing(scaled(2 * _ADDRESS.most, TRAVERSAL) + scaled(_ADDRESS.most, TRAVERSAL) + 1),
    "==": _equals,
    "!=": _compared,
    **dict.fromkeys(("<", "<=", ">", ">="), _ordered),
    "+": _add,
    "in": _in,
    **dict.fromkeys(("&&", "||"), _either),
    "matches": _matches,
    "contains": _contains,
    **dict.fromkeys(("startsWith", "endsWith"), _affix),
    "format": _format,
    "bytes": _bytes,
    "string": _string,
    "strings.quote": _quote,
    "slice": _slice,
    "lists.range": _range,
    "reverse": _reverse,
    "flatten": _flatten,
    "distinct": _distinct,
    "sort": _sort,
    **dict.fromkeys(("sets.contains", "sets.intersects"), _sets(1)),
    "sets.equivalent": _sets(2),
}

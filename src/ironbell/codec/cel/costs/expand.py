"""Checked trees with their macros written out: what costs are estimated of.

A macro over a list or map is a loop that adds to an accumulator, as cel-go's parser makes of it; the names of
accumulators are names that an expression cannot have.

Source: google/cel-go: parser/macro.go, ext/comprehensions.go, cel/library.go (optMap, optFlatMap).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ironbell.codec.cel import syntax
from ironbell.codec.cel.check import Checked
from ironbell.codec.cel.signatures import OPERATORS, Signature, matching
from ironbell.codec.cel.types import BOOL, DYN, INT, STRING, Type, list_of, map_of

ACCUMULATOR: Final = "@result"
_ANY_INDEX: Final = (Type("list", (Type("A"),)), Type("map", (Type("A"), Type("B"))))
_INDEXED_BY_TYPE: Final = {"list": _ANY_INDEX[:1], "map": _ANY_INDEX[1:], "dyn": _ANY_INDEX}


@dataclass(slots=True, eq=False)
class Literal:
    type: Type
    value: Any


@dataclass(slots=True, eq=False)
class Name:
    type: Type
    name: str


@dataclass(slots=True, eq=False)
class Select:
    type: Type
    operand: Expr
    field: str
    is_test: bool = False


@dataclass(slots=True, eq=False)
class Call:
    type: Type
    function: str
    arguments: tuple[Expr, ...]
    target: Expr | None = None
    overloads: tuple[Signature, ...] = ()


@dataclass(slots=True, eq=False)
class ListOf:
    type: Type
    items: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class MapOf:
    type: Type
    entries: tuple[tuple[Expr, Expr], ...]


@dataclass(slots=True, eq=False)
class Loop:
    """A fold over a list or map. With one variable, that is an item of a list or a key of a map."""

    type: Type
    over: Expr
    variables: tuple[str, ...]
    start: Expr
    condition: Expr
    step: Expr
    result: Expr


@dataclass(slots=True, eq=False)
class Bind:
    """A name for a value, which is there for the result."""

    type: Type
    name: str
    value: Expr
    result: Expr


Expr: TypeAlias = Literal | Name | Select | Call | ListOf | MapOf | Loop | Bind


def expand(checked: Checked) -> Expr:
    """The tree of a checked expression, with its macros written out."""
    return _Expander(checked).expand(checked.tree)


class _Expander:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked

    def expand(self, node: syntax.Node) -> Expr:
        result_type = self._checked.types.get(id(node), DYN)
        match node:
            case syntax.Literal(value):
                return Literal(result_type, value)
            case syntax.Name(name):
                return Name(result_type, name)
            case syntax.Select(operand, field, optional):
                inner = self.expand(operand)
                return (
                    _plain(result_type, "_?._", inner, Literal(STRING, field))
                    if optional
                    else Select(result_type, inner, field)
                )
            case syntax.Index(operand, index, optional):
                inner = self.expand(operand)
                overloads = () if optional else _INDEXED_BY_TYPE.get(inner.type.name, ())
                signatures = tuple(((item, DYN), DYN) for item in overloads) or _SINGLE
                name = "_[?_]" if optional else "_[_]"
                return Call(result_type, name, (inner, self.expand(index)), overloads=signatures)
            case syntax.ListOf(items):
                return ListOf(result_type, tuple(map(self.expand, items)))
            case syntax.MapOf(entries):
                return MapOf(result_type, tuple((self.expand(key), self.expand(value)) for key, value in entries))
            case syntax.Message(_, fields):
                return MapOf(
                    result_type, tuple((Literal(STRING, item.name), self.expand(item.value)) for item in fields)
                )
            case syntax.Call():
                return self._call(node, result_type)

    def _call(self, node: syntax.Call, result_type: Type) -> Expr:
        overloads = tuple(self._checked.calls.get(id(node), ())) or _SINGLE
        target = node.target
        if target is None:
            if node.function == "has" and isinstance(node.arguments[0], syntax.Select):
                field = node.arguments[0]
                return Select(BOOL, self.expand(field.operand), field.field, is_test=True)
            return Call(result_type, node.function, tuple(map(self.expand, node.arguments)), overloads=overloads)
        if id(target) not in self._checked.types and isinstance(target, syntax.Name):
            name = f"{target.name}.{node.function}"
            return Call(result_type, name, tuple(map(self.expand, node.arguments)), overloads=overloads)
        macro = _MACROS.get((node.function, len(node.arguments)))
        arguments = tuple(map(self.expand, node.arguments))
        if macro is not None:
            return macro(result_type, self.expand(target), arguments)
        if node.function in ("optMap", "optFlatMap"):
            return _optional_map(result_type, self.expand(target), arguments, flat=node.function == "optFlatMap")
        return Call(result_type, node.function, arguments, self.expand(target), overloads)


_SINGLE: Final[tuple[Signature, ...]] = (((), DYN),)
"""Overload of a function that costs the same for all arguments."""


def _plain(result_type: Type, function: str, *arguments: Expr, target: Expr | None = None) -> Call:
    return Call(result_type, function, arguments, target, _SINGLE)


def _operator(result_type: Type, name: str, *arguments: Expr) -> Call:
    types = tuple(item.type for item in arguments)
    return Call(result_type, name, arguments, None, tuple(matching(OPERATORS[name], types)))


def _name(argument: Expr) -> str:
    return argument.name if isinstance(argument, Name) else ""


def _all(result_type: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    names, test = tuple(map(_name, arguments[:-1])), arguments[-1]
    condition = _plain(BOOL, "@not_strictly_false", Name(BOOL, ACCUMULATOR))
    step = _operator(BOOL, "&&", Name(BOOL, ACCUMULATOR), test)
    return Loop(result_type, over, names, Literal(BOOL, True), condition, step, Name(BOOL, ACCUMULATOR))


def _exists(result_type: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    names, test = tuple(map(_name, arguments[:-1])), arguments[-1]
    condition = _plain(BOOL, "@not_strictly_false", _operator(BOOL, "unary !", Name(BOOL, ACCUMULATOR)))
    step = _operator(BOOL, "||", Name(BOOL, ACCUMULATOR), test)
    return Loop(result_type, over, names, Literal(BOOL, False), condition, step, Name(BOOL, ACCUMULATOR))


def _exists_one(result_type: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    names, test = tuple(map(_name, arguments[:-1])), arguments[-1]
    more = _operator(INT, "+", Name(INT, ACCUMULATOR), Literal(INT, 1))
    step = _operator(INT, "?:", test, more, Name(INT, ACCUMULATOR))
    result = _operator(BOOL, "==", Name(INT, ACCUMULATOR), Literal(INT, 1))
    return Loop(result_type, over, names, Literal(INT, 0), Literal(BOOL, True), step, result)


def _listing(
    result_type: Type, over: Expr, names: tuple[str, ...], item: Expr, test: Expr | None, accumulated: Type
) -> Loop:
    step: Expr = _operator(accumulated, "+", Name(accumulated, ACCUMULATOR), ListOf(accumulated, (item,)))
    if test is not None:
        step = _operator(accumulated, "?:", test, step, Name(accumulated, ACCUMULATOR))
    return Loop(
        result_type, over, names, ListOf(accumulated, ()), Literal(BOOL, True), step, Name(accumulated, ACCUMULATOR)
    )


def _map(result_type: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    test = arguments[1] if len(arguments) == 3 else None
    return _listing(result_type, over, (_name(arguments[0]),), arguments[-1], test, list_of(arguments[-1].type))


def _filter(result_type: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    element = over.type.of[0] if over.type.of else DYN
    item = Name(element, _name(arguments[0]))
    return _listing(result_type, over, (item.name,), item, arguments[1], list_of(element))


def _transform_list(result_type: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    names, test = (_name(arguments[0]), _name(arguments[1])), arguments[2] if len(arguments) == 4 else None
    return _listing(result_type, over, names, arguments[-1], test, list_of(arguments[-1].type))


def _transform_map(result_type: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    names = (_name(arguments[0]), _name(arguments[1]))
    key = INT if over.type.name == "list" else over.type.of[0] if over.type.of else DYN
    entry_type = map_of(key, arguments[-1].type)
    step: Expr = _plain(entry_type, "cel.@mapInsert", Name(entry_type, ACCUMULATOR), Name(key, names[0]), arguments[-1])
    if len(arguments) == 4:
        step = _operator(entry_type, "?:", arguments[2], step, Name(entry_type, ACCUMULATOR))
    return Loop(
        result_type, over, names, MapOf(entry_type, ()), Literal(BOOL, True), step, Name(entry_type, ACCUMULATOR)
    )


def _optional_map(result_type: Type, target: Expr, arguments: tuple[Expr, ...], *, flat: bool) -> Expr:
    held = target.type.of[0] if target.type.of else DYN
    value = _plain(held, "value", target=target)
    mapped: Expr = Bind(arguments[1].type, _name(arguments[0]), value, arguments[1])
    if not flat:
        mapped = _plain(result_type, "optional.of", mapped)
    has_value, nothing = _plain(BOOL, "hasValue", target=target), _plain(result_type, "optional.none")
    return Call(result_type, "?:", (has_value, mapped, nothing), None, _SINGLE)


_MACROS: Final[dict[tuple[str, int], Callable[[Type, Expr, tuple[Expr, ...]], Loop]]] = {
    **{("all", count): _all for count in (2, 3)},
    **{("exists", count): _exists for count in (2, 3)},
    **{(name, count): _exists_one for name in ("exists_one", "existsOne") for count in (2, 3)},
    **{("map", count): _map for count in (2, 3)},
    ("filter", 2): _filter,
    **{("transformList", count): _transform_list for count in (3, 4)},
    **{("transformMap", count): _transform_map for count in (3, 4)},
}

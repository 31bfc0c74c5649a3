"""Checked trees with their macros written out: what costs are estimated of.

A macro over a list or map is a loop that adds to an accumulator, as cel-go's parser makes of it; the names of
accumulators are none that an expression can have.

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
        found = self._checked.types.get(id(node), DYN)
        match node:
            case syntax.Literal(value):
                return Literal(found, value)
            case syntax.Name(name):
                return Name(found, name)
            case syntax.Select(operand, field, optional):
                inner = self.expand(operand)
                return _plain(found, "_?._", inner, Literal(STRING, field)) if optional else Select(found, inner, field)
            case syntax.Index(operand, index, optional):
                inner = self.expand(operand)
                overloads = () if optional else _INDEXED_BY_TYPE.get(inner.type.name, ())
                signatures = tuple(((one, DYN), DYN) for one in overloads) or _ONE
                name = "_[?_]" if optional else "_[_]"
                return Call(found, name, (inner, self.expand(index)), overloads=signatures)
            case syntax.ListOf(items):
                return ListOf(found, tuple(map(self.expand, items)))
            case syntax.MapOf(entries):
                return MapOf(found, tuple((self.expand(key), self.expand(value)) for key, value in entries))
            case syntax.Message(_, fields):
                return MapOf(found, tuple((Literal(STRING, one.name), self.expand(one.value)) for one in fields))
            case syntax.Call():
                return self._call(node, found)

    def _call(self, node: syntax.Call, found: Type) -> Expr:
        overloads = tuple(self._checked.calls.get(id(node), ())) or _ONE
        target = node.target
        if target is None:
            if node.function == "has" and isinstance(node.arguments[0], syntax.Select):
                field = node.arguments[0]
                return Select(BOOL, self.expand(field.operand), field.field, is_test=True)
            return Call(found, node.function, tuple(map(self.expand, node.arguments)), overloads=overloads)
        if id(target) not in self._checked.types and isinstance(target, syntax.Name):
            name = f"{target.name}.{node.function}"
            return Call(found, name, tuple(map(self.expand, node.arguments)), overloads=overloads)
        macro = _MACROS.get((node.function, len(node.arguments)))
        arguments = tuple(map(self.expand, node.arguments))
        if macro is not None:
            return macro(found, self.expand(target), arguments)
        if node.function in ("optMap", "optFlatMap"):
            return _optional_map(found, self.expand(target), arguments, flat=node.function == "optFlatMap")
        return Call(found, node.function, arguments, self.expand(target), overloads)


_ONE: Final[tuple[Signature, ...]] = (((), DYN),)
"""Of a function that costs the same whatever it is given."""


def _plain(found: Type, function: str, *arguments: Expr, target: Expr | None = None) -> Call:
    return Call(found, function, arguments, target, _ONE)


def _operator(found: Type, name: str, *arguments: Expr) -> Call:
    types = tuple(one.type for one in arguments)
    return Call(found, name, arguments, None, tuple(matching(OPERATORS[name], types)))


def _name(argument: Expr) -> str:
    return argument.name if isinstance(argument, Name) else ""


def _all(found: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    names, test = tuple(map(_name, arguments[:-1])), arguments[-1]
    condition = _plain(BOOL, "@not_strictly_false", Name(BOOL, ACCUMULATOR))
    step = _operator(BOOL, "&&", Name(BOOL, ACCUMULATOR), test)
    return Loop(found, over, names, Literal(BOOL, True), condition, step, Name(BOOL, ACCUMULATOR))


def _exists(found: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    names, test = tuple(map(_name, arguments[:-1])), arguments[-1]
    condition = _plain(BOOL, "@not_strictly_false", _operator(BOOL, "unary !", Name(BOOL, ACCUMULATOR)))
    step = _operator(BOOL, "||", Name(BOOL, ACCUMULATOR), test)
    return Loop(found, over, names, Literal(BOOL, False), condition, step, Name(BOOL, ACCUMULATOR))


def _exists_one(found: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    names, test = tuple(map(_name, arguments[:-1])), arguments[-1]
    more = _operator(INT, "+", Name(INT, ACCUMULATOR), Literal(INT, 1))
    step = _operator(INT, "?:", test, more, Name(INT, ACCUMULATOR))
    result = _operator(BOOL, "==", Name(INT, ACCUMULATOR), Literal(INT, 1))
    return Loop(found, over, names, Literal(INT, 0), Literal(BOOL, True), step, result)


def _listing(found: Type, over: Expr, names: tuple[str, ...], item: Expr, test: Expr | None, accumulated: Type) -> Loop:
    step: Expr = _operator(accumulated, "+", Name(accumulated, ACCUMULATOR), ListOf(accumulated, (item,)))
    if test is not None:
        step = _operator(accumulated, "?:", test, step, Name(accumulated, ACCUMULATOR))
    return Loop(found, over, names, ListOf(accumulated, ()), Literal(BOOL, True), step, Name(accumulated, ACCUMULATOR))


def _map(found: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    test = arguments[1] if len(arguments) == 3 else None
    return _listing(found, over, (_name(arguments[0]),), arguments[-1], test, list_of(arguments[-1].type))


def _filter(found: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    element = over.type.of[0] if over.type.of else DYN
    item = Name(element, _name(arguments[0]))
    return _listing(found, over, (item.name,), item, arguments[1], list_of(element))


def _transform_list(found: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    names, test = (_name(arguments[0]), _name(arguments[1])), arguments[2] if len(arguments) == 4 else None
    return _listing(found, over, names, arguments[-1], test, list_of(arguments[-1].type))


def _transform_map(found: Type, over: Expr, arguments: tuple[Expr, ...]) -> Loop:
    names = (_name(arguments[0]), _name(arguments[1]))
    key = INT if over.type.name == "list" else over.type.of[0] if over.type.of else DYN
    made = map_of(key, arguments[-1].type)
    step: Expr = _plain(made, "cel.@mapInsert", Name(made, ACCUMULATOR), Name(key, names[0]), arguments[-1])
    if len(arguments) == 4:
        step = _operator(made, "?:", arguments[2], step, Name(made, ACCUMULATOR))
    return Loop(found, over, names, MapOf(made, ()), Literal(BOOL, True), step, Name(made, ACCUMULATOR))


def _optional_map(found: Type, target: Expr, arguments: tuple[Expr, ...], *, flat: bool) -> Expr:
    held = target.type.of[0] if target.type.of else DYN
    value = _plain(held, "value", target=target)
    mapped: Expr = Bind(arguments[1].type, _name(arguments[0]), value, arguments[1])
    if not flat:
        mapped = _plain(found, "optional.of", mapped)
    has_value, nothing = _plain(BOOL, "hasValue", target=target), _plain(found, "optional.none")
    return Call(found, "?:", (has_value, mapped, nothing), None, _ONE)


_MACROS: Final[dict[tuple[str, int], Callable[[Type, Expr, tuple[Expr, ...]], Loop]]] = {
    **{("all", count): _all for count in (2, 3)},
    **{("exists", count): _exists for count in (2, 3)},
    **{(name, count): _exists_one for name in ("exists_one", "existsOne") for count in (2, 3)},
    **{("map", count): _map for count in (2, 3)},
    ("filter", 2): _filter,
    **{("transformList", count): _transform_list for count in (3, 4)},
    **{("transformMap", count): _transform_map for count in (3, 4)},
}

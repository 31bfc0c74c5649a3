"""The highest possible cost of an expression, estimated before it is ever evaluated.

A unit is about 50 ns of kube-apiserver's time. How large values can be follows from the schema, through the paths by
which an expression reaches them; what an expression makes itself has a size that follows from its parts.

The arithmetic of cel-go is kept to the letter, oddities included: which definitions are rejected depends on it.

Source: google/cel-go: checker/cost.go (coster).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ironbell.codec.cel.costs.estimate_calls import Node, call_cost
from ironbell.codec.cel.costs.expand import ACCUMULATOR, Bind, Call, Expr, ListOf, Literal, Loop, MapOf, Name, Select
from ironbell.codec.cel.tokens import Uint
from ironbell.codec.cel.types import Type
from ironbell.codec.cel.values.ranges import MOST, UNKNOWN, Size, fixed, plus, times

_LIST_COST: Final = 10
_MAP_COST: Final = 30
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_EMPTY: Final = Size(MOST, 0)

SizeAt = Callable[[Sequence[str]], int | None]
"""The greatest size of what a path leads to, whose first part is a variable; None if nobody knows."""


class _Entries(NamedTuple):
    """Sizes of what is in a list or map."""

    kind: str
    key: Size
    value: Size

    def union(self, other: _Entries | None) -> _Entries | None:
        return other and _Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


class _Path:
    """Names that lead to a value, appended to as Go does: in place where the array behind has room, even if others have
    a part of it. Two values below one variable of a loop can so end up with one path."""

    __slots__ = ("_array", "_length")

    def __init__(self, array: list[str | None], length: int) -> None:
        self._array, self._length = array, length

    def __len__(self) -> int:
        return self._length

    def names(self) -> list[str]:
        return [name or "" for name in self._array[: self._length]]

    def below(self, name: str) -> _Path:
        array = self._array
        if self._length == len(array):
            array = array[: self._length] + [None] * max(self._length, 1)
        array[self._length] = name
        return _Path(array, self._length + 1)


_NOWHERE: Final = _Path([], 0)


class _Local(NamedTuple):
    path: _Path
    size: Size | None
    entries: _Entries | None


def estimate(tree: Expr, size_at: SizeAt) -> int:
    """The most that an expression costs."""
    return _Estimator(size_at).cost(tree)


class _Estimator:
    def __init__(self, size_at: SizeAt) -> None:
        self._size_at = size_at
        self._paths: dict[int, _Path] = {}
        self._locals: dict[str, list[_Local]] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, _Entries] = {}

    def cost(self, node: Expr) -> int:
        match node:
            case Literal():
                return 0
            case Name(name=name):
                known = self._local(name)
                self._paths[id(node)] = known.path if known is not None else _Path([name], 1)
                return 1
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Loop():
                return self._loop(node)
            case Bind():
                return self._bind(node)

    def _select(self, node: Select) -> int:
        cost = self.cost(node.operand)
        if node.is_test:
            return cost
        if node.operand.type.name in ("map", "object"):
            cost = plus(cost, 1)
        self._paths[id(node)] = self._path(node.operand).below(node.field)
        return cost

    def _call(self, node: Call) -> int:
        if node.function == "dyn" and node.target is None:
            cost = self.cost(node.arguments[0])
            self._copy_sizes(node, node.arguments[0])
            return plus(1, cost)
        costs, arguments = [], []
        for argument in node.arguments:
            costs.append(self.cost(argument))
            arguments.append(self._node(argument))
        own, target = 0, None
        if node.target is not None:
            own, target = self.cost(node.target), self._node(node.target)
        most = 0
        size: Size | None = None
        for parameters, _ in node.overloads:
            cost, result = self._overload(node, parameters, target, arguments, costs)
            most = max(most, cost)
            if result is not None:
                size = result if size is None else size.union(result)
            if node.function == "_[_]" and parameters:
                entries = self._entries_of(node.arguments[0])
                size = entries.value if entries is not None else None
                part = "@items" if parameters[0].name == "list" else "@values"
                self._paths[id(node)] = self._path(node.arguments[0]).below(part)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[id(node)] = size
        return plus(own, most)

    def _overload(
        self, node: Call, parameters: tuple[Type, ...], target: Node | None, arguments: list[Node], costs: list[int]
    ) -> tuple[int, Size | None]:
        if node.function == "?:":
            _, yes, no = node.arguments
            entries = self._entries_of(yes)
            self._keep_entries(node, entries and entries.union(self._entries_of(no)))
            either = arguments[1].size_or_unknown.union(arguments[2].size_or_unknown)
            return plus(costs[0], max(costs[1:])), either
        if node.function == "+" and parameters[0].name in ("string", "bytes", "list"):
            left, right = node.arguments
            entries = self._entries_of(left)
            self._keep_entries(node, entries and entries.union(self._entries_of(right)))
        cost, size = call_cost(node.function, parameters, target, arguments, self._declared_size)
        return plus(cost, *costs), size

    def _list(self, node: ListOf) -> int:
        cost, sizes = 0, _EMPTY if node.items else fixed(0)
        for item in node.items:
            cost = plus(cost, self.cost(item))
            sizes = sizes.union(self._size_or_unknown(item))
        self._entries[id(node)] = _Entries("list", fixed(1), sizes)
        return plus(cost, _LIST_COST)

    def _map(self, node: MapOf) -> int:
        cost, keys = 0, _EMPTY if node.entries else fixed(0)
        values = keys
        for key, value in node.entries:
            cost = plus(cost, self.cost(key), self.cost(value))
            keys, values = keys.union(self._size_or_unknown(key)), values.union(self._size_or_unknown(value))
        self._entries[id(node)] = _Entries("map", keys, values)
        return plus(cost, _MAP_COST)

    def _loop(self, node: Loop) -> int:
        cost = plus(self.cost(node.over), self.cost(node.start))
        self._push(ACCUMULATOR, _Local(self._path(node.start), self._size(node.start), self._entries_of(node.start)))
        for name, local in self._loop_variables(node):
            self._push(name, local)
        per_element = plus(self.cost(node.condition), self.cost(node.step))
        for name in node.variables:
            self._locals[name].pop()
        cost = plus(cost, self.cost(node.result))
        self._locals[ACCUMULATOR].pop()
        count = self._size_or_unknown(node.over)
        if isinstance(node.start, Literal):
            self._sizes[id(node)] = self._size_or_unknown(node.start)
        else:
            self._sizes[id(node)] = count
            self._keep_entries(node, self._entries_of(node.step))
        return plus(cost, times(count.most, per_element))

    def _loop_variables(self, node: Loop) -> list[tuple[str, _Local]]:
        entries = self._entries_of(node.over)
        kind = entries.kind if entries is not None else node.over.type.name
        key, value = (entries.key, entries.value) if entries is not None else (None, None)
        path = self._path(node.over)
        if len(node.variables) == 1:
            if kind == "list":
                return [(node.variables[0], _Local(path.below("@items"), value, None))]
            return [(node.variables[0], _Local(path.below("@keys"), key, None))]
        first = _Local(path.below("@indices" if kind == "list" else "@keys"), key, None)
        second = _Local(path.below("@items" if kind == "list" else "@values"), value, None)
        return [(node.variables[0], first), (node.variables[1], second)]

    def _bind(self, node: Bind) -> int:
        cost = plus(_LIST_COST, self.cost(node.value))
        self._push(node.name, _Local(self._path(node.value), self._size(node.value), self._entries_of(node.value)))
        cost = plus(cost, self.cost(node.result))
        self._locals[node.name].pop()
        self._copy_sizes(node, node.result)
        return cost

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _path(self, node: Expr) -> _Path:
        if isinstance(node, Name) and (known := self._local(node.name)) is not None:
            return known.path
        return self._paths.get(id(node), _NOWHERE)

    def _node(self, node: Expr) -> Node:
        return Node(node, self._path(node).names, self._size(node))

    def _declared_size(self, path: Sequence[str]) -> Size | None:
        most = self._size_at(path) if path else None
        return None if most is None else Size(0, most)

    def _size_or_unknown(self, node: Expr) -> Size:
        known = self._size(node)
        return UNKNOWN if known is None else known

    def _size(self, node: Expr) -> Size | None:
        known = self._sizes.get(id(node)) or _own_size(node)
        if known is not None:
            return known
        declared = self._declared_size(self._path(node).names())
        if declared is not None:
            self._sizes[id(node)] = declared
            return declared
        if _is_scalar(node.type):
            return fixed(1)
        local = self._local(node.name) if isinstance(node, Name) else None
        return local.size if local is not None else None

    def _entries_of(self, node: Expr) -> _Entries | None:
        known = self._entries.get(id(node))
        if known is None and isinstance(node, Name) and (local := self._local(node.name)) is not None:
            return local.entries
        return known

    def _keep_entries(self, node: Expr, entries: _Entries | None) -> None:
        if entries is not None:
            self._entries[id(node)] = entries

    def _copy_sizes(self, node: Expr, source: Expr) -> None:
        size = self._size(source)
        if size is not None:
            self._sizes[id(node)] = size
        self._keep_entries(node, self._entries_of(source))


def _own_size(node: Expr) -> Size | None:
    match node:
        case Literal(value=str() | bytes() as text):
            return fixed(len(text))
        case Literal(value=None | bool() | int() | float() | Uint()):
            return fixed(1)
        case ListOf(items=items):
            return fixed(len(items))
        case MapOf(entries=entries):
            return fixed(len(entries))
    return None


def _is_scalar(type_: Type) -> bool:
    if type_.name == "optional_type":
        return _is_scalar(type_.of[0])
    return type_.name in _SCALARS

"""Go's values in Python.

| Go | here |
| --- | --- |
| nil | None; as an element of a map or list: `NIL` |
| bool, string, int, float64 | bool, str, int, float |
| int64, uint8, uint64 | `Int64`, `Uint8`, `Uint64` (subclasses of int) |
| []interface {} | list; other lists: `TypedList` |
| map[string]interface {} | dict; other maps: `TypedMap` |
| struct, pointer | `Struct`, `Pointer` |
| values with methods | `Opaque` |

Bytes of a Go string that are no UTF-8 are lone surrogates here (`surrogateescape`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.meter import charge


class _Nil:
    """The nil inside an interface-typed place: unlike None, it has a type, so it is not a valid nil map or list."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


NIL: Final = _Nil()
ANY_TYPE: Final = "interface {}"
_MAX_COMPARED: Final = 100_000


class Int64(int):
    """Go's int64."""

    __slots__ = ()


class Uint8(int):
    """Go's uint8: what indexing a string gives."""

    __slots__ = ()


class Uint64(int):
    """Go's uint64."""

    __slots__ = ()


_INT_TYPES: Final = {int: "int", Int64: "int64", Uint8: "uint8", Uint64: "uint64"}


class TypedList(list[Any]):
    """A list whose elements have a type other than `interface {}`; `is_nil` for Go's nil slice."""

    __slots__ = ("elem", "is_nil")

    def __init__(self, items: Iterable[Any] = (), *, elem: str, is_nil: bool = False) -> None:
        super().__init__(items)
        self.elem = elem
        self.is_nil = is_nil


class TypedMap(dict[str, Any]):
    """A map from strings to one type other than `interface {}`; `is_nil` for Go's nil map."""

    __slots__ = ("elem", "is_nil")

    def __init__(self, items: dict[str, Any] | None = None, *, elem: str = ANY_TYPE, is_nil: bool = False) -> None:
        super().__init__(items or {})
        self.elem = elem
        self.is_nil = is_nil


@dataclass(frozen=True, slots=True)
class Field:
    """A struct's field: its Go name, its name in JSON, its Go type, and whether JSON leaves out its zero value."""

    name: str
    json: str
    type: str
    omit_empty: bool = True


@dataclass(frozen=True)
class StructType:
    """A struct's type."""

    name: str
    fields: tuple[Field, ...]
    by_name: dict[str, Field] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {item.name: item for item in self.fields})


@dataclass(slots=True)
class Struct:
    """A struct: one value per field, by Go name."""

    type: StructType
    values: dict[str, Any]


@dataclass(slots=True)
class Pointer:
    """A pointer to a value, or nil; `elem` is the type that it points to."""

    elem: str
    target: Any


class Opaque(ABC):
    """A value that templates use through its methods and its text."""

    type_name: str
    kind: str = "struct"

    @property
    @abstractmethod
    def methods(self) -> dict[str, Any]:
        """Methods by name: callables without arguments, or `Function`s."""

    @abstractmethod
    def __str__(self) -> str: ...


def strings(items: Iterable[str]) -> TypedList:
    """A []string."""
    return TypedList(items, elem="string")


def ints(items: Iterable[int]) -> TypedList:
    """A []int."""
    return TypedList(items, elem="int")


def elements(value: list[Any]) -> list[Any]:
    """The elements as they are when read one by one: nil keeps the type of its place."""
    return [NIL if item is None else item for item in value]


def type_name(value: Any) -> str:
    """Return the text that %T prints."""
    match value:
        case None | _Nil():
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return _INT_TYPES[type(value)]
        case str():
            return "string"
        case float():
            return "float64"
        case TypedList():
            return f"[]{value.elem}"
        case list():
            return f"[]{ANY_TYPE}"
        case TypedMap():
            return f"map[string]{value.elem}"
        case dict():
            return f"map[string]{ANY_TYPE}"
        case Struct():
            return value.type.name
        case Pointer():
            return f"*{value.elem}"
        case Opaque():
            return value.type_name
    raise CallError(f"a value of type {type(value).__name__} has no form in templates")


def kind_name(value: Any) -> str:
    """Return the text that reflect's Kind prints."""
    match value:
        case None | _Nil():
            return "invalid"
        case list():
            return "slice"
        case dict():
            return "map"
        case Struct():
            return "struct"
        case Pointer():
            return "ptr"
        case Opaque():
            return value.kind
    return type_name(value)


def is_int(value: Any) -> bool:
    """Return whether the value is of a signed integer kind."""
    return type(value) is int or type(value) is Int64


def is_uint(value: Any) -> bool:
    """Return whether the value is of an unsigned integer kind."""
    return type(value) is Uint8 or type(value) is Uint64


def is_true(value: Any) -> bool:
    """The truth of if, with, and, or, not."""
    match value:
        case None | _Nil():
            return False
        case Pointer():
            return value.target is not None
        case Struct() | Opaque():
            return True
    return bool(value)


def is_empty(value: Any) -> bool:
    """Sprig's `empty`, which differs from truth for nothing that templates can hold but nil pointers' names."""
    return not is_true(value)


def dereference(value: Any) -> Any:
    """Follow pointers; a nil pointer is returned unchanged."""
    while isinstance(value, Pointer) and value.target is not None:
        value = value.target
    return value


def encode(text: str) -> bytes:
    """A string's bytes."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """A string from its bytes."""
    return data.decode("utf-8", "surrogateescape")


def wrap_int64(value: int) -> Int64:
    """Go's int64 arithmetic wraps around."""
    value &= (1 << 64) - 1
    return Int64(value - (1 << 64) if value >> 63 else value)


def deep_equal(left: Any, right: Any) -> bool:
    """reflect.DeepEqual: types must be the same.

    Raises:
        CallError: the values expand beyond what may be compared.
    """
    return _Comparison().equal(left, right)


class _Comparison:
    def __init__(self) -> None:
        self._left = _MAX_COMPARED

    def equal(self, left: Any, right: Any) -> bool:
        charge(1)
        self._left -= 1
        if self._left < 0:
            raise CallError("too much to compare")
        left, right = (None if item is NIL else item for item in (left, right))
        if type_name(left) != type_name(right):
            return False
        match left:
            case list():
                return (
                    _nilness(left) == _nilness(right) and len(left) == len(right) and all(map(self.equal, left, right))
                )
            case dict():
                return (
                    _nilness(left) == _nilness(right)
                    and left.keys() == right.keys()
                    and all(self.equal(value, right[key]) for key, value in left.items())
                )
            case Struct():
                return all(self.equal(left.values[item.name], right.values[item.name]) for item in left.type.fields)
            case Pointer():
                if left.target is None or right.target is None:
                    return left.target is right.target
                return self.equal(left.target, right.target)
            case Opaque():
                return str(left) == str(right)
            case str():
                charge(len(left) / 16_000)
        return bool(left == right)


def _nilness(value: Any) -> bool:
    return bool(getattr(value, "is_nil", False))

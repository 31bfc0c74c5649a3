"""Functions with Go signatures.

The parameter's Go type decides which arguments it takes: an int64 is not an int, nor a []string a []interface {}. The
evaluator asks `assign` for values and `constant` for literals, as text/template does.

Source: golang/go: src/text/template/exec.go (validateType, evalArg).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from ironbell.codec.gotemplate import nodes as n
from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.values import (
    ANY_TYPE,
    NIL,
    Int64,
    Opaque,
    Pointer,
    Struct,
    TypedList,
    TypedMap,
    type_name,
)

F = TypeVar("F", bound=Callable[..., Any])


class P(Enum):
    """Types of parameters, by their Go names. VALUE is reflect.Value: what only builtins have."""

    ANY = ANY_TYPE
    VALUE = "reflect.Value"
    STRING = "string"
    BOOL = "bool"
    INT = "int"
    INT64 = "int64"
    UINT32 = "uint32"
    FLOAT = "float64"
    MAP = "map[string]interface {}"
    LIST = "[]interface {}"
    TIME = "time.Time"
    VERSION = "*semver.Version"
    CERTIFICATE = "sprig.certificate"


@dataclass(frozen=True, slots=True)
class Function:
    """A function of templates; `rest` is the type of any number of further arguments."""

    name: str
    params: tuple[P, ...]
    rest: P | None
    call: Callable[..., Any]
    cost: int = 0
    """Steps of a call, whatever its arguments are."""
    factor: int = 1
    """Multiplies what arguments cost by their size."""


class Library(Mapping[str, Function]):
    """Functions by name."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def add(self, names: str, *params: P, rest: P | None = None, cost: int = 0, factor: int = 1) -> Callable[[F], F]:
        """Register a function under one or more names, separated by spaces; what it does by itself takes `cost` steps,
        and `factor` times those by which the sizes of arguments are charged. Used as a decorator or in a table."""

        def register(call: F) -> F:
            for name in names.split():
                self._functions[name] = Function(name, params, rest, call, cost, factor)
            return call

        return register


def accepts(param: P, value: Any) -> bool:
    """Return whether a value's type is the parameter's."""
    match param:
        case P.ANY | P.VALUE:
            return True
        case P.STRING:
            return isinstance(value, str)
        case P.BOOL:
            return isinstance(value, bool)
        case P.INT:
            return type(value) is int
        case P.INT64:
            return type(value) is Int64
        case P.FLOAT:
            return type(value) is float
        case P.MAP:
            return isinstance(value, dict) and getattr(value, "elem", ANY_TYPE) == ANY_TYPE
        case P.LIST:
            return isinstance(value, list) and getattr(value, "elem", ANY_TYPE) == ANY_TYPE
        case P.TIME | P.VERSION:
            return isinstance(value, Opaque) and value.type_name == param.value
        case P.CERTIFICATE:
            return isinstance(value, Struct) and value.type.name == param.value
        case P.UINT32:
            return False


def assign(value: Any, param: P) -> Any:
    """The argument that a value becomes.

    Raises:
        CallError: its type is another.
    """
    if param in (P.ANY, P.VALUE):
        return None if value is NIL else value
    if value is None:
        return _zero(param)
    if value is NIL:
        raise CallError(f"wrong type for value; expected {param.value}; got {ANY_TYPE}")
    if accepts(param, value):
        return value
    if isinstance(value, Pointer):
        if value.target is None and value.elem == param.value:
            raise CallError(f"dereference of nil pointer of type {param.value}")
        if value.target is not None and accepts(param, value.target):
            return value.target
    raise CallError(f"wrong type for value; expected {param.value}; got {type_name(value)}")


def _zero(param: P) -> Any:
    if param is P.MAP:
        return TypedMap(is_nil=True)
    if param is P.LIST:
        return TypedList(elem=ANY_TYPE, is_nil=True)
    raise CallError(f"invalid value; expected {param.value}")


def constant(node: n.Arg, param: P) -> Any:
    """The argument that a literal becomes.

    Raises:
        CallError: the literal is of another type.
    """
    match param, node:
        case ((P.ANY | P.VALUE), (n.Bool() | n.Str())):
            return node.value
        case ((P.ANY | P.VALUE), n.Num()):
            return ideal(node)
        case P.BOOL, n.Bool():
            return node.value
        case P.STRING, n.Str():
            return node.value
        case P.INT, n.Num() if node.number.as_int is not None:
            return node.number.as_int
        case P.INT64, n.Num() if node.number.as_int is not None:
            return Int64(node.number.as_int)
        case P.UINT32, n.Num() if node.number.as_uint is not None:
            return node.number.as_uint & 0xFFFFFFFF
        case P.FLOAT, n.Num() if node.number.as_float is not None:
            return node.number.as_float
    raise CallError(f"expected {_EXPECTED.get(param, param.value)}; found a {_LITERALS[type(node)]}")


_EXPECTED: Final = {P.INT: "integer", P.INT64: "integer", P.UINT32: "unsigned integer", P.FLOAT: "float"}
_LITERALS: Final = {n.Bool: "boolean", n.Str: "string", n.Num: "number"}


def ideal(node: n.Num) -> int | float:
    """An untyped numeric constant: a float64 if it is written like one, else an int."""
    literal = node.number
    if literal.is_float_like and literal.as_float is not None:
        return literal.as_float
    if literal.as_int is not None:
        return literal.as_int
    raise CallError(f"{literal.text} overflows int")

"""Type checking: an expression that cannot work is rejected when a rule is written, and not when it is evaluated.

Source: google/cel-spec: doc/langdef.md, "Gradual Type Checking"; google/cel-go: checker/checker.go, checker/errors.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ironbell.codec import re2
from ironbell.codec.cel import syntax
from ironbell.codec.cel.errors import CelError, CelSyntaxError, Fault
from ironbell.codec.cel.folding import LITERALS
from ironbell.codec.cel.functions.functions import FUNCTIONS, METHODS
from ironbell.codec.cel.signatures import (
    FUNCTION_TYPES,
    METHOD_TYPES,
    OPERATORS,
    Signature,
    matching,
    result_of,
)
from ironbell.codec.cel.tokens import Uint
from ironbell.codec.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    TYPE,
    TYPE_NAMES,
    UINT,
    Type,
    field_names,
    fits,
    list_of,
    map_of,
    optional_of,
)
from ironbell.codec.cel.values import messages

_LITERALS: dict[type, Type] = {bool: BOOL, int: INT, float: DOUBLE, str: STRING, bytes: BYTES, Uint: UINT}
_SHOWN = {"in": "@in", "unary !": "!_", "unary -": "-_", "?:": "_?_:_"}
_QUANTIFIERS = {"all", "exists", "exists_one", "existsOne"}
_TRANSFORMS = {"transformList", "transformMap"}


@dataclass(slots=True)
class Checked:
    """Result of checking a tree. Nodes are told apart by `id`, and live as long as `tree`."""

    tree: syntax.Node
    type: Type = DYN
    types: dict[int, Type] = field(default_factory=dict)
    """Types of the nodes."""
    calls: dict[int, list[Signature]] = field(default_factory=dict)
    """Overloads of each call: several where an argument may be of any type."""
    faults: list[Fault] = field(default_factory=list)
    late_faults: list[Fault] = field(default_factory=list)
    """Literals without a value: reported where the types are right."""


def check(tree: syntax.Node, variables: Mapping[str, Type]) -> Checked:
    """The types in an expression over variables of these types.

    Raises:
        CelSyntaxError: it can have none: a field that does not exist, or an operation on types that have it not; with
            all that is wrong.
    """
    checked = Checked(tree)
    checked.type = _Checker(dict(variables), checked).type_of(tree)
    faults = checked.faults or checked.late_faults
    if faults:
        raise CelSyntaxError(faults[0].message, faults=faults)
    return checked


class _Misfit(Exception):  # noqa: N818 - becomes a fault at a place
    """A problem of a node, or at another place if `offset` names one."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.message, self.offset = message, offset


def _fault(text: str, offset: int | None = None) -> _Misfit:
    return _Misfit(text, offset)


class _Checker:
    """One scope of variables."""

    def __init__(self, variables: dict[str, Type], checked: Checked, *, mixed: bool = False) -> None:
        """Check over these variables; `mixed` allows a literal with items of several types. Results go to `checked`."""
        self._variables = variables
        self._checked = checked
        self._faults = checked.faults
        self._mixed = mixed

    def type_of(self, node: syntax.Node) -> Type:
        """The type of a node; what has none because of a fault may be anything."""
        try:
            result = self._checked.types[id(node)] = self._type_of(node)
            return result
        except _Misfit as misfit:
            place = node.offset if misfit.offset is None else misfit.offset
            self._faults.append(Fault(place, misfit.message))
            return DYN

    def _type_of(self, node: syntax.Node) -> Type:
        match node:
            case syntax.Literal(value):
                return NULL if value is None else _LITERALS[type(value)]
            case syntax.Name(name):
                return self._name(name)
            case syntax.Select(operand, field, optional):
                result = _through(self.type_of(operand), lambda inner: _field(inner, field))
                return _as_optional(result) if optional else result
            case syntax.Index(operand, index, optional):
                place = self.type_of(index)
                result = _through(self.type_of(operand), lambda inner: _element(inner, place))
                return _as_optional(result) if optional else result
            case syntax.ListOf(items):
                return list_of(self._common(items))
            case syntax.MapOf(entries):
                keys = self._common([key for key, _ in entries])
                return map_of(keys, self._common([value for _, value in entries]))
            case syntax.Message():
                return messages.message_type(node, self._variables, self.type_of, self._faults)
            case syntax.Call():
                return self._call(node)

    def _name(self, name: str) -> Type:
        if name in self._variables:
            return self._variables[name]
        if name in TYPE_NAMES:
            return TYPE
        raise _fault(f"undeclared reference to '{name}' (in container '')")

    def _common(self, items: Sequence[syntax.Node]) -> Type:
        """The one type of all items of a literal."""
        if not items:
            return DYN
        first = self.type_of(items[0])
        is_mixed = False
        for item in items[1:]:
            other = self.type_of(item)
            if fits(first, other):
                continue
            if not self._mixed:
                raise _fault(f"expected type '{first}' but found '{other}'", item.offset)
            is_mixed = True
        return DYN if is_mixed else first

    def _call(self, node: syntax.Call) -> Type:
        target = node.target
        if target is None:
            return self._function(node)
        if isinstance(target, syntax.Name) and target.name not in self._variables:
            name = f"{target.name}.{node.function}"
            if name in FUNCTION_TYPES and messages.may_use(name, self._variables):
                return self._resolved(node, name, FUNCTION_TYPES)
        if node.function in _QUANTIFIERS | _TRANSFORMS | {"map", "filter"}:
            return self._macro(node, self.type_of(target))
        if node.function in ("optMap", "optFlatMap"):
            return self._optional_map(node, self.type_of(target))
        if node.function not in METHOD_TYPES:
            self.type_of(target)
            if node.function not in METHODS:
                self._faults.append(Fault(node.offset, f"undeclared reference to '{node.function}' (in container '')"))
            for argument in node.arguments:
                self.type_of(argument)
            return DYN
        inner = _Checker(self._variables, self._checked, mixed=True) if node.function == "format" else self
        types = (self.type_of(target), *(inner.type_of(argument) for argument in node.arguments))
        fitting = self._checked.calls[id(node)] = matching(METHOD_TYPES[node.function], types)
        result = result_of(fitting, types)
        if result is None:
            listed = ", ".join(map(str, types[1:]))
            raise _fault(f"found no matching overload for '{node.function}' applied to '{types[0]}.({listed})'")
        pattern = node.arguments[0] if node.arguments else None
        if node.function in ("matches", "find", "findAll") and isinstance(pattern, syntax.Literal):
            self._check_pattern(node.function, pattern)
        return result

    def _function(self, node: syntax.Call) -> Type:
        if node.function == "has":
            return self._has(node)
        if node.function in OPERATORS:
            return self._resolved(node, node.function, OPERATORS)
        if node.function in FUNCTION_TYPES:
            result = self._resolved(node, node.function, FUNCTION_TYPES)
            if node.function in LITERALS and isinstance(node.arguments[0], syntax.Literal):
                self._check_literal(node.function, node.arguments[0])
            return result
        if node.function not in FUNCTIONS:
            self._faults.append(Fault(node.offset, f"undeclared reference to '{node.function}' (in container '')"))
        for argument in node.arguments:
            self.type_of(argument)
        return DYN

    def _check_pattern(self, function: str, pattern: syntax.Literal) -> None:
        try:
            re2.compile_pattern(str(pattern.value))
        except re2.PatternError:
            self._checked.late_faults.append(Fault(pattern.offset, f"invalid {function} argument"))

    def _check_literal(self, function: str, literal: syntax.Literal) -> None:
        """Record a fault if a literal is not a valid time or duration."""
        try:
            FUNCTIONS[function](literal.value)
        except (CelError, TypeError):
            self._checked.late_faults.append(Fault(literal.offset, f"invalid {function} argument"))

    def _has(self, node: syntax.Call) -> Type:
        field = node.arguments[0] if len(node.arguments) == 1 else None
        if not isinstance(field, syntax.Select):
            raise _fault("invalid argument to has() macro", field.offset if field is not None else None)
        # the macro is put where its parenthesis is
        self.type_of(replace(field, offset=node.offset))
        return BOOL

    def _resolved(self, node: syntax.Call, name: str, table: Mapping[str, list[Signature]]) -> Type:
        types = tuple(self.type_of(argument) for argument in node.arguments)
        for argument, own in zip(node.arguments, types, strict=True):
            if name in ("&&", "||") and not fits(own, BOOL):
                raise _fault(f"expected type 'bool' but found '{own}'", argument.offset)
        fitting = self._checked.calls[id(node)] = matching(table[name], types)
        result = result_of(fitting, types)
        if result is None:
            shown = _SHOWN.get(name, name if name[0].isalpha() else f"_{name}_")
            raise _fault(f"found no matching overload for '{shown}' applied to '({', '.join(map(str, types))})'")
        return result

    def _macro(self, node: syntax.Call, target: Type) -> Type:
        if target.name not in ("list", "map", "dyn"):
            text = "cannot be range of a comprehension (must be list, map, or dynamic)"
            place = node.target.offset if node.target is not None else None
            raise _fault(f"expression of type '{target}' {text}", place)
        names, bodies = _variables(node)
        element = target.of[0] if target.of else DYN
        types: tuple[Type, ...] = (element,)
        if len(names) == 2:
            key = INT if target.name == "list" else element
            types = (key, element if target.name == "list" else target.of[1] if target.of else DYN)
        known = {**self._variables, **dict(zip(names, types, strict=True))}
        inner = _Checker(known, self._checked, mixed=self._mixed)
        result = [inner.type_of(body) for body in bodies]
        tests = result if node.function in _QUANTIFIERS or node.function == "filter" else result[:-1]
        for test in tests:
            if not fits(test, BOOL):
                raise _fault(f"expected type 'bool' but found '{test}'")
        if node.function in _QUANTIFIERS:
            return BOOL
        if node.function == "filter":
            return list_of(element)
        return map_of(types[0], result[-1]) if node.function == "transformMap" else list_of(result[-1])

    def _optional_map(self, node: syntax.Call, target: Type) -> Type:
        names, bodies = _variables(node)
        held = target.of[0] if target.name == "optional_type" else DYN
        result = _Checker({**self._variables, names[0]: held}, self._checked).type_of(bodies[0])
        return result if node.function == "optFlatMap" else optional_of(result)


def _variables(node: syntax.Call) -> tuple[list[str], tuple[syntax.Node, ...]]:
    """The variables of a macro, and its expressions."""
    count = 2 if node.function in _TRANSFORMS or (len(node.arguments) == 3 and node.function in _QUANTIFIERS) else 1
    names = [argument.name for argument in node.arguments[:count] if isinstance(argument, syntax.Name)]
    if len(node.arguments) <= count:
        raise _fault(f"undeclared reference to '{node.function}' (in container '')")
    if len(names) != count:
        unnamed = next(argument for argument in node.arguments[:count] if not isinstance(argument, syntax.Name))
        raise _fault("argument must be a simple name", unnamed.offset)
    return names, node.arguments[count:]


def _through(target: Type, find: Callable[[Type], Type]) -> Type:
    if target.name == "optional_type":
        return _as_optional(find(target.of[0]))
    return find(target)


def _as_optional(result: Type) -> Type:
    return result if result.name == "optional_type" else optional_of(result)


def _field(target: Type, field: str) -> Type:
    if (constructed := messages.field_type(target.name, field)) is not None:
        return constructed
    if target.name == "dyn":
        return DYN
    if target.name == "map":
        return target.of[1]
    if target.name != "object" or target.fields is None:
        raise _fault(f"type '{target}' does not support field selection")
    result = next((target.fields[name] for name in reversed(field_names(field)) if name in target.fields), None)
    if result is None:
        raise _fault(f"undefined field '{field}'")
    return result


def _element(target: Type, place: Type) -> Type:
    if target.name == "dyn":
        return DYN
    if target.name == "list" and fits(place, INT):
        return target.of[0]
    if target.name == "map" and fits(place, target.of[0]):
        return target.of[1]
    raise _fault(f"found no matching overload for '_[_]' applied to '({target}, {place})'")

"""Trees to closures.

`&&` and `||` forgive an error on one side when the other decides, as CEL demands; `all` and `exists` likewise. Every
element of a comprehension, every call and everything that grows is paid for out of the allowance in `codec.effort`, so
that a rule over a large list ends with an error instead of holding the process.

Source: google/cel-spec: doc/langdef.md, "Evaluation", "Logical Operators", "Macros".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from ironbell.codec import effort
from ironbell.codec.cel import messages, syntax
from ironbell.codec.cel.check import check
from ironbell.codec.cel.errors import CelError, CelSyntaxError, MissingError, placing_faults
from ironbell.codec.cel.folding import CONVERSIONS, Constant, converted
from ironbell.codec.cel.functions import CONSTANT_TIME, FUNCTIONS, METHODS
from ironbell.codec.cel.library import NAMESPACED
from ironbell.codec.cel.names import field_names
from ironbell.codec.cel.optional import NONE, Optional
from ironbell.codec.cel.tokens import Uint
from ironbell.codec.cel.types import TYPE_NAMES, Type
from ironbell.codec.cel.values import arithmetic, equal, less, number_of, pay_for, type_name

Scope = dict[str, Any]
Step = Callable[[Scope], Any]

ALLOWANCE_S = 0.5
"""Of processor time, for one evaluation."""
_CALL_S = 0.5e-6
_ELEMENT_S = 1e-6
_MACROS = {"all", "exists", "exists_one", "existsOne", "map", "filter", "transformList", "transformMap"}
_TRANSFORMS = {"transformList", "transformMap"}
_QUANTIFIERS = {"all", "exists", "exists_one", "existsOne"}
_OPTIONAL_MACROS = {"optMap", "optFlatMap"}


def compile_expression(text: str, variables: tuple[str, ...]) -> Callable[[Mapping[str, Any]], Any]:
    """A closure that evaluates an expression over variables.

    Raises:
        CelSyntaxError: no expression, or it names a variable or a function that does not exist.
    """
    with placing_faults(text):
        step = _compile(syntax.parse(text), frozenset(variables))

    def evaluate(values: Mapping[str, Any]) -> Any:
        try:
            with effort.limited(ALLOWANCE_S):
                return step({**values})
        except RecursionError:
            raise CelError("the expression is too long a chain") from None

    return evaluate


def expression_type(text: str, variables: Mapping[str, Type]) -> Type:
    """The type of an expression over variables of these types.

    Raises:
        CelSyntaxError: see `compile_expression`; and if the types in it do not fit.
    """
    with placing_faults(text):
        tree = syntax.parse(text)
        found = check(tree, variables)
        _compile(tree, frozenset(variables))
    return found.type


def _compile(node: syntax.Node, known: frozenset[str]) -> Step:
    match node:
        case syntax.Literal(value):
            return Constant(value)
        case syntax.Name(name):
            if name not in known and name in TYPE_NAMES:
                return lambda _: TYPE_NAMES[name]
            if name not in known:
                raise _undeclared(name, node.offset)
            return lambda scope: scope[name]
        case syntax.Select(operand, field, is_optional):
            inner, names = _compile(operand, known), field_names(field)
            if is_optional:
                return lambda scope: _optionally(inner(scope), lambda value: _select(value, names))
            return lambda scope: _through(inner(scope), lambda value: _select(value, names))
        case syntax.Index(operand, index, is_optional):
            inner, place = _compile(operand, known), _compile(index, known)
            if is_optional:
                return lambda scope: _optionally(inner(scope), lambda value: _index(value, place(scope)))
            return lambda scope: _through(inner(scope), lambda value: _index(value, place(scope)))
        case syntax.ListOf(items):
            steps = [_compile(item, known) for item in items]
            return lambda scope: [step(scope) for step in steps]
        case syntax.MapOf(entries):
            pairs = [(_compile(key, known), _compile(value, known)) for key, value in entries]
            return lambda scope: {_key(key(scope)): value(scope) for key, value in pairs}
        case syntax.Message(name) if not messages.is_message(name, known):
            raise _undeclared(name, node.offset)
        case syntax.Message():
            return messages.maker(node, lambda value: _compile(value, known))
        case syntax.Call():
            return _call(node, known)


def _undeclared(name: str, offset: int) -> CelSyntaxError:
    return CelSyntaxError(f"undeclared reference to '{name}' (in container '')", offset=offset)


def _call(node: syntax.Call, known: frozenset[str]) -> Step:
    if node.target is not None:
        if isinstance(node.target, syntax.Name) and node.target.name not in known:
            function = NAMESPACED.get(f"{node.target.name}.{node.function}")
            if function is not None:
                return _applied(function, [_compile(part, known) for part in node.arguments])
        if node.function in _OPTIONAL_MACROS:
            return _optional_map(node, known)
        if node.function in _MACROS:
            return _macro(node, known)
        method = METHODS.get(node.function)
        if method is None:
            raise _undeclared(node.function, node.offset)
        steps = [_compile(part, known) for part in (node.target, *node.arguments)]
        is_lazy = node.function in {"or", "orValue"} and len(steps) == 2
        return _either(method, *steps) if is_lazy else _applied(method, steps)
    if node.function == "has":
        return _has(node, known)
    steps = [_compile(argument, known) for argument in node.arguments]
    operator = _operator(node.function, steps)
    if operator is not None:
        return operator
    function = FUNCTIONS.get(node.function)
    if function is None:
        raise _undeclared(node.function, node.offset)
    match steps:
        case [Constant() as constant] if node.function in CONVERSIONS:
            return converted(node.function, function, constant, offset=node.arguments[0].offset)
    return _applied(function, steps)


def _applied(function: Callable[..., Any], steps: list[Step]) -> Step:
    is_free = function in CONSTANT_TIME

    def apply(scope: Scope) -> Any:
        arguments = [step(scope) for step in steps]
        effort.spend(_CALL_S)
        if not is_free:
            pay_for(*arguments)
        try:
            return function(*arguments)
        except TypeError as error:
            raise CelError(f"no such overload: {error}") from error

    return apply


def _either(method: Callable[..., Any], target: Step, other: Step) -> Step:
    """What is held, or else something that is evaluated only then."""

    def choose(scope: Scope) -> Any:
        value = target(scope)
        effort.spend(_CALL_S)
        is_there = isinstance(value, Optional) and value.present
        return method(value, value if is_there else other(scope))

    return choose


def _operator(name: str, steps: list[Step]) -> Step | None:
    match name, steps:
        case "&&", [left, right]:
            return lambda scope: _logic(left, right, scope, decides=False)
        case "||", [left, right]:
            return lambda scope: _logic(left, right, scope, decides=True)
        case "?:", [condition, yes, no]:
            return lambda scope: yes(scope) if _truth(condition(scope)) else no(scope)
        case "==", [left, right]:
            return lambda scope: equal(left(scope), right(scope))
        case "!=", [left, right]:
            return lambda scope: not equal(left(scope), right(scope))
        case "<", [left, right]:
            return lambda scope: less(left(scope), right(scope))
        case ">", [left, right]:
            return lambda scope: less(right(scope), left(scope))
        case "<=", [left, right]:
            return lambda scope: not less(right(scope), left(scope))
        case ">=", [left, right]:
            return lambda scope: not less(left(scope), right(scope))
        case "in", [left, right]:
            return lambda scope: _contains(right(scope), left(scope))
        case (("+" | "-" | "*" | "/" | "%"), [left, right]):
            return lambda scope: arithmetic(name, left(scope), right(scope))
        case "unary !", [inner]:
            return lambda scope: not _truth(inner(scope))
        case "unary -", [inner]:
            return lambda scope: _negated(inner(scope))
    return None


def _logic(left: Step, right: Step, scope: Scope, *, decides: bool) -> bool:
    """`&&` (decided by false) and `||` (decided by true)."""
    try:
        first = _truth(left(scope))
    except CelError:
        if _truth(right(scope)) is decides:
            return decides
        raise
    return decides if first is decides else _truth(right(scope))


def _macro(node: syntax.Call, known: frozenset[str]) -> Step:
    assert node.target is not None  # noqa: S101
    if node.function in _TRANSFORMS or (node.function in _QUANTIFIERS and len(node.arguments) == 3):
        return _indexed_macro(node, known)
    variable = node.arguments[0] if node.arguments else None
    if not isinstance(variable, syntax.Name) or len(node.arguments) not in {2, 3}:
        raise CelSyntaxError(f"{node.function} needs a variable and an expression", offset=node.offset)
    name, target = variable.name, _compile(node.target, known)
    steps = [_compile(argument, known | {name}) for argument in node.arguments[1:]]
    run = _MACRO_BODIES[node.function]

    def comprehend(scope: Scope) -> Any:
        values = target(scope)
        if not isinstance(values, list | dict):
            raise CelError(f"no such overload: {type_name(values)}.{node.function}()")
        effort.spend(_ELEMENT_S * len(values))
        return run([_Element(scope, name, value) for value in values], steps)

    return comprehend


def _indexed_macro(node: syntax.Call, known: frozenset[str]) -> Step:
    """A macro over the places (or keys) and the values of a list or map."""
    assert node.target is not None  # noqa: S101
    first, second = node.arguments[:2] if len(node.arguments) > 2 else (None, None)
    if not isinstance(first, syntax.Name) or not isinstance(second, syntax.Name) or len(node.arguments) > 4:
        raise CelSyntaxError(f"{node.function} needs two variables and an expression", offset=node.offset)
    names, target = (first.name, second.name), _compile(node.target, known)
    steps = [_compile(argument, known | set(names)) for argument in node.arguments[2:]]
    function = node.function

    def comprehend(scope: Scope) -> Any:
        values = target(scope)
        if not isinstance(values, list | dict):
            raise CelError(f"no such overload: {type_name(values)}.{function}()")
        effort.spend(_ELEMENT_S * len(values))
        pairs = list(enumerate(values) if isinstance(values, list) else values.items())
        elements = [_Element({**scope, names[0]: key}, names[1], value) for key, value in pairs]
        if function == "transformMap":
            chosen = [place for place, one in enumerate(elements) if len(steps) == 1 or _truth(one.ask(steps[0]))]
            return {pairs[place][0]: elements[place].ask(steps[-1]) for place in chosen}
        return _mapped(elements, steps) if function == "transformList" else _MACRO_BODIES[function](elements, steps)

    return comprehend


class _Element:
    """One element of a comprehension: evaluates steps with the variable bound to it."""

    __slots__ = ("_scope", "value")

    def __init__(self, scope: Scope, name: str, value: Any) -> None:
        self.value = value
        self._scope = {**scope, name: value}

    def ask(self, step: Step) -> Any:
        effort.spend(_ELEMENT_S)
        return step(self._scope)


def _quantified(elements: list[_Element], steps: list[Step], *, decides: bool) -> bool:
    failure: CelError | None = None
    for element in elements:
        try:
            if _truth(element.ask(steps[0])) is decides:
                return decides
        except CelError as error:
            failure = error
    if failure is not None:
        raise failure
    return not decides


def _mapped(elements: list[_Element], steps: list[Step]) -> list[Any]:
    if len(steps) == 1:
        return [element.ask(steps[0]) for element in elements]
    return [element.ask(steps[1]) for element in elements if _truth(element.ask(steps[0]))]


_MACRO_BODIES: dict[str, Callable[[list[_Element], list[Step]], Any]] = {
    "all": lambda elements, steps: _quantified(elements, steps, decides=False),
    "exists": lambda elements, steps: _quantified(elements, steps, decides=True),
    "exists_one": lambda elements, steps: sum(_truth(element.ask(steps[0])) for element in elements) == 1,
    "filter": lambda elements, steps: [e.value for e in elements if _truth(e.ask(steps[0]))],
    "map": _mapped,
}
_MACRO_BODIES["existsOne"] = _MACRO_BODIES["exists_one"]


def _has(node: syntax.Call, known: frozenset[str]) -> Step:
    if len(node.arguments) != 1 or not isinstance(node.arguments[0], syntax.Select):
        raise CelSyntaxError("invalid argument to has() macro", offset=node.offset)
    inner, names = _compile(node.arguments[0].operand, known), field_names(node.arguments[0].field)

    def has(scope: Scope) -> bool:
        value = inner(scope)
        if isinstance(value, Optional):
            value = value.held if value.present else {}
        if not isinstance(value, dict):
            raise CelError(f"has(): {type_name(value)} has no fields")
        return any(value.get(name) is not None for name in names)

    return has


def _optionally(value: Any, find: Callable[[Any], Any]) -> Optional:
    """What is found in a value, or nothing where there is nothing."""
    if isinstance(value, Optional):
        if not value.present:
            return NONE
        value = value.held
    try:
        return Optional(True, find(value))
    except MissingError:
        return NONE


def _through(value: Any, find: Callable[[Any], Any]) -> Any:
    """What is found in a value; in an optional one, it is optional too."""
    return _optionally(value, find) if isinstance(value, Optional) else find(value)


def _optional_map(node: syntax.Call, known: frozenset[str]) -> Step:
    assert node.target is not None  # noqa: S101
    if len(node.arguments) != 2 or not isinstance(node.arguments[0], syntax.Name):
        raise CelSyntaxError(f"{node.function}() needs a variable and an expression", offset=node.offset)
    target, name = _compile(node.target, known), node.arguments[0].name
    body, is_flat = _compile(node.arguments[1], known | {name}), node.function == "optFlatMap"

    def run(scope: Scope) -> Any:
        value = target(scope)
        if not isinstance(value, Optional):
            raise CelError(f"no such overload: {type_name(value)}.{node.function}()")
        if not value.present:
            return value
        mapped = body({**scope, name: value.held})
        return mapped if is_flat else Optional(True, mapped)

    return run


def _select(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        for name in names:
            if name in value:
                return value[name]
        raise MissingError(f"no such key: {names[-1]}")
    raise CelError(f"no such overload: {type_name(value)}.{names[-1]}")


def _index(value: Any, index: Any) -> Any:
    if isinstance(value, list):
        number = number_of(index)
        if number is None or number != int(number):
            raise CelError(f"no such overload: list[{type_name(index)}]")
        if not 0 <= number < len(value):
            raise MissingError(f"index out of bounds: {index}")
        return value[int(number)]
    if isinstance(value, dict):
        key = _key(index)
        if key in value:
            return value[key]
        raise MissingError(f"no such key: {index}")
    raise CelError(f"no such overload: {type_name(value)}[{type_name(index)}]")


def _contains(values: Any, wanted: Any) -> bool:
    if isinstance(values, list):
        pay_for(values)
        return any(equal(value, wanted) for value in values)
    if isinstance(values, dict):
        return _key(wanted) in values
    raise CelError(f"no such overload: {type_name(wanted)} in {type_name(values)}")


def _key(value: Any) -> Any:
    if isinstance(value, Uint):
        return value.value
    if isinstance(value, str | bool | int):
        return value
    raise CelError(f"a map's key cannot be {type_name(value)}")


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise CelError(f"no such overload: {type_name(value)} is not bool")


def _negated(value: Any) -> Any:
    if type(value) in {int, float, timedelta}:
        return -value
    raise CelError(f"no such overload: -{type_name(value)}")

"""Trees to closures.

`&&` and `||` forgive an error on one side when the other decides, as CEL demands. Every element of a comprehension,
every call is paid for on the evaluation's meter, in kube-apiserver's units. What grows, and what values hold that are
read, is also paid for out of the allowance of processor time in `codec.effort`: units say too little of them.

A variable with the selectors and indices behind it is one attribute: each costs one. The variable itself costs nothing
where the attribute is a branch of `?:` or an index.

Source: google/cel-spec: doc/langdef.md, "Evaluation", "Logical Operators"; google/cel-go: interpreter/planner.go,
runtimecost.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ironbell.codec.cel import syntax
from ironbell.codec.cel.costs.actual import FAILED, CallCost, call_cost
from ironbell.codec.cel.errors import CelError, CelSyntaxError, NoOverloadError
from ironbell.codec.cel.folding import CONVERSIONS, Constant, converted
from ironbell.codec.cel.functions.functions import CONSTANT_TIME, FUNCTIONS, METHODS
from ironbell.codec.cel.functions.library import NAMESPACED
from ironbell.codec.cel.functions.macros import LOOPS, METER, OPTIONAL_MAPS, Scope, Step, loop, optional_map
from ironbell.codec.cel.lookups import contains, index, key, negated, optionally, select, truth
from ironbell.codec.cel.signatures import Signature
from ironbell.codec.cel.types import TYPE_NAMES, field_names
from ironbell.codec.cel.values import messages
from ironbell.codec.cel.values.optional import Optional
from ironbell.codec.cel.values.values import arithmetic, equal, less, pay_for, type_name

_LIST_COST: Final = 10
_MAP_COST: Final = 30
_MESSAGE_COST: Final = 40
_LAZY: Final = frozenset({"or", "orValue"})

Calls = Mapping[int, Sequence[Signature]]
"""Overloads of each call of a tree, by the node's `id`."""


def compile_tree(tree: syntax.Node, variables: frozenset[str], calls: Calls) -> Step:
    """A step that evaluates a tree.

    Raises:
        CelSyntaxError: it names a variable or a function that does not exist.
    """
    return _Steps(variables, calls).step(tree)


def _undeclared(name: str, offset: int) -> CelSyntaxError:
    return CelSyntaxError(f"undeclared reference to '{name}' (in container '')", offset=offset)


class _Steps:
    """Satisfies `Steps`."""

    def __init__(self, known: frozenset[str], calls: Calls) -> None:
        self._known = known
        self._calls = calls

    def knowing(self, *names: str) -> _Steps:
        return _Steps(self._known | set(names), self._calls)

    def step(self, node: syntax.Node) -> Step:
        match node:
            case syntax.Literal(value):
                return Constant(value)
            case syntax.Name(name) if name not in self._known and name in TYPE_NAMES:
                return Constant(TYPE_NAMES[name])
            case syntax.ListOf(items):
                return _list([self.step(item) for item in items])
            case syntax.MapOf(entries):
                return _map([(self.step(key_), self.step(value)) for key_, value in entries])
            case syntax.Message(name) if not messages.is_message(name, self._known):
                raise _undeclared(name, node.offset)
            case syntax.Message():
                return _costing_at_last(messages.constructor(node, self.step), _MESSAGE_COST)
            case syntax.Call() if not _is_attribute(node):
                return self._call(node)
        resolved, own = self._resolved(node)
        costing = _costing(resolved, own) if own else resolved
        path = self._path(node)
        return _along(path, costing) if path else costing

    def _resolved(self, node: syntax.Node) -> tuple[Step, int]:
        """A step without what the attribute itself costs, and that."""
        match node:
            case syntax.Name(name):
                if name not in self._known:
                    raise _undeclared(name, node.offset)
                return lambda scope: scope[name], 1
            case syntax.Select(operand, field, optional):
                inner, own = self._operand(operand)
                names = field_names(field)
                return _lookup(inner, lambda _, value: select(value, names), optional=optional), own
            case syntax.Index(operand, place, optional):
                inner, own = self._operand(operand)
                element = self._branch(place)
                return _lookup(inner, lambda scope, value: index(value, element(scope)), optional=optional), own
            case syntax.Call(function="?:"):
                condition, yes, no = node.arguments
                test, first, second = self.step(condition), self._branch(yes), self._branch(no)
                return lambda scope: first(scope) if truth(test(scope)) else second(scope), 0
            case syntax.Call():
                return optional_map(node, self), 0
        raise AssertionError(node)

    def _path(self, node: syntax.Node) -> tuple[str, ...]:
        """A variable and the fields behind it, where each has one name and none is optional; else nothing."""
        match node:
            case syntax.Name(name) if name in self._known:
                return (name,)
            case syntax.Select(operand, field, False):
                base, names = self._path(operand), field_names(field)
                return (*base, *names) if base and len(names) == 1 else ()
        return ()

    def _operand(self, node: syntax.Node) -> tuple[Step, int]:
        return self._resolved(node) if self._is_attribute(node) else (self.step(node), 1)

    def _branch(self, node: syntax.Node) -> Step:
        return self._resolved(node)[0] if self._is_attribute(node) else self.step(node)

    def _is_attribute(self, node: syntax.Node) -> bool:
        if isinstance(node, syntax.Name):
            return node.name in self._known or node.name not in TYPE_NAMES
        return _is_attribute(node)

    def _call(self, node: syntax.Call) -> Step:
        overloads = self._calls.get(id(node), ())
        if node.target is not None:
            return self._method(node, node.target, overloads)
        if node.function == "has":
            return self._has(node)
        steps = [self.step(argument) for argument in node.arguments]
        cost = call_cost(node.function, overloads)
        operator = _operator(node.function, steps, cost)
        if operator is not None:
            return operator
        if (function := FUNCTIONS.get(node.function)) is None:
            raise _undeclared(node.function, node.offset)
        match steps:
            case [Constant() as constant] if node.function in CONVERSIONS:
                return converted(node.function, function, constant, offset=node.arguments[0].offset)
        return _applied(function, steps, cost)

    def _method(self, node: syntax.Call, target: syntax.Node, overloads: Sequence[Signature]) -> Step:
        if isinstance(target, syntax.Name) and target.name not in self._known:
            name = f"{target.name}.{node.function}"
            if (function := NAMESPACED.get(name)) is not None:
                return _applied(function, [self.step(part) for part in node.arguments], call_cost(name, overloads))
        if node.function in LOOPS:
            return loop(node, self)
        method = METHODS.get(node.function)
        if method is None:
            raise _undeclared(node.function, node.offset)
        steps = [self.step(part) for part in (target, *node.arguments)]
        if node.function in _LAZY and len(steps) == 2:
            return _either(method, *steps)
        return _applied(method, steps, call_cost(node.function, overloads))

    def _has(self, node: syntax.Call) -> Step:
        if len(node.arguments) != 1 or not isinstance(node.arguments[0], syntax.Select):
            raise CelSyntaxError("invalid argument to has() macro", offset=node.offset)
        resolved, own = self._operand(node.arguments[0].operand)
        inner = _costing_at_last(resolved, own) if own else resolved
        path = self._path(node.arguments[0].operand)
        operand = _along(path, inner) if path else inner
        names = field_names(node.arguments[0].field)

        def has(scope: Scope) -> bool:
            value = operand(scope)
            if isinstance(value, Optional):
                value = value.held if value.present else {}
            if not isinstance(value, dict):
                raise CelError(f"has(): {type_name(value)} has no fields")
            return any(value.get(name) is not None for name in names)

        return has


def _is_attribute(node: syntax.Node) -> bool:
    if isinstance(node, syntax.Call):
        return node.function == "?:" or (node.target is not None and node.function in OPTIONAL_MAPS)
    return isinstance(node, syntax.Name | syntax.Select | syntax.Index)


def _costing(step: Step, cost: int) -> Step:
    def spend(scope: Scope) -> Any:
        scope[METER].spend(cost)
        return step(scope)

    return spend


def _costing_at_last(step: Step, cost: int) -> Step:
    def spend(scope: Scope) -> Any:
        value = step(scope)
        scope[METER].spend(cost)
        return value

    return spend


def _along(path: tuple[str, ...], otherwise: Step) -> Step:
    """Return the step of `otherwise`, faster where all of a path exists, as it nearly always does."""
    name, *fields = path
    cost = len(path)

    def walk(scope: Scope) -> Any:
        value = scope[name]
        for field in fields:
            if type(value) is not dict or field not in value:
                return otherwise(scope)
            value = value[field]
        scope[METER].spend(cost)
        return value

    return walk


def _lookup(inner: Step, find: Callable[[Scope, Any], Any], *, optional: bool) -> Step:
    """Return the result of a lookup in a value; for an optional value, it is optional too."""

    def evaluate(scope: Scope) -> Any:
        value = inner(scope)
        if optional or isinstance(value, Optional):
            result = optionally(value, lambda held: find(scope, held))
            if result.present:
                scope[METER].spend(1)
            return result
        scope[METER].spend(1)
        return find(scope, value)

    return evaluate


def _list(steps: list[Step]) -> Step:
    if all(isinstance(step, Constant) for step in steps):
        return Constant([step({}) for step in steps])

    def build(scope: Scope) -> list[Any]:
        try:
            return [step(scope) for step in steps]
        finally:
            scope[METER].spend(_LIST_COST)

    return build


def _map(pairs: list[tuple[Step, Step]]) -> Step:
    if all(isinstance(step, Constant) for pair in pairs for step in pair):
        try:
            return Constant({key(name({})): value({}) for name, value in pairs})
        except CelError:
            pass  # reported when it is evaluated

    def build(scope: Scope) -> dict[Any, Any]:
        try:
            return {key(name(scope)): value(scope) for name, value in pairs}
        finally:
            scope[METER].spend(_MAP_COST)

    return build


def _applied(function: Callable[..., Any], steps: list[Step], cost: CallCost | int) -> Step:
    is_free = function in CONSTANT_TIME

    def apply(scope: Scope) -> Any:
        arguments = _evaluated(steps, scope, cost)
        if not is_free:
            pay_for(*arguments)
        result = FAILED
        try:
            result = function(*arguments)
        except TypeError as error:
            raise NoOverloadError(f"{error}") from error
        finally:
            scope[METER].spend(cost if isinstance(cost, int) else cost(arguments, result))
        return result

    return apply


def _evaluated(steps: list[Step], scope: Scope, cost: CallCost | int) -> list[Any]:
    """The arguments of a call. If one fails, the others are evaluated and the call is paid for all the same."""
    result: list[Any] = []
    failure: CelError | None = None
    for step in steps:
        try:
            result.append(step(scope))
        except CelError as error:
            failure = failure or error
            result.append(FAILED)
    if failure is not None:
        _spend(scope, cost, result)
        raise failure
    return result


def _either(method: Callable[..., Any], target: Step, other: Step) -> Step:
    """Return the value of an optional, or else something that is evaluated only then."""

    def choose(scope: Scope) -> Any:
        value = target(scope)
        is_present = isinstance(value, Optional) and value.present
        return method(value, value if is_present else other(scope))

    return choose


def _operator(name: str, steps: list[Step], cost: CallCost | int) -> Step | None:
    match name, steps:
        case "&&", [left, right]:
            return lambda scope: _logic(left, right, scope, decides=False)
        case "||", [left, right]:
            return lambda scope: _logic(left, right, scope, decides=True)
        case "in", [_, Constant(list() as items)] if all(isinstance(value, _MEMBERS) for value in items):
            # A set, once and for all.
            return Constant(False) if not items else _binary(steps, lambda item, members: contains(members, item), 0)
    if len(steps) == 2 and name in _BINARY:
        return _binary(steps, _BINARY[name], cost)
    if len(steps) == 1 and name in _UNARY:
        unary = _UNARY[name]

        def apply(scope: Scope) -> Any:
            arguments = _evaluated(steps, scope, 1)
            scope[METER].spend(1)
            return unary(*arguments)

        return apply
    return None


def _binary(steps: list[Step], operation: Callable[[Any, Any], Any], cost: CallCost | int) -> Step:
    """Return the same step as `_applied`, for the most frequent calls."""
    left, right = steps

    def apply(scope: Scope) -> Any:
        try:
            value = left(scope)
        except CelError:
            with suppress(CelError):
                other = FAILED
                other = right(scope)
            _spend(scope, cost, (FAILED, other))
            raise
        try:
            other = right(scope)
        except CelError:
            _spend(scope, cost, (value, FAILED))
            raise
        scope[METER].spend(cost if isinstance(cost, int) else cost((value, other), None))
        return operation(value, other)

    return apply


def _spend(scope: Scope, cost: CallCost | int, arguments: Sequence[Any]) -> None:
    scope[METER].spend(cost if isinstance(cost, int) else cost(arguments, FAILED))


def _logic(left: Step, right: Step, scope: Scope, *, decides: bool) -> bool:
    """`&&` (decided by false) and `||` (decided by true)."""
    try:
        first = truth(left(scope))
    except CelError:
        if truth(right(scope)) is decides:
            return decides
        raise
    return decides if first is decides else truth(right(scope))


def _arithmetic(operator: str) -> Callable[[Any, Any], Any]:
    return lambda left, right: arithmetic(operator, left, right)


_MEMBERS: Final = (str, bool, int, float, type(None))
"""Types of items of which cel-go makes a set."""
_BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": less,
    ">": lambda left, right: less(right, left),
    "<=": lambda left, right: not less(right, left),
    ">=": lambda left, right: not less(left, right),
    "in": lambda item, values: contains(values, item),
    **{operator: _arithmetic(operator) for operator in "+-*/%"},
}
_UNARY: Final[dict[str, Callable[[Any], Any]]] = {
    "unary !": lambda value: not truth(value),
    "unary -": negated,
}

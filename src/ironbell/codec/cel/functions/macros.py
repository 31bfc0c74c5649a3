"""Macros over lists, maps and optional values, as closures.

`all` and `exists` forgive an error in one element when another decides, as CEL demands. What a macro costs is what the
loop costs that it stands for: an accumulator that is read, tested and added to.

Source: google/cel-spec: doc/langdef.md, "Macros"; google/cel-go: parser/macro.go, ext/comprehensions.go,
cel/library.go (optMap, optFlatMap).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ironbell.codec import effort
from ironbell.codec.cel import syntax
from ironbell.codec.cel.costs.meter import Meter
from ironbell.codec.cel.errors import CelError, CelSyntaxError, NoOverloadError
from ironbell.codec.cel.folding import Constant
from ironbell.codec.cel.lookups import truth
from ironbell.codec.cel.values.optional import Optional
from ironbell.codec.cel.values.values import type_name

Scope = dict[str, Any]
Step = Callable[[Scope], Any]
_Elements = Iterable[tuple[Any, ...]]

METER: Final = "@meter"
"""Where in a scope the evaluation's meter is."""
_ELEMENT_S: Final = 0.5e-6
_TRANSFORMS: Final = frozenset({"transformList", "transformMap"})
_QUANTIFIERS: Final = frozenset({"all", "exists", "exists_one", "existsOne"})
LOOPS: Final = frozenset({"map", "filter"}) | _TRANSFORMS | _QUANTIFIERS
OPTIONAL_MAPS: Final = frozenset({"optMap", "optFlatMap"})


class Steps(Protocol):
    """Makes steps of the nodes of a tree."""

    def step(self, node: syntax.Node) -> Step: ...

    def knowing(self, *names: str) -> Steps:
        """The same where there are more variables."""
        ...


class _Loop(NamedTuple):
    """A loop: its variables, of which the last is the range, and the steps for each element."""

    names: tuple[str, ...]
    steps: Sequence[Step]
    meter: Meter
    scope: Scope
    length: int
    """The number of elements."""

    def evaluate(self, element: tuple[Any, ...], step: Step) -> Any:
        # Nothing keeps a scope, so that one does for all elements.
        scope = self.scope
        scope[self.names[0]] = element[0]
        if len(element) == 2:
            scope[self.names[1]] = element[1]
        return step(scope)


def loop(node: syntax.Call, steps: Steps) -> Step:
    """The step of a macro over a list or map.

    Raises:
        CelSyntaxError: its arguments are none of such a macro.
    """
    assert node.target is not None  # noqa: S101
    function = node.function
    count = 2 if function in _TRANSFORMS or (function in _QUANTIFIERS and len(node.arguments) == 3) else 1
    names = tuple(argument.name for argument in node.arguments[:count] if isinstance(argument, syntax.Name))
    if len(names) != count or not count < len(node.arguments) <= count + 2:
        variables = "two variables" if count == 2 else "a variable"
        raise CelSyntaxError(f"{function} needs {variables} and an expression", offset=node.offset)
    target, inner = steps.step(node.target), steps.knowing(*names)
    bodies = [inner.step(argument) for argument in node.arguments[count:]]
    run = _BODIES[function]

    def comprehend(scope: Scope) -> Any:
        values = target(scope)
        if not isinstance(values, list | dict):
            raise NoOverloadError(f"{type_name(values)}.{function}()")
        elements: _Elements = zip(values, strict=True)
        if count == 2:
            elements = enumerate(values) if isinstance(values, list) else values.items()
        return run(_Loop(names, bodies, scope[METER], {**scope}, len(values)), elements)

    return comprehend


def _quantified(loop: _Loop, elements: _Elements, *, decides: bool) -> bool:
    test = 3 if decides else 2  # of the accumulator, which `exists` negates before
    failure: CelError | None = None
    for place, element in enumerate(elements):
        loop.meter.spend(test + 1)
        try:
            if truth(loop.evaluate(element, loop.steps[0])) is decides:
                loop.meter.spend(1 if place + 1 == loop.length else test + 1)
                return decides
        except CelError as error:
            failure = error
    loop.meter.spend(1)
    if failure is not None:
        raise failure
    return not decides


def _for_each(loop: _Loop, elements: _Elements, add: Callable[[tuple[Any, ...]], None], *, end: int) -> None:
    """Go through all elements, also behind one that fails, and fail then."""
    # In units, what does not pass a filter may cost nothing.
    effort.spend(_ELEMENT_S * loop.length)
    failure: CelError | None = None
    for element in elements:
        try:
            add(element)
        except CelError as error:
            failure = failure or error
    loop.meter.spend(end)
    if failure is not None:
        raise failure


def _exactly_one(loop: _Loop, elements: _Elements) -> bool:
    results = []

    def add(element: tuple[Any, ...]) -> None:
        if truth(loop.evaluate(element, loop.steps[0])):
            loop.meter.spend(2)
            results.append(element)

    _for_each(loop, elements, add, end=2)
    return len(results) == 1


def _filtered(loop: _Loop, elements: _Elements) -> list[Any]:
    results = []

    def add(element: tuple[Any, ...]) -> None:
        if truth(loop.evaluate(element, loop.steps[0])):
            loop.meter.spend(13)
            results.append(element[0])

    _for_each(loop, elements, add, end=1)
    return results


def _mapped(loop: _Loop, elements: _Elements) -> list[Any]:
    mapper = loop.steps[-1]
    cost = 2 if isinstance(mapper, Constant) else 12  # the list of one item that is added
    results = []

    def add(element: tuple[Any, ...]) -> None:
        if len(loop.steps) == 1 or truth(loop.evaluate(element, loop.steps[0])):
            loop.meter.spend(cost)
            results.append(loop.evaluate(element, mapper))

    _for_each(loop, elements, add, end=1)
    return results


def _transformed(loop: _Loop, elements: _Elements) -> dict[Any, Any]:
    results = {}

    def add(element: tuple[Any, ...]) -> None:
        if len(loop.steps) == 1 or truth(loop.evaluate(element, loop.steps[0])):
            loop.meter.spend(3)
            results[element[0]] = loop.evaluate(element, loop.steps[-1])

    _for_each(loop, elements, add, end=1)
    return results


_BODIES: Final[dict[str, Callable[[_Loop, _Elements], Any]]] = {
    "all": lambda loop, elements: _quantified(loop, elements, decides=False),
    "exists": lambda loop, elements: _quantified(loop, elements, decides=True),
    "exists_one": _exactly_one,
    "existsOne": _exactly_one,
    "filter": _filtered,
    "map": _mapped,
    "transformList": _mapped,
    "transformMap": _transformed,
}


def optional_map(node: syntax.Call, steps: Steps) -> Step:
    """Return the step of a macro over an optional value.

    Raises:
        CelSyntaxError: its arguments are none of such a macro.
    """
    assert node.target is not None  # noqa: S101
    if len(node.arguments) != 2 or not isinstance(node.arguments[0], syntax.Name):
        raise CelSyntaxError(f"{node.function}() needs a variable and an expression", offset=node.offset)
    target, name = steps.step(node.target), node.arguments[0].name
    body, is_flat = steps.knowing(name).step(node.arguments[1]), node.function == "optFlatMap"
    is_used = _mentions(node.arguments[1], name)

    def run(scope: Scope) -> Any:
        meter: Meter = scope[METER]
        previous = meter.spent
        try:
            value = target(scope)
        finally:
            again = meter.spent - previous
            meter.spend(1)
        if not isinstance(value, Optional):
            raise NoOverloadError(f"{type_name(value)}.{node.function}()")
        if not value.present:
            meter.spend(1)
            return value
        if is_used:
            # The target is evaluated again for the variable.
            meter.spend(again + 1)
        if is_flat:
            return body({**scope, name: value.held})
        try:
            return Optional(True, body({**scope, name: value.held}))
        finally:
            meter.spend(1)

    return run


def _mentions(node: syntax.Node, name: str) -> bool:
    match node:
        case syntax.Literal():
            return False
        case syntax.Name(used):
            return used == name
        case syntax.Select(operand):
            return _mentions(operand, name)
        case syntax.Index(operand, place):
            return _mentions(operand, name) or _mentions(place, name)
        case syntax.ListOf(items):
            return any(_mentions(item, name) for item in items)
        case syntax.MapOf(entries):
            return any(_mentions(part, name) for entry in entries for part in entry)
        case syntax.Message(fields=fields):
            return any(_mentions(field.value, name) for field in fields)
        case syntax.Call(_, arguments, target):
            return any(_mentions(part, name) for part in (*arguments, *((target,) if target is not None else ())))

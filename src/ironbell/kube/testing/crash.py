"""The crash test: a controller killed at any point of any decision reaches the same end.

`crash_check` runs controllers to their fixed point and remembers every decision on the way. Then, for each of them, it
goes back to the world before it, executes the first n of its actions (n from none to all; and for an effect also: the
effect alone, without the writes that store its outcome), forgets everything that was only in memory, and runs to the
fixed point again. That must be the same world, apart from generated ids and times, and no intent may have been
performed twice.

A fixed point may differ by design, such as in a count of attempts: name those fields in `ignore`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ironbell.base.errors import IronbellError
from ironbell.kube.decision import Effect
from ironbell.kube.manager.act import OutOfDate
from ironbell.kube.testing.world import AnyReconciler, Crash, Step, World

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_GENERATED = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


class CrashError(AssertionError):
    """A controller does not survive being killed at some point."""


def crash_check(
    reconcilers: AnyReconciler | Sequence[AnyReconciler],
    world: World,
    *,
    horizon_s: float = 0.0,
    ignore: Sequence[str] = (),
    outside: Callable[[Any], Any] | None = None,
) -> World:
    """Hold controllers to surviving a crash anywhere; returns the world after an undisturbed run.

    Args:
        reconcilers: one controller, or several that work together.
        world: where they start; it is not changed.
        horizon_s: for how long to let time pass when only time makes something happen.
        ignore: dotted paths of fields that may differ, such as `status.attempts`.
        outside: what of the outside must be the same at the end; by default nothing.

    Raises:
        CrashError: the end differs after a crash, or an intent was performed twice.
        NotSettledError: a run does not come to an end.
    """
    controllers = tuple(reconcilers) if isinstance(reconcilers, Sequence) else (reconcilers,)
    steps: list[Step] = []
    calm = world.copy()
    calm.settle(*controllers, horizon_s=horizon_s, steps=steps)
    _check_intents(calm, "without a crash")
    expected = snapshot(calm, ignore)
    for step in steps:
        for title, crashed in _crashes(step):
            crashed.forget()
            crashed.settle(*controllers, horizon_s=horizon_s)
            where = f"{step.reconciler.name} {'/'.join(step.key)}, killed {title} of {len(step.decision.actions)}"
            _check_intents(crashed, where)
            _compare(expected, snapshot(crashed, ignore), where)
            if outside is not None and outside(crashed.outside) != outside(calm.outside):
                raise CrashError(f"{where}: outside is {outside(crashed.outside)!r}, not {outside(calm.outside)!r}")
    return calm


def _crashes(step: Step) -> Iterator[tuple[str, World]]:
    actions = step.decision.actions
    for count in range(len(actions) + 1):
        crashed = step.previous.copy()
        _act(crashed, step, count)
        yield f"after action {count}", crashed
        if count < len(actions) and isinstance(actions[count], Effect):
            crashed = step.previous.copy()
            _act(crashed, step, count + 1, in_effect=count)
            yield f"inside action {count + 1}", crashed


def _act(crashed: World, step: Step, count: int, *, in_effect: int | None = None) -> None:
    actions = step.decision.actions[:count]
    try:
        if in_effect is None:
            crashed.act(step.reconciler, actions)
        else:
            crashed.act(step.reconciler, actions, crash_in_effect=in_effect)
    except (Crash, OutOfDate):
        return
    except IronbellError as error:
        crashed.errors.append(error)


def _check_intents(world: World, where: str) -> None:
    counts = Counter((effect.performer, effect.intent) for effect in world.performed if effect.intent)
    for (performer, intent), count in counts.items():
        if count > 1:
            raise CrashError(f"{where}: effect {performer!r} was performed {count} times under intent {intent!r}")


def snapshot(world: World, ignore: Sequence[str] = ()) -> dict[str, Any]:
    """All objects by name, without what a server generates; times and uids are replaced by what they stand for."""
    names: dict[str, str] = {}
    for where, held in world.api.objects.items():
        for key, body in held.items():
            names[body["metadata"]["uid"]] = f"<uid of {where.plural} {'/'.join(key)}>"
    return {
        f"{where.plural} {'/'.join(key)}": _without(_normal(body, names), ignore)
        for where, held in sorted(world.api.objects.items(), key=lambda item: item[0].path())
        for key, body in sorted(held.items())
    }


def _normal(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            name: _normal(inner, names)
            for name, inner in value.items()
            if name not in _GENERATED or (name == "uid" and isinstance(inner, str) and "apiVersion" in value)
        }
    if isinstance(value, list):
        return [_normal(inner, names) for inner in value]
    if isinstance(value, str):
        return names.get(value) or _TIME.sub("<time>", value)
    return value


def _without(body: dict[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    for path in paths:
        head, _, rest = path.partition(".")
        if not rest:
            body = {name: value for name, value in body.items() if name != head}
        elif isinstance(body.get(head), dict):
            body = {**body, head: _without(body[head], [rest])}
    return body


def _compare(expected: dict[str, Any], actual: dict[str, Any], where: str) -> None:
    if expected == actual:
        return
    differences = [
        f"  {name}: {actual.get(name, 'missing')!r}\n    instead of: {expected.get(name, 'nothing')!r}"
        for name in sorted(expected.keys() | actual.keys())
        if expected.get(name) != actual.get(name)
    ]
    raise CrashError("\n".join([f"{where}: the world ends differently", *differences]))

"""Facts that are pushed: a controller sees a new answer although the old one would be good for an hour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from ironbell.base.randomness import SeededRandomness
from ironbell.kube.controller import Controller
from ironbell.kube.decision import DONE, AnyKind, Decision, Key, MergePatch, Need, Question, do
from ironbell.kube.reconciler import Cache, Index, Watch
from ironbell.kube.testing import running, until
from ironbell.kube.testing.clock import LoopClock
from ironbell.kube.testing.example import SLOT, PowerState, SlotState
from ironbell.kube.testing.example_world import ExampleApi


class Observer:
    """Writes what is known of a Slot's power into its status."""

    name = "observer"
    kind: AnyKind = SLOT
    watches: Sequence[Watch[Any]] = ()
    indexes: Sequence[Index[Any]] = ()

    def observe(self, cache: Cache, key: Key) -> SlotState | None:
        slot = cache.get(SLOT, *key)
        return None if slot is None else SlotState(slot, cache.fact(PowerState(key)))

    def decide(self, observed: SlotState, now: datetime) -> Decision:
        need = Need(PowerState(observed.slot.key), 3600.0)
        known = observed.power.value if observed.power is not None else None
        if known is None or known == observed.slot.status.power:
            return do(needs=[need]) if known is None else Decision(DONE.actions, needs=(need,))
        body = {"status": {"power": known}}
        return do(MergePatch(SLOT, *observed.slot.key, body, subresource="status"), needs=[need])


class Line:
    """Where changes of power are told."""

    def __init__(self) -> None:
        self.power = {"default/a": "off", "default/b": "off"}
        self.asked = 0
        self.listeners: list[Callable[[Question[Any]], None]] = []

    def feed(self, renew: Callable[[Question[Any]], None]) -> Callable[[], None]:
        self.listeners.append(renew)
        return lambda: self.listeners.remove(renew)

    async def answer(self, question: PowerState) -> str:
        self.asked += 1
        return self.power["/".join(question.slot)]

    def switch(self, slot: Key, power: str) -> None:
        self.power["/".join(slot)] = power
        for renew in self.listeners:
            renew(PowerState(slot))


async def test_a_change_that_is_told_is_seen_at_once() -> None:
    api, line = ExampleApi(LoopClock()), Line()
    for name in ("a", "b"):
        await api.add_slot(name)
    controller = Controller(Observer(), askers={PowerState: line.answer}, feeds=(line.feed,))
    async with running(api, controller, clock=LoopClock(), randomness=SeededRandomness(1)) as manager:
        await until(lambda: api.slot("a").status.power == "off" and api.slot("b").status.power == "off")
        await until(lambda: manager.is_idle)
        asked = line.asked
        for power in ("on", "off", "on"):
            line.switch(("default", "a"), power)
            await until(lambda power=power: api.slot("a").status.power == power, timeout_s=1)  # type: ignore[misc]
        assert api.slot("b").status.power == "off"
        assert line.asked == asked + 3
    assert line.listeners == []

"""Environment of the example's controllers: an API that serves their kinds, and plugs to switch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from ironbell.api.core.event import EVENT
from ironbell.base.clock import Clock
from ironbell.kube.decision import Action, Decision
from ironbell.kube.manager.controller import Controller
from ironbell.kube.testing.example import (
    RACK,
    SLOT,
    PowerOn,
    PowerState,
    Rack,
    RackReconciler,
    Slot,
    SlotReconciler,
    SlotState,
    on,
)
from ironbell.kube.testing.memory import MemoryApi


class ExampleApi(MemoryApi):
    """The API in memory with the example's kinds and events, all in the namespace `default`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.serve([RACK, SLOT, EVENT])

    def slot(self, name: str) -> Slot:
        return SLOT.decode(msgspec.json.encode(self.objects[SLOT.collection]["default", name]))

    def rack(self, name: str) -> Rack:
        return RACK.decode(msgspec.json.encode(self.objects[RACK.collection]["default", name]))

    async def add_rack(self, name: str, count: int) -> None:
        body = {"metadata": {"name": name}, "spec": {"count": count}}
        await self.create(RACK.collection, "default", msgspec.json.encode(body))

    async def add_slot(self, name: str) -> None:
        body = {"metadata": {"name": name}, "spec": {"powered": True}}
        await self.create(SLOT.collection, "default", msgspec.json.encode(body))


class Plugs:
    """The world outside: records the plugs that are on, and the queries. Each switch and each query takes a moment."""

    def __init__(self) -> None:
        self.on: list[str] = []
        self.queries: list[str] = []

    async def power_on(self, arguments: PowerOn) -> Sequence[Action]:
        await asyncio.sleep(0.2)
        self.on.append(arguments.slot[1])
        return on(arguments.slot)

    async def state(self, query: PowerState) -> str:
        self.queries.append(query.slot[1])
        await asyncio.sleep(0.1)
        return "on" if query.slot[1] in self.on else "off"

    def controllers(self) -> tuple[Controller, Controller]:
        """Both controllers, over these plugs."""
        performers, resolvers = {"power-on": self.power_on}, {PowerState: self.state}
        return Controller(RackReconciler()), Controller(SlotReconciler(), performers=performers, resolvers=resolvers)


class Scripted(SlotReconciler):
    """A reconciler of Slots whose decision is a function; records the versions that it decided on."""

    def __init__(self, decision: Callable[[Slot], Decision]) -> None:
        self.decision = decision
        self.calls: list[str] = []

    def decide(self, observed: SlotState, now: datetime) -> Decision:
        self.calls.append(observed.slot.metadata.resource_version)
        return self.decision(observed.slot)

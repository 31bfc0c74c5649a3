"""The store against a model: any history of writes, deletes, restarts and watches."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from ironbell.api.client import AlreadyExists, Conflict, EventType, ListOptions, NotFound, PatchType
from ironbell.api.core import CONFIG_MAP
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.retention import Retention
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from support.waiting import until

WHERE = CONFIG_MAP.collection
NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.integers(0, 3).map(str)

Model = dict[str, str]


class StoreMachine(RuleBasedStateMachine):
    """Each step is a write, a restart or a look; every watch must lead from its start to the present."""

    positions = Bundle("positions")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.model: Model = {}
        self.newest = 0
        self.written = 0

    @initialize(memory=st.sampled_from([1, 4, 1000]))
    def open(self, memory: int) -> None:
        self.retention = Retention(memory_changes=memory)
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        path = Path(self.folder.name) / "s.db"
        self.opening = ApiServer.open(
            path, clock=ManualClock(), randomness=SeededRandomness(1), retention=self.retention
        )
        self.server = await self.opening.__aenter__()
        self.api = self.server.client(ADMIN)
        # what the server writes for itself at its start is none of the model's
        await until(lambda: self.server.is_settled, every_s=0.001)

    @rule(name=NAMES, value=VALUES)
    def create(self, name: str, value: str) -> None:
        body = msgspec.json.encode({"metadata": {"name": name}, "data": {"v": value}})
        try:
            self.loop.run_until_complete(self.api.create(WHERE, "default", body))
        except AlreadyExists:
            assert name in self.model
        else:
            assert name not in self.model
            self.model[name] = value
            self._note()

    def _note(self) -> None:
        """Remember the version of the model's own last write."""
        self.written = int(self.server.resource_version)

    @rule(name=NAMES, value=VALUES)
    def patch(self, name: str, value: str) -> None:
        body = msgspec.json.encode({"data": {"v": value}})
        call = self.api.patch(WHERE, "default", name, body, patch_type=PatchType.MERGE)
        try:
            self.loop.run_until_complete(call)
        except NotFound:
            assert name not in self.model
        else:
            self.model[name] = value
            self._note()

    @rule(name=NAMES, value=VALUES, count=st.integers(2, 5))
    def write_at_once(self, name: str, value: str, count: int) -> None:
        """Many writers with one version: exactly one is first, unless nothing changes."""
        if name not in self.model:
            return
        current = msgspec.json.decode(self.loop.run_until_complete(self.api.get(WHERE, "default", name)))
        current["data"]["v"] = value + "'"
        body = msgspec.json.encode(current)

        async def write() -> bool:
            try:
                await self.api.replace(WHERE, "default", name, body)
            except Conflict:
                return False
            return True

        async def write_all() -> list[bool]:
            return await asyncio.gather(*(write() for _ in range(count)))

        changed = self.model[name] != value + "'"
        assert sum(self.loop.run_until_complete(write_all())) == (1 if changed else count)
        self.model[name] = value + "'"
        self._note()

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        try:
            self.loop.run_until_complete(self.api.delete(WHERE, "default", name))
        except NotFound:
            assert name not in self.model
        else:
            del self.model[name]
            self._note()

    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.opening.__aexit__(None, None, None))
        self.loop.run_until_complete(self._open())

    @rule(target=positions)
    def remember(self) -> Any:
        return self.server.resource_version, dict(self.model)

    @rule(target=positions, position=consumes(positions))
    def resume(self, position: tuple[str, Model]) -> Any:
        version, model = position
        self.loop.run_until_complete(self._replay(int(version), dict(model)))
        return multiple()

    async def _replay(self, version: int, model: Model) -> None:
        """Follow the changes from a version to the present: the model then must be the present one."""
        events = self.api.changes(WHERE, resource_version=str(version))
        target = self.written
        last = version
        while last < target:
            async with asyncio.timeout(10):
                event = await anext(events)
            assert int(event.resource_version) > last
            last = int(event.resource_version)
            value = msgspec.json.decode(event.body)
            name = value["metadata"]["name"]
            assert (event.type is EventType.ADDED) == (name not in model)
            if event.type is EventType.DELETED:
                del model[name]
            else:
                model[name] = value["data"]["v"]
        await events.aclose()  # type: ignore[attr-defined]
        assert model == self.model

    @invariant()
    def lists_what_the_model_holds(self) -> None:
        if not hasattr(self, "api"):
            return
        page = self.loop.run_until_complete(self.api.list(WHERE, "default", ListOptions()))
        items = [msgspec.json.decode(item) for item in page.items]
        assert {item["metadata"]["name"]: item["data"]["v"] for item in items} == self.model
        assert int(page.resource_version) >= self.newest
        self.newest = int(page.resource_version)

    def teardown(self) -> None:
        if hasattr(self, "opening"):
            self.loop.run_until_complete(self.opening.__aexit__(None, None, None))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self.folder.cleanup()


StoreMachine.TestCase.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestStore = StoreMachine.TestCase

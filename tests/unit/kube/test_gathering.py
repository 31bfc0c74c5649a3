"""Changes of many objects are gathered into one look; objects of looked-up kinds are found by their owner."""

from __future__ import annotations

import asyncio
from datetime import datetime

from ironbell.api.core import CONFIG_MAP, SECRET, ConfigMap, Secret
from ironbell.api.core.event import EVENT
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.unstructured import Unstructured, dynamic_kind
from ironbell.base.randomness import SeededRandomness
from ironbell.kube import testing
from ironbell.kube.client import Client
from ironbell.kube.decision import DONE, Decision, Key
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.manager import Manager
from ironbell.kube.reconciler import Cache, Changes, Declaration, Unsynced, Watch
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.memory import LoopClock
from support.waiting import until

PART = dynamic_kind("example.com", "v1", "Part", "parts")


class Counter:
    """Looks at a ConfigMap when Secrets change, and at the parts that it owns."""

    name = "counter"
    declaration = Declaration(
        CONFIG_MAP, watches=(Watch(SECRET, lambda secret, _cache: [(secret.metadata.namespace, "root")], delay_s=5.0),)
    )

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.parts: list[list[str] | str] = []

    def observe(self, cache: Cache, key: Key) -> ConfigMap | None:
        root = cache.get(CONFIG_MAP, *key)
        if root is not None:
            self.seen.append(len(cache.list(SECRET)))
            found = cache.dynamic_owned(PART, root.metadata.uid)
            self.parts.append("unknown" if isinstance(found, Unsynced) else [part.metadata.name for part in found])
        return root

    def decide(self, observed: ConfigMap, now: datetime) -> Decision:
        return DONE


def api_in_memory() -> MemoryApi:
    api = MemoryApi(clock=LoopClock())
    api.serve([CONFIG_MAP, SECRET, EVENT, PART])
    return api


async def test_many_changes_are_one_look() -> None:
    api, counter = api_in_memory(), Counter()
    await Client(api).create(CONFIG_MAP, {"metadata": {"name": "root", "namespace": "default"}})
    async with testing.running(api, Controller(counter), clock=LoopClock(), randomness=SeededRandomness(1)):
        await until(lambda: counter.parts[-1:] == [[]])
        before = len(counter.seen)
        for number in range(50):
            await Client(api).create(SECRET, {"metadata": {"name": f"s{number}", "namespace": "default"}})
        await until(lambda: counter.seen[-1] == 50)
    assert len(counter.seen) == before + 1


class Reader:
    """Looks at ConfigMaps when their data changes, a while later when their labels do, and else not at all."""

    name = "reader"
    declaration = Declaration(
        CONFIG_MAP,
        own=Changes(
            relevant=lambda old, new: (old.data, old.metadata.labels) != (new.data, new.metadata.labels),
            urgent=lambda old, new: old.data != new.data,
            delay_s=5.0,
        ),
    )

    def __init__(self) -> None:
        self.looks: list[float] = []

    def observe(self, cache: Cache, key: Key) -> ConfigMap | None:
        self.looks.append(asyncio.get_running_loop().time())
        return cache.get(CONFIG_MAP, *key)

    def decide(self, observed: ConfigMap, now: datetime) -> Decision:
        return DONE


async def test_changes_of_own_objects_come_as_a_reconciler_wants_them() -> None:
    api, reader, where = api_in_memory(), Reader(), ("default", "root")
    async with testing.running(api, Controller(reader), clock=LoopClock(), randomness=SeededRandomness(1)):

        async def looks_after(body: dict[str, object], wait_s: float) -> int:
            before = len(reader.looks)
            await Client(api).merge_patch(CONFIG_MAP, *where, body=body)
            await asyncio.sleep(wait_s)
            return len(reader.looks) - before

        await Client(api).create(CONFIG_MAP, {"metadata": {"name": "root", "namespace": "default"}})
        await until(lambda: len(reader.looks) == 1)
        assert await looks_after({"metadata": {"annotations": {"a": "1"}}}, 60.0) == 0
        assert await looks_after({"data": {"a": "1"}}, 0.1) == 1
        assert await looks_after({"metadata": {"labels": {"a": "1"}}}, 4.0) == 0
        assert await looks_after({"metadata": {"labels": {"a": "2"}}}, 4.0) == 1
        await Client(api).delete(CONFIG_MAP, *where)
        await until(lambda: len(reader.looks) == 4)


async def test_a_defect_in_what_is_urgent_lets_everything_be_looked_at() -> None:
    class Broken(Reader):
        declaration = Declaration(CONFIG_MAP, own=Changes(relevant=lambda old, new: bool(old.nonsense)))  # type: ignore[attr-defined]

    api, reader = api_in_memory(), Broken()
    async with testing.running(api, Controller(reader), clock=LoopClock(), randomness=SeededRandomness(1)):
        await Client(api).create(CONFIG_MAP, {"metadata": {"name": "root", "namespace": "default"}})
        await until(lambda: len(reader.looks) == 1)
        await Client(api).merge_patch(CONFIG_MAP, "default", "root", body={"data": {"a": "1"}})
        await until(lambda: len(reader.looks) == 2)


async def test_objects_of_a_looked_up_kind_are_found_by_their_owner() -> None:
    api, counter = api_in_memory(), Counter()
    root = await Client(api).create(CONFIG_MAP, {"metadata": {"name": "root", "namespace": "default"}})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "root", "uid": root.metadata.uid}
    for name, owners in (("mine", [owner]), ("other", [])):
        body = {"metadata": {"name": name, "namespace": "default", "ownerReferences": owners}}
        made = await Client(api).create(PART, body)
        assert isinstance(made, Unstructured)
    async with testing.running(api, Controller(counter), clock=LoopClock(), randomness=SeededRandomness(1)):
        await until(lambda: counter.parts[-1:] == [["mine"]])
    assert counter.parts[0] == "unknown"


async def test_a_kind_that_is_read_with_two_models_is_each_as_it_was_asked_for() -> None:
    api = api_in_memory()
    body = {"metadata": {"name": "s", "namespace": "default"}, "data": {"password": "c2VjcmV0"}}
    await Client(api).create(SECRET, body)
    manager = Manager(api, clock=LoopClock(), randomness=SeededRandomness(1))
    whole, slim = manager.informers.of(SECRET), manager.informers.of(SECRET_METADATA)
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run())
        await manager.wait_ready()
        assert {type(held) for held in (*whole.store.list(), *slim.store.list())} == {Secret, SECRET_METADATA.model}
        manager.stop()

"""Kinds that are known only at run time: informers started by look-ups, and keys that come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from ironbell.api.client import Answer, Call, Forbidden, Verb
from ironbell.api.core import CONFIG_MAP, KIND_DEFINITION
from ironbell.api.core.event import EVENT
from ironbell.api.kind import Collection
from ironbell.api.unstructured import Unstructured, dynamic_kind, plain
from ironbell.base.randomness import SeededRandomness
from ironbell.kube import testing
from ironbell.kube.cache.dynamic import IDLE_S
from ironbell.kube.cache.readers import Readers
from ironbell.kube.client import Client
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.manager import Manager
from ironbell.kube.reconciler import Changes, DynamicWatch
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.memory import LoopClock
from support.capi.followers import GROUP, FollowerReconciler, follower_body
from support.waiting import until

SERVER = dynamic_kind(GROUP, "v1beta1", "Server", "servers")
NEWER = dynamic_kind(GROUP, "v1beta2", "Server", "servers")


class Api(MemoryApi):
    """The API in memory, with definitions; may refuse to list, and counts lists."""

    def __init__(self) -> None:
        super().__init__(clock=LoopClock())
        self.serve([CONFIG_MAP, KIND_DEFINITION, EVENT])
        self.refused: set[Collection] = set()
        self.listed: list[Collection] = []

    async def call(self, call: Call) -> Answer:
        if call.verb is Verb.LIST:
            self.listed.append(call.collection)
            if call.collection in self.refused:
                raise Forbidden(f"{call.collection.plural} is forbidden")
        return await super().call(call)

    async def define(self, *versions: str) -> None:
        self.serve([SERVER, NEWER])
        labels = {f"cluster.x-k8s.io/{version}": version for version in versions}
        spec = {"group": GROUP, "names": {"plural": "servers", "kind": "Server"}, "scope": "Namespaced"}
        body = {"metadata": {"name": f"servers.{GROUP}", "labels": labels}, "spec": spec}
        await Client(self).create(KIND_DEFINITION, body)

    async def follow(self, name: str, target: str, **data: str) -> None:
        await Client(self).create(CONFIG_MAP, follower_body(name, "Server", target, **data))

    async def add(self, name: str, size: str, **metadata: Any) -> None:
        body = {"metadata": {"name": name, "namespace": "default", **metadata}, "spec": {"size": size}}
        await Client(self).create(SERVER, body)

    async def resize(self, name: str, size: str) -> None:
        await Client(self).merge_patch(SERVER, "default", name, body={"spec": {"size": size}})

    async def resize_newer(self, name: str, size: str) -> None:
        await Client(self).merge_patch(NEWER, "default", name, body={"spec": {"size": size}})

    def saw(self, name: str) -> str | None:
        metadata = self.objects[CONFIG_MAP.collection]["default", name]["metadata"]
        return metadata.get("annotations", {}).get("saw")

    def sees(self, name: str, what: str) -> Callable[[], bool]:
        return lambda: self.saw(name) == what


def running(api: Api, reconciler: FollowerReconciler, **options: Any) -> AbstractAsyncContextManager[Manager]:
    return testing.running(api, Controller(reconciler), clock=LoopClock(), randomness=SeededRandomness(1), **options)


async def test_what_is_looked_up_is_seen_to_come_change_and_go() -> None:
    api, reconciler = Api(), FollowerReconciler()
    await api.define("v1beta1")
    await api.follow("f", "s1")
    async with running(api, reconciler):
        await until(api.sees("f", "missing"))
        await api.add("other", "x")
        await api.add("s1", "small")
        await until(api.sees("f", "v1beta1 small"))
        await api.resize("s1", "big")
        await until(api.sees("f", "v1beta1 big"))
        await Client(api).delete(SERVER, "default", "s1")
        await until(api.sees("f", "missing"))
    assert api.listed.count(SERVER.collection) == 1


async def test_only_those_who_look_come_back() -> None:
    api, reconciler = Api(), FollowerReconciler()
    await api.define("v1beta1")
    await api.add("s1", "small")
    await api.follow("one", "s1")
    await api.follow("two", "s2")
    async with running(api, reconciler) as manager:
        await until(lambda: api.saw("one") == "v1beta1 small" and api.saw("two") == "missing" and manager.is_idle)
        before = reconciler.observed["two"]
        await api.resize("s1", "big")
        await until(api.sees("one", "v1beta1 big"))
        await until(lambda: manager.is_idle)
    assert reconciler.observed["two"] == before


async def test_objects_are_mapped_to_keys_by_the_reconciler_too() -> None:
    watch = DynamicWatch(lambda obj, _cache: [("default", obj.metadata.labels["for"])] if obj.metadata.labels else [])
    api, reconciler = Api(), FollowerReconciler([watch])
    await api.define("v1beta1")
    await api.follow("f", "s1")
    async with running(api, reconciler) as manager:
        await until(lambda: api.saw("f") == "missing" and manager.is_idle)
        before = reconciler.observed["f"]
        await api.add("s2", "x", labels={"for": "f"})
        await until(lambda: reconciler.observed["f"] > before)


async def test_a_mapping_that_breaks_ends_nothing() -> None:
    def broken(obj: Unstructured, _cache: object) -> list[tuple[str, str]]:
        raise KeyError(obj.metadata.name)

    api, reconciler = Api(), FollowerReconciler([DynamicWatch(broken)])
    await api.define("v1beta1")
    await api.follow("f", "s1")
    async with running(api, reconciler):
        await until(api.sees("f", "missing"))
        await api.add("s1", "small")
        await until(api.sees("f", "v1beta1 small"))


async def test_a_definition_that_comes_later_brings_the_key_back() -> None:
    api, reconciler = Api(), FollowerReconciler()
    await api.follow("f", "s1")
    async with running(api, reconciler):
        await until(api.sees("f", "no such kind"))
        await api.define("v1beta1")
        await until(api.sees("f", "missing"))


@pytest.mark.parametrize("seed", range(5))
async def test_what_was_made_is_not_made_again_while_the_cache_lags(seed: int) -> None:
    api, reconciler, source = Api(), FollowerReconciler(), SeededRandomness(seed)
    await api.define("v1beta1")
    for number in range(5):
        await api.follow(f"f{number}", f"s{number}", make="yes")
    async with running(api, reconciler, lag_s=lambda: source.fraction() * 3) as manager:
        for number in range(5):
            await until(api.sees(f"f{number}", "v1beta1 made"))
        await until(lambda: manager.is_idle)
    assert len(api.objects[SERVER.collection]) == 5


async def test_a_refusal_is_a_reason_to_wait_and_passes() -> None:
    api, reconciler = Api(), FollowerReconciler()
    api.refused.add(SERVER.collection)
    await api.define("v1beta1")
    await api.add("s1", "small")
    await api.follow("f", "s1")
    async with running(api, reconciler):
        said = "Server default/s1 cannot be read yet: servers is forbidden"
        await until(lambda: said in reconciler.waited)
        assert api.saw("f") is None
        api.refused.clear()
        await until(api.sees("f", "v1beta1 small"))
    assert reconciler.waited.count(said) == 1


async def test_a_kind_that_goes_is_unknown_and_not_missing_until_it_comes_back() -> None:
    api, reconciler = Api(), FollowerReconciler()
    await api.define("v1beta1")
    await api.add("s1", "small")
    await api.follow("f", "s1")
    async with running(api, reconciler):
        await until(api.sees("f", "v1beta1 small"))
        api.unserve(SERVER)
        await until(lambda: any("not served" in said for said in reconciler.waited))
        api.serve([SERVER])
        await api.add("s1", "reborn")
        await until(api.sees("f", "v1beta1 reborn"))


async def test_a_definition_that_changes_is_a_reason_to_list_at_once() -> None:
    api, reconciler = Api(), FollowerReconciler()
    await api.define("v1beta1")
    api.refused.add(SERVER.collection)
    await api.follow("f", "s1")
    async with running(api, reconciler):
        await until(lambda: api.listed.count(SERVER.collection) > 6, within_s=600)
        api.refused.clear()
        labels = {"metadata": {"labels": {"touched": "yes"}}}
        await Client(api).merge_patch(KIND_DEFINITION, "", f"servers.{GROUP}", body=labels)
        await until(api.sees("f", "missing"), within_s=1)


async def test_a_newer_version_takes_over_and_the_older_informer_ends() -> None:
    api, reconciler = Api(), FollowerReconciler()
    await api.define("v1beta1")
    await api.follow("f", "s1")
    async with running(api, reconciler) as manager:
        await until(api.sees("f", "missing"))
        body = {"metadata": {"name": "s1", "namespace": "default"}, "spec": {"size": "new"}}
        await Client(api).create(NEWER, body)
        labels = {"metadata": {"labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}}}
        await Client(api).merge_patch(KIND_DEFINITION, "", f"servers.{GROUP}", body=labels)
        await until(api.sees("f", "v1beta2 new"))
        assert manager.looked_up == {SERVER.collection, NEWER.collection}
        for _ in range(3):
            manager.resync()
            await until(lambda: manager.is_idle)
            await asyncio.sleep(IDLE_S)  # the older one is looked up no more
        await until(lambda: manager.looked_up == {NEWER.collection}, within_s=600)
        await api.resize_newer("s1", "newest")
        await until(api.sees("f", "v1beta2 newest"))


async def test_a_restart_looks_up_anew() -> None:
    api = Api()
    await api.define("v1beta1")
    await api.follow("f", "s1")
    async with running(api, FollowerReconciler()):
        await until(api.sees("f", "missing"))
    await api.add("s1", "small")
    async with running(api, FollowerReconciler()):
        await until(api.sees("f", "v1beta1 small"))


async def test_watches_that_end_are_taken_up_again() -> None:
    api, reconciler = Api(), FollowerReconciler()
    await api.define("v1beta1")
    await api.follow("f", "s1")
    async with running(api, reconciler):
        await until(api.sees("f", "missing"))
        api.disconnect()
        await api.add("s1", "small")
        await until(api.sees("f", "v1beta1 small"))
        api.compact()
        api.disconnect()
        await api.resize("s1", "big")
        await until(api.sees("f", "v1beta1 big"))


def test_a_plain_object_keeps_everything_but_managed_fields() -> None:
    body = {
        "apiVersion": SERVER.api_version,
        "kind": "Server",
        "metadata": {"name": "s", "labels": {"a": "b"}, "managedFields": [{"manager": "x"}]},
        "unknown": {"deep": [1, None]},
    }
    obj = SERVER.decode(msgspec.json.encode(body))
    assert (obj.metadata.name, obj.metadata.labels) == ("s", {"a": "b"})
    assert "managedFields" not in obj.body["metadata"]
    assert obj.body["unknown"] == {"deep": [1, None]}
    assert plain(obj) is obj.body
    with pytest.raises(msgspec.ValidationError):
        SERVER.decode(b"[]")


def test_readers_know_what_was_read_last() -> None:
    readers, where = Readers(), SERVER.collection
    for name in ("a", "b"):
        readers.begin(("", "k"))
        readers.record(where, ("", name))
        readers.end()
    assert list(readers.of(where, ("", "a"))) == []
    assert list(readers.of(where, ("", "b"))) == [("", "k")]
    assert list(readers.of_kind(where)) == [("", "k")]
    readers.record(where, ("", "c"))
    readers.begin(("", "k"))
    readers.end()
    assert list(readers.of_kind(where)) == []


async def test_changes_of_looked_up_objects_are_gathered_where_that_is_asked_for() -> None:
    class Patient(FollowerReconciler):
        def __init__(self) -> None:
            super().__init__()
            self.declaration = replace(self.declaration, looked_up=Changes(delay_s=10.0))

    api, reconciler = Api(), Patient()
    await api.define("v1beta1")
    await api.add("s1", "0")
    await api.follow("f", "s1")
    async with running(api, reconciler) as manager:
        await until(api.sees("f", "v1beta1 0"))
        await until(lambda: manager.is_idle)
        before = reconciler.observed["f"]
        for number in range(1, 101):
            await api.resize("s1", str(number))
            await asyncio.sleep(0.05)
        await until(api.sees("f", "v1beta1 100"))
        await until(lambda: manager.is_idle)
    # once for all of them, and once for what that wrote
    assert reconciler.observed["f"] - before <= 3

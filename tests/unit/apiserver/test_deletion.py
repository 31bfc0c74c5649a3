"""Deletion, garbage collection, and the ends of namespaces and definitions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ironbell.api.client import (
    Call,
    Conflict,
    EventType,
    Forbidden,
    ListOptions,
    NotFound,
    Preconditions,
    Propagation,
    Selector,
    Verb,
)
from ironbell.api.core import CONFIG_MAP
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness

Make = Callable[..., dict[str, Any]]


async def make(
    admin: Any, where: Any, name: str, *owners: dict[str, Any], blocking: bool = False, finalizer: str = ""
) -> dict[str, Any]:
    references = [
        {
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocking,
        }
        for owner in owners
    ]  # fmt: skip
    meta: dict[str, Any] = {"name": name, "ownerReferences": references}
    if finalizer:
        meta["finalizers"] = [finalizer]
    result: dict[str, Any] = await admin.create(where, {"metadata": meta})
    return result


async def test_delete_answers_with_a_status(admin: Any, widgets: Any, widget: Make) -> None:
    created = await admin.create(widgets, widget("a"))
    answer = await admin.delete(widgets, "a")
    assert answer["status"] == "Success"
    assert answer["details"] == {
        "name": "a", "group": "example.org", "kind": "widgets", "uid": created["metadata"]["uid"]
    }  # fmt: skip
    with pytest.raises(NotFound):
        await admin.delete(widgets, "a")


async def test_preconditions_must_hold(admin: Any, widgets: Any, widget: Make) -> None:
    created = await admin.create(widgets, widget("a"))
    with pytest.raises(Conflict, match="the UID in the precondition"):
        await admin.delete(widgets, "a", preconditions=Preconditions(uid="other"))
    with pytest.raises(Conflict, match="the ResourceVersion in the precondition"):
        await admin.delete(widgets, "a", preconditions=Preconditions(resource_version="1"))
    meta = created["metadata"]
    await admin.delete(widgets, "a", preconditions=Preconditions(meta["uid"], meta["resourceVersion"]))


async def test_finalizers_hold_an_object_until_removed(admin: Any, widgets: Any, widget: Make) -> None:
    value = widget("a")
    value["metadata"]["finalizers"] = ["example.org/hold"]
    await admin.create(widgets, value)
    marked = await admin.delete(widgets, "a")
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert marked["metadata"]["generation"] == 2
    assert await admin.delete(widgets, "a") == marked
    last = await admin.patch(widgets, "a", {"metadata": {"finalizers": None}})
    assert "finalizers" not in last["metadata"]
    with pytest.raises(NotFound):
        await admin.get(widgets, "a")


async def test_delete_collection_deletes_what_is_selected(admin: Any, config_maps: Any) -> None:
    for name in ("a", "b", "c"):
        label = "y" if name == "b" else "x"
        await admin.create(config_maps, {"metadata": {"name": name, "labels": {"l": label}}})
    selection = ListOptions(Selector(labels="l=x"))
    answer = await admin.api.call(Call(Verb.DELETE_COLLECTION, config_maps, "default", selection=selection))
    assert len(answer.page.items) == 2
    assert await admin.names(config_maps) == ["b"]


async def test_dependents_go_with_their_last_owner(admin: Any, config_maps: Any) -> None:
    first = await make(admin, config_maps, "first")
    second = await make(admin, config_maps, "second")
    await make(admin, config_maps, "one", first)
    await make(admin, config_maps, "both", first, second)
    grandchild = await make(admin, config_maps, "grandchild", await admin.get(config_maps, "one"))
    assert grandchild
    await admin.delete(config_maps, "first")
    await admin.settle()
    assert await admin.names(config_maps) == ["both", "second"]
    left = await admin.get(config_maps, "both")
    assert [owner["name"] for owner in left["metadata"]["ownerReferences"]] == ["second"]
    await admin.delete(config_maps, "second")
    await admin.settle()
    assert await admin.names(config_maps) == []


async def test_what_names_an_owner_that_never_was_goes(admin: Any, config_maps: Any) -> None:
    await make(admin, config_maps, "lost", {"metadata": {"name": "ghost", "uid": "no-such-uid"}})
    await admin.settle()
    assert await admin.names(config_maps) == []


async def test_an_owner_of_another_namespace_is_none(admin: Any, config_maps: Any) -> None:
    owner = await admin.create(config_maps, {"metadata": {"name": "o"}}, namespace="kube-public")
    await make(admin, config_maps, "child", owner)
    await admin.settle()
    assert await admin.names(config_maps) == ["o"]


async def test_a_foreground_owner_waits_for_what_blocks_it(admin: Any, config_maps: Any) -> None:
    owner = await make(admin, config_maps, "owner")
    await make(admin, config_maps, "held", owner, blocking=True, finalizer="example.org/hold")
    await make(admin, config_maps, "free", owner, blocking=False)
    marked = await admin.delete(config_maps, "owner", propagation=Propagation.FOREGROUND)
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    await admin.settle()
    assert await admin.names(config_maps) == ["held", "owner"]
    await admin.patch(config_maps, "held", {"metadata": {"finalizers": None}})
    await admin.settle()
    assert await admin.names(config_maps) == []


async def test_foreground_without_dependents_ends_at_once(admin: Any, config_maps: Any) -> None:
    await make(admin, config_maps, "owner")
    await admin.delete(config_maps, "owner", propagation=Propagation.FOREGROUND)
    await admin.settle()
    assert await admin.names(config_maps) == []


async def test_orphans_are_left_without_owner(admin: Any, config_maps: Any) -> None:
    owner = await make(admin, config_maps, "owner")
    await make(admin, config_maps, "child", owner)
    await admin.delete(config_maps, "owner", propagation=Propagation.ORPHAN)
    await admin.settle()
    assert await admin.names(config_maps) == ["child"]
    assert "ownerReferences" not in (await admin.get(config_maps, "child"))["metadata"]


async def test_a_namespace_takes_its_contents_with_it(
    admin: Any, config_maps: Any, widgets: Any, namespaces: Any
) -> None:
    created = await admin.create(namespaces, {"metadata": {"name": "t"}}, namespace="")
    assert (created["status"], created["spec"]) == ({"phase": "Active"}, {"finalizers": ["kubernetes"]})
    await admin.create(config_maps, {"metadata": {"name": "c"}}, namespace="t")
    await admin.create(widgets, {"metadata": {"name": "w"}}, namespace="t")
    start = admin.server.resource_version
    answer = await admin.delete(namespaces, "t", namespace="")
    assert answer["status"]["phase"] == "Terminating"
    await admin.settle()
    assert "t" not in await admin.names(namespaces)
    assert await admin.names(config_maps) == []
    assert await admin.names(widgets) == []
    events = await admin.watch(namespaces, after=start, count=2)
    assert [event.type for event in events] == [EventType.MODIFIED, EventType.DELETED]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_the_namespaces_that_all_count_on_stay(admin: Any, namespaces: Any, name: str) -> None:
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        await admin.delete(namespaces, name, namespace="")
    assert (await admin.get(namespaces, name, namespace=""))["status"]["phase"] == "Active"


async def test_a_namespace_can_be_finalized_by_hand(admin: Any, config_maps: Any, namespaces: Any) -> None:
    await admin.create(namespaces, {"metadata": {"name": "t"}}, namespace="")
    held = {"metadata": {"name": "c", "finalizers": ["example.org/hold"]}}
    await admin.create(config_maps, held, namespace="t")
    stuck = await admin.delete(namespaces, "t", namespace="")
    await admin.settle()
    stuck = await admin.get(namespaces, "t", namespace="")
    stuck["spec"]["finalizers"] = []
    await admin.replace(namespaces, stuck, sub="finalize")
    assert "t" not in await admin.names(namespaces)


async def test_deleting_a_definition_deletes_its_objects(admin: Any, crds: Any, widgets: Any, widget: Make) -> None:
    await admin.create(widgets, widget("a"))
    watching = asyncio.ensure_future(admin.watch(widgets, after=admin.server.resource_version, count=99))
    await asyncio.sleep(0)
    await admin.delete(crds, "widgets.example.org", namespace="")
    await admin.settle()
    assert [event.type for event in await watching] == [EventType.DELETED]
    with pytest.raises(NotFound, match="could not find the requested resource"):
        await admin.get(widgets, "a")


async def test_a_definition_can_come_back(admin: Any, crds: Any, widgets: Any, widget: Make, definition: Any) -> None:
    await admin.create(widgets, widget("a"))
    await admin.delete(crds, "widgets.example.org", namespace="")
    await admin.settle()
    await admin.create(crds, definition, namespace="")
    assert await admin.names(widgets) == []
    await admin.create(widgets, widget("a"))
    assert len(await admin.watch(widgets, after="0", count=1)) == 1


async def test_events_live_for_an_hour(clock: ManualClock, widgets: Any) -> None:
    where = type(widgets)("", "v1", "events", namespaced=True)
    async with ApiServer.open(None, clock=clock, randomness=SeededRandomness(1)) as server:
        api = server.client(ADMIN)
        value = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
        await api.create(where, "default", msgspec.json.encode(value))
        clock.advance(3599)
        await server._expiry.expire()
        assert (await api.list(where)).items
        clock.advance(2)
        await server._expiry.expire()
        assert not (await api.list(where)).items


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=15),
    st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True),
)
def test_what_is_left_always_has_an_owner_left(edges: list[tuple[int, int]], deleted: list[int]) -> None:
    """Any graph of owners: an object is left exactly if it never had an owner, or still has one."""
    owners = {child: {parent for parent, other in edges if other == child and parent < child} for child in range(10)}
    expected = set(range(10)) - set(deleted)
    while any(owners[n] and not owners[n] & expected for n in expected):
        expected -= {n for n in expected if owners[n] and not owners[n] & expected}
    assert asyncio.run(collect(owners, deleted)) == expected


async def collect(owners: dict[int, set[int]], deleted: list[int]) -> set[int]:
    where = CONFIG_MAP.collection
    async with ApiServer.open(None, clock=ManualClock(), randomness=SeededRandomness(1)) as server:
        api = server.client(ADMIN)
        uids: dict[int, str] = {}
        for number in range(10):
            references = [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": f"n{owner}", "uid": uids[owner]}
                for owner in owners[number]
            ]
            value = {"metadata": {"name": f"n{number}", "ownerReferences": references}}
            created = msgspec.json.decode(await api.create(where, "default", msgspec.json.encode(value)))
            uids[number] = created["metadata"]["uid"]
        await asyncio.gather(
            *(api.delete(where, "default", f"n{number}") for number in deleted), return_exceptions=True
        )
        while not server.is_settled:
            await asyncio.sleep(0)
        names = [msgspec.json.decode(item)["metadata"]["name"] for item in (await api.list(where)).items]
    return {int(name[1:]) for name in names}

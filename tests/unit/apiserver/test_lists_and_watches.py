"""Lists are consistent, watches miss nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.client import ApiError, BadRequest, EventType, Expired, ListOptions, Match, Selector
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.selectors import selectors
from ironbell.apiserver.store.retention import Retention
from ironbell.apiserver.verbs import read
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness

Make = Callable[..., dict[str, Any]]


async def fill(admin: Any, widgets: Any, widget: Make, count: int) -> None:
    for number in range(count):
        value = widget(f"w{number}")
        value["metadata"]["labels"] = {"number": str(number), "odd": str(number % 2)}
        await admin.create(widgets, value)


SELECTORS: list[tuple[str, list[str]]] = [
    ("", ["w0", "w1", "w2", "w3"]),
    ("odd=1", ["w1", "w3"]),
    ("odd==1,number!=3", ["w1"]),
    ("number in (0, 2)", ["w0", "w2"]),
    ("number notin (0,2)", ["w1", "w3"]),
    ("odd", ["w0", "w1", "w2", "w3"]),
    ("!odd", []),
    ("missing!=x", ["w0", "w1", "w2", "w3"]),
    ("missing notin (x)", ["w0", "w1", "w2", "w3"]),
    ("number>1", ["w2", "w3"]),
    ("number < 1", ["w0"]),
    ("odd=", []),
]


@pytest.mark.parametrize(("text", "names"), SELECTORS)
async def test_label_selectors(admin: Any, widgets: Any, widget: Make, text: str, names: list[str]) -> None:
    await fill(admin, widgets, widget, 4)
    assert await admin.names(widgets, labels=text) == names


@pytest.mark.parametrize("text", ["a=b=c", "in (a)", "a in a", "=", ",", "a b", "a>x", "(", "a,,b"])
async def test_malformed_label_selectors_are_refused(admin: Any, widgets: Any, text: str) -> None:
    with pytest.raises(BadRequest):
        await admin.names(widgets, labels=text)


@given(st.text(max_size=20))
def test_any_text_is_a_selector_or_a_refusal(text: str) -> None:
    for parse in (selectors.parse_labels, selectors.parse_fields):
        try:
            parse(text)
        except ApiError:
            continue


async def test_field_selectors(admin: Any, widgets: Any, widget: Make, secrets: Any) -> None:
    await fill(admin, widgets, widget, 3)
    assert await admin.names(widgets, fields="metadata.name=w1") == ["w1"]
    assert await admin.names(widgets, fields="metadata.name!=w1,metadata.namespace=default") == ["w0", "w2"]
    with pytest.raises(BadRequest, match=r"field label not supported: spec.size"):
        await admin.names(widgets, fields="spec.size=3")
    await admin.create(secrets, {"metadata": {"name": "s"}, "type": "example.org/t"})
    await admin.create(secrets, {"metadata": {"name": "o"}})
    assert await admin.names(secrets, fields="type=example.org/t") == ["s"]


async def test_lists_are_in_order_and_by_namespace(admin: Any, config_maps: Any, namespaces: Any) -> None:
    await admin.create(namespaces, {"metadata": {"name": "a"}}, namespace="")
    for namespace, name in (("default", "z"), ("a", "y"), ("default", "b")):
        await admin.create(config_maps, {"metadata": {"name": name}}, namespace=namespace)
    assert await admin.names(config_maps) == ["y", "b", "z"]
    assert await admin.names(config_maps, "default") == ["b", "z"]


async def test_pages_show_the_state_of_the_first_one(admin: Any, widgets: Any, widget: Make) -> None:
    await fill(admin, widgets, widget, 6)
    first = await admin.api.list(widgets, "default", ListOptions(limit=2))
    await admin.delete(widgets, "w3")
    await admin.create(widgets, widget("w25"))
    await admin.patch(widgets, "w4", {"spec": {"size": 9}})
    second = await admin.api.list(widgets, "default", ListOptions(limit=2, continue_token=first.continue_token))
    third = await admin.api.list(widgets, "default", ListOptions(limit=2, continue_token=second.continue_token))
    items = [msgspec.json.decode(item) for page in (first, second, third) for item in page.items]
    assert [item["metadata"]["name"] for item in items] == [f"w{n}" for n in range(6)]
    assert all(item["spec"]["size"] == 3 for item in items)
    assert {page.resource_version for page in (first, second, third)} == {first.resource_version}
    assert third.continue_token == ""


async def test_a_continue_token_must_be_the_servers(admin: Any, widgets: Any) -> None:
    for token in ("x", "!!", "e30"):
        with pytest.raises(BadRequest, match="continue key is not valid"):
            await admin.api.list(widgets, "", ListOptions(continue_token=token))


async def test_a_watch_sees_all_changes_in_order(admin: Any, widgets: Any, widget: Make) -> None:
    start = admin.server.resource_version
    await admin.create(widgets, widget("a"))
    await admin.patch(widgets, "a", {"spec": {"size": 5}})
    await admin.delete(widgets, "a")
    events = await admin.watch(widgets, after=start, count=3)
    assert [event.type for event in events] == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED]
    versions = [int(event.resource_version) for event in events]
    assert versions == sorted(versions)
    last = msgspec.json.decode(events[-1].body)
    assert (last["spec"]["size"], last["metadata"]["resourceVersion"]) == (5, events[-1].resource_version)


async def test_a_watch_waits_for_what_comes(admin: Any, widgets: Any, widget: Make) -> None:
    async with asyncio.TaskGroup() as group:
        seen = group.create_task(admin.watch(widgets, after=admin.server.resource_version, count=1))
        await asyncio.sleep(0)
        await admin.create(widgets, widget("a"))
    assert seen.result()[0].type is EventType.ADDED


async def test_without_a_version_a_watch_starts_with_what_is_there(admin: Any, widgets: Any, widget: Make) -> None:
    await fill(admin, widgets, widget, 2)
    for version in ("", "0"):
        events = await admin.watch(widgets, after=version, count=2)
        assert [event.type for event in events] == [EventType.ADDED] * 2


async def test_objects_enter_and_leave_a_selector(admin: Any, widgets: Any, widget: Make) -> None:
    start = admin.server.resource_version
    await admin.create(widgets, widget("a"))
    await admin.patch(widgets, "a", {"metadata": {"labels": {"on": "1"}}})
    await admin.patch(widgets, "a", {"spec": {"size": 5}})
    await admin.patch(widgets, "a", {"metadata": {"labels": {"on": "0"}}})
    await admin.delete(widgets, "a")
    await admin.create(widgets, {**widget("b"), "metadata": {"name": "b", "labels": {"on": "1"}}})
    events = await admin.watch(widgets, after=start, count=4, selector=Selector(labels="on=1"))
    assert [event.type.value for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
    left = msgspec.json.decode(events[2].body)
    assert left["metadata"]["labels"] == {"on": "1"}
    assert left["metadata"]["resourceVersion"] == events[2].resource_version


async def test_a_watch_of_one_namespace_sees_nothing_else(admin: Any, config_maps: Any, namespaces: Any) -> None:
    start = admin.server.resource_version
    await admin.create(namespaces, {"metadata": {"name": "a"}}, namespace="")
    await admin.create(config_maps, {"metadata": {"name": "x"}}, namespace="default")
    await admin.create(config_maps, {"metadata": {"name": "y"}}, namespace="a")
    events = await admin.watch(config_maps, after=start, count=1, namespace="a")
    assert msgspec.json.decode(events[0].body)["metadata"]["name"] == "y"


async def test_bookmarks_come_when_nothing_happens(admin: Any, widgets: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "BOOKMARK_SECONDS", 0.01)
    events = await admin.watch(widgets, after=admin.server.resource_version, count=1)
    assert (events[0].type, events[0].resource_version) == (EventType.BOOKMARK, admin.server.resource_version)


async def test_versions_that_never_were_are_refused(admin: Any, widgets: Any) -> None:
    with pytest.raises(Expired):
        await admin.watch(widgets, after="999999", count=1)
    with pytest.raises(BadRequest, match='resourceVersion: Invalid value: "now"'):
        await admin.watch(widgets, after="now", count=1)


async def test_history_that_was_given_up_is_expired(clock: ManualClock, config_maps: Any) -> None:
    small = Retention(memory_changes=8)
    async with ApiServer.open(None, clock=clock, randomness=SeededRandomness(1), retention=small) as server:
        api = server.client(ADMIN)
        page = await api.list(config_maps, "", ListOptions(limit=1))
        start = page.resource_version
        for number in range(3):
            await api.create(config_maps, "default", b'{"metadata":{"name":"n%d"}}' % number)
        token = (await api.list(config_maps, "", ListOptions(limit=1))).continue_token
        for number in range(20):
            await api.create(config_maps, "default", b'{"metadata":{"name":"o%d"}}' % number)
        with pytest.raises(Expired, match="too old resource version"):
            await anext(api.changes(config_maps, resource_version=start))
        with pytest.raises(Expired, match="continue parameter is too old") as expired:
            await api.list(config_maps, "", ListOptions(limit=1, continue_token=token))
        rest = await api.list(config_maps, "", ListOptions(continue_token=expired.value.continue_token))
        assert len(rest.items) == 22
        assert rest.resource_version == server.resource_version
        with pytest.raises(Expired, match="The resourceVersion for the provided list is too old"):
            await api.list(config_maps, "", ListOptions(resource_version=start, match=Match.EXACT))


async def test_watches_end_with_the_server(clock: ManualClock, config_maps: Any) -> None:
    async with ApiServer.open(None, clock=clock, randomness=SeededRandomness(1)) as server:
        events = server.client(ADMIN).changes(config_maps, resource_version=server.resource_version)
        waiting = asyncio.ensure_future(anext(events, None))
        await asyncio.sleep(0)
    assert await waiting is None


async def test_a_watch_that_falls_behind_memory_ends(clock: ManualClock, config_maps: Any) -> None:
    small = Retention(memory_changes=8)
    async with ApiServer.open(None, clock=clock, randomness=SeededRandomness(1), retention=small) as server:
        api = server.client(ADMIN)
        events = api.changes(config_maps, resource_version=server.resource_version)
        await api.create(config_maps, "default", b'{"metadata":{"name":"first"}}')
        assert (await anext(events)).type is EventType.ADDED
        for number in range(20):
            await api.create(config_maps, "default", b'{"metadata":{"name":"n%d"}}' % number)
        assert [event async for event in events] == []

"""Flow control's objects: those that a server begins with, who puts them back, and what levels have by them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.client import Unavailable
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.flowcontrol import keeper, suggested
from ironbell.apiserver.flowcontrol.classify import match
from ironbell.apiserver.flowcontrol.limits import Limits, Waiting, limits_of, waiting_of
from ironbell.apiserver.flowcontrol.plan import plan_of
from ironbell.apiserver.flowcontrol.spec import AUTOUPDATE, GROUP, FlowSchema, PriorityLevel, Rules
from ironbell.apiserver.verbs.create import create_value
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from support.waiting import until

SCHEMAS = Collection(GROUP, "v1", "flowschemas", namespaced=False)
LEVELS = Collection(GROUP, "v1", "prioritylevelconfigurations", namespaced=False)
ANN = Identity("ann", ("system:authenticated",))


def level(name: str, shares: int, response: dict[str, Any] | None = None, **limited: Any) -> PriorityLevel:
    spec = {"nominalConcurrencyShares": shares, "limitResponse": response or {"type": "Reject"}, **limited}
    value = {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": spec}}
    return msgspec.convert(value, PriorityLevel)


def test_shares_of_the_seats() -> None:
    queue = {"type": "Queue", "queuing": {"queues": 8, "handSize": 2, "queueLengthLimit": 5}}
    levels = [
        level("a", 30, lendablePercent=50), level("b", 70, borrowingLimitPercent=10),
        level("none", 0, queue, borrowingLimitPercent=100),
    ]  # fmt: skip
    result = limits_of(levels, 10)
    assert result["a"] == Limits(nominal=3, kept=1, own=1, most=13)
    assert result["b"] == Limits(nominal=7, kept=7, own=7, most=8)
    assert result["none"] == Limits(nominal=0, kept=0, own=0, most=0)
    assert [waiting_of(entry) for entry in levels] == [Waiting(0, 0), Waiting(0, 0), Waiting(10, 40)]


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 100)), min_size=1, max_size=8), st.integers(1, 200))
def test_no_more_is_kept_than_there_is(parts: list[tuple[int, int]], seats: int) -> None:
    levels = [level(f"l{i}", shares, lendablePercent=lendable) for i, (shares, lendable) in enumerate(parts)]
    result = limits_of(levels, seats).values()
    assert sum(entry.kept for entry in result) <= seats
    assert all(entry.kept <= entry.own <= max(1, entry.nominal) and entry.own <= entry.most for entry in result)


def test_without_objects_the_mandatory_ones_are_in_force() -> None:
    plan = plan_of((), ())
    line = plan.classify(ANN, Attributes("get", path="/"))
    assert (line.schema.metadata.name, line.level.metadata.name) == ("catch-all", "catch-all")
    line = plan.classify(Identity("root", ("system:masters",)), Attributes("get", path="/"))
    assert (line.schema.metadata.name, line.level.is_exempt) == ("exempt", True)


@pytest.mark.parametrize(
    ("url", "path", "fits"),
    [
        ("*", "/a", True),
        ("/a", "/a", True),
        ("/a", "/ab", False),
        ("/a/*", "/a/b/c", True),
        ("/a/*", "/a", False),
        ("/a/*", "/ab", False),
    ],
)
def test_urls(url: str, path: str, *, fits: bool) -> None:
    rules = msgspec.convert({"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": [url]}]}, Rules)
    assert match(rules, Attributes("get", path=path)) is fits
    assert not match(rules, Attributes("post", path=path))


def test_flows_are_told_apart_as_the_schema_says() -> None:
    value = msgspec.to_builtins(msgspec.convert(suggested.SCHEMAS["global-default"], FlowSchema))
    flows = []
    for method in ({"type": "ByUser"}, {"type": "ByNamespace"}, None):
        schema = msgspec.convert({**value, "spec": {**value["spec"], "distinguisherMethod": method}}, FlowSchema)
        levels = [msgspec.convert(entry, PriorityLevel) for entry in suggested.LEVELS.values()]
        flows.append(plan_of([schema], levels).lines[1].flow(ANN, "ns"))
    assert flows == ["global-default/ann", "global-default/ns", "global-default/"]


async def test_what_is_deleted_comes_back(admin: Any) -> None:
    for where, name in ((SCHEMAS, "catch-all"), (LEVELS, "workload-low"), (SCHEMAS, "service-accounts")):
        old = await admin.get(where, name)
        await admin.delete(where, name)
        await admin.settle()
        after = await admin.get(where, name)
        assert after["metadata"]["uid"] != old["metadata"]["uid"]
        assert after["spec"] == old["spec"]
    status = (await admin.get(SCHEMAS, "service-accounts"))["status"]["conditions"][0]
    assert (status["type"], status["status"], status["reason"]) == ("Dangling", "False", "Found")


async def test_what_is_changed_is_put_back_unless_its_annotation_says_otherwise(admin: Any) -> None:
    change = {"spec": {"matchingPrecedence": 9999}}
    await admin.patch(SCHEMAS, "global-default", change)
    await admin.settle()
    assert (await admin.get(SCHEMAS, "global-default"))["spec"]["matchingPrecedence"] == 9900
    mine = {"metadata": {"annotations": {AUTOUPDATE: "false"}}}
    await admin.patch(SCHEMAS, "global-default", {**change, **mine})
    await admin.settle()
    assert (await admin.get(SCHEMAS, "global-default"))["spec"]["matchingPrecedence"] == 9999
    # what is the server's is so whatever the annotation says
    await admin.patch(SCHEMAS, "exempt", mine)
    await admin.settle()
    assert (await admin.get(SCHEMAS, "exempt"))["metadata"]["annotations"] == {AUTOUPDATE: "true"}


async def test_what_an_earlier_release_made_is_deleted(admin: Any) -> None:
    old = {**suggested.SCHEMAS["service-accounts"], "metadata": {"name": "old", "annotations": {AUTOUPDATE: "true"}}}
    await admin.create(SCHEMAS, old)
    await admin.create(SCHEMAS, {**old, "metadata": {"name": "mine"}})
    await admin.settle()
    names = await admin.names(SCHEMAS)
    assert "mine" in names
    assert "old" not in names


async def test_of_the_exempt_level_what_it_takes_is_the_administrators(admin: Any) -> None:
    await admin.patch(LEVELS, "exempt", {"spec": {"exempt": {"nominalConcurrencyShares": 10}}})
    await admin.settle()
    assert (await admin.get(LEVELS, "exempt"))["spec"]["exempt"] == {
        "nominalConcurrencyShares": 10, "lendablePercent": 0,
    }  # fmt: skip


async def test_a_server_with_the_contents_of_another_writes_nothing_at_its_start() -> None:
    def opened(**more: Any) -> Any:
        return ApiServer.open(None, clock=ManualClock(), randomness=SeededRandomness(1), **more)

    async with opened() as first:
        revision = first.resource_version
        contents = first.context.store.contents()
    async with opened(contents=contents) as second:
        assert second.resource_version == revision
        line = second.flow_control.plan.classify(ANN, Attributes("get", path="/"))
        assert line.schema.metadata.name == "global-default"


async def test_what_cannot_be_written_at_the_start_is_written_later(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []

    async def create(context: Any, request: Any, value: dict[str, Any]) -> None:
        if request.name not in refused:
            refused.append(request.name)
            raise Unavailable("the disk is full")
        await create_value(context, request, value)

    monkeypatch.setattr(keeper, "create_value", create)
    async with ApiServer.open(None, clock=ManualClock(), randomness=SeededRandomness(1)) as server:
        await until(lambda: len(server.flow_control.schemas) >= len(suggested.SCHEMAS))
    assert sorted(refused) == sorted({**suggested.SCHEMAS, **suggested.LEVELS})

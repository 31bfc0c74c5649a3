"""A pivot between two embedded APIs: everything goes over, nothing is lost or doubled, wherever it is interrupted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.client import PatchType
from ironbell.apiserver.access.identity import ADMIN
from ironbell.operations.pivot.graph import Selection
from ironbell.operations.pivot.items import CLUSTER, Key, Object
from ironbell.operations.pivot.journal import JournalError
from support.site.pivoting import (
    CLUSTERS,
    NAMESPACE,
    PASSWORD,
    SELECTION,
    STAYS,
    Killed,
    Sides,
    Writes,
    facts,
    two_sides,
)

ROOT = "kube-root-ca.crt"  # every namespace has one
STEP = 41
"""`make test` interrupts after every so many writes, `make soak` after each."""
EVERY = [pytest.param(STEP, id="some"), pytest.param(1, id="each", marks=pytest.mark.soak)]


async def everything(sides: Sides, *, source: bool) -> dict[Key, Object]:
    """All that there is in the namespace, but for what is no part of a cluster."""
    found = facts(await sides.items(sides.source if source else sides.target))
    return {key: one for key, one in found.items() if key[1] == NAMESPACE and key[2] not in {*STAYS, ROOT}}


async def killed(sides: Sides, last: int, *, abort: bool = False) -> bool:
    """Run until the write of that number; whether there was one. All the time no Cluster is unpaused on both sides."""
    both: list[str] = []

    async def watch() -> None:
        both.extend(await sides.both_run())

    writes = Writes(last, watcher=watch)
    one = sides.pivot(writes)
    try:
        await (one.abort() if abort else one.run(SELECTION))
    except Killed:
        return True
    finally:
        assert both == []
    return False


async def is_moved(sides: Sides, before: dict[Key, Object]) -> None:
    left, after = await everything(sides, source=True), await everything(sides, source=False)
    assert left == {}
    assert [(key, after.get(key), one) for key, one in before.items() if after.get(key) != one] == []
    assert after.keys() == before.keys()
    assert await sides.journals() == 0


async def is_as_before(sides: Sides, before: dict[Key, Object]) -> None:
    there = await everything(sides, source=True)
    assert [(key, there.get(key), one) for key, one in before.items() if there.get(key) != one] == []
    assert await everything(sides, source=False) == {}
    assert await sides.journals() == 0


async def test_everything_goes_over_and_is_the_same() -> None:
    async with two_sides() as sides:
        before = await everything(sides, source=True)
        outcome = await sides.run(workers=8)
        await is_moved(sides, before)
        assert outcome.objects == len(before)
        assert outcome.clusters == ((CLUSTER, NAMESPACE, "one"), (CLUSTER, NAMESPACE, "two"))
        assert outcome.paused == ((CLUSTER, NAMESPACE, "two"),)
        assert outcome.kept == ()
        assert PASSWORD not in f"{outcome}{sides.reported}"
        assert (await sides.run()).course == "nothing"


@pytest.mark.parametrize("step", EVERY)
async def test_killed_after_a_write_it_goes_on(step: int) -> None:
    last = 1
    while True:
        async with two_sides() as sides:
            before = await everything(sides, source=True)
            was_killed = await killed(sides, last)
            if was_killed:
                assert not await killed(sides, 10_000)
            await is_moved(sides, before)
        if not was_killed:
            break
        last += step
    assert last > 100


@pytest.mark.parametrize("step", EVERY)
async def test_killed_after_each_few_writes_it_gets_there(step: int) -> None:
    async with two_sides() as sides:
        before = await everything(sides, source=True)
        runs = 1
        while await killed(sides, step + 2):
            runs += 1
            assert runs < 500, sides.reported[-3:]
        await is_moved(sides, before)


@pytest.mark.parametrize("step", EVERY)
async def test_killed_after_a_write_it_is_taken_back_or_cannot_be(step: int) -> None:
    refused = 0
    last = 1
    while True:
        async with two_sides() as sides:
            before = await everything(sides, source=True)
            if not await killed(sides, last):
                break
            if not await sides.journals():
                assert (await sides.pivot().abort()).course == "nothing"
                await is_moved(sides, before)
            elif await sides.is_committed():
                with pytest.raises(JournalError, match="cannot be undone"):
                    await sides.pivot().abort()
                refused += 1
                assert not await killed(sides, 10_000)
                await is_moved(sides, before)
            else:
                assert not refused, "it can be taken back after it could not"
                assert not await killed(sides, 10_000, abort=True)
                await is_as_before(sides, before)
        last += step
    assert refused


async def test_taking_back_goes_on_as_well() -> None:
    async with two_sides() as sides:
        before = await everything(sides, source=True)
        assert await killed(sides, 60)
        while await killed(sides, 11, abort=True):
            with pytest.raises(JournalError, match="being undone"):
                await sides.run()
        await is_as_before(sides, before)
        await sides.run()
        await is_moved(sides, before)


async def test_a_source_that_is_gone_for_good_is_not_needed_at_the_end() -> None:
    async with two_sides() as sides:
        before = await everything(sides, source=True)
        while await killed(sides, 10):
            if await sides.is_committed():
                break
            with pytest.raises(Exception, match="the source is needed"):
                await sides.pivot().finish_alone()
        await sides.pivot().finish_alone()
        after = await everything(sides, source=False)
        assert [key for key, one in before.items() if after.get(key) != one] == []


async def test_a_change_on_the_source_meanwhile_goes_over_too() -> None:
    async with two_sides() as sides:
        assert await killed(sides, 40)
        await change(sides, {"metadata": {"annotations": {"by": "user"}}})
        await sides.run()
        after = await everything(sides, source=False)
        assert after["Cluster.cluster.x-k8s.io", NAMESPACE, "one"]["annotations"] == {"by": "user"}


async def change(sides: Sides, patch: dict[str, Any], name: str = "one") -> None:
    await sides.source.client(ADMIN).patch(
        CLUSTERS, NAMESPACE, name, msgspec.json.encode(patch), patch_type=PatchType.MERGE
    )


async def test_one_cluster_goes_and_the_other_stays() -> None:
    async with two_sides() as sides:
        before = await everything(sides, source=True)
        outcome = await sides.run(Selection(frozenset([NAMESPACE]), frozenset(["two"])))
        left, after = await everything(sides, source=True), await everything(sides, source=False)
        assert outcome.clusters == ((CLUSTER, NAMESPACE, "two"),)
        assert {key[2] for key in after} == {"two", "two-ca", "two-kubeconfig", "two-files", "two-cp", "two-md"}
        assert left.keys() | after.keys() == before.keys()
        assert not left.keys() & after.keys()

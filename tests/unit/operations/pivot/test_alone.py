"""Actions on pivots: one at a time, and a dead holder of the Lease is recognised."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import msgspec
import pytest

from ironbell.api.client import PatchType
from ironbell.api.core import LEASE
from ironbell.apiserver.access.identity import ADMIN
from ironbell.operations.pivot.alone import Action, identity, is_dead, perform
from ironbell.operations.pivot.checks import PivotRejectedError
from ironbell.operations.pivot.graph import Plan, Selection
from ironbell.operations.pivot.journal import JOURNAL, JOURNAL_NAMESPACE, Course
from ironbell.operations.pivot.moving import Outcome
from support.site.pivoting import CLUSTERS, SELECTION, Writes, two_sides


def test_a_process_of_this_machine_is_dead_when_it_is_gone_and_not_before() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        holder = identity(process.pid, "x")
        assert not is_dead(holder)
    assert is_dead(holder)
    assert not is_dead(identity(os.getpid(), "x"))


def test_a_process_with_the_same_number_is_another_one() -> None:
    boot, pid, began, random = identity(os.getpid(), "x").split(".")
    assert is_dead(f"{boot}.{pid}.{int(began) - 1}.{random}")


def test_nothing_is_known_of_other_machines_and_other_holders() -> None:
    _boot, pid, began, random = identity(os.getpid(), "x").split(".")
    for holder in (f"another.{pid}.1.{random}", f".{pid}.{began}.{random}", "somebody", "a.b.c.d", ""):
        assert not is_dead(holder)


async def test_it_says_which_clusters_a_move_of_another_program_has_left_paused() -> None:
    """clusterctl unpauses the Clusters last; the source does not have them any more when it is killed before."""
    async with two_sides() as sides:
        moved = await perform(sides.pivot(), Action.MOVE, SELECTION)
        assert isinstance(moved, Outcome)
        assert moved.left_paused == ()
        running, *_ = (key for key in moved.clusters if key not in moved.paused)
        pause = msgspec.json.encode({"spec": {"paused": True}})
        client = sides.target.client(ADMIN)
        await client.patch(CLUSTERS, running[1], running[2], pause, patch_type=PatchType.MERGE)

        for adopts in (False, True):
            again = await perform(sides.pivot(adopts=adopts), Action.MOVE, SELECTION)
            assert isinstance(again, Outcome)
            assert again.course == Course.NOTHING
            assert again.left_paused == (tuple(sorted({running, *moved.paused})) if adopts else ())
        elsewhere = await perform(sides.pivot(adopts=True), Action.MOVE, Selection(frozenset(["elsewhere"])))
        assert isinstance(elsewhere, Outcome)
        assert elsewhere.left_paused == ()


async def test_a_preview_writes_nothing_and_a_move_is_guarded_by_a_lease_until_its_end() -> None:
    async with two_sides() as sides:
        lease = partial(sides.target.client(ADMIN).get, LEASE.collection, JOURNAL_NAMESPACE, JOURNAL)
        writes = Writes()
        plan = await perform(sides.pivot(writes), Action.PREVIEW, SELECTION)
        assert isinstance(plan, Plan)
        assert writes.count == 0
        holders: set[str] = set()

        async def watch() -> None:
            holders.add(msgspec.json.decode(await lease())["spec"]["holderIdentity"])

        outcome = await perform(sides.pivot(Writes(watcher=watch), workers=8), Action.MOVE, SELECTION)
        assert isinstance(outcome, Outcome)
        assert outcome.objects == len(list(plan.items))
        assert holders == {identity(os.getpid(), "pivot-1"), ""}, "and released at the end"
        assert [step.total for step in sides.reported if step.done], "objects are counted"


async def test_there_is_nothing_to_abort_or_to_finish_without_a_pivot() -> None:
    async with two_sides() as sides:
        assert await perform(sides.pivot(), Action.ABORT, SELECTION) == Outcome(course="nothing")
        with pytest.raises(PivotRejectedError, match="the source is needed"):
            await perform(sides.pivot(), Action.FINISH, SELECTION)

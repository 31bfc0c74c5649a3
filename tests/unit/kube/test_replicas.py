"""Several replicas of the same controllers: one works, the others are ready to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ironbell.api.client import Answer, Call, Unavailable, Verb
from ironbell.api.kind import Kind
from ironbell.api.meta import Resource
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.decision import DONE, Effect, do
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.leader import LEASES, LeaderElection, LeaseSettings
from ironbell.kube.manager.manager import Manager
from ironbell.kube.reconciler import Performer
from ironbell.kube.testing.example_world import ExampleApi, Scripted
from ironbell.kube.testing.memory import LoopClock
from support.waiting import until


class Replica:
    def __init__(self, api: ExampleApi, name: str, *, effect: Performer | None = None) -> None:
        clock, randomness = LoopClock(), SeededRandomness(1)
        wanted = do(Effect("switch", None, timeout_s=120)) if effect else DONE
        self.reconciler = Scripted(lambda _slot: wanted)
        self.manager = Manager(api, clock=clock, randomness=randomness, grace_s=10)
        self.manager.add(Controller(self.reconciler, performers={"switch": effect} if effect else {}))
        self.election = LeaderElection(api, LeaseSettings("kube-system", "test", name), clock, randomness)
        self.task = asyncio.create_task(self.manager.run(self.election))

    @property
    def looked(self) -> int:
        return len(self.reconciler.calls)


def api_with_leases() -> ExampleApi:
    api = ExampleApi(LoopClock())
    api.serve([Kind("coordination.k8s.io", "v1", "Lease", "leases", Resource)])
    return api


def holder(api: ExampleApi) -> str:
    return str(api.objects[LEASES]["kube-system", "test"]["spec"]["holderIdentity"])


async def test_the_second_has_its_caches_filled_and_takes_over_at_once() -> None:
    api = api_with_leases()
    await api.add_slot("one")
    a = Replica(api, "a")
    await until(lambda: a.looked == 1)
    b = Replica(api, "b")
    await until(lambda: b.manager.has_synced)
    await asyncio.sleep(5)
    assert b.looked == 0
    start = asyncio.get_running_loop().time()
    a.manager.stop()
    await a.task
    await until(lambda: b.looked == 1)
    assert asyncio.get_running_loop().time() - start < 0.1
    b.manager.stop()
    await b.task
    assert not b.election.was_lost
    assert holder(api) == ""


async def test_one_that_waits_for_the_lease_stops_without_it() -> None:
    api = api_with_leases()
    await api.add_slot("one")
    a, b = Replica(api, "a"), Replica(api, "b")
    await until(lambda: a.looked == 1 and b.manager.has_synced)
    b.manager.stop()
    async with asyncio.timeout(1):
        await b.task
    assert holder(api) == "a"
    a.task.cancel()
    await asyncio.gather(a.task, return_exceptions=True)
    assert a.task.cancelled()
    assert holder(api) == ""


async def test_one_that_loses_the_lease_stops_working_and_says_so() -> None:
    api = api_with_leases()
    await api.add_slot("one")
    a = Replica(api, "a")
    await until(lambda: a.looked == 1)

    await lose(api)
    async with asyncio.timeout(13):
        await a.task
    assert a.election.was_lost
    await api.add_slot("two")
    assert a.looked == 1


@pytest.mark.parametrize(("loses", "outcome"), [(True, "cut off"), (False, "finished")])
async def test_work_in_progress_is_finished_at_a_clean_stop_and_cut_off_when_the_lease_is_lost(
    loses: bool, outcome: str
) -> None:
    api = api_with_leases()
    await api.add_slot("one")
    began, outcomes = asyncio.Event(), []  # type: ignore[var-annotated]

    async def switch(_arguments: object) -> list[Any]:
        began.set()
        try:
            await asyncio.sleep(60 if loses else 4)
            outcomes.append("finished")
        except asyncio.CancelledError:
            outcomes.append("cut off")
            raise
        return []

    a = Replica(api, "a", effect=switch)
    await began.wait()
    if loses:
        await lose(api)
    else:
        a.manager.stop()
    await a.task
    assert outcomes == [outcome]
    assert a.election.was_lost is loses


async def lose(api: ExampleApi) -> None:
    carry_out = api.call

    async def refuse_updates(call: Call) -> Answer:
        if call.verb is Verb.UPDATE:
            raise Unavailable("cut off")
        return await carry_out(call)

    api.call = refuse_updates  # type: ignore[method-assign]

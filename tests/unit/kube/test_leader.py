from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec
import pytest
import structlog

from ironbell.api.client import Answer, Api, Call, NotFound, Unavailable, Verb, WatchEvent
from ironbell.api.kind import Kind
from ironbell.api.meta import Resource
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.manager.leader import LEASES, LeaderElection, LeaseSettings
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.memory import LoopClock
from support.waiting import until


class Leases(MemoryApi):
    """An API that can be cut off for one identity."""

    def __init__(self) -> None:
        super().__init__(clock=LoopClock())
        self.serve([Kind("coordination.k8s.io", "v1", "Lease", "leases", Resource)])
        self.cut = False

    def holder(self) -> str:
        return str(self.objects[LEASES]["kube-system", "test"]["spec"]["holderIdentity"])

    async def call(self, call: Call) -> Answer:
        if self.cut and call.verb is Verb.GET:
            raise Unavailable("cut off")
        return await super().call(call)


class View(Api):
    """What one candidate sees of the API; cut off by itself."""

    def __init__(self, api: Leases) -> None:
        self._api = api
        self.cut = False
        self.is_blind = False

    async def call(self, call: Call) -> Answer:
        if self.cut:
            raise Unavailable("cut off")
        return await self._api.call(call)

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        async for event in self._api.watch(call):
            if self.cut or self.is_blind:
                raise Unavailable("cut off")
            yield event


class Candidate:
    def __init__(self, api: Leases, name: str, leading: list[str]) -> None:
        self.name, self.leading = name, leading
        self.view = View(api)
        settings = LeaseSettings("kube-system", "test", name)
        self.election = LeaderElection(self.view, settings, LoopClock(), SeededRandomness(1))
        self.task = asyncio.create_task(self.election.run(self.work))

    async def work(self) -> None:
        assert self.leading == [], "never two at a time"
        self.leading.append(self.name)
        try:
            await asyncio.Event().wait()
        finally:
            self.leading.remove(self.name)


async def ended(task: asyncio.Task[None]) -> None:
    await asyncio.gather(task, return_exceptions=True)


async def test_one_leads_and_hands_over_when_it_ends() -> None:
    api, leading = Leases(), []  # type: ignore[var-annotated]
    a, b = Candidate(api, "a", leading), Candidate(api, "b", leading)
    await asyncio.sleep(30)
    assert leading == ["a"]
    a.task.cancel()
    await ended(a.task)
    assert not a.election.is_leader
    await asyncio.sleep(5)
    assert leading == ["b"]
    assert api.holder() == "b"
    assert api.objects[LEASES]["kube-system", "test"]["spec"]["leaseTransitions"] == 1
    b.task.cancel()
    await ended(b.task)
    assert api.holder() == ""


async def test_a_lease_that_is_handed_back_is_taken_at_once() -> None:
    api, leading = Leases(), []  # type: ignore[var-annotated]
    a, b = Candidate(api, "a", leading), Candidate(api, "b", leading)
    await asyncio.sleep(11)
    assert leading == ["a"]
    loop = asyncio.get_running_loop()
    start = loop.time()
    a.task.cancel()
    await ended(a.task)
    await until(lambda: leading == ["b"])
    assert loop.time() - start < 0.1
    b.task.cancel()
    await ended(b.task)


async def test_who_may_not_watch_the_lease_still_finds_it_free() -> None:
    api, leading = Leases(), []  # type: ignore[var-annotated]
    a, b = Candidate(api, "a", leading), Candidate(api, "b", leading)
    b.view.is_blind = True
    await asyncio.sleep(11)
    a.task.cancel()
    await ended(a.task)
    assert leading == []
    await asyncio.sleep(2.5)
    assert leading == ["b"]
    b.task.cancel()
    await ended(b.task)


async def test_a_candidate_that_is_ended_while_it_takes_the_lease_hands_it_back() -> None:
    api = Leases()
    a = Candidate(api, "a", [])
    answered = asyncio.Event()

    async def slow(call: Call) -> Answer:
        answer = await api.call(call)
        if call.verb is Verb.CREATE:
            answered.set()
            await asyncio.sleep(1)
        return answer

    a.view.call = slow  # type: ignore[method-assign]
    await answered.wait()
    assert api.holder() == "a"
    a.task.cancel()
    await ended(a.task)
    assert api.holder() == ""


async def test_a_leader_that_is_cut_off_stops_before_another_begins() -> None:
    api, leading = Leases(), []  # type: ignore[var-annotated]
    a, b = Candidate(api, "a", leading), Candidate(api, "b", leading)
    await asyncio.sleep(10)
    a.view.cut = True
    start = asyncio.get_running_loop().time()
    await a.task
    assert a.election.was_lost
    assert asyncio.get_running_loop().time() - start <= 12.1
    assert leading == []
    await asyncio.sleep(10)
    assert leading == ["b"]
    b.task.cancel()
    await ended(b.task)


async def test_a_lease_left_by_a_dead_process_is_taken_after_its_duration() -> None:
    api, leading = Leases(), []  # type: ignore[var-annotated]
    body = {
        "metadata": {"name": "test"},
        "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 15, "renewTime": "2040-01-01T00:00:00.000000Z"},
    }
    await api.create(LEASES, "kube-system", msgspec.json.encode(body))
    b = Candidate(api, "b", leading)
    await asyncio.sleep(14)
    assert leading == []
    await asyncio.sleep(6)
    assert leading == ["b"]
    b.task.cancel()
    await ended(b.task)


async def test_a_namespace_that_does_not_exist_is_named_with_the_remedy() -> None:
    api, leading = Leases(), []  # type: ignore[var-annotated]

    carry_out = api.call

    async def without_namespace(call: Call) -> Answer:
        if call.verb is Verb.CREATE:
            raise NotFound('namespaces "kube-system" not found')
        return await carry_out(call)

    api.call = without_namespace  # type: ignore[method-assign]
    with structlog.testing.capture_logs() as logged:
        a = Candidate(api, "a", leading)
        await asyncio.sleep(1)
    a.task.cancel()
    await ended(a.task)
    (said, *_) = [entry for entry in logged if entry["log_level"] == "warning"]
    assert said["message"] == 'namespaces "kube-system" not found'
    assert said["remedy"] == "Is there a Namespace kube-system? Create it, or name another by --lease-namespace."


async def test_what_the_work_fails_with_comes_out() -> None:
    api = Leases()
    settings = LeaseSettings("kube-system", "test", "a")
    election = LeaderElection(api, settings, LoopClock(), SeededRandomness(1))

    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await election.run(work)
    assert api.holder() == ""

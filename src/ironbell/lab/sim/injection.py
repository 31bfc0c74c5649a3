"""Injects faults into APIs and connections to etcd: requests that fail before, or after, they were carried out.

The second kind is the mean one: the caller gets a failure, and the object exists. And the caller may die with a chosen
write: it is carried out, and the caller does nothing any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from types import TracebackType

from ironbell.api.client import Answer, Api, Call, Conflict, Unavailable, WatchEvent
from ironbell.base.randomness import Randomness
from ironbell.lab.sim.cloud import EtcdAccess
from ironbell.workload.etcd import Alarm, Etcd, EtcdUnreachableError, Member, MemberStatus


@dataclass
class InjectedFaults:
    """Rates of the injected faults, from 0 to 1; changed at any time."""

    randomness: Randomness
    rejections: float = 0.0
    """Share of requests that are not carried out."""
    lost_answers: float = 0.0
    """Share of writes that are carried out, and whose answer is lost."""
    conflicts: float = 0.0
    """Share of writes that are rejected as if another client had been faster."""
    closed_watches: float = 0.0
    """Share of events after which a watch ends."""
    slow_s: float = 0.0
    """Duration of every request."""
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the caller has died with a write."""
    _writes_left: int = 0

    def strikes(self, rate: float) -> bool:
        return rate > 0 and self.randomness.fraction() < rate

    def calm(self) -> None:
        """Stop injecting faults."""
        self.rejections = self.lost_answers = self.conflicts = self.closed_watches = self.slow_s = 0.0

    def kill_after(self, writes: int) -> None:
        """Have the caller die with this write of its next ones; 0 lets it live."""
        self._writes_left = writes
        self.killed.clear()

    async def passing(self) -> None:
        """Before every request. A caller that is dead gets no further. Cancellation point."""
        if self.killed.is_set():
            await asyncio.Event().wait()
        if self.slow_s:
            await asyncio.sleep(self.slow_s)

    async def written(self) -> None:
        """After every write. Cancellation point."""
        if self._writes_left:
            self._writes_left -= 1
            if not self._writes_left:
                self.killed.set()
        if self.killed.is_set():
            await asyncio.Event().wait()


class FaultyApi(Api):
    """An `Api` with injected faults."""

    def __init__(self, api: Api, faults: InjectedFaults) -> None:
        self._api = api
        self._faults = faults

    async def call(self, call: Call) -> Answer:
        faults, is_write = self._faults, call.verb.is_write
        await faults.passing()
        if faults.strikes(faults.rejections):
            raise Unavailable("the request was rejected by the fault simulation")
        if is_write and faults.strikes(faults.conflicts):
            raise Conflict("another client was faster")
        answer = await self._api.call(call)
        if is_write:
            await faults.written()
            if faults.strikes(faults.lost_answers):
                raise Unavailable("the answer was dropped by the fault simulation")
        return answer

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        faults = self._faults
        await faults.passing()
        if faults.strikes(faults.rejections):
            raise Unavailable("the request was rejected by the fault simulation")
        async with aclosing(self._api.watch(call)) as events:
            async for event in events:
                yield event
                if faults.strikes(faults.closed_watches):
                    raise Unavailable("the connection was closed by the fault simulation")


class FaultyEtcdAccess:
    """A connection as a context, with injected faults; satisfies `EtcdConnect`."""

    def __init__(self, access: EtcdAccess, faults: InjectedFaults) -> None:
        self._access, self._faults = access, faults

    async def __aenter__(self) -> Etcd:
        return FaultyEtcd(await self._access.__aenter__(), self._faults)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._access.__aexit__(kind, error, trace)


class FaultyEtcd:
    """An `Etcd` with injected faults."""

    def __init__(self, etcd: Etcd, faults: InjectedFaults) -> None:
        self._etcd, self._faults = etcd, faults

    async def status(self) -> MemberStatus:
        await self._begin()
        return await self._etcd.status()

    async def members(self) -> tuple[Member, ...]:
        await self._begin()
        return await self._etcd.members()

    async def alarms(self) -> tuple[Alarm, ...]:
        await self._begin()
        return await self._etcd.alarms()

    async def remove_member(self, member_id: int) -> None:
        await self._begin()
        await self._etcd.remove_member(member_id)
        await self._end()

    async def move_leader(self, member_id: int) -> None:
        await self._begin()
        await self._etcd.move_leader(member_id)
        await self._end()

    async def _begin(self) -> None:
        await self._faults.passing()
        if self._faults.strikes(self._faults.rejections):
            raise EtcdUnreachableError("the request was rejected by the fault simulation")

    async def _end(self) -> None:
        await self._faults.written()
        if self._faults.strikes(self._faults.lost_answers):
            raise EtcdUnreachableError("the answer was dropped by the fault simulation")

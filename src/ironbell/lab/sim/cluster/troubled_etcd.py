"""Injects faults into connections to etcd, as `trouble` does for APIs."""

from __future__ import annotations

from types import TracebackType

from ironbell.lab.sim.cloud import EtcdAccess
from ironbell.lab.sim.trouble import Trouble
from ironbell.workload.etcd import Alarm, Etcd, EtcdUnreachableError, Member, MemberStatus


class TroubledEtcdAccess:
    """A connection as a context, with injected faults; satisfies `EtcdConnect`."""

    def __init__(self, access: EtcdAccess, trouble: Trouble) -> None:
        self._access, self._trouble = access, trouble

    async def __aenter__(self) -> Etcd:
        return TroubledEtcd(await self._access.__aenter__(), self._trouble)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._access.__aexit__(kind, error, trace)


class TroubledEtcd:
    """An `Etcd` with injected faults."""

    def __init__(self, etcd: Etcd, trouble: Trouble) -> None:
        self._etcd, self._trouble = etcd, trouble

    async def status(self) -> MemberStatus:
        await self._before()
        return await self._etcd.status()

    async def members(self) -> tuple[Member, ...]:
        await self._before()
        return await self._etcd.members()

    async def alarms(self) -> tuple[Alarm, ...]:
        await self._before()
        return await self._etcd.alarms()

    async def remove_member(self, member_id: int) -> None:
        await self._before()
        await self._etcd.remove_member(member_id)
        await self._after()

    async def move_leader(self, member_id: int) -> None:
        await self._before()
        await self._etcd.move_leader(member_id)
        await self._after()

    async def _before(self) -> None:
        await self._trouble.passing()
        if self._trouble.strikes(self._trouble.before):
            raise EtcdUnreachableError("the request was rejected by the fault simulation")

    async def _after(self) -> None:
        await self._trouble.written()
        if self._trouble.strikes(self._trouble.after):
            raise EtcdUnreachableError("the answer was dropped by the fault simulation")

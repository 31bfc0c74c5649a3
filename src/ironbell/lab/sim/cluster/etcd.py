"""The etcd of a simulated cluster: its members, which of them run, its leader; and connections to it.

Source: etcd-io/etcd: server/etcdserver (membership changes need a quorum of the old members;
`mayRemoveMember` of server.go: and, as `--strict-reconfig-check` is on, one of the new).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ironbell.base.ports import ETCD_PORT
from ironbell.base.randomness import Randomness
from ironbell.workload.etcd import Alarm, EtcdError, EtcdUnreachableError, Member, MemberStatus


@dataclass(frozen=True, slots=True)
class SimMember:
    """A member, which runs or not."""

    member: Member
    running: bool = True


class EtcdCluster:
    """The members of one cluster."""

    def __init__(self, randomness: Randomness, *, version: str = "3.6.6") -> None:
        self._randomness = randomness
        self._version = version
        self._members: dict[int, SimMember] = {}
        self._leader = 0
        self.alarms: tuple[Alarm, ...] = ()
        self.external = False
        """Whether the cluster uses an etcd that is not its own; that one is always well."""
        self.watchers: list[Callable[[Member], None]] = []
        """Called for every member that is removed, just before."""

    @property
    def has_quorum(self) -> bool:
        if self.external:
            return True
        running = sum(member.running for member in self._members.values())
        return bool(self._members) and running > len(self._members) // 2

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(member.member for member in self._members.values())

    @property
    def running(self) -> tuple[str, ...]:
        """Names of the members that run."""
        return tuple(member.member.name for member in self._members.values() if member.running)

    @property
    def leader(self) -> str:
        """The leader's name; empty without a quorum."""
        return self._members[self._leader].member.name if self.has_quorum and self._leader in self._members else ""

    def add(self, name: str, address: str) -> None:
        """A member joins, and runs.

        Raises:
            EtcdError: without a quorum no member can join.
        """
        if self._members and not self.has_quorum:
            raise EtcdError("etcdserver: no leader")
        number = int.from_bytes(self._randomness.token_bytes(8), "big") >> 1
        member = Member(
            number,
            name,
            peer_urls=(f"https://{address}:{ETCD_PORT + 1}",),
            client_urls=(f"https://{address}:{ETCD_PORT}",),
        )
        self._members[number] = SimMember(member)
        self._elect()

    def start(self, name: str) -> None:
        """A member that was stopped runs again."""
        self._set_running(name, running=True)

    def stop(self, name: str) -> None:
        """Stop a member; it stays a member."""
        self._set_running(name, running=False)

    def connect(self, name: str) -> EtcdConnection:
        """A connection to a member.

        Raises:
            EtcdUnreachableError: it does not run.
        """
        if name not in self.running:
            raise EtcdUnreachableError(f"the etcd member on node {name} does not answer")
        return EtcdConnection(self, name)

    def find(self, name: str) -> Member | None:
        return next((member.member for member in self._members.values() if member.member.name == name), None)

    def remove(self, number: int) -> None:
        """Remove a member.

        Raises:
            EtcdError: it is not a member, there is no quorum, or too few running members would be left.
        """
        if not self.has_quorum:
            raise EtcdError("etcdserver: no leader")
        if number not in self._members:
            raise EtcdError("etcdserver: member not found")
        if self._members[number].running and len(self.running) - 1 < 1 + (len(self._members) - 1) // 2:
            raise EtcdError("etcdserver: unhealthy cluster")
        for watcher in self.watchers:
            watcher(self._members[number].member)
        del self._members[number]
        self._elect()

    def lead(self, number: int) -> None:
        """Make a member the leader.

        Raises:
            EtcdError: it cannot.
        """
        if number not in self._members or not self._members[number].running or not self.has_quorum:
            raise EtcdError("etcdserver: bad leader transferee")
        self._leader = number

    def status(self, name: str) -> MemberStatus:
        """The status that a member reports."""
        member = self.find(name)
        return MemberStatus(member.id if member else 0, self._leader if self.has_quorum else 0, self._version)

    def _set_running(self, name: str, *, running: bool) -> None:
        for number, member in self._members.items():
            if member.member.name == name:
                self._members[number] = replace(member, running=running)
        self._elect()

    def _elect(self) -> None:
        """Make the oldest running member the leader, unless the current one runs."""
        leader = self._members.get(self._leader)
        if leader is None or not leader.running:
            self._leader = next((number for number, member in self._members.items() if member.running), 0)


class EtcdConnection:
    """A connection to one member. Satisfies `workload.etcd.Etcd`."""

    def __init__(self, cluster: EtcdCluster, name: str) -> None:
        self._cluster = cluster
        self._name = name

    async def status(self) -> MemberStatus:
        self._require()
        return self._cluster.status(self._name)

    async def members(self) -> tuple[Member, ...]:
        self._require_quorum()
        return self._cluster.members

    async def alarms(self) -> tuple[Alarm, ...]:
        self._require_quorum()
        return self._cluster.alarms

    async def remove_member(self, member_id: int) -> None:
        self._require()
        self._cluster.remove(member_id)

    async def move_leader(self, member_id: int) -> None:
        self._require()
        if self._cluster.leader != self._name:
            raise EtcdError("etcdserver: not leader")
        self._cluster.lead(member_id)

    def _require(self) -> None:
        if self._name not in self._cluster.running:
            raise EtcdUnreachableError(f"the etcd member on node {self._name} does not answer any more")

    def _require_quorum(self) -> None:
        self._require()
        if not self._cluster.has_quorum:
            raise EtcdError("etcdserver: no leader")

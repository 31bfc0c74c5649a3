"""Limits on the connections of the gRPC port: per address, in total, and by the time without a call.

An address costs a stranger little, and a connection nothing. So when a limit is reached, the connection that has been
idle for longest is closed in favour of a new one, and a connection that was closed for flooding counts as many new
ones of its address.
"""

from __future__ import annotations

import asyncio
import resource
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from ironbell.base.clock import Clock
from ironbell.base.rejections import Rejections
from ironbell.services.workflow import metrics

_SWEEP_S: Final = 5.0
_WARN_AT: Final = 0.8
_WARN_EVERY_S: Final = 60.0

log = structlog.get_logger()


@dataclass(frozen=True)
class ConnectionLimits:
    """Numbers and ages of connections and calls that the port accepts."""

    total: int
    per_address: int = 256
    calls: int = 8192
    """Calls that wait at the same time, over all connections."""
    calls_per_address: int = 1024
    new_per_second: float = 32.0
    """New connections of an address each second, once it has used up `new_at_once`."""
    new_at_once: int = 256
    flood_costs: int = 64
    """Number of new connections that a connection closed for flooding counts as."""
    opening_s: float = 15.0
    """Longest time that a connection may be open before its first call."""
    idle_s: float = 300.0
    """Longest time that a connection may be open without a call; an agent connects again for its next call."""
    call_s: float = 180.0
    """Longest duration of a call; the service holds a call for a minute at most."""
    unready_s: float = 1.0
    """Shortest time that a connection is idle before it may be closed in favour of another."""


def default_limits() -> ConnectionLimits:
    """Limits of half the files that this process may have open: the other half is for the API and logs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = 1 << 14 if soft == resource.RLIM_INFINITY else soft
    total = max(16, min(8192, allowed // 2))
    return ConnectionLimits(total=total, per_address=max(8, min(256, total // 4)))


class Connection(Protocol):
    """A connection, as seen by `Connections`."""

    address: str
    has_called: bool

    def end(self, reason: str) -> None:
        """Close it, with GOAWAY."""
        ...

    def oldest_call(self) -> float | None:
        """Start of its oldest call, monotonic; None if it has no call."""
        ...


@dataclass
class _Address:
    allowance: float
    updated: float
    connections: int = 0
    calls: int = 0
    idle: dict[Connection, float] = field(default_factory=dict)
    """Idle connections with the time since when they are idle, longest first."""


class Connections:
    """All connections of one port."""

    def __init__(self, limits: ConnectionLimits, clock: Clock, rejections: Rejections) -> None:
        self.limits = limits
        self._clock = clock
        self._rejections = rejections
        self._open: dict[Connection, None] = {}
        self._idle: dict[Connection, float] = {}
        self._addresses: dict[str, _Address] = {}
        self._calls = 0
        self._warned_at = float("-inf")
        metrics.CONNECTIONS_LIMIT.set(limits.total)

    def __len__(self) -> int:
        return len(self._open)

    def all(self) -> list[Connection]:
        """The open connections."""
        return list(self._open)

    def admit(self, connection: Connection) -> bool:
        """Return whether a new connection may stay; an idle connection may be closed in favour of it."""
        address = self._address(connection.address)
        if (limit := self._exceeded_limit(address)) is not None:
            metrics.CONNECTIONS_REJECTED.labels(limit).inc()
            self._rejections.log(connection.address, "connection rejected", reason=_LIMIT_MESSAGES[limit])
            return False
        address.allowance -= 1
        address.connections += 1
        self._open[connection] = None
        self._mark_idle(connection)
        metrics.CONNECTIONS.set(len(self._open))
        self._warn()
        return True

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection. A connection that was not admitted is ignored."""
        if connection not in self._open:
            return
        del self._open[connection]
        self._idle.pop(connection, None)
        address = self._addresses[connection.address]
        address.idle.pop(connection, None)
        address.connections -= 1
        metrics.CONNECTIONS.set(len(self._open))

    def flooded(self, connection: Connection, reason: str) -> None:
        """Count a connection that is closed for flooding."""
        metrics.CONNECTIONS_CLOSED.labels("flood").inc()
        self._address(connection.address).allowance -= self.limits.flood_costs
        self._rejections.log(connection.address, "connection closed", reason=reason)

    def call_begins(self, connection: Connection) -> str | None:
        """Count a call, and return the reason if it exceeds a limit."""
        address = self._addresses[connection.address]
        self._calls += 1
        address.calls += 1
        self._idle.pop(connection, None)
        address.idle.pop(connection, None)
        if address.calls > self.limits.calls_per_address:
            return f"the address has more than {self.limits.calls_per_address} calls at the same time"
        if self._calls > self.limits.calls:
            return f"there are more than {self.limits.calls} calls at the same time"
        return None

    def call_ends(self, connection: Connection, *, is_last: bool) -> None:
        """Uncount a call; `is_last` if the connection has no other call."""
        self._calls -= 1
        self._addresses[connection.address].calls -= 1
        if is_last and connection in self._open:
            self._mark_idle(connection)

    async def run(self) -> None:
        """Close idle and stuck connections until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.sweep()

    def sweep(self) -> None:
        """Close connections that have been idle, or whose call has lasted, for too long."""
        now = self._clock.monotonic()
        for connection, since in list(self._idle.items()):
            limit_s = self.limits.idle_s if connection.has_called else self.limits.opening_s
            if now - since > limit_s:
                self._end(connection, "idle")
        for connection in list(self._open):
            if (began := connection.oldest_call()) is not None and now - began > self.limits.call_s:
                self._end(connection, "stuck")
        for name, address in list(self._addresses.items()):
            self._refill(address)
            if not address.connections and not address.calls and address.allowance >= self.limits.new_at_once:
                del self._addresses[name]

    def _exceeded_limit(self, address: _Address) -> str | None:
        if address.allowance < 1:
            return "rate"
        if address.connections >= self.limits.per_address and not self._close_oldest(address.idle):
            return "address"
        if len(self._open) >= self.limits.total and not self._close_oldest(self._idle):
            return "total"
        return None

    def _close_oldest(self, idle: dict[Connection, float]) -> bool:
        oldest = next(iter(idle.items()), None)
        if oldest is None or self._clock.monotonic() - oldest[1] < self.limits.unready_s:
            return False
        self._end(oldest[0], "gave way")
        return True

    def _end(self, connection: Connection, reason: str) -> None:
        metrics.CONNECTIONS_CLOSED.labels(reason).inc()
        self.remove(connection)
        connection.end(reason)

    def _mark_idle(self, connection: Connection) -> None:
        now = self._clock.monotonic()
        self._idle[connection] = now
        self._addresses[connection.address].idle[connection] = now

    def _address(self, name: str) -> _Address:
        address = self._addresses.get(name)
        if address is None:
            address = _Address(self.limits.new_at_once, self._clock.monotonic())
            self._addresses[name] = address
        self._refill(address)
        return address

    def _refill(self, address: _Address) -> None:
        now = self._clock.monotonic()
        passed, address.updated = now - address.updated, now
        most = self.limits.new_at_once
        address.allowance = min(most, max(-most, address.allowance) + passed * self.limits.new_per_second)

    def _warn(self) -> None:
        if len(self._open) < _WARN_AT * self.limits.total:
            return
        now = self._clock.monotonic()
        if now - self._warned_at >= _WARN_EVERY_S:
            self._warned_at = now
            log.warning(
                "the gRPC port is nearly full: connections without a call give way to new ones",
                connections=len(self._open),
                limit=self.limits.total,
                addresses=sum(1 for address in self._addresses.values() if address.connections),
            )


_LIMIT_MESSAGES: Final = {
    "rate": "the address opens connections too quickly",
    "address": "the address has reached its limit of connections, and all of them have calls",
    "total": "the port has reached its limit of connections, and all of them have calls",
}

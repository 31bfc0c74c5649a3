"""Fair turns between clients: a client with many requests waits behind its own, and does not delay others.

A request needs a seat from when its sender is known until its answer is sent, or until a moment after that has begun:
a client that reads slowly occupies no seat. Reads have few seats, because they keep the event loop busy; writes have
many, because they wait for the disk, and are cheaper together. While seats are free no request waits.

The objects of flow control (`flowcontrol`) set how many seats a priority level has, and how many of its requests may
wait. When seats are not free, levels take turns, and within each the flows, one request each; no user holds all seats.
An exempt request takes no seat, and is never rejected here.

Most requests are served without ever waiting, so seats alone would not let others in between: in one turn of the event
loop only few are admitted, exempt or not, and then the loop reads new requests.

A request is rejected if too many wait already, or if it has waited too long.

Source: kubernetes/apiserver: pkg/util/flowcontrol (what is promised; queues there are per shuffled shard).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ironbell.api.client import TooManyRequests
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.flowcontrol.limits import Limits, Waiting, limits_of, waiting_of
from ironbell.apiserver.flowcontrol.plan import Line, Plan
from ironbell.apiserver.http import measures

READ_SEATS, WRITE_SEATS = 4, 128
READ_PACE, WRITE_PACE = 2, 16
"""How many requests are admitted during one turn of the event loop."""
SHARE = 0.75
"""The share of all seats that one user may hold."""
PATIENCE_S = 30.0
SENDING_S = 0.1
"""How long a response that is being sent keeps its seat, in seconds."""


class Rules(msgspec.Struct, frozen=True):
    """Limits of a level at a gate."""

    limits: Limits
    waiting: Waiting
    is_exempt: bool = False


class Sender(msgspec.Struct, frozen=True):
    """The sender of a request, by level, user and flow."""

    level: str
    flow: str
    user: str


class Seat:
    """The right to be served; released once."""

    __slots__ = ("_gate", "_is_held", "_level", "_user")

    def __init__(self, gate: Gate, level: _Level, user: str) -> None:
        self._gate, self._level, self._user = gate, level, user
        self._is_held = True

    def leave_soon(self) -> None:
        """Release the seat in a moment, if it is not released before."""
        if self._is_held:
            asyncio.get_running_loop().call_later(SENDING_S, self.leave)

    def leave(self) -> None:
        """Release the seat; a second call does nothing."""
        if self._is_held:
            self._is_held = False
            self._gate.leave(self._level, self._user)


class _Turn(msgspec.Struct, eq=False):
    """A waiting request."""

    user: str
    comes: asyncio.Future[None]


@dataclass(eq=False)
class _Level:
    """A level at one gate."""

    name: str
    rules: Rules
    held: int = 0
    waits: int = 0
    flows: OrderedDict[str, deque[_Turn]] = field(default_factory=OrderedDict)
    """Waiting requests by flow, in the order of their turns."""

    @property
    def kept(self) -> int:
        """Free seats that are reserved for the level."""
        kept = self.rules.limits.kept
        return kept if self.rules.is_exempt else max(0, kept - self.held)


@dataclass
class Gate:
    """Seats of one kind of requests."""

    seats: int
    name: str
    pace: int
    patience_s: float = PATIENCE_S
    _taken: int = 0
    _kept: int = 0
    """How many of the free seats are reserved for a level."""
    _let_in_now: int = 0
    """How many requests were admitted during this turn of the event loop."""
    _turn_is_scheduled: bool = False
    _held: dict[str, int] = field(default_factory=dict)
    """By user."""
    _levels: dict[str, _Level] = field(default_factory=dict)
    _waiting: OrderedDict[_Level, None] = field(default_factory=OrderedDict)
    """Levels with waiting requests, in the order of their turns."""

    @property
    def seats_per_user(self) -> int:
        """Number of seats that one user may hold."""
        return max(1, int(self.seats * SHARE))

    def set_levels(self, rules: Mapping[str, Rules]) -> None:
        """Set the levels. A level that was removed still admits the requests that wait in it."""
        for name, level_rules in rules.items():
            if name in self._levels:
                self._levels[name].rules = level_rules
            else:
                self._levels[name] = _Level(name, level_rules)
        for name in self._levels.keys() - rules.keys():
            level = self._levels.pop(name)
            limits = Limits(nominal=0, kept=0, own=1, most=max(1, level.rules.limits.most))
            level.rules = msgspec.structs.replace(level.rules, limits=limits)
        self._kept = sum(level.kept for level in self._levels.values())
        self._let_in()

    async def enter(self, client: Sender) -> Seat:
        """Wait for a seat.

        Raises:
            TooManyRequests: too many requests are waiting, or this one has waited too long.
        """
        level = self._levels[client.level]
        free = self._free(level, client.user)
        if self._let_in_now < self.pace and client.flow not in level.flows and free > 0:
            self._take(level, client.user)
        else:
            await self._wait(level, client, free=free)
        return Seat(self, level, client.user)

    def leave(self, level: _Level, user: str) -> None:
        """Release a seat, and admit the requests whose turn it is."""
        kept = level.kept
        level.held -= 1
        if not level.rules.is_exempt:
            self._kept += level.kept - kept
            self._taken -= 1
            self._held[user] -= 1
            if not self._held[user]:
                del self._held[user]
        self._let_in()

    def rules(self, level: str) -> Rules:
        """The limits of a level."""
        return self._levels[level].rules

    def _free(self, level: _Level, user: str) -> int:
        """Number of seats that are free for a user at a level, turns aside."""
        is_bounded = not level.rules.is_exempt and self._held.get(user, 0) >= self.seats_per_user
        return 0 if is_bounded else self._free_at(level)

    def _free_at(self, level: _Level) -> int:
        """Number of seats that are free at a level."""
        if level.rules.is_exempt:
            return self.seats
        shared = max(0, self.seats - self._taken - self._kept)
        limits = level.rules.limits
        return max(0, min(limits.most - level.held, max(limits.own - level.held, level.kept + shared)))

    async def _wait(self, level: _Level, client: Sender, *, free: int) -> None:
        queue, waiting = level.flows.get(client.flow, ()), level.rules.waiting
        # a request that will have a seat at once waits for the event loop only
        full = len(queue) >= waiting.of_flow + free or level.waits >= waiting.of_all + free
        if full and not level.rules.is_exempt:
            measures.REJECTED.inc()
            raise TooManyRequests(f'too many requests of priority level "{level.name}" at once: try again')
        turn = _Turn(client.user, asyncio.get_running_loop().create_future())
        level.flows.setdefault(client.flow, deque()).append(turn)
        level.waits += 1
        self._waiting.setdefault(level)
        measures.QUEUED.labels(self.name).inc()
        try:
            async with asyncio.timeout(None if level.rules.is_exempt else self.patience_s):
                await turn.comes
        except TimeoutError as error:
            self._give_up(level, client.flow, turn)
            measures.REJECTED.inc()
            raise TooManyRequests("the request waited too long for its turn: try again") from error
        except asyncio.CancelledError:
            self._give_up(level, client.flow, turn)
            raise
        finally:
            measures.QUEUED.labels(self.name).dec()

    def _give_up(self, level: _Level, flow: str, turn: _Turn) -> None:
        """Leave the queue; a seat that was just assigned goes to the next request."""
        if turn.comes.done() and not turn.comes.cancelled():
            self.leave(level, turn.user)
            return
        queue = level.flows.get(flow)
        if queue is not None and turn in queue:
            queue.remove(turn)
            self._forget(level, flow)

    def _forget(self, level: _Level, flow: str) -> None:
        """Count one waiting request less, and remove empty queues."""
        level.waits -= 1
        if not level.flows[flow]:
            del level.flows[flow]
        if not level.waits:
            del self._waiting[level]

    def _let_in(self) -> None:
        skipped = 0
        while self._let_in_now < self.pace and skipped < len(self._waiting):
            level = next(iter(self._waiting))
            self._waiting.move_to_end(level)
            turn = self._next(level)
            if turn is None:
                skipped += level in self._waiting
                continue
            skipped = 0
            self._take(level, turn.user)
            turn.comes.set_result(None)

    def _next(self, level: _Level) -> _Turn | None:
        """The next request of a level that may have a seat."""
        if not self._free_at(level):
            return None
        for flow in tuple(level.flows):
            queue = level.flows[flow]
            while queue and queue[0].comes.done():
                queue.popleft()
                self._forget(level, flow)
            if not queue:
                continue
            if self._free(level, queue[0].user) > 0:
                turn = queue.popleft()
                level.flows.move_to_end(flow)
                self._forget(level, flow)
                return turn
        return None

    def _take(self, level: _Level, user: str) -> None:
        kept = level.kept
        level.held += 1
        if not level.rules.is_exempt:
            self._kept += level.kept - kept
            self._taken += 1
            self._held[user] = self._held.get(user, 0) + 1
        self._let_in_now += 1
        if not self._turn_is_scheduled:
            self._turn_is_scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._let_in_now, self._turn_is_scheduled = 0, False
        self._let_in()


class Fairness:
    """The gates of a server."""

    def __init__(self) -> None:
        self._reads, self._writes = Gate(READ_SEATS, "read", READ_PACE), Gate(WRITE_SEATS, "write", WRITE_PACE)

    def set_plan(self, plan: Plan) -> None:
        """Set the levels of a plan."""
        nominal = dict.fromkeys((level.metadata.name for level in plan.levels), 0)
        for gate in (self._reads, self._writes):
            limits = limits_of(plan.levels, gate.seats)
            gate.set_levels({
                level.metadata.name: Rules(limits[level.metadata.name], waiting_of(level), level.is_exempt)
                for level in plan.levels
            })  # fmt: skip
            for name, level_limits in limits.items():
                nominal[name] += level_limits.nominal
        measures.NOMINAL.clear()
        for name, seats in nominal.items():
            measures.NOMINAL.labels(name).set(seats)

    async def enter(self, line: Line, identity: Identity, namespace: str, *, reads: bool) -> Seat:
        """Wait for a seat; see `Gate.enter`. Exempt requests take turns by user."""
        gate, level = self._reads if reads else self._writes, line.level.metadata.name
        rules = gate.rules(level)
        flow = "" if rules.waiting.is_one_flow else line.flow(identity, namespace)
        return await gate.enter(Sender(level, identity.user if rules.is_exempt else flow, identity.user))

"""Fair turns between clients: whoever asks much waits behind itself, not before others.

A request needs a seat from when its sender is known until its answer is sent, or until a moment after that has begun:
a client that reads slowly keeps nobody busy. Reads have few seats, because they keep the event loop busy; writes have
many, because they wait for the disk, and are cheaper together. While seats are free nobody waits.

How many seats a priority level has, and how many of its requests may wait, say the objects of flow control
(`flowcontrol`). When seats are not free, levels take turns, and within each the flows, one request each; no user holds
all seats. An exempt request takes no seat, and is never refused here.

Most requests are answered without ever waiting, so seats alone would not let others in between: in one turn of the
event loop only few are let in, exempt or not, and then the loop looks who else has come.

A request is refused if as many wait as may, or if it has waited long.

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
"""How many are let in during one turn of the event loop."""
SHARE = 0.75
"""The part of all seats that one user may hold."""
PATIENCE_S = 30.0
SENDING_S = 0.1
"""So long an answer that is being sent keeps its seat."""


class Rules(msgspec.Struct, frozen=True):
    """What a gate lets a level have."""

    limits: Limits
    waiting: Waiting
    is_exempt: bool = False


class Asker(msgspec.Struct, frozen=True):
    """Whose request wants in."""

    level: str
    flow: str
    user: str


class Seat:
    """The right to be worked on; given back once."""

    __slots__ = ("_gate", "_is_held", "_level", "_user")

    def __init__(self, gate: Gate, level: _Level, user: str) -> None:
        self._gate, self._level, self._user = gate, level, user
        self._is_held = True

    def leave_soon(self) -> None:
        """Give the seat back in a moment, if it is not given back before."""
        if self._is_held:
            asyncio.get_running_loop().call_later(SENDING_S, self.leave)

    def leave(self) -> None:
        """Give the seat back; doing so again does nothing."""
        if self._is_held:
            self._is_held = False
            self._gate.leave(self._level, self._user)


class _Turn(msgspec.Struct, eq=False):
    """One that waits."""

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
    """Who waits, by flow, in the order of their turns."""

    @property
    def kept(self) -> int:
        """Seats that are free and that nobody else gets."""
        kept = self.rules.limits.kept
        return kept if self.rules.is_exempt else max(0, kept - self.held)


@dataclass
class Gate:
    """Seats of one sort."""

    seats: int
    name: str
    pace: int
    patience_s: float = PATIENCE_S
    _taken: int = 0
    _kept: int = 0
    """How many of the free seats are kept for some level."""
    _let_in_now: int = 0
    """How many were let in during this turn of the event loop."""
    _looks_again: bool = False
    _held: dict[str, int] = field(default_factory=dict)
    """By user."""
    _levels: dict[str, _Level] = field(default_factory=dict)
    _waiting: OrderedDict[_Level, None] = field(default_factory=OrderedDict)
    """Levels where somebody waits, in the order of their turns."""

    @property
    def share(self) -> int:
        """How many seats one user may hold."""
        return max(1, int(self.seats * SHARE))

    def set_levels(self, rules: Mapping[str, Rules]) -> None:
        """Which levels there are from now on. One that is gone lets those in that came before."""
        for name, found in rules.items():
            if name in self._levels:
                self._levels[name].rules = found
            else:
                self._levels[name] = _Level(name, found)
        for name in self._levels.keys() - rules.keys():
            level = self._levels.pop(name)
            limits = Limits(nominal=0, kept=0, own=1, most=max(1, level.rules.limits.most))
            level.rules = msgspec.structs.replace(level.rules, limits=limits)
        self._kept = sum(level.kept for level in self._levels.values())
        self._let_in()

    async def enter(self, asker: Asker) -> Seat:
        """Wait for a seat.

        Raises:
            TooManyRequests: too many requests are waiting, or this one has waited too long.
        """
        level = self._levels[asker.level]
        free = self._free(level, asker.user)
        if self._let_in_now < self.pace and asker.flow not in level.flows and free > 0:
            self._take(level, asker.user)
        else:
            await self._wait(level, asker, free=free)
        return Seat(self, level, asker.user)

    def leave(self, level: _Level, user: str) -> None:
        """Give back a seat, and let those enter whose turn it is."""
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
        """What a level may have."""
        return self._levels[level].rules

    def _free(self, level: _Level, user: str) -> int:
        """How many seats a user would get now at a level, were it for the seats alone."""
        is_bounded = not level.rules.is_exempt and self._held.get(user, 0) >= self.share
        return 0 if is_bounded else self._free_at(level)

    def _free_at(self, level: _Level) -> int:
        """How many seats a level has to give."""
        if level.rules.is_exempt:
            return self.seats
        shared = max(0, self.seats - self._taken - self._kept)
        limits = level.rules.limits
        return max(0, min(limits.most - level.held, max(limits.own - level.held, level.kept + shared)))

    async def _wait(self, level: _Level, asker: Asker, *, free: int) -> None:
        queue, waiting = level.flows.get(asker.flow, ()), level.rules.waiting
        # those who will have a seat at once wait for the event loop only
        full = len(queue) >= waiting.of_flow + free or level.waits >= waiting.of_all + free
        if full and not level.rules.is_exempt:
            measures.REJECTED.inc()
            raise TooManyRequests(f'too many requests of priority level "{level.name}" at once: try again')
        turn = _Turn(asker.user, asyncio.get_running_loop().create_future())
        level.flows.setdefault(asker.flow, deque()).append(turn)
        level.waits += 1
        self._waiting.setdefault(level)
        measures.QUEUED.labels(self.name).inc()
        try:
            async with asyncio.timeout(None if level.rules.is_exempt else self.patience_s):
                await turn.comes
        except TimeoutError as error:
            self._give_up(level, asker.flow, turn)
            measures.REJECTED.inc()
            raise TooManyRequests("the request waited too long for its turn: try again") from error
        except asyncio.CancelledError:
            self._give_up(level, asker.flow, turn)
            raise
        finally:
            measures.QUEUED.labels(self.name).dec()

    def _give_up(self, level: _Level, flow: str, turn: _Turn) -> None:
        """Leave the queue; a seat that was given at this moment goes to the next."""
        if turn.comes.done() and not turn.comes.cancelled():
            self.leave(level, turn.user)
            return
        queue = level.flows.get(flow)
        if queue is not None and turn in queue:
            queue.remove(turn)
            self._forget(level, flow)

    def _forget(self, level: _Level, flow: str) -> None:
        """Count one less that waits, and strike out what nobody waits in."""
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
        """Whose turn it is at a level, and who may have a seat."""
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
        if not self._looks_again:
            self._looks_again = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._let_in_now, self._looks_again = 0, False
        self._let_in()


class Fairness:
    """The gates of a server."""

    def __init__(self) -> None:
        self._reads, self._writes = Gate(READ_SEATS, "read", READ_PACE), Gate(WRITE_SEATS, "write", WRITE_PACE)

    def set_plan(self, plan: Plan) -> None:
        """Which levels there are from now on."""
        nominal = dict.fromkeys((level.metadata.name for level in plan.levels), 0)
        for gate in (self._reads, self._writes):
            limits = limits_of(plan.levels, gate.seats)
            gate.set_levels({
                level.metadata.name: Rules(limits[level.metadata.name], waiting_of(level), level.is_exempt)
                for level in plan.levels
            })  # fmt: skip
            for name, found in limits.items():
                nominal[name] += found.nominal
        measures.NOMINAL.clear()
        for name, seats in nominal.items():
            measures.NOMINAL.labels(name).set(seats)

    async def enter(self, line: Line, identity: Identity, namespace: str, *, reads: bool) -> Seat:
        """Wait for a seat; see `Gate.enter`. Those who are exempt take turns by user."""
        gate, level = self._reads if reads else self._writes, line.level.metadata.name
        rules = gate.rules(level)
        flow = "" if rules.waiting.is_one_flow else line.flow(identity, namespace)
        return await gate.enter(Asker(level, identity.user if rules.is_exempt else flow, identity.user))

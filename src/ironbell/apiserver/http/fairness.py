"""Fair turns between clients: whoever asks much waits behind itself, not before others.

A request needs a seat from when its sender is known until its answer is sent, or until a moment after that has begun:
a client that reads slowly keeps nobody busy. Reads have few seats, because they keep the event loop busy; writes have
many, because they wait for the disk, and are cheaper together. While seats are free nobody waits. When they are not,
users take turns, one request each, and no user holds all of them.

Most requests are answered without ever waiting, so seats alone would not let others in between: in one turn of the
event loop only few are let in, and then the loop looks who else has come.

A request is refused only if its user has very many waiting, or if it has waited long.

Source: kubernetes/apiserver: pkg/util/flowcontrol (what is promised; queues there are per shuffled shard).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from ironbell.api.client import TooManyRequests
from ironbell.apiserver.http import measures

READ_SEATS, WRITE_SEATS = 4, 128
READ_PACE, WRITE_PACE = 2, 16
"""How many are let in during one turn of the event loop."""
SHARE = 0.75
"""The part of all seats that one user may hold."""
QUEUE_LENGTH = 1000
PATIENCE_S = 30.0
SENDING_S = 0.1
"""So long an answer that is being sent keeps its seat."""


class Seat:
    """The right to be worked on; given back once."""

    __slots__ = ("_gate", "_is_held", "_user")

    def __init__(self, gate: Gate, user: str) -> None:
        self._gate, self._user = gate, user
        self._is_held = True

    def leave_soon(self) -> None:
        """Give the seat back in a moment, if it is not given back before."""
        if self._is_held:
            asyncio.get_running_loop().call_later(SENDING_S, self.leave)

    def leave(self) -> None:
        """Give the seat back; doing so again does nothing."""
        if self._is_held:
            self._is_held = False
            self._gate.leave(self._user)


@dataclass
class Gate:
    """Seats of one sort."""

    seats: int
    name: str
    pace: int
    patience_s: float = PATIENCE_S
    queue_length: int = QUEUE_LENGTH
    _taken: int = 0
    _let_in_now: int = 0
    """How many were let in during this turn of the event loop."""
    _looks_again: bool = False
    _held: dict[str, int] = field(default_factory=dict)
    _waiting: OrderedDict[str, deque[asyncio.Future[None]]] = field(default_factory=OrderedDict)
    """By user, in the order of their turns."""

    @property
    def share(self) -> int:
        """How many seats one user may hold."""
        return max(1, int(self.seats * SHARE))

    @property
    def _has_room(self) -> bool:
        return self._taken < self.seats and self._let_in_now < self.pace

    async def enter(self, user: str) -> Seat:
        """Wait for a seat.

        Raises:
            TooManyRequests: the user has too many requests waiting, or this one has waited too long.
        """
        if self._has_room and user not in self._waiting and self._held.get(user, 0) < self.share:
            self._take(user)
            return Seat(self, user)
        await self._turn(user)
        return Seat(self, user)

    def leave(self, user: str) -> None:
        """Give back a seat, and let those enter whose turn it is."""
        self._taken -= 1
        self._held[user] -= 1
        if not self._held[user]:
            del self._held[user]
        self._let_in()

    async def _turn(self, user: str) -> None:
        queue = self._waiting.setdefault(user, deque())
        if len(queue) >= self.queue_length:
            measures.REJECTED.inc()
            raise TooManyRequests(f"too many requests of this user are waiting ({len(queue)}): try again")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        measures.QUEUED.labels(self.name).inc()
        try:
            async with asyncio.timeout(self.patience_s):
                await turn
        except TimeoutError as error:
            self._give_up(user, turn)
            measures.REJECTED.inc()
            raise TooManyRequests("the request waited too long for its turn: try again") from error
        except asyncio.CancelledError:
            self._give_up(user, turn)
            raise
        finally:
            measures.QUEUED.labels(self.name).dec()

    def _give_up(self, user: str, turn: asyncio.Future[None]) -> None:
        """Leave the queue; a seat that was given at this moment goes to the next."""
        if turn.done() and not turn.cancelled():
            self.leave(user)
            return
        queue = self._waiting.get(user)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[user]

    def _let_in(self) -> None:
        skipped: list[str] = []
        while self._has_room and len(skipped) < len(self._waiting):
            user, queue = next(iter(self._waiting.items()))
            if self._held.get(user, 0) >= self.share:
                skipped.append(user)
                self._waiting.move_to_end(user)
                continue
            turn = queue.popleft()
            if queue:
                self._waiting.move_to_end(user)
            else:
                del self._waiting[user]
            if not turn.done():
                self._take(user)
                turn.set_result(None)

    def _take(self, user: str) -> None:
        self._taken += 1
        self._let_in_now += 1
        self._held[user] = self._held.get(user, 0) + 1
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

    async def enter(self, user: str, *, reads: bool) -> Seat:
        """Wait for a seat; see `Gate.enter`."""
        return await (self._reads if reads else self._writes).enter(user)

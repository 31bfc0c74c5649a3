"""A TFTP server for many clients, without a socket or a clock of its own.

Life of a transfer: `receive` a request, `events` gives it out as `Requested`, the owner answers with `serve` or
`reject`, blocks go out through `outgoing`, the end comes as `Finished`. A request that comes again while its answer is
being looked for, or before the client has acknowledged anything, is the same request; any other request from the same
address and port replaces the transfer.

Slots are limited, in total and for each owner (a client's address). Where none is left, the oldest transfer that has
not been heard from gives way, then one that has long been silent: a stranger who asks in many names cannot keep others
out.

Files are binary, so mode netascii is rejected, as writes are. Messages that belong to no transfer are counted and
otherwise ignored: late acknowledgements of finished transfers are the usual case, and answering them with errors would
help nobody.

Source: RFC 1350, RFC 2347; shape after aiortc/aioquic: src/aioquic/quic/connection.py.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from ironbell.codec.tftp.messages import Ack, Error, ErrorCode, Opcode, Request, TftpDecodeError, decode, error_bytes
from ironbell.codec.tftp.options import Agreed, Limits, negotiate
from ironbell.codec.tftp.sender import Outcome, Retransmission, Sender
from ironbell.codec.tftp.slots import MAX_TRANSFERS, Share, Slots

A = TypeVar("A", bound=Hashable)
Content = bytes | bytearray | memoryview
MODE: Final = "octet"


@dataclass(frozen=True, slots=True, eq=False)
class Requested(Generic[A]):
    """A client wants a file; answer with `serve` or `reject`."""

    peer: A
    request: Request


@dataclass(frozen=True, slots=True)
class Finished(Generic[A]):
    """A transfer has ended, successfully or not."""

    peer: A
    filename: str
    outcome: Outcome
    size: int
    seconds: float
    agreed: Agreed
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Rejected(Generic[A]):
    """A request was answered with an error."""

    peer: A
    filename: str
    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class Stray(Generic[A]):
    """A message that is malformed or belongs to no transfer."""

    peer: A
    detail: str


Event = Requested[A] | Finished[A] | Rejected[A] | Stray[A]


@dataclass(slots=True)
class _Transfer:
    request: Request
    sender: Sender
    started_at: float

    @property
    def has_heard(self) -> bool:
        return self.sender.heard_at is not None


@dataclass(slots=True)
class Engine(Generic[A]):
    """All transfers of one socket; peers are whatever identifies a client there."""

    limits: Limits = field(default_factory=Limits)
    retransmission: Retransmission = field(default_factory=Retransmission)
    max_transfers: int = MAX_TRANSFERS
    share_of: Share[A] | None = None
    """Owner of the slots that a peer uses, and how many that owner may have; None: each peer has its own."""
    _slots: Slots[A] = field(init=False)
    _waiting: dict[A, Requested[A]] = field(default_factory=dict)
    _running: dict[A, _Transfer] = field(default_factory=dict)
    _outgoing: list[tuple[bytes, A]] = field(default_factory=list)
    _events: list[Event[A]] = field(default_factory=list)
    _deadlines: list[tuple[float, int, A, _Transfer]] = field(default_factory=list)
    _pushed: int = 0

    def __post_init__(self) -> None:
        self._slots = Slots(self.max_transfers, self.share_of)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._running)

    def receive(self, data: bytes, peer: A, now: float) -> None:
        """Take in a datagram."""
        try:
            message = decode(data)
        except TftpDecodeError as error:
            self._events.append(Stray(peer, error.message))
            return
        transfer = self._running.get(peer)
        if isinstance(message, Ack) and transfer is not None:
            was_heard = transfer.has_heard
            self._send(transfer.sender.acknowledge(message.block, now), peer)
            if not was_heard and transfer.has_heard:
                self._slots.heard(peer)
            self._finish_if_over(peer, transfer, now)
        elif isinstance(message, Request):
            self._requested(message, peer, now)
        elif isinstance(message, Error) and transfer is not None:
            transfer.sender.abort()
            self._finish_if_over(peer, transfer, now, detail=f"client's error {message.code}: {message.message}")
        else:
            self._events.append(Stray(peer, f"{type(message).__name__} outside a transfer"))

    def timeout(self) -> float | None:
        """The next time to call `on_timeout`; never later than needed, sometimes earlier."""
        return self._deadlines[0][0] if self._deadlines else None

    def on_timeout(self, now: float) -> None:
        """Retransmit messages that are due. Deadlines that have moved since they were recorded are recorded again."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, peer, transfer = heapq.heappop(self._deadlines)
            if self._running.get(peer) is not transfer:
                continue
            if transfer.sender.deadline <= now:
                self._send(transfer.sender.on_timeout(now), peer)
                if self._finish_if_over(peer, transfer, now):
                    continue
            self._record_deadline(peer, transfer)

    def outgoing(self) -> list[tuple[bytes, A]]:
        """Datagrams to send, in order; each is given out once."""
        taken, self._outgoing = self._outgoing, []
        return taken

    def events(self) -> list[Event[A]]:
        """Return the events so far; each is returned once."""
        taken, self._events = self._events, []
        return taken

    def serve(self, requested: Requested[A], content: Content, now: float, *, block_limit: int = 0) -> None:
        """Answer a request with a file. `block_limit` caps the block size for this client's network.

        Does nothing if the client has asked for something else meanwhile.
        """
        if not self._take(requested):
            return
        request, peer = requested.request, requested.peer
        limits = Limits(min(self.limits.block_size, block_limit or self.limits.block_size), self.limits.window)
        agreed, taken = negotiate(request.options, size=memoryview(content).nbytes, limits=limits)
        sender = Sender(content, agreed, option_ack=taken, retransmission=self.retransmission)
        transfer = _Transfer(request, sender, now)
        self._running[peer] = transfer
        self._slots.take(peer)
        self._slots.unheard(peer)
        self._send(sender.start(now), peer)
        self._record_deadline(peer, transfer)

    def reject(self, requested: Requested[A], code: ErrorCode, message: str) -> None:
        """Answer a request with an error."""
        if self._take(requested):
            self._reject(requested.peer, requested.request.filename, code=code, message=message)

    def adopt(self, requested: Requested[A]) -> None:
        """Await the answer to a request that another engine has received (a server with a port per transfer)."""
        self._slots.take(requested.peer)
        self._waiting[requested.peer] = requested

    def forget(self, requested: Requested[A]) -> None:
        """Drop a request without an answer: another engine has answered it."""
        self._take(requested)

    def _take(self, requested: Requested[A]) -> bool:
        if self._waiting.get(requested.peer) is not requested:
            return False
        del self._waiting[requested.peer]
        self._slots.release(requested.peer)
        return True

    def _requested(self, request: Request, peer: A, now: float) -> None:
        waiting = self._waiting.get(peer)
        if waiting is not None and waiting.request == request:
            return
        transfer = self._running.get(peer)
        if transfer is not None:
            if transfer.request == request and not transfer.has_heard:
                self._send(transfer.sender.start(now), peer)
                return
            transfer.sender.abort()
            self._finish_if_over(peer, transfer, now, detail="the client has asked for something else")
        if waiting is not None:
            self._take(waiting)
        rejection = self._rejection(request, peer, now)
        if rejection is not None:
            self._reject(peer, request.filename, code=rejection[0], message=rejection[1])
            return
        requested = Requested(peer, request)
        self._waiting[peer] = requested
        self._slots.take(peer)
        self._events.append(requested)

    def _rejection(self, request: Request, peer: A, now: float) -> tuple[ErrorCode, str] | None:
        if request.opcode == Opcode.WRITE:
            return ErrorCode.ACCESS_VIOLATION, "writing is not allowed"
        if request.mode != MODE:
            return ErrorCode.ILLEGAL_OPERATION, f"the files are binary: use mode {MODE} (binary)"
        if not self._slots.has_room(peer) and not self._give_way(peer, now):
            return ErrorCode.UNDEFINED, "too many transfers, try again later"
        return None

    def _give_way(self, peer: A, now: float) -> bool:
        """End a transfer so that this peer can have its slot; returns whether there is one that may be ended."""
        victim = self._slots.oldest_unheard(peer)
        if victim is None and not self._slots.is_owner_full(peer):
            victim = self._slots.silent(now, self._heard())
        if victim is None:
            return False
        transfer = self._running[victim]
        transfer.sender.abort()
        self._finish_if_over(victim, transfer, now, detail="gave way to another client")
        return True

    def _heard(self) -> Iterator[tuple[A, float]]:
        """The last time that each client sent something, of those that have."""
        for peer, transfer in self._running.items():
            if transfer.sender.heard_at is not None:
                yield peer, transfer.sender.heard_at

    def _reject(self, peer: A, filename: str, *, code: ErrorCode, message: str) -> None:
        self._outgoing.append((error_bytes(code, message), peer))
        self._events.append(Rejected(peer, filename, code, message))

    def _send(self, datagrams: list[bytes], peer: A) -> None:
        for datagram in datagrams:
            self._outgoing.append((datagram, peer))

    def _finish_if_over(self, peer: A, transfer: _Transfer, now: float, *, detail: str = "") -> bool:
        sender = transfer.sender
        if sender.outcome is Outcome.RUNNING:
            return False
        del self._running[peer]
        self._slots.release(peer)
        self._events.append(
            Finished(
                peer, transfer.request.filename, sender.outcome, sender.size, now - transfer.started_at, sender.agreed,
                detail,
            )
        )  # fmt: skip
        return True

    def _record_deadline(self, peer: A, transfer: _Transfer) -> None:
        # The counter keeps the heap from ever comparing peers.
        self._pushed += 1
        heapq.heappush(self._deadlines, (transfer.sender.deadline, self._pushed, peer, transfer))

"""Turns between namespaces for the few rendering processes.

A namespace may use all processes but one, so that one remains for others. Namespaces whose templates are slow on
average share all processes but one, and the rest of their requests is rejected rather than queued: a controller has few
workers, and each that waits for a slow namespace is lost to the others. The requests are retried later.

For use in one event loop. Failure modes: `RenderingBusyError`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError, Retry

SLOW_S: Final = 0.3
"""Mean processor time of renderings above which a namespace is slow."""
WAITING_S: Final = 1.0
"""Work of a namespace that may be queued."""
REMEMBERED_S: Final = 60.0
_WEIGHT: Final = 0.5
_FIRST_S: Final = 0.01
_NAMESPACES: Final = 4096


class RenderingBusyError(IronbellError):
    """Other namespaces have their turn; a retry may succeed."""

    reason = "RenderingBusy"
    retry = Retry.SOON


@dataclass(slots=True)
class _Namespace:
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    running: int = 0
    mean_s: float = _FIRST_S
    used_at: float = 0.0
    last_turn: int = 0


class Turns:
    """Turns of namespaces, of which `slots` are given at a time."""

    def __init__(self, slots: int, clock: Clock) -> None:
        self._slots = slots
        self._share = max(1, slots - 1)
        self._free = slots
        self._clock = clock
        self._namespaces: dict[str, _Namespace] = {}
        self._given = 0

    async def acquire(self, namespace: str) -> None:
        """Wait for a turn, which the caller must release. Cancellation point.

        Raises:
            RenderingBusyError: too many requests of this namespace are queued.
        """
        known = self._known(namespace)
        if self._is_full(known, len(known.waiting) + 1):
            raise _busy(namespace)
        turn = asyncio.get_running_loop().create_future()
        known.waiting.append(turn)
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release(namespace, None)
            elif turn in known.waiting:
                known.waiting.remove(turn)
            raise

    def release(self, namespace: str, seconds: float | None) -> None:
        """End a turn that used this much processor time; None if it was not used."""
        known = self._known(namespace)
        known.running -= 1
        self._free += 1
        if seconds is not None:
            self.record(namespace, seconds)
        self._give()

    def record(self, namespace: str, seconds: float) -> None:
        """Record the processor time of a rendering, or of one that still runs."""
        known = self._known(namespace)
        known.mean_s += _WEIGHT * (seconds - known.mean_s)
        while known.waiting and self._is_full(known, len(known.waiting)):
            turn = known.waiting.pop()
            if not turn.done():
                turn.set_exception(_busy(namespace))

    def _known(self, namespace: str) -> _Namespace:
        now = self._clock.monotonic()
        known = self._namespaces.get(namespace)
        if known is None:
            self._forget()
            known = self._namespaces[namespace] = _Namespace(used_at=now)
        if not known.running and not known.waiting and now - known.used_at > REMEMBERED_S:
            known.mean_s = _FIRST_S
        known.used_at = now
        return known

    def _forget(self) -> None:
        if len(self._namespaces) < _NAMESPACES:
            return
        for name, known in list(self._namespaces.items()):
            if not known.running and not known.waiting:
                del self._namespaces[name]

    @staticmethod
    def _is_full(known: _Namespace, waiting: int) -> bool:
        return waiting > max(1.0, WAITING_S / known.mean_s)

    def _give(self) -> None:
        while self._free and (name := self._next()) is not None:
            known = self._namespaces[name]
            turn = known.waiting.popleft()
            if turn.done():
                continue
            self._given += 1
            known.last_turn = self._given
            known.running += 1
            self._free -= 1
            turn.set_result(None)

    def _next(self) -> str | None:
        slow_running = sum(known.running for known in self._namespaces.values() if known.mean_s > SLOW_S)
        able = [
            name
            for name, known in self._namespaces.items()
            if known.waiting and known.running < self._share and (known.mean_s <= SLOW_S or slow_running < self._share)
        ]
        return min(able, key=lambda name: self._namespaces[name].last_turn, default=None)


def _busy(namespace: str) -> RenderingBusyError:
    return RenderingBusyError(
        f"templates of namespace {namespace or 'default'} take long to render, and others have their turn; retrying"
    )

"""Tell how far a transfer is: a line for people now and then, a note for the agent every second.

A share is counted on what is downloaded, a speed on what is written: that is what a person waits for.
"""

from __future__ import annotations

import time

from ironbell.agent.actions.context import Context
from ironbell.agent.actions.disks.devices import size_text
from ironbell.agent.notes import ProgressNote

_NOTE_INTERVAL_S = 1.0
# Weight of the newest second in the speed shown.
_SMOOTHING = 0.4


class Meter:
    """Progress of one transfer."""

    def __init__(self, context: Context, *, what: str) -> None:
        self._context = context
        self._what = what
        self._line_interval_s = context.number("PROGRESS_INTERVAL_SECONDS", default=3.0, minimum=0.1)
        self._started = self._noted = self._lined = time.monotonic()
        self._noted_bytes = 0
        self._speed = 0.0

    def update(self, done: int, *, share: float | None, total: int | None = None) -> None:
        """`done` bytes have been written; `share` (0 to 1) of the source has been read."""
        now = time.monotonic()
        passed = now - self._noted
        if passed < _NOTE_INTERVAL_S:
            return
        current = (done - self._noted_bytes) / passed
        self._speed = current if not self._noted_bytes else self._speed + _SMOOTHING * (current - self._speed)
        self._noted, self._noted_bytes = now, done
        self._note(done, share=share, total=total, speed=self._speed)
        if now - self._lined >= self._line_interval_s:
            self._lined = now
            percent = "" if share is None else f"{100 * share:5.1f} %  "
            self._context.say(f"{self._what}: {percent}{size_text(done)}  {self._speed / 1e6:.1f} MB/s")

    def finish(self, done: int) -> None:
        """Everything is written."""
        passed = max(time.monotonic() - self._started, 1e-6)
        self._note(done, share=1.0, total=done, speed=done / passed)
        self._context.say(f"{self._what}: {size_text(done)} in {passed:.1f} s, {done / passed / 1e6:.1f} MB/s")

    def _note(self, done: int, *, share: float | None, total: int | None, speed: float) -> None:
        percent = None if share is None else round(min(100.0, 100 * share), 1)
        self._context.note(
            ProgressNote(done_bytes=done, total_bytes=total, percent=percent, bytes_per_second=int(speed))
        )

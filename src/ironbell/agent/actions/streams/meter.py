"""Reports the progress of a transfer: a line for people now and then, a message for the agent every second.

The share is that of the downloaded bytes, the speed that of the written bytes, because people wait for those.
"""

from __future__ import annotations

import time

from ironbell.agent.actions.context import Context
from ironbell.agent.actions.disks.devices import size_text
from ironbell.agent.messages import ProgressMessage

_MESSAGE_INTERVAL_S = 1.0
# Weight of the newest second in the speed shown.
_SMOOTHING = 0.4


class Meter:
    """Progress of one transfer."""

    def __init__(self, context: Context, *, operation: str) -> None:
        self._context = context
        self._operation = operation
        self._line_interval_s = context.number("PROGRESS_INTERVAL_SECONDS", default=3.0, minimum=0.1)
        self._started = self._sent_at = self._logged_at = time.monotonic()
        self._sent_bytes = 0
        self._speed = 0.0

    def update(self, done: int, *, share: float | None, total: int | None = None) -> None:
        """Report progress: `done` bytes have been written; `share` (0 to 1) of the source has been read."""
        now = time.monotonic()
        passed = now - self._sent_at
        if passed < _MESSAGE_INTERVAL_S:
            return
        current = (done - self._sent_bytes) / passed
        self._speed = current if not self._sent_bytes else self._speed + _SMOOTHING * (current - self._speed)
        self._sent_at, self._sent_bytes = now, done
        self._send(done, share=share, total=total, speed=self._speed)
        if now - self._logged_at >= self._line_interval_s:
            self._logged_at = now
            percent = "" if share is None else f"{100 * share:5.1f} %  "
            self._context.log(f"{self._operation}: {percent}{size_text(done)}  {self._speed / 1e6:.1f} MB/s")

    def finish(self, done: int) -> None:
        """Report that everything is written."""
        passed = max(time.monotonic() - self._started, 1e-6)
        self._send(done, share=1.0, total=done, speed=done / passed)
        self._context.log(f"{self._operation}: {size_text(done)} in {passed:.1f} s, {done / passed / 1e6:.1f} MB/s")

    def _send(self, done: int, *, share: float | None, total: int | None, speed: float) -> None:
        percent = None if share is None else round(min(100.0, 100 * share), 1)
        self._context.send(
            ProgressMessage(done_bytes=done, total_bytes=total, percent=percent, bytes_per_second=int(speed))
        )

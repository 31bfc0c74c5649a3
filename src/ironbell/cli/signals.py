"""Signals that end a command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM end the block as Ctrl-C does: by default it would end the process at once, and what a build has
    written so far, often gigabytes, would never be removed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no other thread may set a handler, or gets the exception
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

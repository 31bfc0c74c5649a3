"""How a process of `ironbell run` is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import structlog

_log = structlog.get_logger()


def told_to_stop(*, is_supervised: bool = False) -> asyncio.Event:
    """Set by SIGTERM and SIGINT, of which a second one ends the process; and at the end of standard input where it is
    a supervisor's, which closes it before it sends a signal."""
    told, signalled = asyncio.Event(), asyncio.Event()

    def tell() -> None:
        if signalled.is_set():
            _log.warning("told twice to stop; leaving at once")
            os._exit(1)
        _log.info("told to stop")
        signalled.set()
        told.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, tell)
    if is_supervised:
        stdin = sys.stdin.fileno()

        def read() -> None:
            if not os.read(stdin, 4096):
                loop.remove_reader(stdin)
                told.set()

        loop.add_reader(stdin, read)
    return told

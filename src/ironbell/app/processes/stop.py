"""Requests to stop a process of `ironbell run`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import structlog

_log = structlog.get_logger()


def stop_requested(*, is_supervised: bool = False) -> asyncio.Event:
    """An event set by SIGTERM and SIGINT, of which a second one exits the process; for a supervised process, also by
    the end of standard input, which the supervisor closes before it sends a signal."""
    stopped, signalled = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        if signalled.is_set():
            _log.warning("second stop requested, exiting")
            os._exit(1)
        _log.info("stop requested")
        signalled.set()
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    if is_supervised:
        stdin = sys.stdin.fileno()

        def read() -> None:
            if not os.read(stdin, 4096):
                loop.remove_reader(stdin)
                stopped.set()

        loop.add_reader(stdin, read)
    return stopped

"""A terminal on a machine's serial line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Iterator
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry

LEAVE = b"\x1d"
"""Ctrl-]."""


class NotAttachedError(IronbellError):
    """The machine has no line to attach to."""

    reason = "NotAttached"
    retry = Retry.NEVER


async def attach(path: Path) -> None:
    """Join standard input and output to the line until Ctrl-], or until the machine is off.

    Raises:
        NotAttachedError: the machine is off.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except OSError as error:
        raise NotAttachedError(f"cannot attach to the console: {error.strerror}; is the machine on?") from error
    done = asyncio.Event()
    loop, keys = asyncio.get_running_loop(), sys.stdin.fileno()

    def typed() -> None:
        data = os.read(keys, 1024)
        if not data or LEAVE in data:
            done.set()
        else:
            writer.write(data)

    async def print_output() -> None:
        while data := await reader.read(4096):
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        done.set()

    with _raw(keys):
        loop.add_reader(keys, typed)
        task = asyncio.create_task(print_output())
        try:
            await done.wait()
        finally:
            loop.remove_reader(keys)
            task.cancel()
            writer.close()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    if not os.isatty(descriptor):
        yield
        return
    settings = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, settings)

"""`python -m ironbell.agent`: the agent as the in-memory OS starts it.

Status 1 means that a setting is missing or wrong; otherwise it runs until it is stopped. Its messages go to standard
output, a line each, for a serial console.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable

from ironbell.agent import power
from ironbell.agent.inventory import Inventory
from ironbell.agent.logship import LogShipper
from ironbell.agent.loop import Agent
from ironbell.agent.messages import Power
from ironbell.agent.rpc import Client
from ironbell.agent.settings import Settings, SettingsError, read_boot_id, read_cmdline, resolve
from ironbell.base.clock import SystemClock
from ironbell.base.printable import plain

_CONSOLE_LINES = 1000
_DRAIN_S = 2.0


class Console:
    """Prints lines on the machine's console, with the seconds since boot: the wall clock may not be set yet.

    A serial line is slow: lines are written by a thread, and lines that do not fit into its queue are only counted.
    """

    def __init__(self) -> None:
        self._lines: queue.Queue[str] = queue.Queue(_CONSOLE_LINES)
        self._skipped = 0
        threading.Thread(target=self._write, name="console", daemon=True).start()

    def __call__(self, text: str) -> None:
        clean = plain(text).replace("\n", " ")
        line = f"[{time.clock_gettime(time.CLOCK_BOOTTIME):8.1f}] ironbell: {clean}\n"
        try:
            if self._skipped:
                self._lines.put_nowait(f"           ironbell: {self._skipped} lines not shown\n")
                self._skipped = 0
            self._lines.put_nowait(line)
        except queue.Full:
            self._skipped += 1

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.write(line)
                sys.stdout.flush()
            self._lines.task_done()

    def drain(self, limit_s: float) -> None:
        """Wait until the queue is written, at most for the limit."""
        deadline = time.monotonic() + limit_s
        while self._lines.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.01)


def main(arguments: list[str]) -> int:
    """Run the agent."""
    console = Console()
    try:
        return start(arguments, console)
    finally:
        console.drain(_DRAIN_S)


def start(arguments: list[str], console: Console) -> int:
    """Read the settings and run until stopped; return the exit status."""
    cmdline = read_cmdline()
    try:
        settings = resolve(arguments, environment=os.environ, cmdline=cmdline, boot_id=read_boot_id(os.environ))
    except SettingsError as error:
        console(error.message)
        return 1
    may_switch = power.permitted(cmdline, os.environ)

    def switch(mode: Power) -> None:
        if not may_switch:
            raise power.PowerRejectedError(
                f"this machine was not booted for the agent; {power.POWER_VARIABLE}=real permits"
            )
        power.switch(mode)

    try:
        asyncio.run(serve(settings, switch, console, raises_links=may_switch))
    except (KeyboardInterrupt, asyncio.CancelledError):
        console("stopped")
    return 0


async def serve(
    settings: Settings, switch: power.Switch, console: Callable[[str], None], *, raises_links: bool = False
) -> None:
    """Run the agent and its log shipper, until SIGTERM.

    Args:
        raises_links: whether network interfaces that are down may be brought up, to detect their neighbours.
    """
    console(f"agent {settings.agent_id} asks {settings.host}:{settings.port}")
    inventory = Inventory(detects=settings.detects_attributes)
    client = Client(settings)
    shipper = LogShipper(client, settings.agent_id)
    agent = Agent(
        agent_id=settings.agent_id,
        calls=client,
        shipper=shipper,
        clock=SystemClock(),
        console=console,
        switch=switch,
        attributes=lambda: inventory.current,
        backoff_max_s=settings.backoff_max_s,
        heartbeat_s=settings.heartbeat_s,
    )
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(shipper.run(), name="log shipper")
            group.create_task(agent.run(), name="agent")
            if settings.detects_attributes:
                group.create_task(inventory.listen(raises_links=raises_links), name="neighbours")
    finally:
        client.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

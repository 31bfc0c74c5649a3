"""Keeps the agent running: its output goes to all consoles, its end is reported with the reason, and it is restarted.

An agent that ran for a while is restarted at once. One that fails from the start is restarted after growing pauses, up
to a minute, and its last output is reported to the server. The machine is never left at a prompt, or without a message.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence

from ironbell.base.clock import SystemClock
from ironbell.osie.machine.cmdline import Arguments, agent_environment
from ironbell.osie.machine.console import Console

COMMAND = (sys.executable, "-m", "ironbell.agent")
REPORT = (sys.executable, "-m", "ironbell.agent.report", "agent-failure")
_FIRST_PAUSE_S, _LAST_PAUSE_S = 1.0, 60.0
_HEALTHY_S = 60.0
_TAIL_LINES = 5


def supervise(arguments: Arguments, console: Console, *, command: Sequence[str] = COMMAND) -> None:
    """Run the agent again and again. Returns only when the command line names no server."""
    if not arguments.grpc_authority:
        console.report("agent: not started: the kernel's command line has no grpc_authority=; check the boot script")
        signal.pause()
    environment = {**os.environ, **agent_environment(arguments)}
    reporter = Reporter(environment)
    pause_s = _FIRST_PAUSE_S
    clock = SystemClock()
    while True:
        started = clock.monotonic()
        console.report(f"agent: starting for {arguments.worker_id} at {arguments.grpc_authority}")
        status, tail = run_once(command, environment=environment, console=console)
        lived_s = clock.monotonic() - started
        pause_s = next_pause(pause_s, lived_s=lived_s)
        console.report(f"agent: {describe(status)} after {lived_s:.0f} s; starting it again in {pause_s:.0f} s")
        if status != 0:
            for line in tail:
                console.report(f"agent: its last output: {line}")
            reporter.send("\n".join([f"agent {describe(status)} after {lived_s:.0f} s", *tail]))
        time.sleep(pause_s)


class Reporter:
    """Reports a failure of the agent to the server, in the background; one report at a time."""

    def __init__(self, environment: dict[str, str], *, command: Sequence[str] = REPORT) -> None:
        self._environment = environment
        self._command = command
        self._running: subprocess.Popen[bytes] | None = None

    def send(self, text: str) -> None:
        """Send a report, unless the last one is still on its way. The sender has a timeout of its own."""
        if self._running is not None and self._running.poll() is None:
            return
        self._running = subprocess.Popen(
            self._command, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert self._running.stdin is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError), self._running.stdin as stdin:
            stdin.write(text.encode())


def run_once(command: Sequence[str], *, environment: dict[str, str], console: Console) -> tuple[int, list[str]]:
    """Run the agent until it ends; return its status and the last lines that it printed."""
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        for raw in process.stdout or ():
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            tail.append(line)
            console.line(line)
    return process.returncode, list(tail)


def next_pause(pause_s: float, *, lived_s: float) -> float:
    """Pause before the next start, in seconds."""
    return _FIRST_PAUSE_S if lived_s >= _HEALTHY_S else min(pause_s * 2, _LAST_PAUSE_S)


def describe(status: int) -> str:
    """A process's exit status as a phrase."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"

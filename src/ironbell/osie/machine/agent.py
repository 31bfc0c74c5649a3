"""Keeps the agent running: what it prints goes to all consoles, why it ended is said, and it is started again.

An agent that ran for a while starts again at once; one that fails from the start is given growing pauses, up to a
minute. The machine is never left with a prompt or with nothing.
"""

from __future__ import annotations

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
_FIRST_PAUSE_S, _LAST_PAUSE_S = 1.0, 60.0
_HEALTHY_S = 60.0
_TAIL_LINES = 5


def supervise(arguments: Arguments, console: Console, *, command: Sequence[str] = COMMAND) -> None:
    """Run the agent again and again. Returns only when the command line names no server to work for."""
    if not arguments.grpc_authority:
        console.say("agent: not started: the kernel's command line has no grpc_authority=; look at the boot script")
        signal.pause()
    environment = {**os.environ, **agent_environment(arguments)}
    pause_s = _FIRST_PAUSE_S
    clock = SystemClock()
    while True:
        started = clock.monotonic()
        console.say(f"agent: starting for {arguments.worker_id} at {arguments.grpc_authority}")
        status, tail = run_once(command, environment=environment, console=console)
        lived_s = clock.monotonic() - started
        pause_s = next_pause(pause_s, lived_s=lived_s)
        console.say(f"agent: {describe(status)} after {lived_s:.0f} s; starting it again in {pause_s:.0f} s")
        for line in tail if status != 0 else ():
            console.say(f"agent: it said: {line}")
        time.sleep(pause_s)


def run_once(command: Sequence[str], *, environment: dict[str, str], console: Console) -> tuple[int, list[str]]:
    """Run the agent to its end; gives its status and the last lines that it printed."""
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
    """How long to wait before the next start."""
    return _FIRST_PAUSE_S if lived_s >= _HEALTHY_S else min(pause_s * 2, _LAST_PAUSE_S)


def describe(status: int) -> str:
    """A process's end in words."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"

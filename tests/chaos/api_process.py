"""The embedded API as a process that is started and killed many times: what `support.api.process` drives.

    python api_process.py FOLDER PORT

For each line on standard input a child serves FOLDER's database over TLS at PORT; the lines on standard output are
`pid NUMBER`, then `ready` or `failed WHY`. Children are forked, so that nothing is imported again.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from pathlib import Path

import uvloop

from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.serve import serve
from ironbell.apiserver.store.keys import KeyFile
from ironbell.apiserver.store.retention import Retention
from ironbell.app.processes.logs import configure_logging
from ironbell.base.clock import SystemClock
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import SystemRandomness

FEW = Retention(memory_changes=64, revisions=20_000)
"""Watchers that come back are served from disk."""


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def run(folder: Path, port: int) -> None:
    keys = KeyFile(folder / "storage.key")
    async with (
        ApiServer.open(
            folder / "api.db", keys=keys, clock=SystemClock(), randomness=SystemRandomness(), retention=FEW
        ) as server,
        serve(server, data_dir=folder, tls_address=("127.0.0.1", port)),
    ):
        say("ready")
        await asyncio.Event().wait()


def child(folder: Path, port: int) -> None:
    try:
        uvloop.run(run(folder, port))
    except IronbellError as error:
        say("failed", error)
    finally:
        os._exit(1)


def main() -> None:
    configure_logging(process="api")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    while os.read(0, 1):
        wait, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.read(wait, 1)  # so that `pid` is said before `ready`
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            child(Path(sys.argv[1]), int(sys.argv[2]))
        say("pid", pid)
        os.write(go, b"\n")
        os.close(wait)
        os.close(go)


main()

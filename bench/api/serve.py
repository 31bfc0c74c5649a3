"""The embedded API as `ironbell up` opens it, without controllers, in a process that does nothing else.

    python serve.py FOLDER PORT

Ends on SIGTERM, or when its standard input ends. `kill -USR1` puts the loop's lag since the last time into its log.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import uvloop

from ironbell.api.crd.document import crd_document
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.serve import serve
from ironbell.app.processes.child import raise_file_limit
from ironbell.app.processes.logs import configure_logging
from ironbell.app.registry import KINDS
from ironbell.base.clock import SystemClock
from ironbell.base.memory import freeze_gc, tune_gc
from ironbell.base.randomness import SystemRandomness
from ironbell.codec.cel import compile_rule
from ironbell.kube.manager.lag import LoopLag


async def run(folder: Path, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(sys.stdin.fileno(), stop.set)
    configure_logging(process="core")
    lag = LoopLag()
    loop.add_signal_handler(signal.SIGUSR1, lambda: tell(lag, folder))
    async with (
        ApiServer.open(
            folder / "api.db",
            clock=SystemClock(),
            randomness=SystemRandomness(),
            definitions=[crd_document(kind) for kind in KINDS],
            compile_rule=compile_rule,
        ) as server,
        serve(server, data_dir=folder, tls_address=("127.0.0.1", port)),
    ):
        freeze_gc()
        task = asyncio.create_task(lag.run())
        await stop.wait()
        task.cancel()


def tell(lag: LoopLag, folder: Path) -> None:
    figures = lag.figures()
    partial = folder / "lag.partial"
    partial.write_text(f"{figures.p50_s} {figures.p99_s} {figures.max_s}")
    partial.rename(folder / "lag")
    lag.reset()


if __name__ == "__main__":
    tune_gc()
    raise_file_limit()
    uvloop.run(run(Path(sys.argv[1]), int(sys.argv[2])))

"""The kernel under load: store, embedded API, informers and controllers, with a client in another process.

1,000 Racks with 9 Slots each (10,000 objects) are created over the local socket by one process; in the other, `core`,
controllers reach the API by direct call: one makes the Slots and rolls their states up, one switches each Slot on in
three writes (the intent, the outcome, an event). Then every object is looked at once more with nothing to do, which
gives the price of a reconcile, and a second set of informers lists everything, which gives the price of a start.

It prints what was written and decided per second, beside the disk's own fdatasync rate; processor time per write and
per reconcile; memory per object; and how late the event loop of `core` was. `--goal` makes the status 1 when the
figures leave no room for 1,000 clusters in five minutes (each about 200 writes and 500 reconciles).

    python bench/kernel.py [--parents 1000] [--folder DIR] [--profile FILE] [--goal]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog
import uvloop
from prometheus_client import REGISTRY

from ironbell.api.client import EventType
from ironbell.api.crd.document import crd_document
from ironbell.apiserver.access.identity import ADMIN, MASTERS
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.serve import serve
from ironbell.base.clock import SystemClock
from ironbell.base.memory import freeze_gc, tune_gc
from ironbell.base.randomness import SystemRandomness
from ironbell.kube.client import Client
from ironbell.kube.decision import Action
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.lag import LoopLag
from ironbell.kube.manager.manager import Manager
from ironbell.kube.testing.example import RACK, SLOT, PowerOn, PowerState, RackReconciler, SlotReconciler, on
from ironbell.kube.transport.connection import over_socket
from ironbell.kube.transport.http import HttpApi

CHILDREN = 9
AT_ONCE = 64
WRITES_GOAL, RECONCILES_GOAL = 667.0, 1667.0
SHARE_GOAL = 0.5
LAG_GOAL_S = 0.05


def fdatasyncs_per_s(folder: Path, seconds: float = 1.0) -> float:
    """How often the disk under a folder makes 4 KiB durable."""
    path = folder / "probe"
    block = b"\0" * 4096
    with path.open("wb", buffering=0) as file:
        count, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            file.write(block)
            os.fdatasync(file.fileno())
            count += 1
    path.unlink()
    return count / seconds


def memory_bytes() -> int:
    """What this process holds in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def counted(name: str) -> float:
    """The sum of a counter over its labels."""
    samples = [sample for family in REGISTRY.collect() for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == name)


class Meter:
    """Counts from one moment to another in this process."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.start = self._now()

    def _now(self) -> dict[str, float]:
        return {
            "s": time.perf_counter(),
            "cpu_s": time.process_time(),
            "writes": float(self._server.resource_version),
            "reconciles": counted("controller_runtime_reconcile_total"),
            "conflicts": counted("ironbell_reconcile_conflicts_total"),
            "errors": counted("controller_runtime_reconcile_errors_total"),
        }

    def read(self) -> dict[str, float]:
        """What was added since the start."""
        now = self._now()
        return {name: now[name] - self.start[name] for name in now}


async def power_on(arguments: PowerOn) -> Sequence[Action]:
    return on(arguments.slot)


async def power_state(_query: PowerState) -> str:
    return "off"


def manager_of(server: ApiServer) -> Manager:
    manager = Manager(server.client(ADMIN), component="bench")
    manager.add(Controller(RackReconciler()))
    manager.add(
        Controller(SlotReconciler(), performers={"power-on": power_on}, resolvers={PowerState: power_state}, workers=64)
    )
    return manager


@contextlib.asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await manager.wait_ready()
        yield
        manager.stop()
        await task


def is_complete(manager: Manager, parents: int) -> bool:
    racks = manager.informers.of(RACK).store.list()
    return len(racks) == parents and all(rack.status.ready == CHILDREN for rack in racks)


async def load_phase(server: ApiServer, manager: Manager, parents: int, lag: LoopLag) -> dict[str, Any]:
    """From the first Rack to the last roll-up."""
    while not len(manager.informers.of(RACK).store):
        await asyncio.sleep(0.01)
    meter = Meter(server)
    lag.reset()
    while not (is_complete(manager, parents) and manager.is_idle):
        await asyncio.sleep(0.1)
    figures = lag.figures()
    return meter.read() | {"lag_p50_s": figures.p50_s, "lag_p99_s": figures.p99_s, "lag_max_s": figures.max_s}


async def idle_phase(server: ApiServer, manager: Manager, lag: LoopLag) -> dict[str, Any]:
    """Every key once more, with nothing to do."""
    meter = Meter(server)
    lag.reset()
    manager.resync()
    while not manager.is_idle:
        await asyncio.sleep(0.005)
    return meter.read() | {"lag_max_s": lag.figures().max_s}


async def start_phase(server: ApiServer, lag: LoopLag) -> dict[str, Any]:
    """A second set of informers, as after a restart."""
    lag.reset()
    start_s = time.perf_counter()
    async with running(manager_of(server)):
        return {"s": time.perf_counter() - start_s, "lag_max_s": lag.figures().max_s}


async def core(folder: Path, parents: int, profile: Path | None) -> None:
    """The process under test; tells its client by files when it is ready, prints its figures and ends."""
    tune_gc()
    clock, randomness, lag = SystemClock(), SystemRandomness(), LoopLag()
    definitions = [crd_document(kind) for kind in (RACK, SLOT)]
    before_bytes = memory_bytes()
    async with (
        ApiServer.open(folder / "db", clock=clock, randomness=randomness, definitions=definitions) as server,
        serve(server, data_dir=folder, tls_address=None, unix_socket=folder / "api.sock") as face,
    ):
        token = face.tokens.issue("client", (MASTERS,))
        measuring = asyncio.create_task(lag.run())
        manager = manager_of(server)
        async with running(manager):
            freeze_gc()
            await asyncio.to_thread((folder / "token").write_text, token)
            with profiling(profile):
                load = await load_phase(server, manager, parents, lag)
            held_bytes = memory_bytes() - before_bytes
            freeze_gc()
            idle = await idle_phase(server, manager, lag)
            start = await start_phase(server, lag)
        measuring.cancel()
    database_bytes = sum(path.stat().st_size for path in folder.glob("db*"))
    figures = {"load": load, "idle": idle, "start": start, "held_bytes": held_bytes, "db_bytes": database_bytes}
    print(msgspec.json.encode(figures).decode(), flush=True)


@contextlib.contextmanager
def profiling(path: Path | None) -> Any:
    """Profile what happens inside, if a file is given for it."""
    if path is None:
        yield
        return
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        yield
    finally:
        profiler.disable()
        profiler.dump_stats(path)


async def client(folder: Path, parents: int) -> None:
    """The other process: creates Racks over the socket and watches until the last is complete."""
    tune_gc()
    token_file = folder / "token"
    while not token_file.exists() or not token_file.read_text():
        await asyncio.sleep(0.05)
    async with HttpApi(over_socket(folder / "api.sock", token_file.read_text())) as api:
        typed = Client(api)
        version = (await typed.list(RACK)).resource_version
        numbers = iter(range(parents))
        took: list[float] = []

        async def create() -> None:
            for number in numbers:
                start_s = time.perf_counter()
                await typed.create(RACK, {"metadata": {"name": f"r{number}", "namespace": "default"},
                                          "spec": {"count": CHILDREN}})  # fmt: skip
                took.append(time.perf_counter() - start_s)

        start_s = time.perf_counter()
        await asyncio.gather(*(create() for _ in range(AT_ONCE)))
        created_s = time.perf_counter() - start_s
        complete: set[str] = set()
        async for change in typed.watch(RACK, resource_version=version):
            if change.type is not EventType.BOOKMARK and change.object and change.object.status.ready == CHILDREN:
                complete.add(change.object.metadata.name)
                if len(complete) == parents:
                    break
        ordered = sorted(took)
        figures = {
            "creates_s": created_s,
            "create_p50_s": ordered[len(ordered) // 2],
            "create_p99_s": ordered[int(len(ordered) * 0.99)],
        }
    print(msgspec.json.encode(figures).decode(), flush=True)


def report(parents: int, disk: tuple[float, float], figures: dict[str, Any], outside: dict[str, float]) -> bool:
    """Print the figures; whether they reach the goal."""
    load, idle, start = figures["load"], figures["idle"], figures["start"]
    objects = parents * (CHILDREN + 1)
    idle_us = idle["cpu_s"] / idle["reconciles"] * 1e6
    write_us = (load["cpu_s"] - load["reconciles"] * idle_us / 1e6) / load["writes"] * 1e6
    share = (WRITES_GOAL * write_us + RECONCILES_GOAL * idle_us) / 1e6
    writes, reconciles = load["writes"] / load["s"], load["reconciles"] / load["s"]
    latency = f"p50 {outside['create_p50_s'] * 1e3:.1f} ms, p99 {outside['create_p99_s'] * 1e3:.1f} ms"
    lag = f"p50, {load['lag_p99_s'] * 1e3:.1f} ms p99, {load['lag_max_s'] * 1e3:.1f} ms max"
    rows = (
        ("objects", objects, ""),
        ("disk, fdatasync of 4 KiB", disk[0], f"/s before, {disk[1]:,.0f} /s after"),
        ("creates over the socket", parents / outside["creates_s"], f"/s while controllers work, {latency}"),
        ("durable writes", writes, f"/s ({load['writes']:,.0f} in {load['s']:.1f} s)"),
        ("reconciles under load", reconciles, f"/s ({load['conflicts']:,.0f} conflicts, {load['errors']:,.0f} errors)"),
        ("reconciles with nothing to do", idle["reconciles"] / idle["s"], "/s"),
        ("processor, all of core", load["cpu_s"] / load["s"] * 100, "% of one"),
        ("processor per write", write_us, "us, reconciling for it included"),
        ("processor per idle reconcile", idle_us, "us"),
        ("memory per object", figures["held_bytes"] / objects / 1024, "KiB, history and events included"),
        ("disk per object", figures["db_bytes"] / objects / 1024, "KiB"),
        ("loop lag under load", load["lag_p50_s"] * 1e3, "ms " + lag),
        ("caches full after a start", start["s"], f"s, lag at most {start['lag_max_s'] * 1e3:.0f} ms"),
        ("1,000 clusters in 5 minutes", share * 100, "% of one processor: 667 writes and 1,667 reconciles a second"),
    )
    for title, value, more in rows:
        print(f"{title:<30}{value:>10,.{0 if value >= 100 or value == int(value) else 2}f} {more}")
    return bool(writes >= WRITES_GOAL and share < SHARE_GOAL and load["lag_p99_s"] < LAG_GOAL_S)


def child(role: str, arguments: argparse.Namespace, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--role", role, "--folder", str(folder), "--parents", str(arguments.parents)]
    if arguments.profile:
        command += ["--profile", str(arguments.profile)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def measure(arguments: argparse.Namespace, folder: Path) -> bool:
    before = fdatasyncs_per_s(folder)
    with child("core", arguments, folder) as server, child("client", arguments, folder) as outside:
        answers = [outside.communicate(timeout=900)[0], server.communicate(timeout=900)[0]]
    if server.returncode or outside.returncode:
        sys.exit("a process of the benchmark failed")
    figures = msgspec.json.decode(answers[1].splitlines()[-1])
    return report(arguments.parents, (before, fdatasyncs_per_s(folder)), figures, msgspec.json.decode(answers[0]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parents", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where the database is; a temporary folder by default")
    parser.add_argument("--profile", type=Path, help="write a profile of core's load phase here")
    parser.add_argument("--goal", action="store_true", help="fail when the figures leave no room")
    parser.add_argument("--role", choices=("core", "client"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    if arguments.role == "core":
        uvloop.run(core(arguments.folder, arguments.parents, arguments.profile))
    elif arguments.role == "client":
        uvloop.run(client(arguments.folder, arguments.parents))
    else:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            reached = measure(arguments, Path(folder))
        return 0 if reached or not arguments.goal else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

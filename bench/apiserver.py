"""The embedded API over HTTPS: durable creates per second, a list of 10,000, start-up, memory.

    python bench/apiserver.py [--seconds 5] [--folder DIR]

The server runs in a process of its own, as it does in `ironbell up`, in an empty folder; this process is the client.
The disk's own rate of small durable writes, measured in the same folder, stands beside the figures, because no store
that answers after it has synchronised can pass it without sharing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import structlog
import uvloop

from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.serve import serve
from ironbell.apiserver.pki import Authority
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness

PATH = "/api/v1/namespaces/default/configmaps"
OBJECTS = 10_000
CLIENTS = (1, 16, 64)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def run_server(folder: Path) -> None:
    """The server's process: says `ready` with its port, ends on SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    gc.set_threshold(50_000, 20, 50)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    async with (
        ApiServer.open(folder / "api.db", clock=SystemClock(), randomness=SystemRandomness()) as server,
        serve(server, data_dir=folder) as running,
    ):
        print("ready", running.port, flush=True)
        await stop.wait()


@asynccontextmanager
async def server_process(folder: Path) -> AsyncIterator[tuple[int, int, float]]:
    """A running server: its process id, its port, and the seconds from its start until it was ready."""
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--serve", str(folder), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            word, port = (await process.stdout.readline()).split()
        assert word == b"ready"
        yield process.pid, int(port), time.perf_counter() - started
    finally:
        process.terminate()
        await process.wait()


def disk_rate(folder: Path, seconds: float) -> float:
    """Appends of 4 KiB per second, each followed by fdatasync."""
    descriptor = os.open(folder / "probe", os.O_CREAT | os.O_WRONLY)
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        os.write(descriptor, b"x" * 4096)
        os.fdatasync(descriptor)
        count += 1
    os.close(descriptor)
    (folder / "probe").unlink()
    return count / seconds


def resident_mib(process_id: int) -> float:
    """Resident memory of a process."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def processor_seconds(process_id: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def body(name: str) -> bytes:
    """A ConfigMap of one kilobyte."""
    metadata = {"name": name, "labels": {"app": "bench"}}
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": "x" * 900}}
    )


async def create(session: aiohttp.ClientSession, name: str) -> None:
    async with session.post(PATH, data=body(name), headers={"Content-Type": "application/json"}) as response:
        assert response.status == 201, await response.text()
        await response.read()


async def creates_per_second(session: aiohttp.ClientSession, clients: int, seconds: float) -> tuple[float, float]:
    """Rate, and the 99th percentile of one create in milliseconds."""
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        count = 0
        while (started := time.perf_counter()) < end:
            await create(session, f"c{clients}-{number}-{count}")
            latencies.append(time.perf_counter() - started)
            count += 1

    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(client(number))
    return len(latencies) / seconds, statistics.quantiles(latencies, n=100)[98] * 1000


async def fill(session: aiohttp.ClientSession) -> None:
    """Bring the collection to exactly `OBJECTS` objects."""
    async with session.delete(PATH) as response:
        await response.read()
    names = iter([f"object-{number:05}" for number in range(OBJECTS)])

    async def client() -> None:
        for name in names:
            await create(session, name)

    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(client())


async def list_ms(session: aiohttp.ClientSession, headers: dict[str, str]) -> tuple[float, float]:
    """Median milliseconds of a whole list, and the megabytes that arrived."""
    times, size = [], 0
    for _ in range(5):
        started = time.perf_counter()
        async with session.get(PATH, headers=headers) as response:
            size = len(await response.read())
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times), size / 1e6


@asynccontextmanager
async def connected(folder: Path, port: int) -> AsyncIterator[aiohttp.ClientSession]:
    """A session of the administrator over TLS."""
    authority = Authority(folder / "pki", SystemClock())
    context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    pair = authority.client("kubernetes-admin", ["system:masters"])
    context.load_cert_chain(pair.certificate, pair.key)
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    timeout = aiohttp.ClientTimeout(total=120)
    base = f"https://127.0.0.1:{port}"
    async with aiohttp.ClientSession(base, connector=connector, timeout=timeout, auto_decompress=False) as session:
        yield session


async def measure(folder: Path, seconds: float) -> None:
    print(f"disk: {disk_rate(folder, 2):.0f} fdatasync/s")
    async with server_process(folder) as (process_id, port, start_s):
        print(f"start in an empty folder: {start_s * 1000:.0f} ms, resident {resident_mib(process_id):.0f} MiB")
        async with connected(folder, port) as session:
            for clients in CLIENTS:
                before = processor_seconds(process_id)
                rate, p99 = await creates_per_second(session, clients, seconds)
                cost_us = (processor_seconds(process_id) - before) / seconds / rate * 1e6
                print(f"creates, {clients} clients: {rate:.0f}/s, p99 {p99:.1f} ms, {cost_us:.0f} us of CPU each")
            await fill(session)
            for name, headers in (
                ("plain", {"Accept-Encoding": "identity"}),
                ("gzip", {"Accept-Encoding": "gzip"}),
                ("table", {"Accept-Encoding": "identity", "Accept": TABLE}),
            ):
                milliseconds, megabytes = await list_ms(session, headers)
                print(f"list of {OBJECTS}, {name}: {milliseconds:.0f} ms, {megabytes:.1f} MB")
        print(f"resident with {OBJECTS} objects: {resident_mib(process_id):.0f} MiB")
    async with server_process(folder) as (process_id, _, start_s):
        print(f"start with {OBJECTS} objects: {start_s * 1000:.0f} ms, resident {resident_mib(process_id):.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="for each number of clients")
    parser.add_argument("--folder", type=Path, help="where to measure; a temporary folder otherwise")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        uvloop.run(run_server(arguments.serve))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        uvloop.run(measure(Path(folder), arguments.seconds))


if __name__ == "__main__":
    main()

"""How fast the embedded API stores, lists and opens, with the disk's own rate beside.

    python bench/store.py [--directory DIR] [--objects 10000] [--seconds 5]

Every figure is of one process by direct call: JSON in, validation, defaults, group commit, answer; no HTTP. Writes
are durable (fdatasync) before they count. Start and memory are of processes of their own that do nothing but open the
database, because what one allocated while it wrote the objects says nothing about what they take.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from ironbell.api.client import ListOptions, PatchType
from ironbell.api.crd.document import crd_document
from ironbell.api.tinkerbell import HARDWARE
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.direct import DirectApi
from ironbell.apiserver.store.keys import KeyFile
from ironbell.app.registry import KINDS
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness

WHERE = HARDWARE.collection
WRITERS = (1, 16, 64)


def hardware(name: str) -> bytes:
    """A server with four interfaces, about 2.5 kB: what such objects usually are."""
    interfaces = [
        {
            "dhcp": {
                "mac": f"52:54:00:00:0{port}:01", "arch": "x86_64", "uefi": True, "lease_time": 86400,
                "hostname": f"{name}-{port}", "name_servers": ["192.0.2.53", "192.0.2.54"],
                "time_servers": ["192.0.2.123"],
                "ip": {"address": f"192.0.2.1{port}", "netmask": "255.255.255.0", "gateway": "192.0.2.1"},
            },
            "netboot": {"allowPXE": True, "allowWorkflow": True},
        }
        for port in range(4)
    ]  # fmt: skip
    value = {
        "apiVersion": HARDWARE.api_version,
        "kind": HARDWARE.kind,
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"tinkerbell.org/role": "worker", "rack": "r17", "pool": "blue"},
            "annotations": {"ironbell.dev/note": "x" * 200},
        },
        "spec": {
            "disks": [{"device": "/dev/nvme0n1"}, {"device": "/dev/nvme1n1"}],
            "interfaces": interfaces,
            "metadata": {"facility": {"facility_code": "onprem", "plan_slug": "c2.medium.x86"},
                         "instance": {"hostname": name, "id": "52:54:00:00:00:01", "userdata": "#cloud-config\n" * 20}},
        },
    }  # fmt: skip
    return msgspec.json.encode(value)


def disk_rate(directory: Path, seconds: float) -> float:
    """Commits per second that the disk alone manages: 8 kB appended and fdatasync, one after another."""
    path = directory / "fdatasync.tmp"
    block, count = b"x" * 8192, 0
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            os.write(handle, block)
            os.fdatasync(handle)
            count += 1
        return count / (time.perf_counter() - start)
    finally:
        os.close(handle)
        path.unlink()


def resident_bytes() -> int:
    with Path("/proc/self/statm").open() as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


async def measure_writes(api: DirectApi, *, writers: int, seconds: float, prefix: str) -> tuple[float, float, float]:
    """Creates per second, CPU microseconds per create, and the 99th percentile of an answer in milliseconds."""
    deadline = time.perf_counter() + seconds
    times: list[float] = []

    async def write(writer: int) -> None:
        number = 0
        while (start := time.perf_counter()) < deadline:
            await api.create(WHERE, "default", hardware(f"{prefix}-{writer}-{number}"))
            times.append(time.perf_counter() - start)
            number += 1

    cpu, start = time.process_time(), time.perf_counter()
    await asyncio.gather(*(write(writer) for writer in range(writers)))
    elapsed = time.perf_counter() - start
    times.sort()
    return len(times) / elapsed, (time.process_time() - cpu) / len(times) * 1e6, times[int(len(times) * 0.99)] * 1e3


async def measure_patches(api: DirectApi, *, writers: int, seconds: float) -> tuple[float, float]:
    """Merge patches of labels of existing objects: per second, and CPU microseconds each."""
    deadline = time.perf_counter() + seconds
    count = 0

    async def write(writer: int) -> None:
        nonlocal count
        number = 0
        while time.perf_counter() < deadline:
            body = b'{"metadata":{"labels":{"turn":"%d"}}}' % number
            await api.patch(WHERE, "default", f"o-{writer}", body, patch_type=PatchType.MERGE)
            number += 1
            count += 1

    cpu, start = time.process_time(), time.perf_counter()
    await asyncio.gather(*(write(writer) for writer in range(writers)))
    return count / (time.perf_counter() - start), (time.process_time() - cpu) / count * 1e6


async def fill(api: DirectApi, count: int) -> None:
    async def write(first: int) -> None:
        for number in range(first, count, 64):
            await api.create(WHERE, "default", hardware(f"o-{number}"))

    await asyncio.gather(*(write(first) for first in range(64)))


async def measure_lists(api: DirectApi) -> None:
    for label, options in (("whole", ListOptions()), ("pages of 500", ListOptions(limit=500))):
        start, size, page = time.perf_counter(), 0, None
        while page is None or page.continue_token:
            token = page.continue_token if page else ""
            page = await api.list(WHERE, "", ListOptions(limit=options.limit, continue_token=token))
            size += sum(map(len, page.items))
        milliseconds = (time.perf_counter() - start) * 1e3
        print(f"list, {label}: {milliseconds:.1f} ms for {size / 1e6:.1f} MB")


def serve(path: Path):
    definitions = [crd_document(kind) for kind in KINDS]
    keys = KeyFile(path.with_suffix(".key"))
    return ApiServer.open(path, keys=keys, clock=SystemClock(), randomness=SystemRandomness(), definitions=definitions)


async def run(directory: Path, *, objects: int, seconds: float) -> None:
    print(f"object: {len(hardware('o-1'))} bytes of JSON as sent")
    for writers in WRITERS:
        rate = disk_rate(directory, 1.0)
        async with serve(directory / f"writers-{writers}.db") as server:
            api = server.client(ADMIN)
            per_second, cpu, slowest = await measure_writes(api, writers=writers, seconds=seconds, prefix="w")
        print(
            f"creates, {writers} writers: {per_second:.0f}/s, {cpu:.0f} us CPU each, p99 {slowest:.1f} ms; "
            f"the disk alone: {rate:.0f} fdatasync/s"
        )
    path = directory / "objects.db"
    async with serve(path):
        pass
    empty = measure_start(path)
    async with serve(path) as server:
        api = server.client(ADMIN)
        start = time.perf_counter()
        await fill(api, objects)
        print(f"{objects} objects made in {time.perf_counter() - start:.1f} s")
        stored = sum(map(len, (await api.list(WHERE)).items)) / objects
        print(f"resident after making them: {resident_bytes() / 1e6:.0f} MB")
        await measure_lists(api)
        per_second, cpu = await measure_patches(api, writers=64, seconds=seconds)
        print(f"merge patches, 64 writers: {per_second:.0f}/s, {cpu:.0f} us CPU each")
    full = measure_start(path)
    each = (full.resident - empty.resident) / objects
    print(f"empty: open {empty.seconds:.2f} s, resident {empty.resident / 1e6:.0f} MB")
    print(
        f"{objects} objects: open {full.seconds:.2f} s, resident {full.resident / 1e6:.0f} MB, that is {each:.0f} "
        f"bytes for each object of {stored:.0f} bytes encoded; file {path.stat().st_size / 1e6:.0f} MB"
    )


class Start(msgspec.Struct):
    """What opening a database took."""

    seconds: float
    resident: int


def measure_start(path: Path) -> Start:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--open", str(path)]
    return msgspec.json.decode(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout, type=Start)


async def open_only(path: Path) -> Start:
    start = time.perf_counter()
    async with serve(path):
        seconds = time.perf_counter() - start
        gc.collect()
        return Start(seconds, resident_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="where the databases are made (default: a temporary one)")
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.open:
        sys.stdout.write(msgspec.json.encode(asyncio.run(open_only(arguments.open))).decode())
        return
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        asyncio.run(run(Path(directory), objects=arguments.objects, seconds=arguments.seconds))


if __name__ == "__main__":
    main()

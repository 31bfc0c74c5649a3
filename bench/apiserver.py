"""The embedded API against kube-apiserver with etcd, in the same run, with the same client over TLS.

    python bench/apiserver.py [--seconds 4] [--rounds 3] [--folder DIR] [--parts PART...]

Each server in turn does the same while the other one is stopped: durable creates with 1, 16 and 64 clients, a list of
10,000 objects, events to 2,000 watchers; and both are started from nothing. Both have the definitions of all our kinds
(`--crds` adds more); the objects are Hardware of two kilobytes. Client and server share the processors. The disk's own
rate of small durable writes stands beside the figures, because no store that answers after it has synchronised can
pass it without sharing. The real components are built when they are not in the user's cache.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

sys.path.insert(0, str(Path(__file__).with_name("api")))

from report import Figures, percentiles, rows
from servers import Ours, Real, Server, hold, install, processor_s, release, resident_mib
from wire import Connection, fan_out, load, watch

from ironbell.api.tinkerbell import HARDWARE

PATH = f"/apis/{HARDWARE.api_version}/namespaces/default/hardware"
OBJECTS = 10_000
CLIENTS = (1, 16, 64)
WATCHERS = 2_000
EVENTS = 30
PARTS = ("starts", "creates", "lists", "watches")
PAUSE_S = 0.1
"""Between two events, so that each is measured by itself."""


def hardware(name: str) -> bytes:
    """A server with two interfaces: two kilobytes."""
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
        for port in range(2)
    ]  # fmt: skip
    value = {
        "apiVersion": HARDWARE.api_version,
        "kind": HARDWARE.kind,
        "metadata": {
            "name": name,
            "labels": {"tinkerbell.org/role": "worker", "rack": "r17", "pool": "blue"},
            "annotations": {"ironbell.dev/note": "x" * 200},
        },
        "spec": {
            "disks": [{"device": "/dev/nvme0n1"}, {"device": "/dev/nvme1n1"}],
            "interfaces": interfaces,
            "metadata": {"facility": {"facility_code": "onprem", "plan_slug": "c2.medium.x86"},
                         "instance": {"hostname": name, "id": "52:54:00:00:00:01", "userdata": "#cloud-config\n" * 40}},
        },
    }  # fmt: skip
    return msgspec.json.encode(value)


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


def measure_creates(server: Server, figures: Figures, *, clients: int, seconds: float, prefix: str) -> None:
    """Creates per second, their 99th percentile, and the processor time of all of the server's processes for one."""
    where = server.endpoint()
    connections = [Connection(where) for _ in range(clients)]
    end = time.perf_counter() + seconds

    def requests() -> Iterator[bytes]:
        number = 0
        while time.perf_counter() < end:
            yield where.request("POST", PATH, hardware(f"{prefix}-{number}"))
            number += 1

    before = sum(map(processor_s, server.pids().values()))
    started = time.perf_counter()
    times = load(connections, requests(), expect=201)
    elapsed = time.perf_counter() - started
    cpu_s = sum(map(processor_s, server.pids().values())) - before
    for connection in connections:
        connection.close()
    figures.creates.setdefault(clients, []).append(len(times) / elapsed)
    figures.creates_ms.setdefault(clients, []).append(statistics.quantiles(times, n=100)[98] * 1e3)
    figures.create_cpu_us.setdefault(clients, []).append(cpu_s / len(times) * 1e6)


def fill(server: Server) -> None:
    """Bring the collection to exactly `OBJECTS` objects."""
    where = server.endpoint()
    first = Connection(where)
    first.call(where.request("DELETE", PATH))
    connections = [Connection(where) for _ in range(32)]
    requests = (where.request("POST", PATH, hardware(f"object-{number:05}")) for number in range(OBJECTS))
    load(connections, requests, expect=201)
    for connection in [first, *connections]:
        connection.close()


def measure_list(server: Server, figures: Figures, *, encoding: str) -> float:
    """Milliseconds from the request to the last byte; gives the megabytes that came."""
    where = server.endpoint()
    connection = Connection(where)
    request = where.request("GET", PATH, encoding=encoding)
    figures.list_ms.setdefault(encoding, []).append(connection.call(request) * 1e3)
    size = len(connection.received) / 1e6
    connection.close()
    return size


def measure_fan_out(server: Server, figures: Figures) -> None:
    """Milliseconds until each of the watchers has an event."""
    where = server.endpoint()
    writer = Connection(where)
    writer.call(where.request("POST", PATH, hardware("before-watch")), expect=201)
    version = bytes(writer.received).partition(b'"resourceVersion":"')[2].partition(b'"')[0].decode()
    watchers = watch(where, f"{PATH}?watch=true&resourceVersion={version}", WATCHERS)
    writes = (where.request("POST", PATH, hardware(f"watched-{number}")) for number in range(EVENTS))
    before = sum(map(processor_s, server.pids().values()))
    found = fan_out(writer, watchers, writes, pause_s=PAUSE_S)
    cpu_s = sum(map(processor_s, server.pids().values())) - before
    figures.event_cpu_us.append(cpu_s / EVENTS / WATCHERS * 1e6)
    for connection in [writer, *watchers]:
        connection.close()
    figures.fan_out_ms += [seconds * 1e3 for seconds in found.from_write]
    figures.from_answer_ms += [seconds * 1e3 for seconds in found.from_answer]


def memory(server: Server) -> dict[str, float]:
    return {name: resident_mib(pid) for name, pid in server.pids().items()}


class Lag(NamedTuple):
    """By how many milliseconds an event loop was late."""

    p50: float
    p99: float
    longest: float


def loop_lag(server: Ours, folder: Path) -> Lag:
    """The lag of our server's loop since it was last asked."""
    path = folder / "lag"
    path.unlink(missing_ok=True)
    os.kill(server.pids()["ironbell"], signal.SIGUSR1)
    deadline = time.perf_counter() + 10
    while not path.exists() and time.perf_counter() < deadline:
        time.sleep(0.01)
    return Lag(*(float(word) * 1e3 for word in path.read_text().split()))


class Bench:
    """One run."""

    def __init__(
        self, folder: Path, *, seconds: float, rounds: int, with_real: bool, parts: list[str], crds: list[Any]
    ) -> None:
        self._folder, self._seconds, self._rounds, self._crds = folder, seconds, rounds, crds
        self._parts = [part for part in PARTS if part in parts]
        self._ours = Ours(folder / "ours")
        self._servers: list[Server] = [self._ours, *([Real(folder / "real")] if with_real else [])]
        self.figures = {server.name: Figures() for server in self._servers}
        self._lags: list[Lag] = []

    def run(self) -> None:
        """Measure everything; figures are printed as they come, ratios at the end."""
        self._note_machine()
        if "starts" in self._parts:
            self._parts.remove("starts")
            self._starts()
        with ExitStack() as stack:
            for server in self._servers:
                stack.callback(server.stop)
                server.start()
                count = install(server, self._crds)
                say(server, f"{count} definitions installed")
            time.sleep(1)
            for server in self._servers:
                self._of(server).empty_mib = memory(server)
                say(server, f"empty: {shown(memory(server))} MiB resident")
                hold(server)
            for part in self._parts:
                {"creates": self._creates, "lists": self._full, "watches": self._fan_outs}[part]()
        self._note_machine()

    def _of(self, server: Server) -> Figures:
        return self.figures[server.name]

    def _note_machine(self) -> None:
        rate = disk_rate(self._folder, 1.0)
        print(f"machine: load {os.getloadavg()[0]:.2f}, disk alone {rate:.0f} fdatasync/s", flush=True)

    def _starts(self) -> None:
        """Each is started once before it counts: modules are compiled then, and programs read from the disk."""
        for number in range(-1, self._rounds):
            for kind, name in ((Ours, "ours"), (Real, "real"))[: len(self._servers)]:
                server = kind(self._folder / f"start-{name}-{number}")
                figures = self.figures[server.name]
                try:
                    seconds = server.start()
                    if number < 0:
                        say(server, f"ready after {seconds:.2f} s for the first time here, which does not count")
                        continue
                    figures.start_s.append(seconds)
                    say(server, f"ready after {seconds:.2f} s, in an empty folder")
                    if kind is Ours:
                        server.stop()
                        figures.restart_s.append(server.start())
                        say(server, f"ready after {figures.restart_s[-1]:.2f} s, started again")
                finally:
                    server.stop()

    @contextmanager
    def _alone(self, server: Server) -> Iterator[Figures]:
        """Let one server run; what our loop's lag was meanwhile is kept."""
        release(server)
        if server is self._ours:
            time.sleep(0.1)  # the lag of having been stopped is none
            loop_lag(self._ours, self._folder / "ours")
        yield self._of(server)
        if server is self._ours:
            self._lags.append(loop_lag(self._ours, self._folder / "ours"))
        hold(server)

    def _creates(self) -> None:
        for number in range(self._rounds):
            for clients in CLIENTS:
                for server in self._servers:
                    with self._alone(server) as figures:
                        prefix = f"c{clients}-{number}"
                        measure_creates(server, figures, clients=clients, seconds=self._seconds, prefix=prefix)
                    say(
                        server,
                        f"{figures.creates[clients][-1]:.0f} creates/s with {clients} clients, "
                        f"p99 {figures.creates_ms[clients][-1]:.1f} ms, "
                        f"{figures.create_cpu_us[clients][-1]:.0f} us of processor each",
                    )
        self._say_lag("creates")

    def _full(self) -> None:
        for server in self._servers:
            with self._alone(server) as figures:
                fill(server)
                figures.full_mib = memory(server)
            say(server, f"with {OBJECTS} objects: {shown(figures.full_mib)} MiB resident")
        for _ in range(self._rounds + 2):
            for server in self._servers:
                with self._alone(server) as figures:
                    sizes = {one: measure_list(server, figures, encoding=one) for one in ("identity", "gzip")}
                for encoding, size in sizes.items():
                    milliseconds = figures.list_ms[encoding][-1]
                    say(server, f"list of {OBJECTS}, {encoding}: {milliseconds:.0f} ms, {size:.1f} MB")
        for server in self._servers:
            say(server, f"after lists: {shown(memory(server))} MiB resident")
        self._say_lag("lists")

    def _fan_outs(self) -> None:
        for server in self._servers:
            with self._alone(server) as figures:
                measure_fan_out(server, figures)
            p50, p99 = percentiles(figures.fan_out_ms)
            from_answer = percentiles(figures.from_answer_ms)
            say(
                server,
                f"{WATCHERS} watchers over TLS: p50 {p50:.0f}, p99 {p99:.0f} ms from before the write; "
                f"{from_answer[0]:.0f}, {from_answer[1]:.0f} ms from its answer; "
                f"{figures.event_cpu_us[-1]:.0f} us of processor for each event and watcher",
            )
        self._say_lag("watches")

    def _say_lag(self, what: str) -> None:
        worst = Lag(*map(max, zip(*self._lags, strict=True)))
        self._lags.clear()
        say(
            self._ours,
            f"loop lag during {what}: p50 {worst.p50:.1f}, p99 {worst.p99:.1f}, longest {worst.longest:.1f} ms",
        )


def say(server: Server, text: str) -> None:
    print(f"{server.name:15} {text}", flush=True)


def shown(memory: dict[str, float]) -> str:
    return ", ".join(f"{name} {mib:.0f}" for name, mib in memory.items())


def definitions(folder: Path | None) -> list[Any]:
    """CustomResourceDefinitions in the YAML files below a folder, each name once."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.yaml")) if folder else ():
        for document in yaml.safe_load_all(path.read_text()):
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                document.pop("status", None)
                found.setdefault(document["metadata"]["name"], document)
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4, help="of creates, for each number of clients and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to measure; a temporary folder otherwise")
    parser.add_argument("--alone", action="store_true", help="leave the real one out")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--crds", type=Path, help="folder with further definitions to install on both")
    arguments = parser.parse_args()
    raise_file_limit()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        bench = Bench(
            Path(folder),
            seconds=arguments.seconds,
            rounds=arguments.rounds,
            with_real=not arguments.alone,
            parts=arguments.parts,
            crds=definitions(arguments.crds),
        )
        bench.run()
    if not arguments.alone:
        ours, real = bench.figures["ironbell"], bench.figures["kube-apiserver"]
        print(f"\n{'':44} {'ironbell':>10} {'real':>10}")
        for row in rows(ours, real, objects=OBJECTS, watchers=WATCHERS):
            print(row.text())


def raise_file_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    main()

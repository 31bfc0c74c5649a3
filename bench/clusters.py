"""Many simulated clusters at once, or one large one: from `apply` to all Machines Running.

The product runs as it is (`ironbell up --simulate`, every process on its own): API and controllers in `core`, machines
and workload clusters in `lab`, joined by sockets. Simulated hosts take no time, so that what is measured is the
product. Objects are created over TLS with the administrator's kubeconfig, and watched until the last Machine runs.

It prints for each size: the time from the first create to the last Machine Running; processor time and the largest
resident memory of each process; how many versions the store has given (every write, events and leases included), by
Machine; and how late the event loop of `core` was, at the 99th percentile.

    python bench/clusters.py [--sizes 10,30,100] [--workers 0] [--keys ECDSA-P256|RSA-2048] [--folder DIR] [--goal]
    python bench/clusters.py --curve [--sizes 100,300,1000] [--goal]

`--sizes 1 --workers 1000` is one cluster with 1,000 workers. `--curve` is everything, in the table that
`docs/benchmarks.md` has: so many clusters with keys of both algorithms, and one cluster with so many workers. `--goal`
makes the status 1 when a goal is not met; goals of time are for 1,000, and reckoned at the rate of the largest size.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ironbell.api.bootstrap import KUBEADM_CONFIG_TEMPLATE
from ironbell.api.client import EventType, NotFound
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.kind import Collection
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.site.embeddedcluster import EmbeddedCluster

DEV_CLUSTER = Collection("infrastructure.cluster.x-k8s.io", "v1beta2", "devclusters", namespaced=True)
DEV_TEMPLATE = Collection("infrastructure.cluster.x-k8s.io", "v1beta2", "devmachinetemplates", namespaced=True)
NAMESPACE = "default"
VERSION = "v1.34.2"
AT_ONCE = 16
DEFINED_S = 60
P256, RSA = "ECDSA-P256", "RSA-2048"
GOAL_NUMBER = 1000
GOAL_CLUSTERS_S, GOAL_CLUSTERS_WRITES = 300.0, 120
GOAL_WORKERS_S, GOAL_WORKERS_WRITES = 180.0, 60
GOAL_LATE_S = 0.05
_NAMES = {"app.site.core": "core", "app.wire.boot": "boot", "app.wire.workflow": "workflow", "lab.sim.process": "lab"}
_BUCKET = re.compile(rb'^ironbell_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Process:
    """One process of the site, and what it has used."""

    name: str
    pid: int
    cpu_before_s: float = 0.0

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def peak_mib(self) -> float:
        match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        return int(match[1]) / 1024 if match else 0.0


@dataclass(frozen=True)
class Case:
    """What is measured on one site."""

    clusters: int
    workers: int = 0
    """Of each cluster."""
    keys: str = P256

    @property
    def machines(self) -> int:
        return self.clusters * (1 + self.workers)

    @property
    def text(self) -> str:
        if self.workers:
            return f"{self.clusters} of {self.workers:,} workers, {self.keys}"
        return f"{self.clusters:,} clusters, {self.keys}"


@dataclass
class Figures:
    """What one case came to. Lateness is that of the event loop of `core`, in seconds."""

    case: Case
    seconds: float
    writes: int
    late_p99_s: float
    cpu_s: dict[str, float] = field(default_factory=dict)
    peak_mib: dict[str, float] = field(default_factory=dict)

    @property
    def writes_per_machine(self) -> float:
        return self.writes / self.case.machines

    def text(self) -> str:
        machines = self.case.machines
        parts = [
            f"{self.case.text}: {self.seconds:.1f} s",
            f"{self.seconds / machines * 1e3:.0f} ms per machine",
            f"{self.writes_per_machine:.0f} writes per machine",
            f"loop late by {self.late_p99_s * 1e3:.0f} ms (p99)",
        ]
        for name, used in self.cpu_s.items():
            each_ms = used / machines * 1e3
            parts.append(f"{name} {used:.1f} s cpu, {each_ms:.0f} ms per machine, {self.peak_mib[name]:.0f} MiB")
        return ", ".join(parts)

    def row(self) -> str:
        """A line of the table in docs/benchmarks.md."""
        machines = self.case.machines
        cpu = " / ".join(f"{used / machines * 1e3:.0f}" for used in self.cpu_s.values())
        memory = " / ".join(f"{self.peak_mib[name]:.0f}" for name in self.cpu_s)
        writes, late_ms = self.writes_per_machine, self.late_p99_s * 1e3
        cells = [
            self.case.text, f"{self.seconds:.0f} s", f"{writes:.0f}", f"{cpu} ms", f"{memory} MiB", f"{late_ms:.0f} ms",
        ]  # fmt: skip
        return f"| {' | '.join(cells)} |"

    def missed(self) -> Iterator[str]:
        """The goals that are not met. Those of time are for P-256 and for 1,000, at the rate of this case."""
        number = self.case.workers or self.case.clusters
        limit_s = GOAL_WORKERS_S if self.case.workers else GOAL_CLUSTERS_S
        writes = GOAL_WORKERS_WRITES if self.case.workers else GOAL_CLUSTERS_WRITES
        reckoned_s = self.seconds / number * GOAL_NUMBER
        if self.case.keys == P256 and reckoned_s > limit_s:
            yield f"{self.case.text}: {GOAL_NUMBER} would take {reckoned_s:.0f} s, not {limit_s:.0f} s"
        if self.writes_per_machine > writes:
            yield f"{self.case.text}: {self.writes_per_machine:.0f} writes per machine, not {writes}"
        if self.late_p99_s > GOAL_LATE_S:
            yield f"{self.case.text}: the loop is late by {self.late_p99_s * 1e3:.0f} ms"


def objects(name: str, workers: int, keys: str) -> Iterator[tuple[Collection, dict[str, Any]]]:
    """The objects of one cluster."""

    def one(kind: Any, api_version: str, spec: dict[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
        }  # fmt: skip

    machines = {"apiGroup": DEV_TEMPLATE.group, "kind": "DevMachineTemplate", "name": name}
    backend: dict[str, Any] = {"backend": {"inMemory": {}}}
    yield DEV_CLUSTER, one("DevCluster", DEV_CLUSTER.api_version, backend)
    yield DEV_TEMPLATE, one("DevMachineTemplate", DEV_TEMPLATE.api_version, {"template": {"spec": backend}})
    yield KUBEADM_CONTROL_PLANE.collection, one("KubeadmControlPlane", KUBEADM_CONTROL_PLANE.api_version, {
        "replicas": 1, "version": VERSION, "machineTemplate": {"spec": {"infrastructureRef": machines}},
        "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": keys}},
    })  # fmt: skip
    yield CLUSTER.collection, one("Cluster", CLUSTER.api_version, {
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
        "controlPlaneRef": {"apiGroup": KUBEADM_CONTROL_PLANE.group, "kind": "KubeadmControlPlane", "name": name},
        "infrastructureRef": {"apiGroup": DEV_CLUSTER.group, "kind": "DevCluster", "name": name},
    })  # fmt: skip
    if workers:
        config = {"apiGroup": KUBEADM_CONFIG_TEMPLATE.group, "kind": "KubeadmConfigTemplate", "name": name}
        yield (
            KUBEADM_CONFIG_TEMPLATE.collection,
            one(
                "KubeadmConfigTemplate",
                KUBEADM_CONFIG_TEMPLATE.api_version,
                {"template": {"spec": {"format": "cloud-config"}}},
            ),
        )
        machine = {
            "clusterName": name, "version": VERSION, "bootstrap": {"configRef": config}, "infrastructureRef": machines,
        }  # fmt: skip
        yield MACHINE_DEPLOYMENT.collection, one("MachineDeployment", MACHINE_DEPLOYMENT.api_version, {
            "clusterName": name, "replicas": workers, "selector": {"matchLabels": {}}, "template": {"spec": machine},
        })  # fmt: skip


class Bench:
    """One site after the other, each for one case."""

    def __init__(self, folder: Path, timeout_s: float) -> None:
        self._folder, self._timeout_s = folder, timeout_s

    async def run(self, case: Case) -> Figures:
        """Measure one case on a site of its own."""
        site = EmbeddedCluster(self._folder / f"{case.clusters}-{case.workers}-{case.keys}", ("--simulate",))
        await asyncio.to_thread(site.start)
        try:
            async with HttpApi(from_kubeconfig([site.kubeconfig])) as api:
                await _defined(api)
                return await self._measure(api, case, processes_of(site))
        finally:
            await asyncio.to_thread(site.stop)

    async def _measure(self, api: HttpApi, case: Case, processes: list[Process]) -> Figures:
        before = int((await api.list(MACHINE.collection, NAMESPACE)).resource_version)
        late_before = await lateness(api)
        for process in processes:
            process.cpu_before_s = process.cpu_s()
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            done = group.create_task(all_running(api, case.machines, str(before), self._timeout_s))
            slots = asyncio.Semaphore(AT_ONCE)
            for number in range(case.clusters):
                group.create_task(_apply(api, slots, f"c{number}", case))
        seconds = done.result() - started
        after = int((await api.list(MACHINE.collection, NAMESPACE)).resource_version)
        late = await lateness(api)
        return Figures(
            case,
            seconds,
            after - before,
            quantile({bound: count - late_before.get(bound, 0.0) for bound, count in late.items()}, 0.99),
            {process.name: process.cpu_s() - process.cpu_before_s for process in processes},
            {process.name: process.peak_mib() for process in processes},
        )


async def _apply(api: HttpApi, slots: asyncio.Semaphore, name: str, case: Case) -> None:
    async with slots:
        for where, body in objects(name, case.workers, case.keys):
            await api.create(where, NAMESPACE, msgspec.json.encode(body))


async def lateness(api: HttpApi) -> dict[float, float]:
    """How often the loop of `core` was late by at most so many seconds, since it began."""
    found = _BUCKET.findall(await api.raw("GET", "/metrics", accept="text/plain"))
    return {float(bound): float(count) for bound, count in found}


def quantile(counts: dict[float, float], part: float) -> float:
    """The bound under which this part of the samples is; `counts` are of samples up to each bound. Within a bucket
    samples count as evenly spread, as Prometheus' `histogram_quantile` has it."""
    wanted, below, low = part * counts[math.inf], 0.0, 0.0
    for bound in sorted(counts):
        if counts[bound] >= wanted:
            if bound == math.inf or counts[bound] == below:
                return low
            return low + (bound - low) * (wanted - below) / (counts[bound] - below)
        below, low = counts[bound], bound
    return low


async def _defined(api: HttpApi) -> None:
    """Wait until the kinds of the simulation and of Cluster API are served."""
    async with asyncio.timeout(DEFINED_S):
        for where in (DEV_CLUSTER, DEV_TEMPLATE, CLUSTER.collection, KUBEADM_CONTROL_PLANE.collection):
            while True:
                try:
                    await api.list(where, NAMESPACE)
                    break
                except NotFound:
                    await asyncio.sleep(0.1)


async def all_running(api: HttpApi, wanted: int, since: str, timeout_s: float) -> float:
    """When the last Machine ran, in the time of `perf_counter`."""
    running: set[str] = set()
    shown = time.perf_counter()
    async with asyncio.timeout(timeout_s):
        while True:  # a watch ends after some minutes
            async for event in api.changes(MACHINE.collection, NAMESPACE, resource_version=since):
                since = event.resource_version or since
                if event.type is EventType.BOOKMARK:
                    continue
                machine = MACHINE.decode(event.body)
                if machine.status.phase == "Running":
                    running.add(machine.metadata.name)
                if len(running) >= wanted:
                    return time.perf_counter()
                if time.perf_counter() - shown > 10:
                    shown = time.perf_counter()
                    print(f"  {len(running)} of {wanted} machines run", flush=True)


def processes_of(site: EmbeddedCluster) -> list[Process]:
    assert site._process is not None
    found = []
    children = Path(f"/proc/{site._process.pid}/task/{site._process.pid}/children").read_text().split()
    for pid in children:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        match = re.search(r"-m ironbell\.([\w.]+)", command)
        found.append(Process(_NAMES.get(match[1], match[1]) if match else command[:20], int(pid)))
    return found


@contextmanager
def folder_of(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="ironbell-clusters-") as made:
        yield Path(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", help="numbers of clusters, with commas: 10,30,100; of a curve 100,300,1000")
    parser.add_argument("--workers", type=int, default=0, help="workers of each cluster")
    parser.add_argument("--keys", default=P256, help="key algorithm of the clusters")
    parser.add_argument("--curve", action="store_true", help="clusters of both key algorithms, and as many workers")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds for one size")
    parser.add_argument("--folder", type=Path, help="where the sites are kept")
    parser.add_argument("--goal", action="store_true", help="status 1 if the goals are not met")
    options = parser.parse_args()
    sizes = [int(text) for text in (options.sizes or ("100,300,1000" if options.curve else "10,30,100")).split(",")]
    cases = [Case(size, options.workers, options.keys) for size in sizes]
    if options.curve:
        cases = [Case(size, keys=P256) for size in sizes]
        cases += [Case(1, size) for size in sizes]
        cases += [Case(size, keys=RSA) for size in sizes]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}, {commit.strip()}", flush=True)
    figures = []
    with folder_of(options.folder) as folder:
        bench = Bench(folder, options.timeout)
        for case in cases:
            figures.append(asyncio.run(bench.run(case)))
            print(figures[-1].text(), flush=True)
    names = " / ".join(figures[-1].cpu_s)
    print(f"\n| | time | writes per machine | processor per machine, {names} | memory | loop late by, p99 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for one in figures:
        print(one.row())
    # Of a curve its last point counts: what one machine costs is dearest where there are few.
    largest = {(one.case.workers > 0, one.case.keys): one for one in figures}
    missed = [text for one in largest.values() for text in one.missed()]
    print("\n" + ("\n".join(f"NOT MET: {text}" for text in missed) or "all goals met"))
    if options.goal and missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

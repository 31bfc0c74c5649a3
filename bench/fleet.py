"""Many clusters on simulated servers, or one large one: from `apply` to all Machines Running, from power-on to a node.

The product runs as it is (`ironbell up --simulate N`, every process on its own): API and controllers in `core`, servers
toward machines in `boot` and `workflow`; simulated servers and workload clusters in `lab`, joined by sockets. Simulated
servers take no time, so that what is measured is the product: a Machine finds its server, which is powered on by its
BMC, netboots, is installed by a Workflow, fetches its user data, and joins.

It prints for each size: the time until all servers are registered and their BMCs have told their inventory; the time
from the first create to the last Machine Running; processor time and the largest resident memory of each process;
writes by Machine; how late the event loop of `core` was; and what the processes take afterwards, when nothing happens.

    python bench/fleet.py [--sizes 100,300,1000] [--idle 30] [--folder DIR] [--goal]
    python bench/fleet.py --workers [--sizes 100,300,1000]

`--workers` is one cluster of so many workers instead of so many clusters of one machine. `--goal` makes the status 1
when a goal is not met; goals of time are for 1,000, and reckoned at the rate of the largest size.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import msgspec

from ironbell.api.client import NotFound
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.kind import Collection
from ironbell.api.tinkerbell import HARDWARE
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from clusters import (
    AT_ONCE,
    DEFINED_S,
    GOAL_LATE_S,
    GOAL_NUMBER,
    NAMESPACE,
    Process,
    all_running,
    folder_of,
    lateness,
    processes_of,
    quantile,
)

from support.fleet.clusters import cluster
from support.ports import free_ports
from support.site.embeddedcluster import EmbeddedCluster

GOAL_CLUSTERS_S, GOAL_WORKERS_S = 300.0, 180.0
GOAL_IDLE_CORES, GOAL_IDLE_MIB = 0.2, 1024.0
SPARE = 4
"""Servers that nobody takes."""
_FIRST = int(IPv4Address("127.99.0.1"))
_KINDS = {"Cluster": "clusters", "KubeadmControlPlane": "kubeadmcontrolplanes"}


@dataclass(frozen=True)
class Case:
    """What is measured on one site."""

    clusters: int
    workers: int = 0

    @property
    def machines(self) -> int:
        return self.clusters * (1 + self.workers)

    @property
    def text(self) -> str:
        return f"1 cluster of {self.workers:,} workers" if self.workers else f"{self.clusters:,} clusters"


@dataclass
class Figures:
    """What one case came to; processor time and memory by process."""

    case: Case
    registered_s: float
    seconds: float
    writes: int
    late_p99_s: float
    cpu_s: dict[str, float]
    peak_mib: dict[str, float]
    idle_cores: dict[str, float]
    idle_mib: dict[str, float]

    def text(self) -> str:
        machines = self.case.machines
        parts = [
            f"{self.case.text}: servers known after {self.registered_s:.1f} s, all Running after {self.seconds:.1f} s",
            f"{self.seconds / machines * 1e3:.0f} ms per machine",
            f"{self.writes / machines:.0f} writes per machine",
            f"loop late by {self.late_p99_s * 1e3:.0f} ms (p99)",
        ]
        for name, used in self.cpu_s.items():
            parts.append(
                f"{name} {used / machines * 1e3:.0f} ms cpu per machine, {self.peak_mib[name]:.0f} MiB, idle "
                f"{self.idle_cores[name]:.3f} cores {self.idle_mib[name]:.0f} MiB"
            )
        return ", ".join(parts)

    def row(self) -> str:
        """A line of the table in docs/benchmarks.md."""
        machines = self.case.machines
        cpu = " / ".join(f"{used / machines * 1e3:.0f}" for used in self.cpu_s.values())
        memory = " / ".join(f"{used:.0f}" for used in self.peak_mib.values())
        idle = " / ".join(f"{used:.2f}" for used in self.idle_cores.values())
        cells = [
            self.case.text, f"{self.seconds:.0f} s", f"{self.writes / machines:.0f}", f"{cpu} ms", f"{memory} MiB",
            f"{self.late_p99_s * 1e3:.0f} ms", idle,
        ]  # fmt: skip
        return f"| {' | '.join(cells)} |"

    def missed(self) -> Iterator[str]:
        """The goals that are not met; those of time at the rate of this case."""
        number = self.case.workers or self.case.clusters
        limit_s = GOAL_WORKERS_S if self.case.workers else GOAL_CLUSTERS_S
        reckoned_s = self.seconds / number * GOAL_NUMBER
        if reckoned_s > limit_s:
            yield f"{self.case.text}: {GOAL_NUMBER} would take {reckoned_s:.0f} s, not {limit_s:.0f} s"
        if self.late_p99_s > GOAL_LATE_S:
            yield f"{self.case.text}: the loop is late by {self.late_p99_s * 1e3:.0f} ms"
        product = [name for name in self.idle_cores if name != "lab"]
        cores, mib = sum(self.idle_cores[one] for one in product), sum(self.idle_mib[one] for one in product)
        if cores > GOAL_IDLE_CORES:
            yield f"{self.case.text}: idle takes {cores:.2f} cores, not {GOAL_IDLE_CORES}"
        if mib > GOAL_IDLE_MIB:
            yield f"{self.case.text}: idle takes {mib:.0f} MiB, not {GOAL_IDLE_MIB:.0f}"


async def run(case: Case, folder: Path, *, timeout_s: float, idle_s: float) -> Figures:
    """Measure one case on a site of its own."""
    http, grpc = free_ports(2)
    servers = case.machines + SPARE
    ports = ("--http-port", str(http), "--grpc-port", str(grpc), "--workflow-http-port", "0")
    site = EmbeddedCluster(folder / f"{case.clusters}-{case.workers}", ("--simulate", str(servers), *ports))
    began = time.perf_counter()
    await asyncio.to_thread(site.start)
    try:
        async with HttpApi(from_kubeconfig([site.kubeconfig])) as api:
            await _registered(api, servers, timeout_s)
            registered_s = time.perf_counter() - began
            return await _measure(api, case, processes_of(site), registered_s, timeout_s, idle_s)
    finally:
        await asyncio.to_thread(site.stop)


async def _measure(
    api: HttpApi, case: Case, processes: list[Process], registered_s: float, timeout_s: float, idle_s: float
) -> Figures:
    before = int((await api.list(MACHINE.collection, NAMESPACE)).resource_version)
    late_before = await lateness(api)
    for process in processes:
        process.cpu_before_s = process.cpu_s()
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        done = group.create_task(all_running(api, case.machines, str(before), timeout_s))
        slots = asyncio.Semaphore(AT_ONCE)
        for number in range(case.clusters):
            address = str(IPv4Address(_FIRST + number))
            group.create_task(_apply(api, slots, cluster(f"c{number}", address, workers=case.workers, spread=False)))
    seconds = done.result() - started
    after = int((await api.list(MACHINE.collection, NAMESPACE)).resource_version)
    late = await lateness(api)
    used = {process.name: process.cpu_s() - process.cpu_before_s for process in processes}
    peaks = {process.name: process.peak_mib() for process in processes}
    # what came of the last ones is still being written down
    await asyncio.sleep(min(idle_s, 10.0))
    for process in processes:
        process.cpu_before_s = process.cpu_s()
    await asyncio.sleep(idle_s)
    return Figures(
        case,
        registered_s,
        seconds,
        after - before,
        quantile({bound: count - late_before.get(bound, 0.0) for bound, count in late.items()}, 0.99),
        used,
        peaks,
        {process.name: (process.cpu_s() - process.cpu_before_s) / max(idle_s, 1.0) for process in processes},
        {process.name: _resident_mib(process) for process in processes},
    )


async def _registered(api: HttpApi, servers: int, timeout_s: float) -> None:
    """Wait until Cluster API is served, and all servers have been asked what is in them."""
    async with asyncio.timeout(DEFINED_S):
        for where in (CLUSTER.collection, KUBEADM_CONTROL_PLANE.collection):
            while True:
                try:
                    await api.list(where, NAMESPACE)
                    break
                except NotFound:
                    await asyncio.sleep(0.1)
    async with asyncio.timeout(timeout_s):
        while True:
            found = [HARDWARE.decode(body) for body in (await api.list(HARDWARE.collection, NAMESPACE)).items]
            if sum(1 for one in found if one.status.attributes is not None) >= servers:
                return
            await asyncio.sleep(1.0)


async def _apply(api: HttpApi, slots: asyncio.Semaphore, documents: list[dict[str, Any]]) -> None:
    async with slots:
        for document in documents:
            group, _, version = document["apiVersion"].partition("/")
            plural = _KINDS.get(document["kind"], document["kind"].lower() + "s")
            where = Collection(group, version, plural, namespaced=True)
            await api.create(where, NAMESPACE, msgspec.json.encode(document))


def _resident_mib(process: Process) -> float:
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default="100,300,1000", help="numbers of clusters or workers, with commas")
    parser.add_argument("--workers", action="store_true", help="one cluster of so many workers")
    parser.add_argument("--idle", type=float, default=30.0, help="seconds to look at what happens afterwards")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds for one size")
    parser.add_argument("--folder", type=Path, help="where the sites are kept")
    parser.add_argument("--goal", action="store_true", help="status 1 if the goals are not met")
    options = parser.parse_args()
    sizes = [int(text) for text in options.sizes.split(",")]
    cases = [Case(1, size) if options.workers else Case(size) for size in sizes]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}, {commit.strip()}", flush=True)
    figures = []
    with folder_of(options.folder) as folder:
        for case in cases:
            figures.append(asyncio.run(run(case, folder, timeout_s=options.timeout, idle_s=options.idle)))
            print(figures[-1].text(), flush=True)
    names = " / ".join(figures[-1].cpu_s)
    print(
        f"\n| | time | writes per machine | processor per machine, {names} | memory | loop late by, p99 | idle cores |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for one in figures:
        print(one.row())
    missed = list(figures[-1].missed())
    print("\n" + ("\n".join(f"NOT MET: {text}" for text in missed) or "all goals met"))
    if options.goal and missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

"""Many simulated clusters at once, or one large one: from `apply` to all Machines Running.

The product runs as it is (`ironbell up --simulate`, every process on its own): API and controllers in `core`, machines
and workload clusters in `lab`, joined by sockets. Simulated hosts take no time, so that what is measured is the
product. Objects are created over TLS with the administrator's kubeconfig, and watched until the last Machine runs.

It prints for each size: the time from the first create to the last Machine Running; processor time and the largest
resident memory of each process; how many versions the store has given (every write, events and leases included), by
Machine; and how late the event loop of `core` was.

    python bench/clusters.py [--sizes 10,30,100] [--workers 0] [--keys ECDSA-P256|RSA-2048] [--folder DIR] [--goal]

`--sizes 1 --workers 1000` is one cluster with 1,000 workers. `--goal` makes the status 1 when 1,000 clusters would not
be done in five minutes, or a Machine costs more than 120 writes.
"""

from __future__ import annotations

import argparse
import asyncio
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
from ironbell.kube.connection import from_kubeconfig
from ironbell.kube.http import HttpApi

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.embeddedcluster import EmbeddedCluster

DEV_CLUSTER = Collection("infrastructure.cluster.x-k8s.io", "v1beta2", "devclusters", namespaced=True)
DEV_TEMPLATE = Collection("infrastructure.cluster.x-k8s.io", "v1beta2", "devmachinetemplates", namespaced=True)
NAMESPACE = "default"
VERSION = "v1.34.2"
AT_ONCE = 16
DEFINED_S = 60
GOAL_S, GOAL_CLUSTERS, GOAL_WRITES = 300.0, 1000, 120
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


@dataclass
class Figures:
    """What one size came to."""

    clusters: int
    machines: int
    seconds: float
    writes: int
    cpu_s: dict[str, float] = field(default_factory=dict)
    peak_mib: dict[str, float] = field(default_factory=dict)

    @property
    def writes_per_machine(self) -> float:
        return self.writes / self.machines

    def text(self) -> str:
        parts = [
            f"{self.clusters} clusters, {self.machines} machines: {self.seconds:.1f} s",
            f"{self.seconds / self.clusters * 1e3:.0f} ms per cluster",
            f"{self.writes_per_machine:.0f} writes per machine",
        ]
        parts += [f"{name} {used:.1f} s cpu, {self.peak_mib[name]:.0f} MiB" for name, used in self.cpu_s.items()]
        return ", ".join(parts)


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
    """One site after the other, each with clusters of one number."""

    def __init__(self, folder: Path, workers: int, keys: str, timeout_s: float) -> None:
        self._folder, self._workers, self._keys, self._timeout_s = folder, workers, keys, timeout_s

    async def run(self, clusters: int) -> Figures:
        """Measure one size on a site of its own."""
        site = EmbeddedCluster(self._folder / f"{clusters}-{self._workers}", ("--simulate",))
        await asyncio.to_thread(site.start)
        try:
            async with HttpApi(from_kubeconfig([site.kubeconfig])) as api:
                await _defined(api)
                return await self._measure(api, clusters, _processes(site))
        finally:
            await asyncio.to_thread(site.stop)

    async def _measure(self, api: HttpApi, clusters: int, processes: list[Process]) -> Figures:
        machines = clusters * (1 + self._workers)
        before = int((await api.list(MACHINE.collection, NAMESPACE)).resource_version)
        for process in processes:
            process.cpu_before_s = process.cpu_s()
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            done = group.create_task(_all_running(api, machines, str(before), self._timeout_s))
            slots = asyncio.Semaphore(AT_ONCE)
            for number in range(clusters):
                group.create_task(self._apply(api, slots, f"c{number}"))
        seconds = done.result() - started
        after = int((await api.list(MACHINE.collection, NAMESPACE)).resource_version)
        return Figures(
            clusters,
            machines,
            seconds,
            after - before,
            {process.name: process.cpu_s() - process.cpu_before_s for process in processes},
            {process.name: process.peak_mib() for process in processes},
        )

    async def _apply(self, api: HttpApi, slots: asyncio.Semaphore, name: str) -> None:
        async with slots:
            for where, body in objects(name, self._workers, self._keys):
                await api.create(where, NAMESPACE, msgspec.json.encode(body))


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


async def _all_running(api: HttpApi, wanted: int, since: str, timeout_s: float) -> float:
    """When the last Machine ran, in the time of `perf_counter`."""
    running: set[str] = set()
    shown = time.perf_counter()
    async with asyncio.timeout(timeout_s):
        async for event in api.watch(MACHINE.collection, NAMESPACE, resource_version=since):
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
    raise SystemExit("the watch ended early")


def _processes(site: EmbeddedCluster) -> list[Process]:
    assert site._process is not None
    found = []
    children = Path(f"/proc/{site._process.pid}/task/{site._process.pid}/children").read_text().split()
    for pid in children:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        match = re.search(r"-m ironbell\.([\w.]+)", command)
        found.append(Process(match[1].rpartition(".")[2] if match else command[:20], int(pid)))
    return found


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="ironbell-clusters-") as made:
        yield Path(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default="10,30,100", help="numbers of clusters, with commas")
    parser.add_argument("--workers", type=int, default=0, help="workers of each cluster")
    parser.add_argument("--keys", default="ECDSA-P256", help="key algorithm of the clusters")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one size")
    parser.add_argument("--folder", type=Path, help="where the sites are kept")
    parser.add_argument("--goal", action="store_true", help="status 1 if the goals are not met")
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}, {options.keys}, {commit.strip()}", flush=True)
    figures = []
    with _folder(options.folder) as folder:
        bench = Bench(folder, options.workers, options.keys, options.timeout)
        for size in [int(text) for text in options.sizes.split(",")]:
            figures.append(asyncio.run(bench.run(size)))
            print(figures[-1].text(), flush=True)
    last = figures[-1]
    in_time = last.seconds / last.clusters * GOAL_CLUSTERS <= GOAL_S or last.clusters == 1
    few_writes = last.writes_per_machine <= GOAL_WRITES
    print(f"goal of 1,000 clusters in {GOAL_S:.0f} s at the last rate: {'met' if in_time else 'NOT MET'}")
    print(f"goal of {GOAL_WRITES} writes per machine: {'met' if few_writes else 'NOT MET'}")
    if options.goal and not (in_time and few_writes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

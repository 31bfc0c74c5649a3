"""The life of a real cluster: three control planes and two workers on namespace machines, by real kubeadm.

It begins one minor version below the one that it ends with. One address moves between the control planes by
keepalived. Nothing is spare: a server that is replaced is its own replacement, wiped and installed anew.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ironbell.demo.disks import holds, is_blank
from ironbell.lab.files import read_state
from support.kubeadm.cluster import (
    CLUSTER,
    RELEASE,
    RELEASE_BEFORE,
    SUBNET,
    WRITTEN,
    KubeadmSite,
    cluster,
    health_checks,
    kubeadm_site,
    lab_file,
    power_cycle_first,
    tenant,
    upgrade_artefacts,
    writer,
)
from support.skips import needs_root

pytestmark = [
    pytest.mark.root,
    pytest.mark.kubeadm,
    needs_root,
]

ENDPOINT = "192.168.79.5"
CONTROL_PLANES, WORKERS = {"cp-1", "cp-2", "cp-3"}, {"w-1", "w-2"}
ALL = CONTROL_PLANES | WORKERS
_IRONBELL = (sys.executable, "-m", "ironbell.cli.main")
NODES_S, STEP_S, ENDPOINT_S, UPGRADE_S = 900, 600, 60, 1800


@dataclass
class Replicas:
    """How many of a Deployment's two were available at every look."""

    least: int = 2
    looks: int = 0

    def tell(self, name: str) -> None:
        print(f"  {name}: {self.looks} looks, at least {self.least} of 2 replicas available")


async def test_a_cluster_lives_through_scaling_failures_and_an_upgrade(tmp_path: Path, kubectl_binary: Path) -> None:
    """Each stage says how long it took."""
    artefacts = upgrade_artefacts(RELEASE_BEFORE, RELEASE)
    started = time.monotonic()
    lab = lab_file(control_planes=3, workers=2, subnet=SUBNET.format(79))
    async with kubeadm_site(tmp_path, kubectl_binary, artefacts, lab) as site:
        await site.apply(*site.hardware())
        documents = cluster(
            site, endpoint=ENDPOINT, control_planes=3, workers=2, release=RELEASE_BEFORE, shared_endpoint=True
        )
        await site.apply(*documents)
        took = await site.until(lambda: _ready(site, ALL), within_s=NODES_S, what="five nodes Ready")
        _tell("five nodes Ready from power-off", took)
        assert site.inside is not None
        await site.inside.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(tenant()))
        await site.until(lambda: _available(site, 2), within_s=STEP_S, what="two replicas of the tenant")
        _tell_memory(site)
        async with _watched(site, "tenant") as seen:
            await _scale(site)
            await _wake_worker(site)
            await site.apply(*health_checks())
            await _kill_worker(site)
            await _kill_holder(site)
            await _upgrade(site)
        seen.tell("tenant")
        assert seen.least >= 1
        _tell_memory(site)
        _tell("all of it", time.monotonic() - started)


async def _scale(site: KubeadmSite) -> None:
    """Down to one worker, whose pods have gone elsewhere and whose server's disk is blank afterwards, and up again."""
    machine = await _write_on(site, "w-2")
    async with _watched(site, "writer") as seen:
        await site.kubectl.ok("scale", "machinedeployment", f"{CLUSTER}-w", "--replicas=1")
        await site.until(lambda: _has_moved(site, "w-2"), within_s=STEP_S, what="a pod elsewhere")
        assert site.power("w-2") == "On", "pods are moved before the machine goes"
        took = await site.until(lambda: _one_worker_is_free(site), within_s=STEP_S, what="one worker's server free")
        await site.until(lambda: _available(site, 2, "writer"), within_s=STEP_S, what="both writers elsewhere")
    seen.tell("writer")
    assert seen.least >= 1, "the budget was kept: both were on the node that went"
    assert site.power("w-2") == "Off"
    certificate = json.loads((await site.get("hardware", "w-2"))["metadata"]["annotations"]["ironbell.dev/wiped"])
    assert (certificate["machine"], certificate["wiped"]) == (f"default/{machine}", True)
    assert [one["complete"] for one in certificate["results"]] == [True]
    assert not holds(site.disk("w-2"), WRITTEN.encode())
    assert is_blank(site.disk("w-2"))
    _tell("scaled down, pods moved, the disk blank", took)
    assert site.inside is not None
    await site.inside.ok("delete", "deployment,poddisruptionbudget", "writer")
    await site.kubectl.ok("scale", "machinedeployment", f"{CLUSTER}-w", "--replicas=2")
    took = await site.until(lambda: _ready(site, ALL), within_s=STEP_S, what="five nodes again")
    await site.until(lambda: _available(site, 2), within_s=STEP_S, what="two replicas again")
    _tell("scaled up", took)


async def _write_on(site: KubeadmSite, name: str) -> str:
    """Both pods of a Deployment write to the disk of one worker, which is the next to go; its Machine."""
    assert site.inside is not None
    (other,) = WORKERS - {name}
    await site.inside.ok("cordon", other)
    documents = writer(site.artefacts.image(RELEASE_BEFORE, "etcd"))
    await site.inside.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))
    await site.until(lambda: _available(site, 2, "writer"), within_s=STEP_S, what="two writers")
    await site.inside.ok("uncordon", other)
    assert await _places(site, "writer") == {name}

    async def is_there() -> bool:
        return await asyncio.to_thread(holds, site.disk(name), WRITTEN.encode())

    await site.until(is_there, within_s=60, what="what the pods wrote, on the disk")
    machine = (await _machines(site))[name]
    mark = "cluster.x-k8s.io/delete-machine=yes"
    await site.kubectl.ok("annotate", "machines.cluster.x-k8s.io", machine, mark)
    return machine


async def _wake_worker(site: KubeadmSite) -> None:
    """A worker that is found switched off is switched on by remediation, and is the same Machine and Node."""
    await site.apply(*power_cycle_first())
    machines, node = await _machines(site), (await site.get_inside("node", "w-2"))["metadata"]["uid"]
    await _cut_power(site, "w-2")
    starts = read_state(site.site.data_dir).machine("w-2").starts
    took = await site.until(lambda: _is_remedied(site), within_s=STEP_S, what="the remediation")
    took += await site.until(lambda: _ready(site, ALL), within_s=STEP_S, what="five nodes after a power cycle")
    assert (await site.get_inside("node", "w-2"))["metadata"]["uid"] == node
    assert await _machines(site) == machines
    assert read_state(site.site.data_dir).machine("w-2").starts == starts + 1
    _tell("worker found off, and switched on", took)


async def _kill_worker(site: KubeadmSite) -> None:
    """A worker loses its power; the health check has it replaced."""
    await _cut_power(site, "w-2")
    before = await _machines(site)
    took = await site.until(lambda: _replaced(site, "w-2", before), within_s=STEP_S, what="the worker replaced")
    await site.until(lambda: _ready(site, ALL), within_s=STEP_S, what="five nodes after a worker's end")
    _tell("dead worker replaced by its health check", took)


async def _kill_holder(site: KubeadmSite) -> None:
    """The control plane that holds the address loses its power; the API is back soon, and the control plane whole."""
    holder = next(name for name in sorted(CONTROL_PLANES) if _holds_endpoint(site, name))
    before = await _machines(site)
    await _cut_power(site, holder)
    took = await site.until(lambda: _api_answers(site), within_s=ENDPOINT_S, what="the API at its address again")
    _tell(f"API back after {holder}, which held its address, was killed", took)
    took = await site.until(lambda: _replaced(site, holder, before), within_s=STEP_S, what="the control plane replaced")
    await site.until(lambda: _ready(site, ALL), within_s=STEP_S, what="five nodes after a control plane's end")
    _tell("dead control plane replaced by its health check", took)


async def _upgrade(site: KubeadmSite) -> None:
    """One command replaces all machines, the control plane's first; then CoreDNS is given its image."""
    words = ["cluster", "upgrade", CLUSTER, "--kubernetes-version", RELEASE, "--kubeconfig", str(site.site.kubeconfig)]
    upgrade = await asyncio.create_subprocess_exec(*_IRONBELL, *words)
    try:
        took = await site.until(
            lambda: _has_ready(site, CONTROL_PLANES, RELEASE),
            within_s=UPGRADE_S,
            what="control plane upgraded",
        )
        _tell(f"control plane from {RELEASE_BEFORE} to {RELEASE}", took)
        took = await site.until(lambda: _ready(site, ALL, RELEASE), within_s=UPGRADE_S, what="workers upgraded")
        _tell("workers after it", took)
        async with asyncio.timeout(STEP_S):
            assert await upgrade.wait() == 0
        made = {node["metadata"]["name"]: node["metadata"]["creationTimestamp"] for node in await _nodes(site)}
        assert max(made[name] for name in CONTROL_PLANES) <= min(made[name] for name in WORKERS)
    finally:
        if upgrade.returncode is None:
            upgrade.kill()
            await upgrade.wait()
    machines, wanted = await _machines(site), site.artefacts.upgraded(RELEASE_BEFORE, RELEASE)
    dns = {"dns": {"imageTag": wanted["coredns"].rpartition(":")[2]}}
    body = {"spec": {"kubeadmConfigSpec": {"clusterConfiguration": dns}}}
    await site.kubectl.ok("patch", "kubeadmcontrolplane", f"{CLUSTER}-cp", "--type=merge", "-p", json.dumps(body))
    what = "the cluster's own pods of the new version"
    took = await site.until(lambda: _runs(site, wanted), within_s=STEP_S, what=what)
    _tell(f"{what}, etcd {wanted['etcd']} and CoreDNS {wanted['coredns']} among them", took)
    assert await _machines(site) == machines


@asynccontextmanager
async def _watched(site: KubeadmSite, name: str) -> AsyncIterator[Replicas]:
    """Look at a Deployment all the time. An API that does not answer tells nothing about it."""
    seen = Replicas()

    async def look() -> None:
        while True:
            found = await site.get_inside("deployment", name)
            if found:
                seen.looks += 1
                seen.least = min(seen.least, found["status"].get("availableReplicas", 0))
            await asyncio.sleep(1)  # until cancelled

    task = asyncio.create_task(look())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _ready(site: KubeadmSite, names: set[str], release: str = RELEASE_BEFORE) -> bool:
    return await site.ready_nodes() == dict.fromkeys(names, release)


async def _has_ready(site: KubeadmSite, names: set[str], release: str) -> bool:
    return dict.fromkeys(names, release).items() <= (await site.ready_nodes()).items()


async def _nodes(site: KubeadmSite) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = (await site.get_inside("nodes"))["items"]
    return nodes


async def _available(site: KubeadmSite, count: int, name: str = "tenant") -> bool:
    found = await site.get_inside("deployment", name)
    return bool(found) and found["status"].get("availableReplicas", 0) == count


async def _places(site: KubeadmSite, name: str) -> set[str]:
    """The nodes of a Deployment's pods that are ready."""
    pods = (await site.get_inside("pods", "-l", f"app={name}")).get("items", [])
    return {
        pod["spec"]["nodeName"]
        for pod in pods
        if any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))
    }


async def _has_moved(site: KubeadmSite, name: str) -> bool:
    return bool(await _places(site, "writer") - {name})


async def _is_remedied(site: KubeadmSite) -> bool:
    """Whether a health check has had a server switched off and on."""
    found = (await site.get("tinkerbellremediations"))["items"]
    return any(one.get("status", {}).get("phase") == "WaitingForRecovery" for one in found)


async def _one_worker_is_free(site: KubeadmSite) -> bool:
    found = (await site.get("hardware"))["items"]
    free = [one for one in found if "ironbell.dev/claimed-by" not in one["metadata"]["annotations"]]
    return len(free) == 1 and site.power(free[0]["metadata"]["name"]) == "Off"


async def _machines(site: KubeadmSite) -> dict[str, str]:
    """The Machine of each node."""
    found = (await site.get("machines.cluster.x-k8s.io"))["items"]
    return {
        one["status"]["nodeRef"]["name"]: one["metadata"]["name"] for one in found if "nodeRef" in one.get("status", {})
    }


async def _replaced(site: KubeadmSite, name: str, before: dict[str, str]) -> bool:
    now = (await _machines(site)).get(name)
    return now is not None and now != before[name] and name in await site.ready_nodes()


async def _runs(site: KubeadmSite, wanted: dict[str, str]) -> bool:
    """Whether all pods of the cluster's own have these images, by name of the container, and are ready."""
    found: dict[str, set[str]] = {}
    for pod in (await site.get_inside("pods", "-n", "kube-system")).get("items", []):
        name, image = pod["spec"]["containers"][0]["name"], pod["spec"]["containers"][0]["image"]
        conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", [])}
        found.setdefault(name, set()).add(image if conditions.get("Ready") == "True" else f"{image}, not ready")
    return {name: {image} for name, image in wanted.items() if name != "pause"}.items() <= found.items()


async def _api_answers(site: KubeadmSite) -> bool:
    return bool(await site.get_inside("namespace", "default"))


async def _cut_power(site: KubeadmSite, name: str) -> None:
    """As by hand, behind the back of everybody."""
    command = ["lab", "power", "--data-dir", str(site.site.data_dir), name, "off"]
    process = await asyncio.create_subprocess_exec(*_IRONBELL, *command, stdout=asyncio.subprocess.DEVNULL)
    assert await process.wait() == 0


def _holds_endpoint(site: KubeadmSite, name: str) -> bool:
    place = [machine.name for machine in site.site.lab.machines].index(name)
    inside = f"{Path(site.site.lab.network_namespace).name}-{place}"
    shown = subprocess.run(["ip", "-n", inside, "-br", "address"], capture_output=True, text=True, check=False).stdout
    return ENDPOINT in shown


def _tell(what: str, took_s: float) -> None:
    print(f"{time.strftime('%H:%M:%S')} {took_s:6.0f} s  {what}", flush=True)


def _tell_memory(site: KubeadmSite) -> None:
    """What each machine's processes hold, the page cache aside."""
    for folder in sorted(Path("/sys/fs/cgroup").glob(f"memory/{Path(site.site.lab.network_namespace).name}-*")):
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        print(f"  {folder.name.partition('-')[2]}: {int(stat['total_rss']) >> 20} MiB of memory", flush=True)

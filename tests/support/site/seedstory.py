"""The life that seed 000 describes, lived once on virtual time and written down, for its acceptance tests.

A cluster is asked for, its servers are chosen, installed and joined; it is scaled, upgraded, healed and scaled down.
What is given back becomes another cluster, and that is deleted.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.client import NotFound
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.kind import Collection
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.store.entry import Change
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.servers.rack import NAMESPACE, Server
from support.servers.racksite import RackSite, documents, rack_site

NODES = Collection("", "v1", "nodes", namespaced=False)
NUC = {"vendor": "Intel", "name": "NUC12WSHi7"}
SERVER = {"vendor": "Dell Inc.", "name": "PowerEdge R640"}
PROFILE = {"model": "NUC*", "cpuCores": 8, "memory": "16Gi", "disks": {"count": 1, "size": "200G"}}
LIBRARY = """version: "0.1"
name: from-the-library
global_timeout: 1800
tasks:
- name: install
  worker: "{{ .device_1 }}"
  actions:
  - {name: wipe, image: wipe, timeout: 60, environment: {DEST_DISK: /dev/sda}}
  - {name: partition, image: rootio, timeout: 60, command: [partition]}
  - {name: format, image: rootio, timeout: 60, command: [format]}
  - {name: install, image: archive2disk, timeout: 600, environment: {DEST_DISK: /dev/sda2, FS_TYPE: ext4, DEST_PATH: /}}
  - name: network
    image: network
    timeout: 60
    environment:
      DEST_DISK: /dev/sda
      INTERFACES: {{ .hardware.spec.interfaces | toJson | quote }}
  - {name: kubelet, image: cexec, timeout: 60, environment: {CMD_LINE: systemctl enable kubelet}}
  - {name: reboot, image: reboot, timeout: 60}
"""
_KINDS = (CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, KUBEADM_CONTROL_PLANE)
_KINDS += (TINKERBELL_CLUSTER, TINKERBELL_MACHINE, HARDWARE, TEMPLATE, WORKFLOW)  # type: ignore[assignment]


@dataclass
class Chapter:
    """What there was at one moment."""

    at_s: float
    objects: dict[str, list[Any]]
    nodes: dict[str, dict[str, Any]]
    servers: dict[str, dict[str, Any]]

    def machines(self, *, control_plane: bool = False) -> list[Any]:
        label = "cluster.x-k8s.io/control-plane"
        return [one for one in self.objects["Machine"] if (label in one.metadata.labels) is control_plane]

    def one(self, kind: str, name: str) -> Any:
        return next(one for one in self.objects[kind] if one.metadata.name == name)

    def hardware_of(self, machine: Any) -> Any:
        return self.one("Hardware", self.one("TinkerbellMachine", machine.metadata.name).spec.hardware_name)


@dataclass
class Story:
    """Everything that was written down."""

    chapters: dict[str, Chapter] = field(default_factory=dict)
    revisions: dict[str, list[tuple[float, Any]]] = field(default_factory=lambda: defaultdict(list))
    """All revisions by kind, with their time."""
    user_data: dict[str, str] = field(default_factory=dict)
    """What each installed system was given."""
    facts: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: str, name: str) -> list[Any]:
        return [one for _, one in self.revisions[kind] if one.metadata.name == name]


def live() -> Story:
    """Live it."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_live())


async def _live() -> Story:
    story = Story()
    async with rack_site(0) as world:
        world.site.server.context.store.listen(lambda change: _note(story, world, change))
        for number in range(6):
            await _server(world, number, SERVER if number < 2 else NUC)
        await _one(world, story)
        await _scaled_and_upgraded(world, story)
        await _healed(world, story)
        await _given_back(world, story)
        story.user_data = dict(world.rack.user_data)
    return story


def _cluster(**more: Any) -> list[dict[str, Any]]:
    """The first cluster's manifest: workers ask for a hardware profile, the control plane for a server."""
    made = documents(workers=3, surge=0, cluster={"failureDomainLabel": "rack"}, **more)
    for document in made:
        if document["kind"] == "TinkerbellMachineTemplate":
            wanted = PROFILE if "-md-0" in document["metadata"]["name"] else {"model": "PowerEdge*"}
            document["spec"]["template"]["spec"] = {
                **document["spec"]["template"]["spec"],
                "hardwareRequirements": wanted,
            }
        if document["kind"] == "KubeadmControlPlane":
            document["spec"]["rollout"]["strategy"]["rollingUpdate"]["maxSurge"] = 1
    return [*made, *_health_check()]


def _health_check() -> list[dict[str, Any]]:
    group, metadata = "infrastructure.cluster.x-k8s.io/v1beta1", {"namespace": NAMESPACE, "name": "heal"}
    template = {"apiVersion": group, "kind": "TinkerbellRemediationTemplate"}
    conditions = [{"type": "Ready", "status": status, "timeoutSeconds": 120} for status in ("Unknown", "False")]
    check = {
        "clusterName": "one",
        "selector": {"matchLabels": {"cluster.x-k8s.io/cluster-name": "one"}},
        "checks": {"unhealthyNodeConditions": conditions},
        "remediation": {"templateRef": {**template, "name": "heal"}},
    }
    return [
        {**template, "metadata": metadata, "spec": {"template": {"spec": {}}}},
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck", "metadata": metadata, "spec": check},
    ]


async def _one(world: RackSite, story: Story) -> None:
    world.rack.failing["s02"] = 1
    story.facts["applied_s"] = world.site.clock.monotonic()
    await world.site.apply(_cluster())
    await world.running(4)
    await _write_down(world, story, "running")
    before = len(story.revisions["Template"])
    await world.site.apply(_cluster())
    await asyncio.sleep(60)
    story.facts["templates_made_by_applying_again"] = len(story.revisions["Template"]) - before
    await _write_down(world, story, "applied again")


async def _scaled_and_upgraded(world: RackSite, story: Story) -> None:
    client = world.site.client
    await client.merge_patch(MACHINE_DEPLOYMENT, NAMESPACE, "one-md-0", body={"spec": {"replicas": 4}})
    await world.running(5)
    await _write_down(world, story, "scaled up")
    ready: list[int] = []
    story.facts["ready_while_upgraded"] = ready
    new = [one for one in _cluster(template="-v2") if one["kind"] == "TinkerbellMachineTemplate"]
    for document in new:
        document["spec"]["template"]["spec"]["imageLookupOSVersion"] = "24.04"
    await world.site.apply(new)
    version = "v1.35.0"
    await client.merge_patch(KUBEADM_CONTROL_PLANE, NAMESPACE, "one-control-plane", body={"spec": {"version": version}})
    template = {"spec": {"version": version, "infrastructureRef": {"name": "one-md-0-v2"}}}
    await client.merge_patch(MACHINE_DEPLOYMENT, NAMESPACE, "one-md-0", body={"spec": {"template": template}})

    async def done() -> bool:
        machines = await world.machines()
        ready.append(sum(one.status.phase == "Running" for one in machines))
        return len(machines) == 5 and all(one.spec.version == version for one in machines) and ready[-1] == 5

    await world.site.until(done, within_s=4 * 3600, message=lambda: "the upgrade is not done")
    await _write_down(world, story, "upgraded")


async def _healed(world: RackSite, story: Story) -> None:
    """One worker hangs, and one is deleted by hand."""
    client = world.site.client
    chapter = story.chapters["upgraded"]
    names = sorted(one.metadata.name for one in chapter.machines())
    server = world.rack.servers[chapter.one("TinkerbellMachine", names[0]).spec.hardware_name]
    story.facts["power cycles before"] = server.power_cycles
    await server.hang()

    await _until_power_cycled(world, server)
    story.facts["hung"] = names[0]
    await world.running(5)
    await client.delete(MACHINE, NAMESPACE, names[1])
    story.facts["deleted"] = names[1]

    async def replaced() -> bool:
        machines = await world.machines()
        there = [one.metadata.name for one in machines]
        return names[1] not in there and len(there) == 5 and all(one.status.phase == "Running" for one in machines)

    await world.site.until(replaced, within_s=3600, message=lambda: "the deleted Machine was not replaced")
    await _write_down(world, story, "healed")


async def _until_power_cycled(world: RackSite, server: Server) -> None:
    before = server.power_cycles

    async def look() -> bool:
        return server.power_cycles > before

    await world.site.until(look, within_s=3600, message=lambda: f"{server.name} was not power cycled")
    await asyncio.sleep(300)


async def _given_back(world: RackSite, story: Story) -> None:
    """The cluster becomes smaller, and what it gives back becomes another."""
    client = world.site.client
    await _write_down(world, story, "before the second")
    await world.site.apply(_second())
    await asyncio.sleep(60)
    await _write_down(world, story, "the second waits")
    story.facts["scaled_down_s"] = world.site.clock.monotonic()
    await client.merge_patch(MACHINE_DEPLOYMENT, NAMESPACE, "one-md-0", body={"spec": {"replicas": 2}})
    await world.running(4, within_s=2 * 3600)
    await _write_down(world, story, "two clusters")
    await client.delete(CLUSTER, NAMESPACE, "two")

    async def gone() -> bool:
        try:
            await client.get(CLUSTER, NAMESPACE, "two")
        except NotFound:
            return True
        return False

    await world.site.until(gone, within_s=3600, message=lambda: "cluster two is not gone")
    await _write_down(world, story, "the second is gone")


def _second() -> list[dict[str, Any]]:
    """A cluster of one machine, installed by a Template that somebody has written before."""
    text = LIBRARY
    library = {"apiVersion": "tinkerbell.org/v1alpha1", "kind": "Template"}
    place = {"namespace": NAMESPACE, "name": "library"}
    made = documents(
        "two",
        workers=0,
        cluster={"templateOverrideRef": {"name": "library"}},
        machine={"hardwareRequirements": PROFILE},
    )
    return [{**library, "metadata": place, "spec": {"data": text}}, *made]


async def _server(world: RackSite, number: int, product: dict[str, str]) -> None:
    name = f"s{number:02}"
    await world.rack.add(name, number + 1, labels={"rack": f"r{number % 2}"})
    report = {
        "product": product,
        "cpu": {"totalCores": 12},
        "memory": {"total": "32GB"},
        "blockDevices": [{"name": "sda", "size": "500GB", "driveType": "SSD"}],
    }
    body = {"metadata": {"annotations": {"tinkerbell.org/agent-attributes": msgspec.json.encode(report).decode()}}}
    await world.site.client.merge_patch(HARDWARE, NAMESPACE, name, body=body)


_BY_RESOURCE = {f"{kind.plural}.{kind.group}": kind for kind in _KINDS}


def _note(story: Story, world: RackSite, change: Change) -> None:
    kind = _BY_RESOURCE.get(change.entry.resource)
    if kind is not None:
        story.revisions[kind.kind].append((world.site.clock.monotonic(), kind.convert(change.entry.decode())))


async def _write_down(world: RackSite, story: Story, title: str) -> None:
    objects = {kind.kind: await world.site.all(kind) for kind in _KINDS}
    nodes: dict[str, dict[str, Any]] = {}
    for cluster in world.site.cloud.clusters.values():
        for body in (await cluster.server.client(ADMIN).list(NODES, "")).items:
            node = msgspec.json.decode(body)
            nodes[node["metadata"]["name"]] = node
    servers = {
        one.name: {"disk": one.disk, "installs": one.installs, "wipes": one.wipes, "power": str(one.power),
                   "done": list(one.done), "power_cycles": one.power_cycles}
        for one in world.rack.servers.values()
    }  # fmt: skip
    story.chapters[title] = Chapter(world.site.clock.monotonic(), objects, nodes, servers)


__all__ = ["NUC", "PROFILE", "SERVER", "Chapter", "Story", "live"]

"""A control plane on simulated hosts, with all controllers as they are, on virtual time: from nothing to nothing.

What the simulated cluster is held to while it happens: the host of a Node goes only after its etcd member, a quorum of
members always runs, and there are never more Machines than the surge allows. A Machine that is deleted before it has a
Node may still join etcd; its member is removed soon after its host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

from ironbell.api import addons, bootstrap, cluster, controlplane
from ironbell.api.client import Api, PatchType
from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE, KubeadmControlPlane
from ironbell.api.crd.document import crd_document
from ironbell.contract.pki import KeyAlgorithm
from ironbell.controllers.capi import controllers as capi
from ironbell.controllers.capi.topology.variables.compiled import VariableSchemas
from ironbell.controllers.kubeadm import controllers as kubeadm
from ironbell.kube.manager.controller import Controller
from ironbell.lab.sim.replay import ReplaySite, Surroundings, open_site
from ironbell.lab.sim.virtualtime import VirtualLoop

STRAY_S = 600.0
"""The longest time for which etcd keeps the member of a Machine that was deleted before it had a Node."""
INFRA = "infrastructure.cluster.x-k8s.io"
CLUSTER_KEY = ("default", "c")


def build(around: Surroundings) -> Sequence[Controller]:
    def nobody_else(_controller: str) -> Api | None:
        return None

    algorithm = KeyAlgorithm.ECDSA_P256
    return [
        *capi.controllers(
            around.workloads, around.api, around.clock, nobody_else, VariableSchemas(), algorithm=algorithm
        ),
        *kubeadm.bootstrap_controllers(around.workloads, around.api, around.clock, around.randomness, nobody_else),
        *kubeadm.control_plane_controllers(
            around.workloads, around.cloud.etcd_connect, around.api, around.clock, nobody_else
        ),
    ]


def documents(replicas: int, surge: int) -> list[dict[str, Any]]:
    reference = {"apiGroup": INFRA, "kind": "DevMachineTemplate", "name": "t"}
    return [
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {
                "controlPlaneRef": {
                    "apiGroup": "controlplane.cluster.x-k8s.io",
                    "kind": "KubeadmControlPlane",
                    "name": "cp",
                },
                "infrastructureRef": {"apiGroup": INFRA, "kind": "DevCluster", "name": "c"},
            },
        },
        {
            "apiVersion": f"{INFRA}/v1beta2",
            "kind": "DevCluster",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"backend": {"inMemory": {}}},
        },
        {
            "apiVersion": f"{INFRA}/v1beta2",
            "kind": "DevMachineTemplate",
            "metadata": {"name": "t", "namespace": "default"},
            "spec": {"template": {"spec": {"backend": {"inMemory": {}}}}},
        },
        {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmControlPlane",
            "metadata": {"name": "cp", "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "version": "v1.33.0",
                "machineTemplate": {"spec": {"infrastructureRef": reference}},
                "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}},
                "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}},
            },
        },
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachineHealthCheck",
            "metadata": {"name": "cp", "namespace": "default"},
            "spec": {
                "clusterName": "c",
                "selector": {"matchLabels": {"cluster.x-k8s.io/control-plane": ""}},
                "checks": {
                    "nodeStartupTimeoutSeconds": 1800,
                    "unhealthyNodeConditions": [
                        {"type": "Ready", "status": status, "timeoutSeconds": 120} for status in ("Unknown", "False")
                    ],
                },
            },
        },
    ]


class Story:
    """What happens to the control plane, with what must hold meanwhile."""

    def __init__(self, site: ReplaySite, surge: int) -> None:
        self._site = site
        self._surge = surge
        self._lost = 0
        self._were_nodes: set[str] = set()
        self._stray_since: dict[str, float] = {}

    async def watch(self) -> None:
        """Hold the site to what must always be so. Cancellation point."""
        while True:
            await self._hold()
            await asyncio.sleep(0.2)  # how often it looks

    async def _hold(self) -> None:
        found = await self._site.all(KUBEADM_CONTROL_PLANE)
        inside = self._site.cloud.clusters.get(CLUSTER_KEY)
        if not found or found[0].metadata.deletion_timestamp is not None or inside is None:
            return
        etcd = inside.etcd
        if len(etcd.members) > 1:
            assert etcd.has_quorum, f"{etcd.running} of {len(etcd.members)} members run"
        machines = await self._site.all(MACHINE)
        desired = found[0].spec.replicas or 1
        settled = all(machine.metadata.deletion_timestamp is None for machine in machines)
        shrinks = (found[0].status.replicas or 0) > desired + self._surge
        assert len(machines) <= desired + self._surge or shrinks or not settled, f"{len(machines)} Machines"
        kept = (machine for machine in machines if machine.metadata.deletion_timestamp is None)
        self._were_nodes |= {machine.metadata.name for machine in kept if machine.status.node_ref.name}
        hosted = {host.plan.key[1] for host in self._site.cloud.hosts.values()}
        now, strays = asyncio.get_running_loop().time(), {member.name for member in etcd.members} - hosted - {""}
        assert not strays & self._were_nodes, f"{strays & self._were_nodes} are members without a host"
        self._stray_since = {name: self._stray_since.get(name, now) for name in strays}
        for name, since in self._stray_since.items():
            assert now - since < STRAY_S, f"{name} is still a member {now - since:.0f} s after its host went"

    async def change(self, **spec: Any) -> None:
        body = msgspec.json.encode({"spec": spec})
        where = KUBEADM_CONTROL_PLANE.collection
        await self._site.client.api.patch(where, "default", "cp", body, patch_type=PatchType.MERGE)

    async def until_whole(self, replicas: int, version: str = "v1.33.0") -> None:
        async def is_whole() -> bool:
            kcp = (await self._site.all(KUBEADM_CONTROL_PLANE))[0]
            return _is_whole(kcp, await self._site.all(MACHINE), replicas, version)

        await self._until(is_whole, f"{replicas} Machines of {version}")

    async def lose_a_host(self) -> None:
        machines = await self._site.all(MACHINE)
        name = sorted(machine.metadata.name for machine in machines)[self._lost % len(machines)]
        self._lost += 1
        host = self._site.cloud.named(("default", name))
        assert host is not None
        await self._site.cloud.lose(host.plan.uid)

        async def is_gone() -> bool:
            return name not in {machine.metadata.name for machine in await self._site.all(MACHINE)}

        await self._until(is_gone, f"the end of {name}")

    async def delete(self) -> None:
        await self._site.client.delete(CLUSTER, "default", "c")

        async def is_gone() -> bool:
            left = [await self._site.all(kind) for kind in (CLUSTER, MACHINE, KUBEADM_CONTROL_PLANE)]
            return not any(left) and not self._site.cloud.hosts

        await self._until(is_gone, "the end of the cluster")

    async def _until(self, is_it: Callable[[], Awaitable[bool]], what: str) -> None:
        await self._site.until(is_it, within_s=4 * 3600, message=lambda: f"waited for {what}")


def _is_whole(kcp: KubeadmControlPlane, machines: Sequence[Machine], replicas: int, version: str) -> bool:
    status = {condition.type: condition.status for condition in kcp.status.conditions}
    good = ("Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "MachinesReady", "MachinesUpToDate")
    return (
        len(machines) == replicas
        and all(machine.status.phase == "Running" and machine.spec.version == version for machine in machines)
        and all(status.get(type_) == "True" for type_ in good)
        and (kcp.status.replicas, kcp.status.up_to_date_replicas) == (replicas, replicas)
    )


async def tell(seed: int) -> None:
    surge = seed % 2
    kinds = [crd_document(kind) for kind in (*cluster.KINDS, *bootstrap.KINDS, *controlplane.KINDS, *addons.KINDS)]
    async with open_site(seed, build, kinds=kinds) as site:
        story = Story(site, surge)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(story.watch(), name="invariants")
            await site.apply(documents(3, surge))
            await story.until_whole(3)
            await story.lose_a_host()
            await story.until_whole(3)
            await story.change(version="v1.34.0")
            # The crash meets a different step of the upgrade with each seed.
            await asyncio.sleep(seed % 7)
            await site.crash()
            await story.until_whole(3, "v1.34.0")
            await story.change(replicas=5)
            await story.until_whole(5, "v1.34.0")
            await story.lose_a_host()
            await story.change(replicas=3)
            await story.until_whole(3, "v1.34.0")
            await story.delete()
            watching.cancel()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_control_plane_lives_through_growth_upgrade_loss_crash_and_its_end(seed: int) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(tell(seed))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3, 40))
def test_it_does_so_whatever_the_seed(seed: int) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(tell(seed))

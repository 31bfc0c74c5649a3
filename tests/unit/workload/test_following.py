"""Which clusters are connected to follows from what the management cluster holds."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ironbell.api.client import Unavailable
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core.secret import SECRET
from ironbell.api.kind import Kind
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.cache.caches import Informers
from ironbell.kube.client import Client
from ironbell.kube.testing.memory import LoopClock, MemoryApi
from ironbell.workload.access import Workloads
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.following import follow, kubeconfigs_from
from ironbell.workload.queries import ConnectionState
from support.kubeadm.workloads import FakeCluster, FakeClusters
from support.waiting import until

ONE = ("n", "one")


class Management:
    """The management cluster, and what of it is followed."""

    def __init__(self) -> None:
        self.api = MemoryApi()
        self.api.serve([CLUSTER, MACHINE, SECRET])
        self.client = Client(self.api)
        self.clusters = FakeClusters({ONE: FakeCluster()})
        self.workloads = Workloads(
            self.clusters, kubeconfigs_from(self.api), clock=LoopClock(), randomness=SeededRandomness(1)
        )

    @property
    def state(self) -> ConnectionState:
        """Of the connection to the Cluster that has the name now."""
        return self.workloads.state(self.workloads._current.get(ONE, ClusterKey(*ONE, "")))

    async def until(self, is_it: Callable[[], bool]) -> None:
        await until(is_it, within_s=600)

    async def add_cluster(self) -> None:
        spec = {"controlPlaneEndpoint": {"host": "a", "port": 1}}
        await self.client.create(CLUSTER, {"metadata": {"namespace": "n", "name": "one"}, "spec": spec})

    async def add_kubeconfig(self, content: bytes = b"good") -> None:
        data = {"value": base64.b64encode(content).decode()}
        await self.client.create(SECRET, {"metadata": {"namespace": "n", "name": "one-kubeconfig"}, "data": data})


@pytest.fixture
async def management() -> AsyncIterator[Management]:
    management = Management()
    informers = Informers(management.api, randomness=SeededRandomness(1))
    follow(management.workloads, informers)
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    async with management.workloads:
        yield management
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize("cluster_first", [True, False])
async def test_a_cluster_with_a_kubeconfig_is_connected_and_forgotten_with_either(
    management: Management, cluster_first: bool
) -> None:
    steps = [management.add_cluster, management.add_kubeconfig]
    for step in steps if cluster_first else reversed(steps):
        await step()
    await management.until(lambda: management.state.healthy)
    if cluster_first:
        await management.client.delete(CLUSTER, *ONE)
    else:
        await management.client.delete(SECRET, "n", "one-kubeconfig")
    await management.until(lambda: management.state.error == "the cluster has no kubeconfig yet")


async def test_a_rotated_kubeconfig_is_taken_up(management: Management) -> None:
    await management.add_cluster()
    await management.add_kubeconfig(b"old")
    await management.until(lambda: "not the right kubeconfig" in management.state.error)
    new = {"data": {"value": base64.b64encode(b"good").decode()}}
    await management.client.merge_patch(SECRET, "n", "one-kubeconfig", body=new)
    await management.until(lambda: management.state.healthy)


async def test_a_control_plane_that_comes_up_is_tried_at_once(management: Management) -> None:
    one = management.clusters.clusters[ONE]
    one.broken = Unavailable("not there yet")
    await management.add_cluster()
    await management.add_kubeconfig()
    await asyncio.sleep(300)
    one.broken = None
    began_s = asyncio.get_running_loop().time()
    status = {"status": {"initialization": {"controlPlaneInitialized": True}}}
    await management.client.merge_patch(CLUSTER, "n", "one", body=status, subresource="status")
    await management.until(lambda: management.state.healthy)
    assert asyncio.get_running_loop().time() - began_s < 0.1


ENDPOINT = {"spec": {"controlPlaneEndpoint": {"host": "b", "port": 2}}}


def told(reason: str) -> dict[str, Any]:
    """What a provider tells of a host that is not ready."""
    return {"status": {"conditions": [{"type": "InfrastructureReady", "status": "False", "reason": reason}]}}


@pytest.mark.parametrize(
    ("kind", "patch", "is_control_plane"),
    [
        (CLUSTER, ENDPOINT, True),
        (CLUSTER, {"status": {"initialization": {"infrastructureProvisioned": True}}}, True),
        (MACHINE, {"spec": {"providerID": "metal://1"}}, True),
        (MACHINE, {"status": {"initialization": {"infrastructureProvisioned": True}}}, True),
        (MACHINE, {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}, True),
        (MACHINE, {"status": {"conditions": [{"type": "InfrastructureReady", "status": "True"}]}}, True),
        (MACHINE, {"status": {"conditions": [{"type": "BootstrapConfigReady", "status": "True"}]}}, True),
        (MACHINE, told("Booting"), True),
        (MACHINE, told("Installing"), False),
        (MACHINE, {"status": {"phase": "Provisioned"}}, False),
        (MACHINE, {"metadata": {"labels": {"cluster.x-k8s.io/control-plane": None}}}, False),
    ],
)
async def test_a_step_toward_an_answer_is_tried_at_once(
    management: Management, kind: Kind[Any], patch: dict[str, Any], is_control_plane: bool
) -> None:
    one = management.clusters.clusters[ONE]
    one.broken = Unavailable("not there yet")
    await management.add_cluster()
    await management.add_kubeconfig()
    labels = {"cluster.x-k8s.io/control-plane": ""}
    machine = {"metadata": {"namespace": "n", "name": "one", "labels": labels}, "spec": {"clusterName": "one"}}
    await management.client.create(MACHINE, machine)
    await management.client.merge_patch(MACHINE, "n", "one", body=told("GivingUserData"), subresource="status")
    await asyncio.sleep(300)
    before = one.probes
    await management.until(lambda: one.probes > before)
    await asyncio.sleep(0.1)  # the next attempt of its own is 15 to 30 s away
    one.broken = None
    began_s = asyncio.get_running_loop().time()
    subresource = "status" if "status" in patch else ""
    await management.client.merge_patch(kind, "n", "one", body=patch, subresource=subresource)
    await management.until(lambda: management.state.healthy)
    took_s = asyncio.get_running_loop().time() - began_s
    assert took_s < 0.5 if is_control_plane else took_s > 10


@pytest.mark.parametrize("machine_first", [True, False])
@pytest.mark.parametrize("is_installed", [True, False])
async def test_a_cluster_that_may_be_there_is_tried_often_from_the_start(
    management: Management, is_installed: bool, machine_first: bool
) -> None:
    one = management.clusters.clusters[ONE]
    one.broken = Unavailable("not there yet")
    await management.add_cluster()
    labels = {"cluster.x-k8s.io/control-plane": ""}
    spec = {"clusterName": "one", **({"providerID": "metal://1"} if is_installed else {})}
    machine = {"metadata": {"namespace": "n", "name": "one", "labels": labels}, "spec": spec}
    if machine_first:
        await management.client.create(MACHINE, machine)
        await asyncio.sleep(1)
    await management.add_kubeconfig()
    await management.until(lambda: one.probes > 0)
    if not machine_first:
        await management.client.create(MACHINE, machine)
    await asyncio.sleep(8)
    assert (one.probes >= 4) == is_installed, one.probes


@pytest.mark.parametrize(
    ("data", "message"),
    [({}, "has no data.value"), ({"value": "!"}, "is not valid base64")],
)
async def test_a_secret_without_a_kubeconfig_is_said(
    management: Management, data: dict[str, str], message: str
) -> None:
    await management.add_cluster()
    await management.client.create(SECRET, {"metadata": {"namespace": "n", "name": "one-kubeconfig"}, "data": data})
    await management.until(lambda: message in management.state.error)

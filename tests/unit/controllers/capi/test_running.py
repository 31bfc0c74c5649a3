"""The controllers under the real runtime: they declare what they read, and gather changes before counting them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from ironbell.api.client import Answer, Call, Verb
from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS, MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET
from ironbell.api.core import CONFIG_MAP, KIND_DEFINITION, SECRET
from ironbell.api.core.event import EVENT
from ironbell.api.kind import Collection
from ironbell.base.randomness import SeededRandomness
from ironbell.controllers.capi.cluster.reconciler import ClusterReconciler
from ironbell.controllers.capi.machinedeployment.reconciler import MachineDeploymentReconciler
from ironbell.controllers.capi.machineset.reconciler import MachineSetReconciler
from ironbell.kube import testing
from ironbell.kube.client import Client
from ironbell.kube.manager import metrics
from ironbell.kube.manager.controller import Controller
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.memory import LoopClock
from ironbell.workload.queries import Connection, ConnectionState
from support.capi.world import (
    CONFIG_TEMPLATE,
    INFRA_CLUSTER,
    INFRA_TEMPLATE,
    KINDS,
    LABELS,
    NAMESPACE,
    machine_template,
    reference,
)
from support.waiting import until


async def _connection(_query: Connection) -> ConnectionState:
    return ConnectionState(connected=False)


class Site(MemoryApi):
    """The API in memory with a provider, whose Machines come up as soon as they exist."""

    def __init__(self) -> None:
        super().__init__(clock=LoopClock())
        own = [CLUSTER, CLUSTER_CLASS, MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, MACHINE_POOL]
        self.serve([*own, *KINDS, KIND_DEFINITION, SECRET, CONFIG_MAP, EVENT])
        self.patches: dict[Collection, int] = {}

    async def call(self, call: Call) -> Answer:
        if call.verb is Verb.PATCH:
            self.patches[call.collection] = self.patches.get(call.collection, 0) + 1
        return await super().call(call)

    async def furnish(self, replicas: int) -> None:
        client = Client(self)
        for kind in KINDS:
            names = {"plural": kind.plural, "kind": kind.kind}
            spec = {"group": kind.group, "names": names, "scope": "Namespaced"}
            body = {"metadata": {"name": f"{kind.plural}.{kind.group}", "labels": LABELS}, "spec": spec}
            await client.create(KIND_DEFINITION, body)
        for kind in (INFRA_TEMPLATE, CONFIG_TEMPLATE):
            metadata = {"name": "workers", "namespace": NAMESPACE}
            await client.create(kind, {"metadata": metadata, "spec": {"template": {"spec": {}}}})
        endpoint = {"controlPlaneEndpoint": {"host": "192.0.2.10", "port": 6443}}
        await client.create(INFRA_CLUSTER, {"metadata": {"name": "prod", "namespace": NAMESPACE}, "spec": endpoint})
        provisioned = {"status": {"initialization": {"provisioned": True}}}
        await client.merge_patch(INFRA_CLUSTER, NAMESPACE, "prod", body=provisioned, subresource="status")
        spec = {"infrastructureRef": reference(INFRA_CLUSTER, "prod")}
        await client.create(CLUSTER, {"metadata": {"name": "prod", "namespace": NAMESPACE}, "spec": spec})
        labels = {"cluster.x-k8s.io/cluster-name": "prod"}
        deployment = {
            "clusterName": "prod",
            "replicas": replicas,
            "selector": {"matchLabels": {"pool": "a"}},
            "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
            "template": machine_template(),
        }
        metadata = {"name": "md", "namespace": NAMESPACE, "labels": labels}
        await client.create(MACHINE_DEPLOYMENT, {"metadata": metadata, "spec": deployment})

    async def live(self) -> None:
        """All Machines come up, in three steps each, one after the other."""
        client, seen = Client(self), set[tuple[str, str, str]]()
        steps = (["NodeHealthy"], ["NodeHealthy", "Ready"], ["NodeHealthy", "Ready", "Available", "UpToDate"])
        while True:
            for (namespace, name), body in list(self.objects[MACHINE.collection].items()):
                if "deletionTimestamp" in body["metadata"]:
                    no_finalizers = {"metadata": {"finalizers": None}}
                    await client.merge_patch(MACHINE, namespace, name, body=no_finalizers)
                    continue
                for step in steps:
                    key = (name, body["metadata"]["uid"], step[-1])
                    if key in seen:
                        continue
                    seen.add(key)
                    conditions = [{"type": t, "status": "True", "reason": t, "message": ""} for t in step]
                    status = {"status": {"nodeRef": {"name": name}, "conditions": conditions}}
                    await client.merge_patch(MACHINE, namespace, name, body=status, subresource="status")
                    break
            await asyncio.sleep(0.02)

    def deployment(self) -> Any:
        return MACHINE_DEPLOYMENT.decode(
            msgspec.json.encode(self.objects[MACHINE_DEPLOYMENT.collection][NAMESPACE, "md"])
        )

    def cluster(self) -> Any:
        return CLUSTER.decode(msgspec.json.encode(self.objects[CLUSTER.collection][NAMESPACE, "prod"]))

    def available(self) -> int | None:
        workers = self.cluster().status.workers
        return workers.available_replicas if workers is not None else None

    def is_rolled_out(self, replicas: int, version: str) -> bool:
        current = self.deployment().status
        counts = (current.replicas, current.available_replicas, current.up_to_date_replicas)
        running = [(item.version, item.replicas) for item in current.versions]
        return counts == (replicas,) * 3 and running == [(version, replicas)]


@asynccontextmanager
async def running(site: Site, *, lag_s: Any = None) -> AsyncIterator[None]:
    controllers = [
        Controller(ClusterReconciler(), resolvers={Connection: _connection}),
        Controller(MachineSetReconciler()),
        Controller(MachineDeploymentReconciler()),
    ]
    life = asyncio.create_task(site.live())
    async with testing.running(site, *controllers, clock=LoopClock(), randomness=SeededRandomness(1), lag_s=lag_s):
        yield
    life.cancel()


async def test_a_deployment_is_created_upgraded_and_deleted_under_lag() -> None:
    site = Site()
    await site.furnish(3)
    source = SeededRandomness(7)
    async with running(site, lag_s=lambda: source.fraction() * 0.3):
        await until(lambda: site.is_rolled_out(3, "v1.34.0"), within_s=120)
        await until(lambda: site.available() == 3, within_s=60)
        change = {"spec": {"template": {"spec": {"version": "v1.35.0"}}}}
        await Client(site).merge_patch(MACHINE_DEPLOYMENT, NAMESPACE, "md", body=change)
        await until(lambda: site.is_rolled_out(3, "v1.35.0"), within_s=240)
        await until(lambda: len(site.objects[MACHINE_SET.collection]) == 1, within_s=60)
        await Client(site).delete(CLUSTER, NAMESPACE, "prod")
        await until(lambda: not site.objects[CLUSTER.collection], within_s=120)
    assert not site.objects[MACHINE.collection]
    assert len(site.objects[INFRA_TEMPLATE.collection]) == 1


def reconciles(controller: str) -> float:
    status = metrics.reconcile_total.collect()
    return sum(s.value for metric in status for s in metric.samples if s.labels.get("controller") == controller)


async def test_many_machines_are_counted_together() -> None:
    site, machines = Site(), 200
    await site.furnish(machines)
    names = (ClusterReconciler.name, MachineSetReconciler.name, MachineDeploymentReconciler.name)
    earlier = {name: reconciles(name) for name in names}
    async with running(site):
        await until(lambda: site.is_rolled_out(machines, "v1.34.0"), within_s=300)
    for name in names:
        assert reconciles(name) - earlier[name] < 30, name
    own = sum(site.patches[kind.collection] for kind in (MACHINE_SET, MACHINE_DEPLOYMENT, CLUSTER))
    assert own < 50

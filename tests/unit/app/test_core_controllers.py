"""The core controllers on the embedded API: schemas, admission and garbage collection accept what they do.

Infrastructure and bootstrap are a few lines here, and there are no Nodes: Machines stay Provisioned.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog

from ironbell.api.client import ListOptions
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.core import CUSTOM_RESOURCE_DEFINITION
from ironbell.api.kind import Kind
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.direct import DirectApi
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from ironbell.codec.cel import compile_rule
from ironbell.controllers.capi.controllers import controllers
from ironbell.controllers.capi.topology.variables.compiled import VariableSchemas
from ironbell.kube.client import Client
from ironbell.kube.testing import running
from ironbell.workload.access import Workloads
from ironbell.workload.link import Link
from support.capi.world import (
    CONFIG,
    CONFIG_TEMPLATE,
    INFRA_CLUSTER,
    INFRA_MACHINE,
    INFRA_TEMPLATE,
    LABELS,
    NAMESPACE,
    reference,
)
from support.waiting import until

OWN = (INFRA_CLUSTER, INFRA_MACHINE, INFRA_TEMPLATE, CONFIG, CONFIG_TEMPLATE)


async def no_kubeconfig(_cluster: object) -> bytes:
    raise AssertionError("no cluster here has a kubeconfig")


def never(_cluster: object, _kubeconfig: bytes) -> Link:
    raise AssertionError("no cluster here has a kubeconfig")


def definition(kind: Kind[Any]) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": kind.plural, "singular": kind.kind.lower(), "kind": kind.kind, "listKind": f"{kind.kind}List"}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "metadata": {"name": f"{kind.plural}.{kind.group}", "labels": LABELS},
        "spec": {"group": kind.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


class Provider:
    """Makes hosts and bootstrap data as soon as they are asked for, and takes them away at once."""

    def __init__(self, api: DirectApi) -> None:
        self.api = api
        self.client = Client(api)
        self.most = 0

    async def all(self, kind: Kind[Any]) -> list[Any]:
        page = await self.api.list(kind.collection, "", ListOptions())
        return [kind.decode(body) for body in page.items]

    async def live(self) -> None:
        while True:
            await self.once()
            await asyncio.sleep(0.02)

    async def once(self) -> None:
        machines = await self.all(MACHINE)
        self.most = max(self.most, len(machines))
        for number, host in enumerate(await self.all(INFRA_MACHINE)):
            if "status" not in host.body:
                spec = {"spec": {"providerID": f"fake:///{host.metadata.name}"}}
                await self.client.merge_patch(INFRA_MACHINE, *host.key, body=spec)
                addresses = [{"type": "InternalIP", "address": f"192.0.2.{number}"}]
                status = {"initialization": {"provisioned": True}, "addresses": addresses}
                await self.client.merge_patch(INFRA_MACHINE, *host.key, body={"status": status}, subresource="status")
        for config in await self.all(CONFIG):
            if "status" not in config.body:
                status = {"initialization": {"dataSecretCreated": True}, "dataSecretName": "data"}
                await self.client.merge_patch(CONFIG, *config.key, body={"status": status}, subresource="status")


@asynccontextmanager
async def site() -> AsyncIterator[Provider]:
    kinds = ClusterKinds()
    opened = ApiServer.open(
        None,
        clock=SystemClock(),
        randomness=SystemRandomness(),
        compile_rule=compile_rule,
        conversions=kinds.conversions,
    )
    async with opened as server:
        kinds.join(server)
        await kinds.define(server)
        api = DirectApi(server.context, ADMIN)
        provider = Provider(api)
        for kind in OWN:
            await provider.client.create(CUSTOM_RESOURCE_DEFINITION, definition(kind))
        workloads = Workloads(never, no_kubeconfig, clock=SystemClock(), randomness=SystemRandomness())
        core = controllers(workloads, api, SystemClock(), lambda _name: None, VariableSchemas())
        life = asyncio.create_task(provider.live())
        async with workloads, running(api, *core):
            yield provider
        life.cancel()


async def put(provider: Provider, replicas: int) -> None:
    client = provider.client
    for kind in (INFRA_TEMPLATE, CONFIG_TEMPLATE):
        metadata = {"name": "workers", "namespace": NAMESPACE}
        await client.create(kind, {"metadata": metadata, "spec": {"template": {"spec": {"a": "b"}}}})
    spec: dict[str, Any] = {"controlPlaneEndpoint": {"host": "192.0.2.10", "port": 6443}}
    await client.create(INFRA_CLUSTER, {"metadata": {"name": "prod", "namespace": NAMESPACE}, "spec": spec})
    domains = [{"name": "rack-1", "controlPlane": True}]
    status = {"initialization": {"provisioned": True}, "failureDomains": domains}
    await client.merge_patch(INFRA_CLUSTER, NAMESPACE, "prod", body={"status": status}, subresource="status")
    spec = {"infrastructureRef": reference(INFRA_CLUSTER, "prod")}
    await client.create(CLUSTER, {"metadata": {"name": "prod", "namespace": NAMESPACE}, "spec": spec})
    template = {
        "clusterName": "prod",
        "version": "v1.34.0",
        "bootstrap": {"configRef": reference(CONFIG_TEMPLATE, "workers")},
        "infrastructureRef": reference(INFRA_TEMPLATE, "workers"),
    }
    deployment = {"clusterName": "prod", "replicas": replicas, "template": {"spec": template}}
    await client.create(MACHINE_DEPLOYMENT, {"metadata": {"name": "md", "namespace": NAMESPACE}, "spec": deployment})


def phases(machines: Sequence[Any]) -> list[str]:
    return [machine.status.phase for machine in machines]


async def settles(provider: Provider, kind: Kind[Any], wanted: Any) -> None:
    async def holds() -> bool:
        return wanted(await provider.all(kind))

    await until(holds, seen=lambda: provider.all(kind))


async def test_a_cluster_comes_up_scales_and_goes_on_the_embedded_api() -> None:
    with structlog.testing.capture_logs() as logs:
        async with site() as provider:
            await put(provider, 3)
            await settles(provider, MACHINE, lambda found: phases(found) == ["Provisioned"] * 3)
            await settles(provider, CLUSTER, lambda found: found[0].status.phase == "Provisioned")
            await settles(provider, MACHINE_DEPLOYMENT, lambda found: found[0].status.replicas == 3)
            await provider.client.merge_patch(MACHINE_DEPLOYMENT, NAMESPACE, "md", body={"spec": {"replicas": 1}})
            await settles(provider, MACHINE, lambda found: len(found) == 1)
            await provider.client.delete(CLUSTER, NAMESPACE, "prod")
            await settles(provider, CLUSTER, lambda found: not found)
            left = {kind.kind: len(await provider.all(kind)) for kind in (MACHINE, MACHINE_SET, *OWN)}
    assert {kind: count for kind, count in left.items() if count} == {"FakeMachineTemplate": 1, "FakeConfigTemplate": 1}
    bad = [entry for entry in logs if entry["log_level"] in ("error", "critical") or "failed" in entry["event"]]
    assert bad == []

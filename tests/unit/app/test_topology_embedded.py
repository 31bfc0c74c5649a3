"""A topology on the embedded API: schemas, server-side apply and garbage collection accept what its controller does."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api import bootstrap, controlplane
from ironbell.api.client import Forbidden, Invalid, ListOptions
from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS, MACHINE_DEPLOYMENT
from ironbell.api.core import CUSTOM_RESOURCE_DEFINITION
from ironbell.api.kind import Kind
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.direct import DirectApi
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from ironbell.codec.cel import compile_rule
from ironbell.kube.client import Client
from ironbell.kube.conditions import find_condition
from ironbell.kube.manager.controller import Controller
from ironbell.kube.testing import running
from support.capi.topologies import (
    CLASSES,
    CONTRACT,
    DEV_MACHINE_TEMPLATE,
    NAMESPACE,
    PLANE,
    PROVIDED,
    TOPOLOGY,
    small_class,
    small_cluster,
)
from support.waiting import until


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
        "metadata": {"name": f"{kind.plural}.{kind.group}", "labels": CONTRACT},
        "spec": {"group": kind.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


async def all_of(api: DirectApi, kind: Kind[Any]) -> list[Any]:
    page = await api.list(kind.collection, "", ListOptions())
    return [kind.decode(body) for body in page.items]


async def reconciled(api: DirectApi, generation: int) -> None:
    async def is_reconciled() -> bool:
        [cluster] = await all_of(api, CLUSTER)
        found = find_condition(cluster.status.conditions, "TopologyReconciled")
        return found is not None and found.status == "True" and found.observed_generation >= generation

    await until(is_reconciled)


async def test_a_topology_is_made_changed_and_comes_to_rest() -> None:
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
        client = Client(api)
        ours = {kind.kind for package in (bootstrap, controlplane) for kind in package.KINDS}
        by_name: dict[str, Any] = {kind.kind: kind for kind in (CLUSTER, CLUSTER_CLASS, *PROVIDED)}
        for kind in PROVIDED:
            if kind.kind not in ours:
                await client.create(CUSTOM_RESOURCE_DEFINITION, definition(kind))
        class_objects = small_class(
            variables=[{"name": "region", "required": True, "schema": {"openAPIV3Schema": {"type": "string"}}}]
        )
        cluster = small_cluster(variables=[{"name": "region", "value": "north"}])
        for body in (*class_objects, cluster):
            metadata = {"namespace": NAMESPACE, **body["metadata"]}
            await client.create(by_name[body["kind"]], {**body, "metadata": metadata})
        async with running(api, Controller(CLASSES), Controller(TOPOLOGY)):
            await reconciled(api, 1)
            [deployment] = await all_of(api, MACHINE_DEPLOYMENT)
            [plane] = await all_of(api, PLANE)
            assert deployment.spec.replicas == 2
            assert plane.body["spec"]["replicas"] == 3
            body = {"spec": {"topology": {"controlPlane": {"replicas": 5}}}}
            changed = await client.merge_patch(CLUSTER, NAMESPACE, "prod", body=body)
            await reconciled(api, changed.metadata.generation)

            async def is_scaled() -> bool:
                return (await all_of(api, PLANE))[0].body["spec"]["replicas"] == 5

            await until(is_scaled)
            templates = {one.metadata.name for one in await all_of(api, DEV_MACHINE_TEMPLATE)}
            assert len(templates) == 4
            await judged(client)


async def judged(client: Client) -> None:
    """What the class says of Clusters is told when they are written, and it stays while one uses it."""

    async def refused(change: dict[str, Any], path: str, why: str) -> None:
        with pytest.raises(Invalid, match=why) as caught:
            await client.merge_patch(CLUSTER, NAMESPACE, "prod", body={"spec": {"topology": change}})
        assert path in {one["field"] for one in caught.value.details["causes"]}

    await refused(
        {"variables": [{"name": "region", "value": 5}]},
        "spec.topology.variables[region].value",
        "must be of type string",
    )
    await refused({"variables": None}, "spec.topology.variables", 'required variable "region" must be set')
    workers = {"machineDeployments": [{"class": "none", "name": "md-0"}]}
    await refused({"workers": workers}, "spec.topology.workers.machineDeployments[0].class", "it has worker")
    await refused({"version": "v1.37.0"}, "spec.topology.version", "cannot be increased")
    await refused({"version": "v1.33.0"}, "spec.topology.version", "cannot be decreased")
    await refused({"version": "v1.35.0"}, "spec.topology.version", "control plane is currently provisioning")
    with pytest.raises(Forbidden, match="used by Cluster"):
        await client.delete(CLUSTER_CLASS, NAMESPACE, "small")
    with pytest.raises(Invalid, match="cannot be deleted because it is used by Cluster"):
        await client.merge_patch(CLUSTER_CLASS, NAMESPACE, "small", body={"spec": {"workers": None}})
    # what does not touch the topology is nobody's business here
    await client.merge_patch(CLUSTER, NAMESPACE, "prod", body={"metadata": {"labels": {"a": "b"}}})

"""A management cluster whose servers are kept by another: the provider's controllers over two APIs."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from pathlib import Path

import pytest

from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.client import ApiError
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core import EVENT
from ironbell.api.core.secret import SECRET, SECRET_METADATA
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.base.clock import SystemClock, rfc3339
from ironbell.base.randomness import SystemRandomness
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_UP
from ironbell.contract.system import Settings
from ironbell.controllers.capt import controllers as capt
from ironbell.controllers.capt.external import EXTERNAL_COLLECTIONS, ServersElsewhere, api_with_servers
from ironbell.kube.client import Client
from ironbell.kube.manager.manager import Manager
from ironbell.kube.split import SplitApi
from ironbell.kube.testing import MemoryApi
from support.kubeadm.workloads import no_workloads
from support.servers.captworld import EVERY_VERSION
from support.waiting import until

PLACE = "default"
METAL = "metal"


def a_pair() -> tuple[MemoryApi, MemoryApi]:
    """Management, and where the servers are; neither serves the other's kinds."""
    here, there = MemoryApi(clock=SystemClock()), MemoryApi(clock=SystemClock())
    return here, there


def nobody_else(_controller: str) -> None:
    return None


async def asked(api: MemoryApi) -> None:
    """What a person applies here."""
    client = Client(api)
    infrastructure = {"apiGroup": TINKERBELL_CLUSTER.group, "kind": "TinkerbellCluster", "name": "prod"}
    place = {"namespace": PLACE, "name": "prod"}
    endpoint = {"host": "192.0.2.5", "port": 6443}
    spec = {"infrastructureRef": infrastructure, "controlPlaneEndpoint": endpoint}
    cluster = await client.create(CLUSTER, {"metadata": place, "spec": spec})
    owner = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "name": "prod", "uid": cluster.metadata.uid}
    owned = {**place, "ownerReferences": [owner]}
    await client.create(TINKERBELL_CLUSTER, {"metadata": owned, "spec": {"controlPlaneEndpoint": endpoint}})
    data = {"value": b64encode(b"#cloud-config PROVIDER_ID").decode()}
    await client.create(SECRET, {"metadata": {"namespace": PLACE, "name": "m-data"}, "data": data})
    of_machine = {"apiGroup": TINKERBELL_MACHINE.group, "kind": "TinkerbellMachine", "name": "m"}
    spec = {
        "clusterName": "prod",
        "version": "v1.35.2",
        "bootstrap": {"dataSecretName": "m-data"},
        "infrastructureRef": of_machine,
    }
    machine = await client.create(MACHINE, {"metadata": {"namespace": PLACE, "name": "m"}, "spec": spec})
    reference = {"apiVersion": MACHINE.api_version, "kind": "Machine", "name": "m", "uid": machine.metadata.uid}
    metadata = {
        "namespace": PLACE,
        "name": "m",
        "ownerReferences": [{**reference, "controller": True}],
        "labels": {"cluster.x-k8s.io/cluster-name": "prod"},
    }
    await client.create(TINKERBELL_MACHINE, {"metadata": metadata, "spec": {}})


async def a_server(api: MemoryApi) -> None:
    spec = {
        "interfaces": [{"dhcp": {"mac": "02:00:00:00:00:01", "ip": {"address": "192.0.2.10"}}}],
        "disks": [{"device": "/dev/sda"}],
        "metadata": {"instance": {"id": "02:00:00:00:00:01"}},
    }
    await Client(api).create(HARDWARE, {"metadata": {"namespace": METAL, "name": "s0"}, "spec": spec})


async def ended(there: Client, name: str) -> None:
    """The engine over there has carried out a Workflow."""
    action = {"id": "1", "name": "act", "state": "SUCCESS", "message": "done"}
    tasks = [{"name": "t", "id": "1", "agentID": "a", "actions": [action]}]
    body = {"status": {"state": "SUCCESS", "tasks": tasks}}
    await there.merge_patch(WORKFLOW, METAL, name, body=body, subresource="status")


async def test_a_machine_lives_on_a_server_of_another_cluster() -> None:
    here, there = a_pair()
    here.serve([CLUSTER, MACHINE, TINKERBELL_CLUSTER, TINKERBELL_MACHINE, SECRET, SECRET_METADATA, EVENT])
    split = SplitApi(here, there, EXTERNAL_COLLECTIONS)
    manager = Manager(split, component="test", clock=SystemClock(), randomness=SystemRandomness())
    for controller in capt.controllers(
        split, "http://192.0.2.1:7080", nobody_else, images=EVERY_VERSION, workloads=no_workloads()
    ):
        manager.add(controller)
        kinds = controller.reconciler.declaration.kinds
        here.serve(kind for kind in kinds if kind.collection not in EXTERNAL_COLLECTIONS)
        there.serve(kind for kind in kinds if kind.collection in EXTERNAL_COLLECTIONS)
    await asked(here)
    await a_server(there)
    mine, theirs = Client(here), Client(there)
    running = asyncio.create_task(manager.run())
    try:
        await until(lambda: theirs.find(WORKFLOW, METAL, "m"), "a Workflow over there")
        workflow = await theirs.get(WORKFLOW, METAL, "m")
        assert workflow.metadata.owner_references == []
        assert workflow.metadata.labels["capt.tinkerbell.org/machine-name"] == "m"
        assert (await theirs.get(TEMPLATE, METAL, "m")).metadata.owner_references == []
        hardware = await theirs.get(HARDWARE, METAL, "s0")
        assert hardware.spec.user_data == "#cloud-config tinkerbell://metal/s0"
        await ended(theirs, "m")
        up = {"metadata": {"annotations": {INSTALLED_SYSTEM_UP: rfc3339(SystemClock().now())}}}
        await theirs.merge_patch(HARDWARE, METAL, "s0", body=up)

        async def is_ready() -> bool:
            return (await mine.get(TINKERBELL_MACHINE, PLACE, "m")).status.ready

        await until(is_ready, "the machine is ready")
        obj = await mine.get(TINKERBELL_MACHINE, PLACE, "m")
        assert (obj.spec.provider_id, obj.status.target_namespace) == ("tinkerbell://metal/s0", METAL)
        await mine.delete(TINKERBELL_MACHINE, PLACE, "m")
        await until(lambda: theirs.find(WORKFLOW, METAL, "m-wipe"), "a wipe over there")
        await ended(theirs, "m-wipe")

        async def is_gone() -> bool:
            return await mine.find(TINKERBELL_MACHINE, PLACE, "m") is None

        await until(is_gone, "the machine is gone")
        hardware = await theirs.get(HARDWARE, METAL, "s0")
        assert not hardware.metadata.labels
        assert hardware.spec.user_data is None
        assert not (await theirs.list(WORKFLOW)).items
        assert not (await theirs.list(TEMPLATE)).items
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    with pytest.raises(ApiError):
        await mine.list(HARDWARE)


@pytest.mark.parametrize("contents", [None, "", " \n"])
async def test_without_a_kubeconfig_the_servers_are_here(tmp_path: Path, contents: str | None) -> None:
    file = tmp_path / "kubeconfig"
    if contents is not None:
        file.write_text(contents)
    here, _ = a_pair()
    async with api_with_servers(here, Settings((ServersElsewhere(file),))) as api:
        assert api is here

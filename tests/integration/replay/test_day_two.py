"""Day two of a cluster on servers, on virtual time: upgrades on a full rack, labels in place, unhealthy machines."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ironbell.api.bmc.job import JOB
from ironbell.api.capt import TINKERBELL_MACHINE, TINKERBELL_REMEDIATION
from ironbell.api.cluster import MACHINE, MACHINE_DEPLOYMENT
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.kind import Collection
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.store.entry import Change
from ironbell.contract.servers.claim import HELD, claim_of
from ironbell.kube.client import Client
from ironbell.kube.conditions import find_condition
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.servers.rack import NAMESPACE, Server
from support.servers.racksite import RackSite, documents, rack_site

CLUSTER = (NAMESPACE, "one")
NODES = Collection("", "v1", "nodes", namespaced=False)


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main)


async def server_of(world: RackSite, machine: str) -> Server:
    obj = await world.site.client.get(TINKERBELL_MACHINE, NAMESPACE, machine)
    return world.rack.servers[obj.spec.hardware_name]


async def a_machine(world: RackSite, *, control_plane: bool = False) -> str:
    names = [
        one.metadata.name
        for one in await world.machines()
        if (LABEL_CONTROL_PLANE in one.metadata.labels) is control_plane
    ]
    return str(min(names))


async def until_rolled_out(world: RackSite, version: str, count: int) -> None:
    async def look() -> bool:
        machines = await world.machines()
        return len(machines) == count and all(
            one.spec.version == version and one.status.phase == "Running" for one in machines
        )

    await world.site.until(look, within_s=4 * 3600, message=lambda: f"not all of {count} Machines run {version}")


def test_a_full_rack_is_upgraded_with_no_spare_server() -> None:
    """Each server is wiped and used again, and the control plane keeps its quorum."""

    async def main() -> None:
        async with rack_site(5) as world:
            await world.site.apply(documents(control_planes=3, workers=2, surge=0))
            await world.running(5)
            for kind, name in ((KUBEADM_CONTROL_PLANE, "one-control-plane"), (MACHINE_DEPLOYMENT, "one-md-0")):
                new = "v1.35.0"
                body = {"spec": {"version": new}} if kind is KUBEADM_CONTROL_PLANE else {
                    "spec": {"template": {"spec": {"version": new}}}
                }  # fmt: skip
                await world.site.client.merge_patch(kind, NAMESPACE, name, body=body)
            await until_rolled_out(world, "v1.35.0", 5)
            servers = world.rack.servers.values()
            assert {one.installs for one in servers} == {2}
            assert {one.wipes for one in servers} == {1}
            cluster = world.site.cloud.clusters[CLUSTER]
            assert len(cluster.etcd.members) == 3

    run(main())


def test_a_label_reaches_machines_and_nodes_in_place() -> None:
    async def main() -> None:
        async with rack_site(2) as world:
            await world.site.apply(documents(workers=1))
            await world.running(2)
            label = {"node.cluster.x-k8s.io/pool": "fast"}
            body = {"spec": {"template": {"metadata": {"labels": label}}}}
            await world.site.client.merge_patch(MACHINE_DEPLOYMENT, NAMESPACE, "one-md-0", body=body)
            before = sorted(one.metadata.uid for one in await world.machines())
            inside = Client(world.site.cloud.clusters[CLUSTER].server.client(ADMIN))

            async def look() -> bool:
                nodes = (await inside.api.list(NODES, "")).items
                return any(b'"node.cluster.x-k8s.io/pool":"fast"' in node for node in nodes)

            await world.site.until(look, within_s=300, message=lambda: "no Node has the label")
            assert sorted(one.metadata.uid for one in await world.machines()) == before
            worker = await a_machine(world)
            obj = await world.site.client.get(TINKERBELL_MACHINE, NAMESPACE, worker)
            assert obj.metadata.labels["node.cluster.x-k8s.io/pool"] == "fast"
            assert {one.installs for one in world.rack.servers.values()} == {1}

    run(main())


def test_servers_of_a_rack_are_installed_in_waves() -> None:
    """Two at a time of each rack, at every revision of the store, and a person may read what the others wait for."""

    async def main() -> None:
        racks = [{"rack": "r1"}, {"rack": "r2"}]
        async with rack_site(10, labels=racks, at_once=2) as world:
            going: dict[str, set[str]] = {"r1": set(), "r2": set()}
            most = dict.fromkeys(going, 0)

            def look(change: Change) -> None:
                if change.entry.resource != f"{WORKFLOW.plural}.{WORKFLOW.group}":
                    return
                workflow = WORKFLOW.convert(change.entry.decode())
                rack = going[f"r{int(workflow.spec.hardware_ref[1:]) % 2 + 1}"]
                ended = workflow.status.state in ("SUCCESS", "FAILED", "TIMEOUT")
                (rack.discard if ended else rack.add)(workflow.metadata.name)
                most.update({name: max(most[name], len(found)) for name, found in going.items()})

            world.site.server.context.store.listen(look)
            await world.site.apply(documents(workers=9, cluster={"failureDomainLabel": "rack"}))
            told: set[str] = set()

            async def running() -> bool:
                for obj in await world.site.all(TINKERBELL_MACHINE):
                    ready = find_condition(obj.status.conditions, "Ready")
                    told.add(ready.message if ready is not None and ready.reason == "WaitingForTurn" else "")
                machines = await world.machines()
                return len(machines) == 10 and all(one.status.phase == "Running" for one in machines)

            await world.site.until(running, within_s=3600, message=lambda: "not all run")
            assert most == {"r1": 2, "r2": 2}
            assert any(
                one.startswith("Waiting for the rack: 2 servers of rack r1 are being powered on") for one in told
            )

    run(main())


def health_check(*, attempts: int = 1, server: str = "Any") -> list[dict[str, Any]]:
    group = "infrastructure.cluster.x-k8s.io/v1beta1"
    metadata = {"namespace": NAMESPACE, "name": "first-a-power-cycle"}
    remedy = {"powerCycle": {"attempts": attempts, "timeoutSeconds": 600}, "replacement": {"server": server}}
    conditions = [{"type": "Ready", "status": status, "timeoutSeconds": 300} for status in ("Unknown", "False")]
    check = {
        "clusterName": "one",
        "selector": {"matchLabels": {"cluster.x-k8s.io/cluster-name": "one"}},
        "checks": {"unhealthyNodeConditions": conditions},
        "remediation": {
            "templateRef": {"apiVersion": group, "kind": "TinkerbellRemediationTemplate", "name": metadata["name"]}
        },
    }
    return [
        {"apiVersion": group, "kind": "TinkerbellRemediationTemplate", "metadata": metadata,
         "spec": {"template": {"spec": remedy}}},
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck", "metadata": metadata, "spec": check},
    ]  # fmt: skip


def test_a_machine_that_hangs_is_power_cycled_and_stays() -> None:
    async def main() -> None:
        async with rack_site(3) as world:
            await world.site.apply([*documents(workers=2), *health_check()])
            await world.running(3)
            name = await a_machine(world)
            uid = (await world.site.client.get(MACHINE, NAMESPACE, name)).metadata.uid
            server = await server_of(world, name)
            await server.hang()
            phases: list[str] = []

            async def look() -> bool:
                found = await world.site.client.find(TINKERBELL_REMEDIATION, NAMESPACE, name)
                if found is not None and found.status.phase not in phases:
                    phases.append(found.status.phase)
                return server.power_cycles == 1 and found is None and "PowerCycling" in phases

            await world.site.until(look, within_s=3600, message=lambda: f"{server} {phases}")
            await world.running(3)
            assert (await world.site.client.get(MACHINE, NAMESPACE, name)).metadata.uid == uid
            assert (server.installs, server.wipes) == (1, 0)
            assert not await world.site.all(JOB) or all(
                "power-cycle" not in one.metadata.name for one in await world.site.all(JOB)
            )

    run(main())


def test_a_broken_machine_is_replaced_on_a_full_rack_by_the_same_server() -> None:
    async def main() -> None:
        async with rack_site(3) as world:
            await world.site.apply([*documents(workers=2), *health_check(attempts=2)])
            await world.running(3)
            name = await a_machine(world)
            server = await server_of(world, name)
            server.broken = True
            await server.hang()

            async def replaced() -> bool:
                if server.wipes:
                    server.broken = False
                machines = await world.machines()
                names = [one.metadata.name for one in machines]
                return name not in names and len(names) == 3 and all(one.status.phase == "Running" for one in machines)

            await world.site.until(replaced, within_s=3 * 3600, message=lambda: f"{server}")
            assert server.power_cycles >= 2
            assert (server.installs, server.wipes) == (2, 1)

    run(main())


@pytest.mark.soak
def test_a_broken_server_is_held_where_another_is_asked_for() -> None:
    async def main() -> None:
        async with rack_site(4) as world:
            await world.site.apply([*documents(workers=2), *health_check(server="Other")])
            await world.running(3)
            name = await a_machine(world)
            server = await server_of(world, name)
            server.broken = True
            await server.hang()

            async def replaced() -> bool:
                machines = await world.machines()
                names = [one.metadata.name for one in machines]
                return name not in names and len(names) == 3 and all(one.status.phase == "Running" for one in machines)

            await world.site.until(replaced, within_s=3 * 3600, message=lambda: f"{server}")
            hardware = await world.site.client.get(HARDWARE, NAMESPACE, server.name)
            assert claim_of(hardware) is None
            assert hardware.metadata.annotations[HELD].startswith("unhealthy as Machine default/")
            assert server.wipes == 1

    run(main())


def test_a_control_plane_is_power_cycled_machine_by_machine() -> None:
    async def main() -> None:
        async with rack_site(4) as world:
            await world.site.apply([*documents(control_planes=3, workers=1), *health_check(attempts=3)])
            await world.running(4)
            before = sorted(one.metadata.uid for one in await world.machines())
            planes = [one.metadata.name for one in await world.machines() if LABEL_CONTROL_PLANE in one.metadata.labels]
            servers = {name: await server_of(world, name) for name in planes}
            for name in planes:
                await mark(world, name, "")
            off: list[int] = []

            async def look() -> bool:
                off.append(sum(one.power != "on" for one in servers.values()))
                for name, server in servers.items():
                    if server.power_cycles:
                        await mark(world, name, None)
                done = all(one.power_cycles for one in servers.values())
                return done and not await world.site.all(TINKERBELL_REMEDIATION)

            await world.site.until(look, within_s=2 * 3600, message=lambda: f"{servers}")
            await world.running(4)
            assert max(off) == 1
            assert [one.power_cycles for one in servers.values()] == [1, 1, 1]
            assert sorted(one.metadata.uid for one in await world.machines()) == before

    run(main())


async def mark(world: RackSite, name: str, value: str | None) -> None:
    """Have a Machine remediated, or not any more."""
    body = {"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": value}}}
    await world.site.client.merge_patch(MACHINE, NAMESPACE, name, body=body)

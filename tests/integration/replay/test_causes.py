"""What keeps a Machine from being available, as the conditions of its owners up to the Cluster report it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from ironbell.api.bmc import JOB
from ironbell.api.bmc.action import PowerAction
from ironbell.api.client import PatchType
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE
from ironbell.contract.servers.claim import HELD
from ironbell.kube.conditions import find_condition, is_true
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleet.clusters import NAMESPACE, cluster
from support.fleet.replay import endpoint_host, fleet_site


async def message(site: ReplaySite, kind: Kind[Any], type_: str = "Available") -> str:
    found = find_condition((await site.client.get(kind, NAMESPACE, "one")).status.conditions, type_)
    return "" if found is None or found.status == "True" else found.message


async def switch(site: ReplaySite, action: PowerAction) -> None:
    """As a person would, through the server's BMC."""
    reference = {"name": "sim-0001", "namespace": NAMESPACE}
    metadata = {"name": f"switch-{action}", "namespace": NAMESPACE}
    spec = {"machineRef": reference, "tasks": [{"powerAction": str(action)}]}
    await site.apply([{"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": metadata, "spec": spec}])


def test_a_shortage_of_servers_is_named_once_on_each_owner() -> None:
    async def main() -> None:
        async with fleet_site(1, 2) as (site, _fleet):
            await site.apply(cluster("one", endpoint_host("one"), workers=2, spread=False))

            async def one_waits() -> bool:
                return "no hardware available" in await message(site, CLUSTER)

            await site.until(one_waits, within_s=3600, message=lambda: "the Cluster does not name the shortage")
            await asyncio.sleep(600.0)
            for kind in (MACHINE_DEPLOYMENT, CLUSTER):
                text = await message(site, kind)
                assert text.count("no hardware available: all 2 Hardware are claimed") == 1, text
            assert (await message(site, MACHINE_DEPLOYMENT)).startswith("1 available replicas, at least 2 required")
            assert await message(site, KUBEADM_CONTROL_PLANE) == ""
            before = await _versions(site)
            await asyncio.sleep(1800.0)
            assert await _versions(site) == before, "a condition changes although nothing has changed"

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def test_a_control_plane_whose_server_is_switched_off_is_named_on_the_cluster() -> None:
    async def main() -> None:
        async with fleet_site(1, 1) as (site, _fleet):
            await site.apply(cluster("one", endpoint_host("one"), spread=False))

            async def is_up() -> bool:
                return is_true((await site.client.get(CLUSTER, NAMESPACE, "one")).status.conditions, "Available")

            async def is_named() -> bool:
                return "server sim-0001 is powered off" in await message(site, CLUSTER)

            async def is_lost() -> bool:
                return "server sim-0001 is powered off" in await message(site, KUBEADM_CONTROL_PLANE)

            async def is_back() -> bool:
                machines = await site.all(MACHINE)
                return await is_up() and all(find_condition(m.status.conditions, "PoweredOn") is None for m in machines)

            await site.until(is_up, within_s=3600, message=lambda: "the Cluster does not become available")
            await switch(site, PowerAction.OFF)
            await site.until(is_named, within_s=400, message=lambda: "the Cluster does not name the server")
            await site.until(is_lost, within_s=900, message=lambda: "the control plane does not name the server")
            text = await message(site, CLUSTER)
            assert text.count("server sim-0001 is powered off") == 1, text
            await switch(site, PowerAction.ON)
            await site.until(is_back, within_s=1800, message=lambda: "the cause stays")

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def test_a_held_server_is_named_on_a_cluster_that_is_being_deleted() -> None:
    async def main() -> None:
        async with fleet_site(1, 2) as (site, _fleet):
            await site.apply(cluster("one", endpoint_host("one"), workers=1, spread=False))

            async def is_up() -> bool:
                return is_true((await site.client.get(CLUSTER, NAMESPACE, "one")).status.conditions, "Available")

            async def is_named() -> bool:
                found = find_condition((await site.client.get(CLUSTER, NAMESPACE, "one")).status.conditions, "Deleting")
                return found is not None and "is held (kept for the test)" in found.message

            async def is_gone() -> bool:
                return not await site.all(CLUSTER)

            await site.until(is_up, within_s=3600, message=lambda: "the Cluster does not become available")
            for name in ("sim-0001", "sim-0002"):
                await hold(site, name, "kept for the test")
            await site.client.api.delete(CLUSTER.collection, NAMESPACE, "one")
            await site.until(is_named, within_s=600, message=lambda: "the Cluster does not name the hold")
            for name in ("sim-0001", "sim-0002"):
                await hold(site, name, None)
            await site.until(is_gone, within_s=3600, message=lambda: "the Cluster stays")

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


async def hold(site: ReplaySite, name: str, reason: str | None) -> None:
    body = msgspec.json.encode({"metadata": {"annotations": {HELD: reason}}})
    await site.client.api.patch(HARDWARE.collection, NAMESPACE, name, body, patch_type=PatchType.MERGE)


async def _versions(site: ReplaySite) -> dict[str, str]:
    """The messages of all owners."""
    found = {}
    for kind in (CLUSTER, MACHINE_DEPLOYMENT, KUBEADM_CONTROL_PLANE):
        for condition in (await site.client.get(kind, NAMESPACE, "one")).status.conditions:
            found[f"{kind.kind} {condition.type}"] = f"{condition.status} {condition.message}"
    return found

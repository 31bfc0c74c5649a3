"""A name is used a second time: what is known of the deleted object says nothing about the new one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ironbell.api.bmc.machine import MACHINE as BMC_MACHINE
from ironbell.api.bootstrap import KUBEADM_CONFIG
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import LABEL_OWNER_NAME
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.codec import goyaml
from ironbell.kube.decision import AnyKind
from ironbell.lab.fleet.catalogue import Server, hardware
from ironbell.lab.manifests import bmc_machine
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.timing import REAL
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleet.clusters import NAMESPACE, cluster, worker
from support.fleet.replay import FleetSite, endpoint_host, fleet_site

WITHIN_S = 3600.0


def _run(main: Callable[[ReplaySite, FleetSite], Awaitable[None]], *, servers: int = 4) -> None:
    async def on_site() -> None:
        async with fleet_site(1, servers, speed=REAL) as (site, fleet):
            await main(site, fleet)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(on_site())


@pytest.mark.parametrize("crashes", [False, True], ids=["at once", "after a restart"])
def test_a_cluster_comes_up_again_under_its_name(crashes: bool) -> None:
    """Cluster, KubeadmControlPlane, MachineDeployment, Secrets, templates: all of the same names, three times."""

    async def main(site: ReplaySite, _fleet: FleetSite) -> None:
        for _ in range(3):
            await site.apply(cluster("b", endpoint_host("b"), workers=2))
            await _runs(site, 3)
            await site.client.delete(CLUSTER, NAMESPACE, "b")
            await _is_gone(site)
            if crashes:
                await site.crash()

    _run(main)


def test_what_was_stored_wrongly_is_derived_again() -> None:
    """As a version that trusted answers about a deleted cluster left it behind."""

    async def main(site: ReplaySite, _fleet: FleetSite) -> None:
        documents = cluster("b", endpoint_host("b"), workers=1)
        next(one for one in documents if one["kind"] == "Cluster")["spec"]["paused"] = True
        await site.apply(documents)

        async def exists() -> bool:
            found = await site.client.find(CLUSTER, NAMESPACE, "b")
            return found is not None and bool(found.status.conditions)

        await site.until(exists, within_s=WITHIN_S, message=lambda: "the Cluster is not known to be paused")
        for kind, type_ in ((KUBEADM_CONTROL_PLANE, "Initialized"), (CLUSTER, "ControlPlaneInitialized")):
            found = await site.client.get(kind, NAMESPACE, "b")
            held = [one for one in found.status.conditions if one.type != type_]
            stored = {"type": type_, "status": "True", "reason": "Initialized", "message": ""}
            conditions = [*(to_builtin(one) for one in held), {**stored, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
            status = {"initialization": {"controlPlaneInitialized": True}, "conditions": conditions}
            await site.client.merge_patch(kind, NAMESPACE, "b", body={"status": status}, subresource="status")
        await site.client.merge_patch(CLUSTER, NAMESPACE, "b", body={"spec": {"paused": None}})
        await _runs(site, 2)

    _run(main)


@pytest.mark.parametrize("crashes", [False, True], ids=["at once", "after a restart"])
def test_a_machine_comes_up_again_under_its_name(crashes: bool) -> None:
    """Machine, KubeadmConfig, TinkerbellMachine, Workflow, Secret, Node: none is made of a random name here."""

    async def main(site: ReplaySite, _fleet: FleetSite) -> None:
        await site.apply(cluster("b", endpoint_host("b"), workers=0))
        await _runs(site, 1)
        seen: set[str] = set()
        for _ in range(3):
            await site.apply(worker("b", "by-hand"))
            await _runs(site, 2)
            made = await site.client.get(TINKERBELL_MACHINE, NAMESPACE, "by-hand")
            claimed = await site.client.get(HARDWARE, NAMESPACE, made.spec.hardware_name)
            assert claimed.metadata.labels[LABEL_OWNER_NAME] == "by-hand"
            seen.add(made.metadata.uid)
            await site.client.delete(MACHINE, NAMESPACE, "by-hand")
            await _have_gone(site, MACHINE, KUBEADM_CONFIG, TINKERBELL_MACHINE)
            if crashes:
                await site.crash()
        assert len(seen) == 3

    _run(main, servers=2)


def test_a_workflow_runs_again_under_its_name() -> None:
    """A second Workflow of the same name does its work anew: nothing counts as done that the first one did."""

    async def main(site: ReplaySite, fleet: FleetSite) -> None:
        server = fleet.servers["sim-0001"]
        ids = set()
        for text in ("first", "second"):
            await site.apply(_echo(server.server, text))
            await site.until(lambda: _ended(site), within_s=WITHIN_S, message=lambda: "the Workflow does not end")
            done = await site.client.get(WORKFLOW, NAMESPACE, "echo")
            assert done.status.state == "SUCCESS"
            assert [action.name for task in done.status.tasks for action in task.actions] == [text]
            ids.update(action.id for task in done.status.tasks for action in task.actions)
            for kind in (WORKFLOW, TEMPLATE):
                await site.client.delete(kind, NAMESPACE, "echo")
        assert len(ids) == 2

    _run(main, servers=1)


def test_a_server_is_added_again_under_its_name() -> None:
    """Hardware and BMC Machine: what the BMC of the removed server said is not what the new one reports."""

    async def main(site: ReplaySite, fleet: FleetSite) -> None:
        server = fleet.servers["sim-0001"]

        async def state() -> str:
            found = await site.client.find(BMC_MACHINE, NAMESPACE, server.server.name)
            return found.status.power_state or "" if found is not None else ""

        async def off() -> bool:
            return await state() == "off"

        async def on() -> bool:
            return await state() == "on"

        await site.until(off, within_s=WITHIN_S, message=lambda: "the power state is not reported")
        for kind in (HARDWARE, BMC_MACHINE):
            await site.client.delete(kind, NAMESPACE, server.server.name)
        await asyncio.sleep(10.0)
        await server.on()
        await site.apply(
            [
                bmc_machine(server.server.name, NAMESPACE, server.server.bmc_address, 443),
                hardware(server.server, NAMESPACE),
            ]
        )
        await site.until(on, within_s=60.0, message=lambda: "the power state is that of before")

    _run(main, servers=1)


async def _runs(site: ReplaySite, count: int) -> None:
    said = ""

    async def runs() -> bool:
        nonlocal said
        machines = await site.all(MACHINE)
        said = str([f"{one.metadata.name} {one.status.phase}" for one in machines])
        return [one.status.phase for one in machines] == ["Running"] * count

    await site.until(runs, within_s=WITHIN_S, message=lambda: f"it does not run: {said}")


def _echo(server: Server, name: str) -> list[dict[str, Any]]:
    """A Template and a Workflow for a server, with one action of that name."""
    actions = [{"name": name, "image": "example.org/echo", "timeout": 60}]
    task = {"name": "all", "worker": "{{.device_1}}", "actions": actions}
    data = goyaml.dump({"version": "0.1", "name": "echo", "global_timeout": 600, "tasks": [task]})
    workflow = {
        "templateRef": "echo",
        "hardwareRef": server.name,
        "hardwareMap": {"device_1": server.mac},
        "bootOptions": {"bootMode": "netboot", "toggleAllowNetboot": True},
    }
    specs = {"Template": {"data": data}, "Workflow": workflow}
    metadata = {"name": "echo", "namespace": NAMESPACE}
    return [
        {"apiVersion": HARDWARE.api_version, "kind": kind, "metadata": metadata, "spec": spec}
        for kind, spec in specs.items()
    ]


async def _ended(site: ReplaySite) -> bool:
    found = await site.client.get(WORKFLOW, NAMESPACE, "echo")
    return found.status.state not in {"", "PENDING", "PREPARING", "RUNNING", "POST"}


async def _have_gone(site: ReplaySite, *kinds: AnyKind) -> None:
    async def have_gone() -> bool:
        found = [await site.client.find(kind, NAMESPACE, "by-hand") for kind in kinds]
        return found == [None] * len(kinds)

    await site.until(have_gone, within_s=WITHIN_S, message=lambda: "the Machine stays")


async def _is_gone(site: ReplaySite) -> None:
    async def gone() -> bool:
        return not await site.all(CLUSTER)

    await site.until(gone, within_s=WITHIN_S, message=lambda: "the cluster stays")

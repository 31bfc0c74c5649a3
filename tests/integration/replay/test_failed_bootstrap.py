"""Simulated servers whose kubeadm fails: what is reported up to the Machine, and how soon the Machine is replaced."""

from __future__ import annotations

import asyncio

import msgspec

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster import MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.kube.conditions import find_condition
from ironbell.lab.fleet.faults import Faults
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.timing import REAL
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleet.clusters import cluster, health_checks
from support.fleet.replay import endpoint_host, fleet_site

WHY = "the simulation made kubeadm fail"
AT_ONCE_S = 15.0


def test_it_is_on_every_object_and_the_machine_is_replaced_at_once() -> None:
    async def main() -> None:
        async with fleet_site(3, 3, speed=REAL) as (site, fleet):
            await site.apply(cluster("one", endpoint_host("one"), control_planes=1, workers=1, spread=False))
            await site.apply(health_checks("one"))
            await site.until(lambda: _has_node(site), within_s=1800, message=lambda: "no control plane")
            for server in fleet.servers.values():
                server.faults = Faults(kubeadm_fails=1.0)

            async def failed() -> bool:
                return any(WHY in why for why in await _failures(site))

            await site.until(failed, within_s=1800, message=lambda: "the failure is not reported")
            began = site.clock.monotonic()
            (machine,) = [one for one in await site.all(TINKERBELL_MACHINE) if _why(one)]
            assert not machine.status.ready
            ready = find_condition(machine.status.conditions, "Ready")
            assert ready is not None
            assert (ready.status, ready.reason) == ("False", "BootstrapFailed")
            name = machine.metadata.owner_references[0].name

            async def replaced() -> bool:
                found = [one for one in await site.all(MACHINE) if one.metadata.name == name]
                return not found or found[0].metadata.deletion_timestamp is not None

            shown: set[str] = set()
            while not await replaced():
                assert site.clock.monotonic() - began <= AT_ONCE_S, "the Machine is not replaced"
                for kind in (MACHINE, KUBEADM_CONFIG):
                    shown |= {kind.kind for one in await site.all(kind) if WHY in _why(one)}
                await asyncio.sleep(0.2)
            assert shown == {"Machine", "KubeadmConfig"}
            (server,) = [one for one in await site.all(HARDWARE) if "systemFailure" in _history(one)]
            (entry,) = [one for one in msgspec.json.decode(_history(server)) if "systemFailure" in one]
            assert WHY in entry["systemFailure"]["message"]
            fleet.calm()

            async def whole() -> bool:
                return [one.status.phase for one in await site.all(MACHINE)] == ["Running"] * 2

            await site.until(whole, within_s=3600, message=lambda: "the replacement did not join")

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


async def _has_node(site: ReplaySite) -> bool:
    return any(one.status.node_ref.name for one in await site.all(MACHINE))


async def _failures(site: ReplaySite) -> list[str]:
    return [_why(one) for one in await site.all(TINKERBELL_MACHINE)]


def _why(obj: object) -> str:
    conditions = obj.status.conditions  # type: ignore[attr-defined]
    found = find_condition(conditions, "BootstrapSucceeded")
    return found.message if found is not None and found.status == "False" else ""


def _history(hardware: object) -> str:
    return str(hardware.metadata.annotations.get("ironbell.dev/history", ""))  # type: ignore[attr-defined]

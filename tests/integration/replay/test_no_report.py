"""Templates of which the installed system does not report, such as upstream's default, on virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.core import NODE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_UP
from ironbell.kube.client import Client
from ironbell.kube.conditions import find_condition
from ironbell.lab.sim.timing import REAL
from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.provisioner.default_template import Inputs, default_template
from support.fleet.clusters import VERSION, cluster
from support.fleet.replay import SITE, endpoint_host, fleet_site

WITHIN_S = 30.0


def without_report(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same cluster, with a template as upstream's: it installs, and nothing reports."""
    text = default_template(Inputs("install", f"http://192.0.2.1/{VERSION}.gz", "{{ index .Hardware.Disks 0 }}", SITE))
    lines = [line for line in text.splitlines() if "reporting" not in line and "webhook" not in line]
    kept = "\n".join(line for line in lines if "ironbell:" not in line and "reports/cloud-init" not in line)
    for document in documents:
        if document["kind"] == "TinkerbellMachineTemplate":
            document["spec"]["template"]["spec"]["templateOverride"] = kept
    return documents


def test_its_machines_are_ready_as_soon_as_their_nodes_are_there() -> None:
    async def main() -> None:
        async with fleet_site(1, 4, speed=REAL) as (site, _fleet):
            for told in (True, False):
                name = "told" if told else "not"
                documents = cluster(name, endpoint_host(name), control_planes=1, workers=1, spread=False, told=told)
                await site.apply(without_report(documents))
            await site.until(
                lambda: _all_ready(site),
                within_s=3600,
                message=lambda: "a machine is not ready although its Node is there",
            )
            assert all(INSTALLED_SYSTEM_UP not in one.metadata.annotations for one in await site.all(HARDWARE))
            joined = {
                address.address: parse_rfc3339(node.metadata.creation_timestamp or "")
                for cluster_ in site.cloud.clusters.values()
                for node in await _nodes(cluster_)
                for address in node.status.addresses
            }
            for machine in await site.all(TINKERBELL_MACHINE):
                waited = _ready_since(machine) - joined[machine.status.addresses[0].address]
                assert waited.total_seconds() <= WITHIN_S, f"{machine.metadata.name}: {waited}"

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


async def _all_ready(site: Any) -> bool:
    machines = await site.all(TINKERBELL_MACHINE)
    return len(machines) == 4 and all(one.status.ready for one in machines)


async def _nodes(cluster_: Any) -> list[Any]:
    async with cluster_.inside() as api:
        return (await Client(api).list(NODE)).items


def _ready_since(machine: TinkerbellMachine) -> Any:
    found = find_condition(machine.status.conditions, "Ready")
    assert found is not None
    return parse_rfc3339(found.last_transition_time or "")

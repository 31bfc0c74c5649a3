"""A cluster whose servers' complete wipe is deferred: its upgrades use its own servers again after a quick wipe, and
another cluster gets them only after a complete one. The whole site on virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from ironbell.api.client import PatchType
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.contract.servers.claim import WIPED, claim_of
from ironbell.contract.servers.wipe_due import WIPE_DUE
from ironbell.kube.cache.informer import Informer
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.provisioner.lifecycle.names import WIPE
from support.fleet.clusters import NAMESPACE, cluster
from support.fleet.replay import endpoint_host, fleet_site

VERSIONS = ("v1.34.3", "v1.34.4")


class Journal:
    """What happened to servers: claims by Machines with the certificate before them, and how disks were wiped."""

    def __init__(self, site: ReplaySite) -> None:
        self.claims: list[tuple[str, str, bool]] = []
        """Server, cluster of the Machine, and whether it was available (not reserved) with a complete wipe proven."""
        self.wipes: list[str] = []
        self.hardware = Informer(site.client.api, HARDWARE)
        self.templates = Informer(site.client.api, TEMPLATE)
        self.hardware.add_handler(self._claimed)
        self.templates.add_handler(self._wiped)

    def _claimed(self, old: Hardware | None, new: Hardware | None) -> None:
        before, after = (claim_of(one) if one is not None else None for one in (old, new))
        if old is None or new is None or before == after or after is None or after.is_reservation:
            return
        text = old.metadata.annotations.get(WIPED, "{}")
        proven = before is None and WIPE_DUE not in old.metadata.annotations and msgspec.json.decode(text).get("wiped")
        self.claims.append((new.metadata.name, after.name.partition("-")[0], bool(proven)))

    def _wiped(self, old: Template | None, new: Template | None) -> None:
        if old is None and new is not None and "WIPE_METHOD: " in new.spec.data:
            method = new.spec.data.partition("WIPE_METHOD: ")[2].split()[0]
            self.wipes.append(method)


async def upgrade(site: ReplaySite, version: str) -> None:
    change = msgspec.json.encode({"spec": {"version": version}})
    await site.client.api.patch(KUBEADM_CONTROL_PLANE.collection, NAMESPACE, "one", change, patch_type=PatchType.MERGE)


def test_upgrades_use_the_clusters_own_servers_and_others_wait_for_a_complete_wipe() -> None:
    async def main() -> None:
        async with fleet_site(3, 2) as (site, _fleet):
            journal = Journal(site)
            tasks = [asyncio.create_task(one.run()) for one in (journal.hardware, journal.templates)]
            for number in (1, 2):
                body = msgspec.json.encode({"metadata": {"annotations": {WIPE: "deferred"}}})
                await site.client.api.patch(
                    HARDWARE.collection, NAMESPACE, f"sim-000{number}", body, patch_type=PatchType.MERGE
                )

            async def machines(name: str) -> list[Any]:
                return [one for one in await site.all(MACHINE) if one.spec.cluster_name == name]

            async def runs(name: str, version: str) -> bool:
                return [(one.status.phase, one.spec.version) for one in await machines(name)] == [("Running", version)]

            async def one_is_at(version: str) -> None:
                await site.until(
                    lambda: runs("one", version), within_s=4 * 3600, message=lambda: f"{version}: {journal.claims}"
                )

            await site.apply(cluster("one", endpoint_host("one"), spread=False, version="v1.34.2"))
            await one_is_at("v1.34.2")
            for version in VERSIONS:
                await upgrade(site, version)
                await one_is_at(version)
            assert [claim[0] for claim in journal.claims] == ["sim-0001", "sim-0002", "sim-0001"]
            assert set(journal.wipes) == {"quick"}, "an upgrade waits for no complete wipe"

            await site.client.api.delete(CLUSTER.collection, NAMESPACE, "one")
            await site.apply(cluster("two", endpoint_host("two"), spread=False))
            await site.until(lambda: runs("two", "v1.34.2"), within_s=8 * 3600, message=lambda: str(journal.claims))
            others = [claim for claim in journal.claims if claim[1] == "two"]
            assert len(others) == 1
            assert others[0][2], "a complete wipe was proven before another cluster claimed the server"
            assert journal.wipes.count("complete") >= 1
            for task in tasks:
                task.cancel()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())

"""A server that cannot be installed: every condition up to the Cluster says so, and who waits for the cluster stops."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.kind import Kind
from ironbell.kube.conditions import find_condition
from ironbell.lab.fleet.faults import Faults
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.operations.cluster import waits
from ironbell.operations.cluster.snapshot import Snapshot
from ironbell.operations.cluster.waits import FailedForGoodError
from support.fleet.clusters import NAMESPACE, cluster
from support.fleet.replay import endpoint_host, fleet_site

WHY = "The installation failed 3 of 3 times: action 'stream image'"


async def plain(site: ReplaySite, kind: Kind[Any]) -> tuple[dict[str, Any], ...]:
    page = await site.client.api.list(kind.collection, NAMESPACE)
    return tuple({"kind": kind.kind, **msgspec.json.decode(item)} for item in page.items)


def said(cluster: Cluster, type_: str) -> str:
    found = find_condition(cluster.status.conditions, type_)
    return found.message if found is not None and found.status == "False" else ""


def test_an_installation_that_failed_for_good_is_reported_up_to_the_cluster_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with fleet_site(1, 1, faults=Faults(action_fails=1.0)) as (site, _fleet):
            await site.apply(cluster("one", endpoint_host("one"), spread=False))

            async def read(*_arguments: Any, **_more: Any) -> Snapshot:
                (found,), (plane,) = await plain(site, CLUSTER), await plain(site, KUBEADM_CONTROL_PLANE)
                sets = await plain(site, MACHINE_DEPLOYMENT)
                return Snapshot(found, None, plane, sets, machines=await plain(site, MACHINE))

            async def cause(*_arguments: Any) -> str:
                return ""

            monkeypatch.setattr(waits, "read", read)
            monkeypatch.setattr(waits.Blocking, "line", cause)
            wait = waits.wait_settled(
                None, NAMESPACE, "one", subject="Cluster default/one", timeout_s=7200, report=lambda _: None
            )  # type: ignore[arg-type]
            with pytest.raises(FailedForGoodError, match=WHY) as caught:
                await wait
            (machine,) = await site.all(MACHINE)
            assert caught.value.message.startswith(
                f"Cluster default/one cannot be completed. Machine default/{machine.metadata.name}: {WHY}"
            )
            await asyncio.sleep(3.0)
            (found,) = await site.all(CLUSTER)
            for type_ in ("ControlPlaneAvailable", "ControlPlaneMachinesReady", "Available"):
                assert WHY in said(found, type_), (type_, said(found, type_))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())

"""Our core over providers that are not ours, and that keep one contract only: found by the labels of their
definitions, in groups and versions of their own. Virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS, MACHINE
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.capi.site import NAMESPACE, site
from support.strangers.family import IRON, STEEL, Family
from support.strangers.grounds import ReplayGround
from support.strangers.manifests import class_documents, core, documents, machine_spec, provided, topology_cluster
from support.strangers.provider import Stranger

WITHIN_S = 1800
FAMILIES = pytest.mark.parametrize("family", [IRON, STEEL], ids=["v1beta1", "v1beta2"])


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main)


@asynccontextmanager
async def foreign(family: Family) -> AsyncIterator[tuple[ReplaySite, Stranger]]:
    """A site on which the provider works."""
    async with site() as opened:
        stranger = Stranger(opened.client.api, family, ReplayGround(opened), opened.clock)
        await opened.apply(family.definitions())
        work = asyncio.create_task(stranger.run())
        try:
            yield opened, stranger
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


async def the_cluster(opened: ReplaySite) -> Cluster:
    found: Cluster = await opened.client.get(CLUSTER, NAMESPACE, "alien")
    return found


def told(obj: Any) -> dict[str, str]:
    return {one.type: one.status for one in obj.status.conditions}


async def running(opened: ReplaySite, count: int, version: str = "v1.34.0") -> None:
    """Until so many Machines of this version are all there is, they run, and the Cluster is available."""

    async def look() -> bool:
        machines = await opened.all(MACHINE)
        good = [one for one in machines if one.status.phase == "Running" and one.spec.version == version]
        return len(good) == len(machines) == count and told(await the_cluster(opened)).get("Available") == "True"

    try:
        await opened.until(look, within_s=WITHIN_S, message=lambda: "not running")
    except Exception as error:
        found = [(one.metadata.name, one.status.phase, one.spec.version) for one in await opened.all(MACHINE)]
        cluster = await the_cluster(opened)
        said = [f"{one.type}: {one.message}" for one in cluster.status.conditions if one.message]
        raise AssertionError("\n".join(map(str, [*found, *said]))) from error


async def gone(opened: ReplaySite, family: Family) -> None:
    """Delete the Cluster, and wait until all that was made for it has gone."""
    await opened.client.delete(CLUSTER, NAMESPACE, "alien")

    async def look() -> bool:
        return await opened.client.find(CLUSTER, NAMESPACE, "alien") is None

    await opened.until(look, within_s=WITHIN_S, message=lambda: "not gone")
    await asyncio.sleep(5)
    kinds: list[Kind[Any]] = [
        MACHINE,
        *(family.kind(part) for part in ("Cluster", "Machine", "Config", "ControlPlane")),
    ]
    for kind in kinds:
        assert await opened.all(kind) == [], kind.kind


@FAMILIES
def test_a_cluster_is_made_scaled_upgraded_and_deleted(family: Family) -> None:
    async def main() -> None:
        async with foreign(family) as (opened, stranger):
            zones = {"zones": ["a", "b", "c"]}
            await opened.apply(documents(family, infrastructure=zones, domain="b"))
            await running(opened, 3)
            cluster = await the_cluster(opened)
            domains = [(one.name, one.control_plane) for one in cluster.status.failure_domains]
            assert domains == [("a", True), ("b", False), ("c", True)]
            assert cluster.spec.control_plane_endpoint.host
            assert told(cluster)["ControlPlaneAvailable"] == told(cluster)["InfrastructureReady"] == "True"
            workers = [one for one in await opened.all(MACHINE) if one.spec.failure_domain]
            assert {one.spec.failure_domain for one in workers} == {"b"}

            await opened.apply(documents(family, replicas=3, workers=1, infrastructure=zones, domain="b"))
            await running(opened, 4)

            async def counted() -> bool:
                counts = (await the_cluster(opened)).status.control_plane
                said = (counts.desired_replicas, counts.ready_replicas, counts.available_replicas) if counts else ()
                return said == (3, 3, 3)

            await opened.until(counted, within_s=60, message=lambda: "the control plane's numbers are not told")
            newer = documents(family, replicas=3, workers=1, infrastructure=zones, domain="b", version="v1.35.0")
            await opened.apply(newer)
            await running(opened, 4, "v1.35.0")
            before = len(stranger.released)
            await gone(opened, family)
            assert len(stranger.released) == before + 4

    run(main())


@FAMILIES
@pytest.mark.parametrize(
    ("infrastructure", "control_plane"),
    [({}, {}), ({"endpointAfterSeconds": 300}, {}), ({"endpointAfterSeconds": None}, {"namesEndpoint": True})],
    ids=["at once", "late", "by the control plane"],
)
def test_a_control_plane_without_machines_and_replicas(
    family: Family, infrastructure: dict[str, Any], control_plane: dict[str, Any]
) -> None:
    async def main() -> None:
        async with foreign(family) as (opened, _stranger):
            made = documents(family, replicas=None, infrastructure=infrastructure, control_plane=control_plane)
            await opened.apply(made)
            await running(opened, 2)

            async def has_endpoint() -> bool:
                return (await the_cluster(opened)).status.phase == "Provisioned"

            await opened.until(has_endpoint, within_s=600, message=lambda: "no endpoint")
            cluster = await the_cluster(opened)
            assert cluster.spec.control_plane_endpoint.port == 6443
            assert cluster.status.control_plane is None
            assert told(cluster)["ControlPlaneInitialized"] == "True"
            await gone(opened, family)

    run(main())


async def is_told(opened: ReplaySite, kind: Kind[Unstructured], words: str) -> None:
    """Until an object says what has failed, to clients of the older version."""

    async def look() -> bool:
        found = [one.body.get("status", {}) for one in await opened.all(kind)]
        return any(
            words in one.get("failureMessage", "") and one.get("failureReason") == "CreateError" for one in found
        )

    await opened.until(look, within_s=WITHIN_S, message=lambda: f"nobody says {words}")


@pytest.mark.parametrize(
    ("part", "whose"),
    [("Cluster", "Cluster"), ("ControlPlane", "Cluster"), ("Machine", "Machine"), ("Config", "Machine")],
)
def test_a_failure_of_the_older_contract_is_passed_on(part: str, whose: str) -> None:
    async def main() -> None:
        async with foreign(IRON) as (opened, _stranger):
            made = documents(IRON)
            for document in made:
                if document["kind"] == f"Iron{part}":
                    document["spec"]["broken"] = "no power"
                if document["kind"] == f"Iron{part}Template":
                    document["spec"]["template"]["spec"]["broken"] = "no power"
            await opened.apply(made)
            words = f'Failure detected from referenced resource {IRON.group}/v1alpha4, Kind=Iron{part} with name "'
            await is_told(opened, IRON.core(whose), words)
            objects = await opened.all(CLUSTER if whose == "Cluster" else MACHINE)
            conditions = {one.type: one.message for obj in objects for one in obj.status.conditions}
            type_ = {
                "Cluster": "InfrastructureReady",
                "ControlPlane": "ControlPlaneAvailable",
                "Machine": "InfrastructureReady",
                "Config": "BootstrapConfigReady",
            }[part]
            assert conditions[type_] == "no power"
            await gone(opened, IRON)

    run(main())


@FAMILIES
def test_a_class_of_foreign_templates(family: Family) -> None:
    async def main() -> None:
        async with foreign(family) as (opened, _stranger):
            await opened.apply(class_documents(family))
            await opened.apply([topology_cluster(family)])
            await running(opened, 3)
            cluster = await the_cluster(opened)
            assert [one.name for one in cluster.status.failure_domains] == ["a", "b"]
            assert told(cluster)["TopologyReconciled"] == "True"
            await opened.apply([topology_cluster(family, version="v1.35.0")])
            await running(opened, 3, "v1.35.0")
            await gone(opened, family)
            assert len(await opened.all(CLUSTER_CLASS)) == 1
            assert len(await opened.all(family.kind("MachineTemplate"))) == 1

    run(main())


@FAMILIES
def test_a_machine_by_itself_with_data_of_the_user(family: Family) -> None:
    """A Machine that nobody has made for another object, whose bootstrap data a person gave."""

    async def main() -> None:
        async with foreign(family) as (opened, stranger):
            await opened.apply(documents(family, replicas=None, workers=0))
            await running(opened, 0)
            data: Mapping[str, Any] = {
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": NAMESPACE},
            }  # fmt: skip
            spec = machine_spec(family, "alien", "v1.34.0", {}, family.reference("Machine", "alone"))
            spec["bootstrap"] = {"dataSecretName": "mine"}
            await opened.apply([data, provided(family, "Machine", "alone", {}), core(family, "Machine", "alone", spec)])
            await running(opened, 1)
            await gone(opened, family)
            assert stranger.released == ["alone"]

    run(main())

"""The life of a managed topology with kubectl on `ironbell up --simulate`: upstream's quick-start class with its
in-memory Cluster, a variable, workers, a version and a class that change, and the end of it all."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.capi.topologies import documents
from support.programs.kubectl import Kubectl
from support.programs.upstream import manifest
from support.site.embeddedcluster import EmbeddedCluster
from support.waiting import until

WITHIN_S = 120.0
OLD, NEW = "v1.34.2", "v1.35.1"
VARIABLES = {
    "CLUSTER_NAME": "one",
    "NAMESPACE": "default",
    "DOCKER_POD_CIDRS": "192.168.0.0/16",
    "DOCKER_SERVICE_CIDRS": "10.128.0.0/12",
    "DOCKER_SERVICE_DOMAIN": "cluster.local",
    "CONTROL_PLANE_MACHINE_COUNT": "1",
    "WORKER_MACHINE_COUNT": "1",
    "KUBERNETES_VERSION": OLD,
}
KINDS = (
    "machines.cluster.x-k8s.io,machinesets,machinedeployments,machinehealthchecks,kubeadmcontrolplanes,kubeadmconfigs,"
    "kubeadmconfigtemplates,devclusters,devmachines,devmachinetemplates,secrets"
)
Object = dict[str, Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    site = EmbeddedCluster(tmp_path_factory.mktemp("topology"), ("--simulate",))
    try:
        site.start()
        yield site
    finally:
        site.stop()


class Site:
    """What somebody with kubectl does and sees."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl
        self.on_every_look: Callable[[], Any] | None = None

    async def apply(self, *objects: Object) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})

        async def applied() -> None:
            done = await self.kubectl.run("apply", "--filename", "-", stdin=text)
            if "no matches for kind" in done.err:
                raise AssertionError(done.err)  # the kinds are still being defined
            if done.code != 0:
                raise RuntimeError(done.err)

        await self.until(applied)

    async def refused(self, topology: Object) -> str:
        """What is said of a change of the Cluster's topology that may not be."""
        return await self.kubectl.fails(*self._change({"topology": topology}))

    async def change(self, topology: Object) -> None:
        await self.kubectl.ok(*self._change({"topology": topology}))

    def _change(self, spec: Object) -> tuple[str, ...]:
        return ("patch", "cluster", "one", "--type=merge", "--patch", json.dumps({"spec": spec}))

    async def items(self, kinds: str, selector: str = "") -> list[Object]:
        found = await self.kubectl.ok("get", kinds, "--output=json", f"--selector={selector}")
        items: list[Object] = json.loads(found)["items"]
        return items

    async def names(self, kinds: str) -> set[str]:
        return {f"{one['kind']}/{one['metadata']['name']}" for one in await self.items(kinds)}

    async def until(self, check: Callable[[], Any]) -> None:
        """Until a coroutine's assertions hold."""

        async def look() -> bool:
            if self.on_every_look is not None:
                await self.on_every_look()
            await check()
            return True

        await until(look, within_s=WITHIN_S, every_s=0.5)

    async def settled(self, *, workers: int, version: str = OLD, without: frozenset[str] = frozenset()) -> set[str]:
        """Until the cluster runs as its topology says, on other Machines than those of before; the Machines."""
        names: set[str] = set()

        async def look() -> None:
            both = await self.items("clusters,machines.cluster.x-k8s.io")
            [cluster] = [one for one in both if one["kind"] == "Cluster"]
            machines = [one for one in both if one["kind"] == "Machine"]
            conditions = {one["type"]: one for one in cluster.get("status", {}).get("conditions", ())}
            for name in ("Available", "TopologyReconciled"):
                found = conditions.get(name, {})
                assert found.get("status") == "True", (name, found.get("reason"), found.get("message"))
                assert found["observedGeneration"] == cluster["metadata"]["generation"], name
            held = [(one["spec"]["version"], one.get("status", {}).get("phase")) for one in machines]
            assert held == [(version, "Running")] * (workers + 1), held
            names.clear()
            names.update(one["metadata"]["name"] for one in machines)
            assert not names & without, names & without

        await self.until(look)
        return names


def manifests() -> tuple[list[Object], Object]:
    """Upstream's class with its templates, and a Cluster of it that its in-memory template describes."""
    class_objects = documents(manifest("cluster-api/clusterclass-quick-start.yaml"), VARIABLES)
    cluster = documents(manifest("cluster-api/cluster-template-in-memory-topology.yaml"), VARIABLES)[-1]
    assert cluster["kind"] == "Cluster"
    cluster["spec"]["topology"]["classRef"] = {"name": "quick-start"}
    [deployment] = cluster["spec"]["topology"]["workers"]["machineDeployments"]
    deployment["minReadySeconds"] = 0
    return class_objects, cluster


async def test_the_life_of_a_topology(site: EmbeddedCluster, kubectl_binary: Path, tmp_path: Path) -> None:
    at = Site(Kubectl(kubectl_binary, site.kubeconfig, tmp_path))
    class_objects, cluster = manifests()
    await at.apply(*class_objects)
    [class_] = [one for one in class_objects if one["kind"] == "ClusterClass"]
    of_class = await at.names(KINDS)

    # the in-memory template is for another class: one of its variables is not known here
    told = await at.kubectl.fails("apply", "--filename", "-", stdin=json.dumps(cluster))
    assert "spec.topology.variables[imageRepository]: Invalid value" in told
    assert "variable is not defined" in told
    cluster["spec"]["topology"]["variables"] = [{"name": "kubeletLogLevel", "value": "2"}]
    await at.apply(cluster)
    first = await at.settled(workers=1)
    filled = {one["name"]: one["value"] for one in (await at.items("clusters"))[0]["spec"]["topology"]["variables"]}
    assert (filled["lbImageRepository"], filled["controlPlaneTaint"], filled["preLoadImages"]) == ("kindest", True, [])

    await a_variable_rolls_all_machines(at, first)
    await workers_come_and_go(at, class_)
    await a_version_follows_the_plan(at)
    await another_class_takes_over(at, class_)

    assert "used by Cluster(s) default/one" in await at.kubectl.fails("delete", "clusterclass", "second")
    await at.kubectl.ok("delete", "cluster", "one", f"--timeout={WITHIN_S:.0f}s")
    await at.until(lambda: nothing_is_left(at, of_class))
    await at.kubectl.ok("delete", "clusterclass", "second")


async def a_variable_rolls_all_machines(at: Site, before: set[str]) -> None:
    templates = await owned_templates(at)
    values = [{"name": "kubeletLogLevel", "value": "4"}, {"name": "preLoadImages", "value": ["a.test/one:1"]}]
    await at.change({"variables": values})
    await at.settled(workers=1, without=frozenset(before))
    for body in await at.items("devmachinetemplates", "topology.cluster.x-k8s.io/owned"):
        assert body["spec"]["template"]["spec"]["backend"]["docker"]["preLoadImages"] == ["a.test/one:1"]

    async def rotated() -> None:
        now = await owned_templates(at)
        assert len(now) == len(templates), now
        assert not now & templates

    await at.until(rotated)


async def workers_come_and_go(at: Site, class_: Object) -> None:
    """A class of workers is added and used, and can go when nobody uses it any more."""
    with_big = copy.deepcopy(class_)
    [small] = with_big["spec"]["workers"]["machineDeployments"]
    with_big["spec"]["workers"]["machineDeployments"].append({**copy.deepcopy(small), "class": "big-worker"})
    [held] = (await at.items("clusters"))[0]["spec"]["topology"]["workers"]["machineDeployments"]
    workers = {"machineDeployments": [held, {"class": "big-worker", "name": "md-big", "replicas": 2}]}
    assert 'MachineDeploymentClass with name "big-worker" does not exist' in await at.refused({"workers": workers})
    await at.apply(with_big)
    await at.change({"workers": workers})
    await at.settled(workers=3)
    told = await at.kubectl.fails("apply", "--filename", "-", stdin=json.dumps(class_))
    assert '"big-worker" cannot be deleted because it is used by Cluster(s) default/one' in told
    await at.change({"workers": {"machineDeployments": [held]}})
    await at.settled(workers=1)
    await at.apply(class_)


async def a_version_follows_the_plan(at: Site) -> None:
    """Workers get a version when the control plane runs at it; meanwhile there is no other one."""
    assert "cannot be increased" in await at.refused({"version": "v1.36.0"})
    assert "cannot be decreased" in await at.refused({"version": "v1.33.0"})
    await at.change({"version": NEW})
    told = await at.refused({"version": "v1.36.0"})
    assert "version cannot be changed" in told

    async def in_order() -> None:
        # in this order: workers that are told early are seen before a control plane that has come later
        found = await at.items("machinedeployments,kubeadmcontrolplanes")
        [plane] = [one for one in found if one["kind"] == "KubeadmControlPlane"]
        wanted = [one["spec"]["template"]["spec"]["version"] for one in found if one is not plane]
        running = {one["version"] for one in plane.get("status", {}).get("versions", ())}
        assert NEW not in wanted or running == {NEW}, (wanted, running)

    at.on_every_look = in_order
    await at.settled(workers=1, version=NEW)
    at.on_every_look = None


async def another_class_takes_over(at: Site, class_: Object) -> None:
    """A Cluster goes to another class whose kinds are the same; the first class is free then."""
    second, odd = copy.deepcopy(class_), copy.deepcopy(class_)
    for made, name in ((second, "second"), (odd, "odd")):
        made["metadata"] = {"name": name}
    second["spec"]["workers"]["machineDeployments"][0]["metadata"]["labels"] = {"of": "second"}
    odd["spec"]["infrastructure"]["templateRef"]["kind"] = "OddClusterTemplate"
    del odd["spec"]["patches"]
    await at.apply(second, odd)
    told = await at.refused({"classRef": {"name": "odd"}})
    assert 'spec.infrastructure.templateRef.kind: Forbidden: cannot be changed from "DevClusterTemplate"' in told
    await at.change({"classRef": {"name": "second"}})
    await at.settled(workers=1, version=NEW)
    [deployment] = await at.items("machinedeployments")
    assert deployment["metadata"]["labels"]["of"] == "second"
    await at.kubectl.ok("delete", "clusterclass", "quick-start", "odd")


async def owned_templates(at: Site) -> set[str]:
    kinds = "devmachinetemplates,kubeadmconfigtemplates"
    return {one["metadata"]["name"] for one in await at.items(kinds, "topology.cluster.x-k8s.io/owned")}


async def nothing_is_left(at: Site, of_class: set[str]) -> None:
    left = await at.names(KINDS)
    assert left == of_class, left ^ of_class

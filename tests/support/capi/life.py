"""The life of a cluster as somebody with kubectl sees it: written once, for every site that serves Cluster API."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ironbell.codec.envsubst import substitute
from support.programs.kubectl import Kubectl, find_kubectl
from support.waiting import until

WITHIN_S = 120.0
OLD, NEW = "v1beta1", "v1beta2"
MANIFESTS = Path(__file__).parents[2] / "integration" / "lives" / "manifests"
CORE = "cluster.x-k8s.io"
MACHINES = f"machines.{CORE}"
BROKEN = "example.com/Broken"
"""The Node's condition for which the health checks of the manifests have a Machine replaced."""


@dataclass(frozen=True)
class Size:
    """How a cluster is to be."""

    control_planes: int
    workers: int
    version: str = "v1.34.0"

    @property
    def variables(self) -> dict[str, str]:
        """The same as clusterctl's variables."""
        return {
            "CONTROL_PLANE_MACHINE_COUNT": str(self.control_planes),
            "WORKER_MACHINE_COUNT": str(self.workers),
            "KUBERNETES_VERSION": self.version,
        }


def rendered(manifest: str | Path, name: str, size: Size, **more: str) -> str:
    """A manifest with its variables filled in."""
    path = manifest if isinstance(manifest, Path) else MANIFESTS / manifest
    return substitute(path.read_text(), {"CLUSTER_NAME": name, **size.variables, **more})


@dataclass(frozen=True)
class Place:
    """One namespace of a site."""

    kubectl: Kubectl
    namespace: str
    within_s: float = WITHIN_S
    end_of_log: Callable[[], str] = str
    """What the site's processes said last."""

    @classmethod
    async def make(cls, kubeconfig: Path, home: Path, namespace: str, end_of_log: Callable[[], str]) -> Place:
        """A new namespace, for who this kubeconfig is for."""
        home.mkdir(parents=True, exist_ok=True)
        made = cls(Kubectl(find_kubectl(), kubeconfig, home), namespace, end_of_log=end_of_log)
        await made.kubectl.ok("create", "namespace", namespace)
        return made

    async def run(self, *words: str, stdin: str = "") -> str:
        """What kubectl prints of this namespace."""
        return await self.kubectl.ok(*words, "--namespace", self.namespace, stdin=stdin)

    async def json(self, *words: str) -> dict[str, Any]:
        """One object, or a list."""
        found: dict[str, Any] = json.loads(await self.run("get", *words, "--output", "json"))
        return found

    async def items(self, *words: str) -> list[dict[str, Any]]:
        """Objects of a kind."""
        return list((await self.json(*words))["items"])

    async def apply(self, manifest: str) -> None:
        """Apply a manifest. Nothing is warned of but that a version is an old one."""
        words = ("apply", "--namespace", self.namespace, "--filename", "-")
        done = await self.kubectl.run(*words, stdin=manifest)
        assert done.code == 0, f"{done.err}\n{self.end_of_log()}"
        warnings = [line for line in done.err.splitlines() if line]
        assert all(f"/{OLD} " in line and " is deprecated; use " in line for line in warnings), warnings

    async def patch(self, what: str, spec: Mapping[str, Any]) -> None:
        """Merge this into an object's spec."""
        await self.run("patch", what, "--type", "merge", "--patch", json.dumps({"spec": spec}))

    async def scale(self, what: str, replicas: int) -> None:
        """`kubectl scale`."""
        await self.run("scale", what, f"--replicas={replicas}")

    async def row(self, what: str) -> dict[str, str]:
        """The line that `kubectl get` prints of one object, by the columns' titles."""
        head, line = (await self.run("get", what)).splitlines()
        starts = [at for at, char in enumerate(head) if char != " " and head[max(at - 2, 0) : at].strip() == ""]
        ends = [*starts[1:], max(len(head), len(line))]
        return {head[at:end].strip(): line[at:end].strip() for at, end in zip(starts, ends, strict=True)}

    async def until(self, check: Callable[[], Any]) -> None:
        """Until a coroutine function's assertions hold, and what it looks for in objects is there: what was applied a
        moment ago has no status yet."""

        async def look() -> tuple[Any]:
            return (await check(),)

        [found] = await until(look, within_s=self.within_s, every_s=0.5, seen=self.story, ignored=(LookupError,))
        return found

    async def story(self) -> str:
        """What explains why something has not come about."""
        kinds = f"clusters.{CORE},kubeadmcontrolplanes,machinedeployments,{MACHINES},machinehealthchecks"
        shown = await self.kubectl.run("get", kinds, "--namespace", self.namespace)
        events = await self.kubectl.run("get", "events", "--namespace", self.namespace, "--sort-by=.lastTimestamp")
        said = [
            f"{one['kind']} {one['metadata']['name']}: {each['type']}: {each['message']}"
            for one in await self.items(kinds)
            for each in one.get("status", {}).get("conditions", ())
            if each.get("message")
        ]
        return "\n".join([shown.out, *said, *events.out.splitlines()[-25:], self.end_of_log()])

    async def left(self) -> set[str]:
        """What there is of Cluster API's and providers' kinds, of Secrets and of ConfigMaps: `kind/name`."""
        served = await self.kubectl.ok("api-resources", "--namespaced", "--verbs=list", "--output=name")
        kinds = [one for one in served.split() if one.endswith(CORE)] + ["secrets", "configmaps"]
        found = (await self.run("get", ",".join(kinds), "--output=name", "--ignore-not-found")).split()
        return set(found) - {"configmap/kube-root-ca.crt"}

    async def leaves(self, stays: Collection[str]) -> None:
        """Until this is all there is: what is owned goes a little after its owner, by the API's garbage collection."""

        async def look() -> None:
            left = await self.left()
            assert left == set(stays), f"left behind: {left - set(stays)}; missing: {set(stays) - left}"

        await self.until(look)

    def cluster(self, name: str) -> Life:
        """A cluster of this namespace."""
        return Life(self, name)


@dataclass(frozen=True)
class Life:
    """One cluster in a namespace."""

    place: Place
    name: str

    @property
    def what(self) -> str:
        return f"clusters.{CORE}/{self.name}"

    @property
    def mine(self) -> str:
        """What selects the cluster's objects."""
        return f"--selector={CORE}/cluster-name={self.name}"

    async def machines(self, *, control_planes: bool | None = None) -> list[dict[str, Any]]:
        """Its Machines: all, those of the control plane, or the others."""
        label = f"{CORE}/control-plane"
        return [
            one
            for one in await self.place.items(MACHINES, self.mine)
            if control_planes is None or (label in one["metadata"]["labels"]) is control_planes
        ]

    async def runs(self, size: Size) -> None:
        """Until it has this size, everything runs and is of this version, and the Cluster says so."""
        await self.place.until(lambda: self._runs(size))
        await self.place.run("wait", self.what, "--for=condition=Available", "--timeout=30s")
        await self._shown(size)
        await self._older()

    async def change(self, size: Size) -> None:
        """Have its topology so."""
        workers = [{"class": "default-worker", "name": "md-0", "replicas": size.workers}]
        topology = {"controlPlane": {"replicas": size.control_planes}, "version": size.version}
        held = (await self.place.json(self.what))["spec"]["topology"]["workers"]["machineDeployments"]
        workers = [{**one, **wanted} for one, wanted in zip(held, workers, strict=True)]
        await self.place.patch(self.what, {"topology": {**topology, "workers": {"machineDeployments": workers}}})

    async def _runs(self, size: Size) -> None:
        machines = await self.machines()
        count = size.control_planes + size.workers
        found = Counter((one["spec"].get("version"), one.get("status", {}).get("phase")) for one in machines)
        assert found == {(size.version, "Running"): count}
        control_planes = [one for one in machines if f"{CORE}/control-plane" in one["metadata"]["labels"]]
        assert len(control_planes) == size.control_planes
        # read through a port-forward, from the certificate that each API server shows
        assert all(one["status"].get("certificatesExpiryDate") for one in control_planes)
        status = (await self.place.json(self.what))["status"]
        for part, wanted in (("controlPlane", size.control_planes), ("workers", size.workers)):
            counts = status.get(part, {})
            names = ("desiredReplicas", "replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
            assert {name: counts.get(name, 0) for name in names} == dict.fromkeys(names, wanted), part
        expect(status["conditions"], Available=True, RemoteConnectionProbe=True, Deleting=False, RollingOut=False)
        [plane] = await self.place.items("kubeadmcontrolplanes", self.mine)
        expect(plane["status"]["conditions"], EtcdClusterHealthy=True, ControlPlaneComponentsHealthy=True)

    async def _shown(self, size: Size) -> None:
        """What `kubectl get` prints."""
        row = await self.place.row(self.what)
        assert (row["AVAILABLE"], row["PHASE"]) == ("True", "Provisioned"), row
        assert (row["CP DESIRED"], row["W DESIRED"]) == (str(size.control_planes), str(size.workers)), row
        for machine in await self.machines():
            row = await self.place.row(f"{MACHINES}/{machine['metadata']['name']}")
            assert (row["CLUSTER"], row["PHASE"], row["READY"]) == (self.name, "Running", "True"), row
            assert row["NODE NAME"] == machine["status"]["nodeRef"]["name"], row
            break

    async def _older(self) -> None:
        """The same in v1beta1, whose conditions are others."""
        cluster = await self.place.json(f"clusters.{OLD}.{CORE}/{self.name}")
        expect(cluster["status"]["conditions"], Ready=True, ControlPlaneInitialized=True, InfrastructureReady=True)
        expect(cluster["status"][NEW]["conditions"], Available=True)
        assert (cluster["status"]["infrastructureReady"], cluster["status"]["phase"]) == (True, "Provisioned")
        machines = await self.place.items(f"machines.{OLD}.{CORE}", self.mine)
        for machine in machines:
            status = machine["status"]
            expect(status["conditions"], Ready=True, BootstrapReady=True, InfrastructureReady=True, NodeHealthy=True)
            expect(status[NEW]["conditions"], Ready=True)
            assert (status["bootstrapReady"], status["infrastructureReady"]) == (True, True)

    async def inside(self) -> Kubectl:
        """kubectl for the cluster itself, by its own kubeconfig."""
        secret = await self.place.json(f"secret/{self.name}-kubeconfig")
        assert secret["type"] == f"{CORE}/secret"
        file = self.place.kubectl.home / f"{self.place.namespace}-{self.name}.kubeconfig"
        file.touch(mode=0o600)
        file.write_bytes(base64.b64decode(secret["data"]["value"]))
        return replace(self.place.kubectl, kubeconfig=file)

    async def has_nodes(self, size: Size) -> None:
        """Its Nodes are those of its Machines, ready, and of this version."""
        inside, machines = await self.inside(), await self.machines()
        nodes = json.loads(await inside.ok("get", "nodes", "--output=json"))["items"]
        assert {one["metadata"]["name"] for one in nodes} == {one["status"]["nodeRef"]["name"] for one in machines}
        assert {one["status"]["nodeInfo"]["kubeletVersion"] for one in nodes} == {size.version}
        for node in nodes:
            expect(node["status"]["conditions"], Ready=True)

    async def break_node(self, machine: Mapping[str, Any]) -> None:
        """Say of a Machine's Node that it is broken, as somebody would who watches hosts."""
        broken = {"type": BROKEN, "status": "True", "reason": "Test", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        patch = json.dumps({"status": {"conditions": [broken]}})
        node = machine["status"]["nodeRef"]["name"]
        await (await self.inside()).ok("patch", f"node/{node}", "--subresource=status", "--patch", patch)

    async def lacks(self, *machines: Mapping[str, Any]) -> None:
        """Until these Machines are gone."""
        gone = {one["metadata"]["uid"] for one in machines}

        async def look() -> None:
            still = {one["metadata"]["uid"] for one in await self.machines()} & gone
            assert not still

        await self.place.until(look)

    async def delete(self, stays: Collection[str] = ()) -> None:
        """Delete it; nothing of it stays in its namespace but templates, which it does not own any more."""
        inside = await self.inside()
        await inside.ok("get", "nodes")
        await self.place.run("delete", self.what, f"--timeout={self.place.within_s:.0f}s")
        assert "refused" in await inside.fails("get", "nodes")
        await self.place.leaves(stays)
        for one in stays:
            owners = (await self.place.json(one))["metadata"].get("ownerReferences", [])
            assert [owner for owner in owners if owner["kind"] == "Cluster"] == [], one


def expect(conditions: Sequence[Mapping[str, Any]], **wanted: bool) -> None:
    """Conditions that must be there, true or false."""
    found = {one["type"]: one["status"] for one in conditions if one["type"] in wanted}
    said = {one["type"]: one.get("message") for one in conditions if one.get("message")}
    assert found == {name: str(value) for name, value in wanted.items()}, said

"""The provider of a family: looks at all its objects again and again, and does the next thing for each.

A control plane with `spec.replicas` has Machines, which it replaces one by one for another version; one without runs
somewhere else. What a cluster of it is made of (`Ground`) is the test's.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ironbell.api.client import AlreadyExists, Api, ApiError
from ironbell.api.core.secret import SECRET
from ironbell.api.unstructured import Unstructured
from ironbell.base.clock import Clock, parse_rfc3339, rfc3339
from ironbell.kube.client import Client
from support.strangers.family import Family
from support.strangers.manifests import LABEL, NAMESPACE, machine_spec

FINALIZER = "stranger.example.com/held"
CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
Body = dict[str, Any]


class Ground(Protocol):
    """Where the workload clusters are."""

    def endpoint(self, cluster: str) -> tuple[str, int]: ...

    def exists(self, cluster: str) -> bool: ...

    async def make(self, cluster: str) -> bytes:
        """Give the cluster an API, if it has none; its kubeconfig."""
        ...

    async def join(self, cluster: str, node: Body) -> None:
        """A host's kubelet registers its Node, if it has not."""
        ...


class Stranger:
    """`run` works until it is cancelled."""

    def __init__(self, api: Api, family: Family, ground: Ground, clock: Clock, *, every_s: float = 2.0) -> None:
        self.family = family
        self.every_s = every_s
        self.released: list[str] = []
        """Hosts in the order in which they were given back."""
        self._client = Client(api)
        self._ground = ground
        self._clock = clock

    async def run(self) -> None:
        work: dict[str, Callable[[Unstructured], Awaitable[None]]] = {
            "Cluster": self._cluster,
            "ControlPlane": self._control_plane,
            "Config": self._config,
            "Machine": self._machine,
        }
        while True:
            for part, handle in work.items():
                for obj in (await self._client.list(self.family.kind(part))).items:
                    try:
                        await handle(obj)
                    except ApiError:
                        continue  # somebody else was first: the next round sees what there is
            await asyncio.sleep(self.every_s)

    # infrastructure

    async def _cluster(self, obj: Unstructured) -> None:
        owner = _owner(obj, "Cluster")
        if _is_deleting(obj):
            await self._let_go("Cluster", obj)
            return
        if not owner:
            return
        await self._hold("Cluster", obj)
        spec, family = obj.body.get("spec", {}), self.family
        if spec.get("broken"):
            message = spec["broken"]
            await self._say("Cluster", obj, {**family.broken(message)}, "Ready", False, message)
            return
        host, port = self._ground.endpoint(owner)
        if self._is_time(obj, spec.get("endpointAfterSeconds", 0)) and not spec.get("controlPlaneEndpoint"):
            await self._patch("Cluster", obj, {"spec": {"controlPlaneEndpoint": {"host": host, "port": port}}})
        await self._say("Cluster", obj, {**family.provisioned(), **family.zones(spec.get("zones", []))})

    async def _machine(self, obj: Unstructured) -> None:
        if _is_deleting(obj):
            if FINALIZER in obj.metadata.finalizers:
                self.released.append(obj.metadata.name)
                await self._let_go("Machine", obj)
            return
        name = _owner(obj, "Machine")
        machine = await self._client.find(self.family.core("Machine"), NAMESPACE, name) if name else None
        if machine is None:
            return
        await self._hold("Machine", obj)
        spec, family = obj.body.get("spec", {}), self.family
        if spec.get("broken"):
            await self._say("Machine", obj, family.broken(spec["broken"]), "Ready", False, spec["broken"])
            return
        wanted = machine.body["spec"]
        if not wanted["bootstrap"].get("dataSecretName") or not await self._may_start(wanted["clusterName"]):
            return
        provider_id = f"{family.prefix.lower()}://{obj.metadata.name}"
        if spec.get("providerID") != provider_id:
            await self._patch("Machine", obj, {"spec": {"providerID": provider_id}})
        is_control_plane = CONTROL_PLANE in machine.metadata.labels
        if is_control_plane:
            await self._ground.make(wanted["clusterName"])
        await self._say("Machine", obj, family.provisioned())
        name = f"{family.prefix.lower()}-{obj.metadata.name}"
        if self._ground.exists(wanted["clusterName"]):
            await self._ground.join(
                wanted["clusterName"], _node(name, provider_id, wanted["version"], is_control_plane)
            )

    async def _may_start(self, cluster: str) -> bool:
        """Whether the infrastructure of the Machine's Cluster is there."""
        found = await self._client.get(self.family.core("Cluster"), NAMESPACE, cluster)
        status = found.body.get("status", {})
        if self.family.is_old:
            return bool(status.get("infrastructureReady"))
        return bool(status.get("initialization", {}).get("infrastructureProvisioned"))

    # bootstrap

    async def _config(self, obj: Unstructured) -> None:
        name = _owner(obj, "Machine")
        if _is_deleting(obj) or not name:
            return
        broken = obj.body.get("spec", {}).get("broken")
        if broken:
            await self._say("Config", obj, self.family.broken(broken), "Ready", False, broken)
            return
        secret = f"{obj.metadata.name}-words"
        await self._ensure_secret(secret, obj, "Config", {"value": b"#cloud-config\n"})
        await self._say("Config", obj, self.family.has_data(secret))

    # control plane

    async def _control_plane(self, obj: Unstructured) -> None:
        cluster = _owner(obj, "Cluster")
        spec, family = obj.body["spec"], self.family
        machines = await self._machines_of(obj)
        if _is_deleting(obj):
            for machine in machines:
                if not _is_deleting(machine):
                    await self._client.delete(family.core("Machine"), *machine.key)
            if not machines:
                await self._let_go("ControlPlane", obj)
            return
        if not cluster or not await self._may_start(cluster):
            return
        await self._hold("ControlPlane", obj)
        if spec.get("broken"):
            await self._say("ControlPlane", obj, family.broken(spec["broken"]), "Available", False, spec["broken"])
            return
        if spec.get("namesEndpoint") and not spec.get("controlPlaneEndpoint"):
            host, port = self._ground.endpoint(cluster)
            await self._patch("ControlPlane", obj, {"spec": {"controlPlaneEndpoint": {"host": host, "port": port}}})
        said: Body = {}
        if spec.get("replicas") is None:
            await self._ground.make(cluster)
            said |= {"externalManagedControlPlane": True, "version": spec["version"]}
        else:
            running = [one for one in machines if one.body.get("status", {}).get("nodeRef")]
            await self._move_on(obj, cluster, machines, running)
            said |= {**family.counts(len(machines), len(running)), "selector": f"{LABEL}={cluster},{CONTROL_PLANE}"}
            said["version"] = min((one.body["spec"]["version"] for one in running), default=spec["version"])
        if not self._ground.exists(cluster):
            await self._say("ControlPlane", obj, said, "Available", False, "no host yet")
            return
        kubeconfig = await self._ground.make(cluster)
        await self._ensure_secret(f"{cluster}-kubeconfig", obj, "ControlPlane", {"value": kubeconfig}, cluster)
        await self._say("ControlPlane", obj, {**said, **family.initialized()}, "Available")

    async def _move_on(
        self, obj: Unstructured, cluster: str, machines: list[Unstructured], running: list[Unstructured]
    ) -> None:
        """One Machine more, or one less, towards what is wanted."""
        spec, family = obj.body["spec"], self.family
        current = [one for one in machines if one.body["spec"]["version"] == spec["version"]]
        if len(running) < len(machines):
            return
        if len(current) < spec["replicas"]:
            await self._make_machine(obj, cluster, f"{obj.metadata.name}-{len(self.released)}-{len(machines)}")
        elif len(machines) > spec["replicas"]:
            old = [one for one in machines if one not in current] or current
            await self._client.delete(family.core("Machine"), *old[0].key)

    async def _make_machine(self, obj: Unstructured, cluster: str, name: str) -> None:
        family, spec = self.family, obj.body["spec"]
        path = ("infrastructureRef",) if family.is_old else ("spec", "infrastructureRef")
        template_name = family.referred(obj, "spec", "machineTemplate", *path)
        template = await self._client.get(family.kind("MachineTemplate"), NAMESPACE, template_name)
        kind = family.kind("ControlPlane")
        owner = {"apiVersion": kind.api_version, "kind": kind.kind, "name": obj.metadata.name, "uid": obj.metadata.uid}
        labels = {LABEL: cluster, CONTROL_PLANE: ""}
        parts = {"Machine": template.body["spec"]["template"]["spec"], "Config": {}}
        for part, body in parts.items():
            meta = {"name": name, "namespace": NAMESPACE, "labels": labels, "ownerReferences": [owner]}
            try:
                await self._client.create(family.kind(part), {"metadata": meta, "spec": body})
            except AlreadyExists:
                continue
        refs = (family.reference("Config", name), family.reference("Machine", name))
        meta = {
            "name": name, "namespace": NAMESPACE, "labels": labels, "ownerReferences": [{**owner, "controller": True}]
        }  # fmt: skip
        body = machine_spec(family, cluster, spec["version"], *refs)
        await self._client.create(family.core("Machine"), {"metadata": meta, "spec": body})

    async def _machines_of(self, obj: Unstructured) -> list[Unstructured]:
        found = (await self._client.list(self.family.core("Machine"), NAMESPACE)).items
        mine = [one for one in found if any(owner.uid == obj.metadata.uid for owner in one.metadata.owner_references)]
        return sorted(mine, key=lambda one: one.metadata.name)

    # writing

    async def _patch(self, part: str, obj: Unstructured, body: Body, subresource: str = "") -> None:
        await self._client.merge_patch(self.family.kind(part), *obj.key, body=body, subresource=subresource)

    async def _say(
        self, part: str, obj: Unstructured, status: Body, name: str = "Ready", is_true: bool = True, message: str = ""
    ) -> None:
        """Write the status, if it says something new."""
        held = obj.body.get("status", {})
        before = next((one for one in held.get("conditions", ()) if one["type"] == name), None)
        condition = self.family.condition(name, is_true, message, rfc3339(self._clock.now()))
        if before is not None and before["status"] == condition["status"]:
            condition = before
        new = {**status, "conditions": [condition]}
        if {**held, **new} != held:
            await self._patch(part, obj, {"status": new}, "status")

    async def _hold(self, part: str, obj: Unstructured) -> None:
        if FINALIZER not in obj.metadata.finalizers:
            meta = {
                "finalizers": [*obj.metadata.finalizers, FINALIZER],
                "resourceVersion": obj.metadata.resource_version,
            }
            await self._patch(part, obj, {"metadata": meta})

    async def _let_go(self, part: str, obj: Unstructured) -> None:
        rest = [one for one in obj.metadata.finalizers if one != FINALIZER]
        if rest != obj.metadata.finalizers:
            meta = {"finalizers": rest, "resourceVersion": obj.metadata.resource_version}
            await self._patch(part, obj, {"metadata": meta})

    async def _ensure_secret(
        self, name: str, owner: Unstructured, part: str, data: dict[str, bytes], cluster: str = ""
    ) -> None:
        if await self._client.find(SECRET, NAMESPACE, name) is not None:
            return
        kind = self.family.kind(part)
        reference = {
            "apiVersion": kind.api_version, "kind": kind.kind, "name": owner.metadata.name, "uid": owner.metadata.uid
        }  # fmt: skip
        meta = {
            "name": name,
            "namespace": NAMESPACE,
            "ownerReferences": [reference],
            "labels": {LABEL: cluster or owner.metadata.labels.get(LABEL, "")},
        }
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        await self._client.create(SECRET, {"metadata": meta, "type": "cluster.x-k8s.io/secret", "data": encoded})

    def _is_time(self, obj: Unstructured, after_s: float | None) -> bool:
        """Whether so long has passed since the object was made; with None it never does."""
        made = obj.metadata.creation_timestamp
        if after_s is None or made is None:
            return False
        return (self._clock.now() - parse_rfc3339(made)).total_seconds() >= after_s


def _owner(obj: Unstructured, kind: str) -> str:
    """The name of the owner of Cluster API's kind."""
    owners = obj.metadata.owner_references
    return next((one.name for one in owners if one.kind == kind and "cluster.x-k8s.io/" in one.api_version), "")


def _is_deleting(obj: Unstructured) -> bool:
    return obj.metadata.deletion_timestamp is not None


def _node(name: str, provider_id: str, version: str, is_control_plane: bool) -> Body:
    taints = [] if is_control_plane else [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"node-role.kubernetes.io/control-plane": ""} if is_control_plane else {}},
        "spec": {"providerID": provider_id, "taints": taints},
        "status": {
            "conditions": [_node_condition(one) for one in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")],
            "nodeInfo": {"kubeletVersion": version},
        },
    }


def _node_condition(name: str) -> Body:
    return {"type": name, "status": str(name == "Ready"), "reason": "KubeletSaysSo", "message": ""}

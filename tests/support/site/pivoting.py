"""Two embedded APIs in memory, and on the first of them clusters with all that belongs to them, for tests of pivots."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from ironbell.api import bmc, tinkerbell
from ironbell.api.client import Answer, Api, Call, PatchType, WatchEvent
from ironbell.api.crd.document import crd_document
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.crds import rules, served
from ironbell.apiserver.schema.compiled import CompiledSchema, compile_schema
from ironbell.apiserver.store.log import Row
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.codec.cel import compile_rule
from ironbell.lab.sim.provider.kinds import definitions as simulated
from ironbell.operations.pivot.graph import Selection
from ironbell.operations.pivot.items import CORE, Item, Object, moved_kinds
from ironbell.operations.pivot.journal import JOURNAL, Phase
from ironbell.operations.pivot.moving import Outcome, Pivot, Settings
from ironbell.operations.pivot.site import DEFINITIONS, Site
from ironbell.operations.progress import Progress

NAMESPACE = "fleet"
SELECTION = Selection(frozenset([NAMESPACE]))
FINALIZER = "test.ironbell.dev/held"
CLUSTERS = Collection("cluster.x-k8s.io", "v1beta2", "clusters", namespaced=True)
CONFIG_MAPS = Collection("", "v1", "configmaps", namespaced=True)
TIME = "2026-01-01T00:00:00Z"
PASSWORD = base64.b64encode(b"not-to-be-shown").decode()


class Killed(Exception):  # noqa: N818
    """What a kill is to the code: nothing runs any more."""


@dataclass
class Writes:
    """Counts the writes on both sides, and kills after one of them."""

    last: int | None = None
    count: int = 0
    watcher: Callable[[], Any] | None = None

    async def after(self) -> None:
        self.count += 1
        if self.watcher is not None:
            await self.watcher()
        if self.last is not None and self.count >= self.last:
            raise Killed


class Counted(Api):
    """An API whose writes are counted; after the last one it carries out no more writes."""

    def __init__(self, api: Api, writes: Writes) -> None:
        self._api, self._writes = api, writes

    async def call(self, call: Call) -> Answer:
        if not call.verb.is_write:
            return await self._api.call(call)
        if self._writes.last is not None and self._writes.count >= self._writes.last:
            raise Killed
        answer = await self._api.call(call)
        await self._writes.after()
        return answer

    def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        return self._api.watch(call)


@dataclass
class Sides:
    """A source and a target."""

    source: ApiServer
    target: ApiServer
    reported: list[Progress] = field(default_factory=list)

    def pivot(self, writes: Writes | None = None, **settings: Any) -> Pivot:
        """As a run of the command."""
        counted = writes or Writes()
        sites = [
            Site(Counted(server.client(ADMIN), counted), side, f"https://{side}.example")
            for server, side in ((self.source, "source"), (self.target, "target"))
        ]
        chosen = Settings(**({"timeout_s": 5.0, "workers": 1, "poll_s": 0.0} | settings))
        return Pivot(sites[0], sites[1], ManualClock(), lambda: "pivot-1", self.reported.append, chosen)

    async def run(self, wanted: Selection | None = SELECTION, **settings: Any) -> Outcome:
        return await self.pivot(**settings).run(wanted)

    async def items(self, server: ApiServer) -> dict[tuple[str, str, str], Item]:
        """Everything that can move, in all namespaces."""
        site = Site(server.client(ADMIN), "")
        kinds = [*moved_kinds(await site.objects(DEFINITIONS)), *CORE]
        found = [item for kind in kinds for item in await site.items(kind)]
        return {item.key: item for item in found if item.name != JOURNAL and item.namespace != "kube-system"}

    async def journals(self) -> int:
        found = [await Site(server.client(ADMIN), "").journal() for server in (self.source, self.target)]
        return sum(one is not None for one in found)

    async def is_committed(self) -> bool:
        """Whether the target says that the copies count."""
        found = await Site(self.target.client(ADMIN), "").journal()
        return found is not None and found[0].phase is Phase.COMMITTED

    async def both_run(self) -> list[str]:
        """Clusters that are paused on neither side; there must never be one."""
        first, second = [
            {
                (one["metadata"]["namespace"], one["metadata"]["name"])
                for one in await Site(server.client(ADMIN), "").objects(CLUSTERS)
                if not one["spec"].get("paused")
            }
            for server in (self.source, self.target)
        ]
        return sorted("/".join(key) for key in first & second)


def facts(items: dict[tuple[str, str, str], Item]) -> dict[tuple[str, str, str], Object]:
    """What must be the same after a pivot: all but what an API gives by itself. Owners by name."""
    keys = {item.uid: key for key, item in items.items()}
    found = {}
    for key, item in items.items():
        meta = item.meta
        found[key] = {
            "labels": dict(item.labels),
            "annotations": dict(item.annotations),
            "finalizers": meta.get("finalizers"),
            "owners": sorted((keys[one["uid"]], bool(one.get("controller"))) for one in item.owners),
            "managers": sorted({str(one.get("manager")) for one in meta.get("managedFields") or ()}),
            "rest": _without_observed(
                {name: value for name, value in item.body.items() if name not in ("metadata", "apiVersion", "kind")}
            ),
        }
    return found


def _without_observed(value: Any) -> Any:
    """Generations are an API's own."""
    if isinstance(value, dict):
        return {name: _without_observed(inner) for name, inner in value.items() if name != "observedGeneration"}
    return [_without_observed(inner) for inner in value] if isinstance(value, list) else value


def of(items: dict[tuple[str, str, str], Item], *names: str) -> dict[tuple[str, str, str], Item]:
    return {key: item for key, item in items.items() if not names or key[2] in names}


def obj(api: str, kind: str, name: str, owner: str = "", namespace: str = NAMESPACE, **fields: Any) -> Object:
    """An object; `owner` is KIND/NAME of one that was made before it."""
    meta = {"name": name, "namespace": namespace, **fields.pop("meta", {})}
    return {"apiVersion": api, "kind": kind, "metadata": meta, "owner": owner, **fields}


def cluster_objects(name: str, **cluster: Any) -> list[Object]:
    """A cluster of one control plane Machine and one worker, provisioned; each before what it owns."""
    label = {"labels": {"cluster.x-k8s.io/cluster-name": name}, "finalizers": [FINALIZER]}
    core, boot = "cluster.x-k8s.io/v1beta2", "bootstrap.cluster.x-k8s.io/v1beta2"
    plane, infra = "controlplane.cluster.x-k8s.io/v1beta2", "infrastructure.cluster.x-k8s.io/v1beta2"
    provisioned = {"infrastructureProvisioned": True, "controlPlaneInitialized": True}

    def ref(api: str, kind: str) -> Object:
        return {"apiGroup": api.partition("/")[0], "kind": kind, "name": name}

    def machine(number: str, owner: str, config: str) -> list[Object]:
        spec = {
            "clusterName": name, "version": "v1.34.2", "providerID": f"in-memory://{number}",
            "bootstrap": {"configRef": {**ref(boot, "KubeadmConfig"), "name": number}, "dataSecretName": number},
            "infrastructureRef": {**ref(infra, "DevMachine"), "name": number},
        }  # fmt: skip
        status = {
            "nodeRef": {"name": number}, "observedGeneration": 1,
            "initialization": {"infrastructureProvisioned": True, "bootstrapDataSecretCreated": True},
        }  # fmt: skip
        return [
            obj(core, "Machine", number, owner, meta=label, spec=spec, status=status),
            obj(boot, "KubeadmConfig", number, f"Machine/{number}", meta=label, spec={"files": [
                {"path": "/etc/x", "contentFrom": {"secret": {"name": config, "key": "value"}}}
            ]}, status={"dataSecretName": number, "initialization": {"dataSecretCreated": True}}),
            obj("v1", "Secret", number, f"KubeadmConfig/{number}", meta=label, type="cluster.x-k8s.io/secret",
                data={"value": PASSWORD}),
            obj(infra, "DevMachine", number, f"Machine/{number}", meta=label,
                spec={"backend": {"inMemory": {}}, "providerID": f"in-memory://{number}"},
                status={"initialization": {"provisioned": True}, "addresses": [
                    {"type": "InternalIP", "address": "10.0.0.1"}]}),
        ]  # fmt: skip

    template = {
        "clusterName": name, "version": "v1.34.2",
        "bootstrap": {"configRef": ref(boot, "KubeadmConfigTemplate")},
        "infrastructureRef": ref(infra, "DevMachineTemplate"),
    }  # fmt: skip
    selector = {"matchLabels": {"cluster.x-k8s.io/cluster-name": name}}
    workers = {"clusterName": name, "replicas": 1, "selector": selector, "template": {
        "metadata": {"labels": {"cluster.x-k8s.io/cluster-name": name}}, "spec": template}}  # fmt: skip
    return [
        obj(core, "Cluster", name, meta=label, spec={
            "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
            "controlPlaneEndpoint": {"host": "10.1.1.1", "port": 6443},
            "controlPlaneRef": ref(plane, "KubeadmControlPlane"), "infrastructureRef": ref(infra, "DevCluster"),
            **cluster,
        }, status={"initialization": provisioned, "phase": "Provisioned", "observedGeneration": 1}),
        obj(infra, "DevCluster", name, f"Cluster/{name}", meta=label, spec={
            "backend": {"inMemory": {}}, "controlPlaneEndpoint": {"host": "10.1.1.1", "port": 6443}},
            status={"initialization": {"provisioned": True}, "ready": True}),
        obj(infra, "DevMachineTemplate", name, f"Cluster/{name}",
            spec={"template": {"spec": {"backend": {"inMemory": {}}}}}),
        obj(boot, "KubeadmConfigTemplate", name, f"Cluster/{name}",
            spec={"template": {"spec": {"preKubeadmCommands": ["true"]}}}),
        obj(plane, "KubeadmControlPlane", name, f"Cluster/{name}", meta=label, spec={
            "replicas": 1, "version": "v1.34.2",
            "machineTemplate": {"spec": {"infrastructureRef": ref(infra, "DevMachineTemplate")}},
            "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}},
        }, status={"initialization": {"controlPlaneInitialized": True}, "replicas": 1, "observedGeneration": 1,
                   "version": "v1.34.2"}),
        obj("v1", "Secret", f"{name}-ca", f"KubeadmControlPlane/{name}", type="cluster.x-k8s.io/secret",
            data={"tls.crt": PASSWORD, "tls.key": PASSWORD}),
        obj("v1", "Secret", f"{name}-kubeconfig", type="cluster.x-k8s.io/secret", data={"value": PASSWORD}),
        obj("v1", "Secret", f"{name}-files", data={"value": PASSWORD}),
        *machine(f"{name}-cp", f"KubeadmControlPlane/{name}", f"{name}-files"),
        obj(core, "MachineDeployment", name, f"Cluster/{name}", meta=label, spec=workers,
            status={"replicas": 1, "observedGeneration": 1}),
        obj(core, "MachineSet", name, f"MachineDeployment/{name}", meta=label, spec=workers,
            status={"replicas": 1, "observedGeneration": 1}),
        *machine(f"{name}-md", f"MachineSet/{name}", f"{name}-files"),
    ]  # fmt: skip


def site_objects() -> list[Object]:
    """Two clusters, the second paused by its user; resources for them, a server with its BMC, and what is no part."""
    addons = "addons.cluster.x-k8s.io/v1beta2"
    applied = {"kind": "ConfigMap", "name": "cni", "applied": True, "hash": "sha256:1", "lastAppliedTime": TIME}
    return [
        *cluster_objects("one"),
        *cluster_objects("two", paused=True),
        obj(addons, "ClusterResourceSet", "cni", meta={"finalizers": [FINALIZER]}, spec={
            "clusterSelector": {"matchLabels": {"cni": "x"}}, "resources": [{"kind": "ConfigMap", "name": "cni"}]}),
        obj("v1", "ConfigMap", "cni", "ClusterResourceSet/cni", data={"cni.yaml": "{}"}),
        obj(addons, "ClusterResourceSetBinding", "one", "ClusterResourceSet/cni", spec={
            "clusterName": "one", "bindings": [{"clusterResourceSetName": "cni", "resources": [applied]}]}),
        obj("v1", "Secret", "bmc-1", data={"username": PASSWORD, "password": PASSWORD}),
        obj("bmc.tinkerbell.org/v1alpha1", "Machine", "bmc-1", spec={"connection": {
            "host": "10.0.0.9", "authSecretRef": {"name": "bmc-1", "namespace": NAMESPACE}, "insecureTLS": True}},
            status={"powerState": "on"}),
        obj("tinkerbell.org/v1alpha1", "Hardware", "node-1", meta={"annotations": {
            "v1alpha1.tinkerbell.org/provisioned": "true"}}, spec={"bmcRef": {
                "apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc-1"}}),
        obj("v1", "Secret", "unrelated", data={"x": PASSWORD}),
        obj("v1", "ConfigMap", "unrelated", data={"x": "y"}),
    ]  # fmt: skip


STAYS = {"unrelated"}


async def put(server: ApiServer, objects: Sequence[Object]) -> None:
    """Create objects with their statuses."""
    api, uids = server.client(ADMIN), {}
    site = Site(api, "")
    kinds = {kind.kind + "." + kind.group: kind for kind in moved_kinds(await site.objects(DEFINITIONS))}
    kinds |= {kind.kind + ".": kind for kind in CORE}
    for one in objects:
        group = one["apiVersion"].rpartition("/")[0]
        kind = kinds[f"{one['kind']}.{group}"]
        body = {name: value for name, value in one.items() if name not in ("owner", "status")}
        if one["owner"]:
            api_version, uid = uids[one["owner"]]
            title, _, name = one["owner"].partition("/")
            owner = {"apiVersion": api_version, "kind": title, "name": name, "uid": uid, "controller": True}
            body["metadata"] = {**body["metadata"], "ownerReferences": [owner]}
        namespace = one["metadata"]["namespace"]
        made = msgspec.json.decode(await api.create(kind.where, namespace, msgspec.json.encode(body)))
        uids[f"{one['kind']}/{made['metadata']['name']}"] = (one["apiVersion"], made["metadata"]["uid"])
        if "status" in one:
            patch = msgspec.json.encode({"status": one["status"]})
            await api.patch(
                kind.where, namespace, made["metadata"]["name"], patch, patch_type=PatchType.MERGE, subresource="status"
            )


_compiled: dict[tuple[bytes, bool], CompiledSchema] = {}


def _compile_once(schema: Mapping[str, Any], *, compile_rule: Any = None) -> CompiledSchema:
    """The schema made ready, shared by all servers: each would take a second to compile the same ones."""
    key = msgspec.json.encode(schema), compile_rule is not None
    if key not in _compiled:
        _compiled[key] = compile_schema(schema, compile_rule=compile_rule)
    return _compiled[key]


@contextmanager
def _shared_schemas() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (served, rules):
            patch.setattr(module, "compile_schema", _compile_once)
        yield


@asynccontextmanager
async def _server(seed: int, contents: Sequence[Row] = ()) -> AsyncIterator[ApiServer]:
    kinds = ClusterKinds()
    opened = ApiServer.open(
        None,
        clock=ManualClock(),
        randomness=SeededRandomness(seed),
        compile_rule=compile_rule,
        conversions=kinds.conversions,
        contents=contents,
    )
    async with opened as server:
        kinds.join(server)
        if not contents:
            await server.define([crd_document(kind) for kind in (*tinkerbell.KINDS, *bmc.KINDS)])
            await server.define(simulated())
            await kinds.define(server)
        yield server


_made: dict[str, tuple[Row, ...]] = {}


@asynccontextmanager
async def two_sides() -> AsyncIterator[Sides]:
    """A source with `site_objects`, and an empty target; made once, and copied for each test."""
    with _shared_schemas():
        async with _two_sides() as sides:
            yield sides


@asynccontextmanager
async def _two_sides() -> AsyncIterator[Sides]:
    if not _made:
        async with _server(1) as source, _server(2) as target:
            namespace = msgspec.json.encode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            await source.client(ADMIN).create(Collection("", "v1", "namespaces", namespaced=False), "", namespace)
            await put(source, site_objects())
            _made["source"], _made["target"] = source.context.store.contents(), target.context.store.contents()
    async with _server(3, _made["source"]) as source, _server(4, _made["target"]) as target:
        yield Sides(source, target)

"""Objects as an API has them, and the answer that `why` gives from these alone."""

from __future__ import annotations

from collections.abc import Collection as Names
from datetime import UTC, datetime
from typing import Any

import msgspec

from ironbell.api.client import Forbidden, ListOptions, NotFound
from ironbell.api.kind import Collection
from ironbell.operations.why.depends import dependencies, queries
from ironbell.operations.why.model import Diagnosis, Object, Query
from ironbell.operations.why.rootcause import diagnose
from ironbell.operations.why.world import World, group_of, ref_of

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
SINCE = "2026-01-01T11:58:00Z"
SOON = datetime(2026, 1, 1, 11, 58, 0, 523_411, tzinfo=UTC)
"""Right after `SINCE`."""
CAPI, CAPT = "cluster.x-k8s.io/v1beta2", "infrastructure.cluster.x-k8s.io/v1beta1"
TINKERBELL, BMC = "tinkerbell.org/v1alpha1", "bmc.tinkerbell.org/v1alpha1"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
OF_ONE = {"cluster.x-k8s.io/cluster-name": "one"}
PLANE = {**OF_ONE, "cluster.x-k8s.io/control-plane": ""}


def condition(type_: str, status: str, reason: str = "", message: str = "") -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


def obj(api_version: str, kind: str, name: str, *conditions: Object, **parts: Any) -> Object:
    metadata = {"namespace": "site", "name": name, "uid": f"uid-{name}", **parts.pop("metadata", {})}
    status = {"conditions": list(conditions), **parts.pop("status", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": parts, "status": status}


def reference(api_version: str, kind: str, name: str) -> Object:
    return {"apiGroup": api_version.partition("/")[0], "kind": kind, "name": name}


CLUSTER = obj(
    CAPI,
    "Cluster",
    "one",
    condition("Available", "False", "NotAvailable", "* WorkersAvailable:\n  * too few"),
    controlPlaneRef=reference(CONTROL_PLANE, "KubeadmControlPlane", "cp"),
)
KCP = obj(CONTROL_PLANE, "KubeadmControlPlane", "cp", condition("Available", "False"), metadata={"labels": OF_ONE})


def machine(name: str, labels: dict[str, str], reason: str = "NotReady") -> Object:
    return obj(
        CAPI,
        "Machine",
        name,
        condition("Available", "False", "NotReady"),
        condition("InfrastructureReady", "False", reason),
        metadata={"labels": labels},
        clusterName="one",
        infrastructureRef=reference(CAPT, "TinkerbellMachine", name),
    )


def host(name: str, reason: str, message: str, server: str = "") -> Object:
    return obj(CAPT, "TinkerbellMachine", name, condition("Ready", "False", reason, message), hardwareName=server)


def hardware(name: str = "s1", *, annotations: dict[str, str] | None = None, **more: Any) -> Object:
    metadata = {"annotations": annotations or {}, **more.pop("metadata", {})}
    return obj(TINKERBELL, "Hardware", name, metadata=metadata, **more)


def claimable(name: str = "s1", **more: Any) -> Object:
    """A Hardware that nothing but `more` keeps from being claimed."""
    address = {"mac": "02:00:00:00:00:01", "ip": {"address": "192.0.2.7", "netmask": "255.255.255.0"}}
    spec = {
        "interfaces": [{"dhcp": address, "netboot": {"allowPXE": True, "allowWorkflow": True}}],
        "disks": [{"device": "/dev/vda"}],
    }
    instance = {"metadata": {"instance": {"id": name}}}
    server = hardware(name, annotations=more.pop("annotations", None), **{**spec, **more})
    return {**server, "spec": {**server["spec"], **instance}}


def answer(root: Object, *others: Object) -> Diagnosis:
    """As the reader would find it: lists are answered by kind and labels, and what is not given does not exist."""
    world, everything = World(), (root, *others)
    for each in everything:
        world.put(ref_of(each), each)
    for each in everything:
        for query in queries(each):
            world.lists[query] = tuple(found for found in everything if _matches(query, found))
    for each in everything:
        for scope in ("", "control-plane", "asked"):
            for ref in dependencies(each, scope, world):
                if not world.knows(ref):
                    world.put(ref, None)
    return diagnose(world, ref_of(root), NOW)


def _matches(query: Query, found: Object) -> bool:
    ref = ref_of(found)
    labels = found["metadata"].get("labels", {})
    wanted = [part.partition("=") for part in query.labels.split(",") if part]
    if (ref.group, ref.kind) != (query.group, query.kind):
        return False
    return all(name in labels and (not sign or labels[name] == value) for name, sign, value in wanted)


def names(found: Diagnosis) -> list[str]:
    return [f"{link.kind}/{link.name}" for link in found.chain]


class Objects:
    """An API with these objects; counts what is read."""

    def __init__(self, *objects: Object, forbidden: Names[str] = (), absent: Names[str] = ()) -> None:
        self.read, self.discovered = 0, 0
        self._objects, self._forbidden, self._absent = objects, forbidden, absent

    def replace(self, *objects: Object) -> None:
        """Have these objects from now on."""
        self._objects = objects

    async def raw(self, _method: str, path: str) -> bytes:
        self.discovered += 1
        _, group, *version = path.removeprefix("/").split("/")
        of_group = [one for one in self._objects if group_of(one) == group]
        versions = sorted({one["apiVersion"].rpartition("/")[2] for one in of_group})
        if not versions:
            raise NotFound(path)
        if not version:
            found = [{"version": one} for one in versions]
            return msgspec.json.encode({"preferredVersion": found[0], "versions": found})
        kinds = {one["kind"] for one in of_group if one["apiVersion"].endswith(version[0])} - set(self._absent)
        resources = [{"name": f"{kind.lower()}s", "kind": kind, "namespaced": True} for kind in sorted(kinds)]
        return msgspec.json.encode({"resources": resources})

    async def get(self, where: Collection, namespace: str, name: str) -> bytes:
        self._count(where)
        for one in self._objects:
            if self._is_of(where, one) and one["metadata"]["name"] == name:
                return msgspec.json.encode(one)
        raise NotFound(name)

    async def list(self, where: Collection, namespace: str, options: ListOptions) -> Any:
        self._count(where)
        wanted = [part.partition("=") for part in options.selector.labels.split(",") if part]
        found = []
        for one in self._objects:
            labels = one["metadata"].get("labels", {})
            if self._is_of(where, one) and all(
                labels.get(key, "" if sign else None) == value for key, sign, value in wanted
            ):
                found.append(msgspec.json.encode(one))
        return msgspec.structs.replace(_EMPTY, items=found)

    def _count(self, where: Collection) -> None:
        self.read += 1
        if where.plural in self._forbidden:
            raise Forbidden(f'{where.plural} is forbidden: User "dev" cannot get it')

    @staticmethod
    def _is_of(where: Collection, one: Object) -> bool:
        return group_of(one) == where.group and f"{one['kind'].lower()}s" == where.plural


class _Page(msgspec.Struct):
    items: list[bytes]


_EMPTY = _Page([])

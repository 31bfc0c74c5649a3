"""Related objects: all dependencies of an object along its references, nearest first, whether they block or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.client import ListOptions, Selector
from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.cluster.snapshot import (
    NoClusterError,
    Snapshot,
    object_name,
    part_references,
    read,
    referenced,
)
from ironbell.operations.cluster.status import standing
from ironbell.operations.discovered import Discovered, Object
from ironbell.operations.objects import find_object
from ironbell.operations.why.candidates import as_objects, candidates, waits_for_server
from ironbell.operations.why.depends import is_settled
from ironbell.operations.why.reader import read_world
from ironbell.operations.why.world import condition
from ironbell.provisioner.lifecycle.created import power_off_name, wipe_name

LATEST_TASKS = 1
MACHINES_SHOWN = 2


async def related(api: HttpApi, kind: Kind[Any], obj: Object) -> AsyncIterator[Object]:
    """Dependencies of an object, nearest first."""
    namespace, spec = obj["metadata"].get("namespace", ""), obj.get("spec", {})
    if kind.group.endswith("cluster.x-k8s.io"):
        if obj["kind"] == TINKERBELL_MACHINE.kind:
            async for server in _of_tinkerbell_machine(api, obj):
                yield server
        async for below in _of_cluster(api, obj):
            yield below
            if below["kind"] == TINKERBELL_MACHINE.kind and "spec" in below:
                async for server in _of_tinkerbell_machine(api, below):
                    yield server
    elif kind is WORKFLOW:
        if not obj.get("status", {}).get("tasks") and spec.get("templateRef"):
            yield await _get_or_missing(api, TEMPLATE, namespace, spec["templateRef"])
        for job in sorted(obj.get("status", {}).get("bootOptions", {}).get("jobs", {})):
            yield (job_object := await _get_or_missing(api, JOB, namespace, job))
            async for task in related(api, JOB, job_object):
                yield task
        if spec.get("hardwareRef"):
            yield (hardware := await _get_or_missing(api, HARDWARE, namespace, spec["hardwareRef"]))
            async for bmc in related(api, HARDWARE, hardware):
                yield bmc
    elif kind is HARDWARE and spec.get("bmcRef"):
        yield await _get_or_missing(api, MACHINE, namespace, spec["bmcRef"]["name"])
    elif kind is JOB:
        tasks = await list_objects(api, TASK, namespace, labels=f"owner-name={obj['metadata']['name']}")
        unfinished = [t for t in tasks if not any(c["status"] == "True" for c in t["status"].get("conditions", []))]
        failed = [t for t in tasks if t not in unfinished and condition(t, "Failed").get("status") == "True"]
        for task in (failed or unfinished)[:LATEST_TASKS]:
            yield task


async def _of_tinkerbell_machine(api: HttpApi, obj: Object) -> AsyncIterator[Object]:
    """Yield the machine's Workflows, its power-off Job and its server, or the servers that it may claim."""
    machine = TINKERBELL_MACHINE.convert(obj)
    namespace = machine.status.target_namespace or machine.metadata.namespace
    for kind, name in (
        (WORKFLOW, machine.metadata.name),
        (WORKFLOW, wipe_name(machine)),
        (JOB, power_off_name(machine)),
        (HARDWARE, machine.spec.hardware_name),
    ):
        if name and (created := await find_object(api, kind, namespace, name)) is not None:
            yield created
    if waits_for_server(obj):
        for candidate in as_objects(candidates(obj, await read_world(api, obj))):
            yield candidate


async def _get_or_missing(api: HttpApi, kind: Kind[Any], namespace: str, name: str) -> Object:
    return await find_object(api, kind, namespace, name) or missing(kind.kind, namespace, name)


async def list_objects(api: HttpApi, kind: Kind[Any], namespace: str, *, labels: str = "") -> list[Object]:
    """The objects of a kind in a namespace, each with a status."""
    page = await api.list(kind.collection, namespace, ListOptions(Selector(labels=labels)))
    return [{"status": {}, **msgspec.json.decode(item)} for item in page.items]


async def _of_cluster(api: HttpApi, obj: Object) -> AsyncIterator[Object]:
    """Objects that explain why an object waits; a missing one is among them, with a state that reports it."""
    discovered, meta = Discovered(api), obj["metadata"]
    spec, namespace = obj.get("spec", {}), meta.get("namespace", "")
    kind = obj["kind"]
    name = object_name(obj) if kind == CLUSTER.kind else cluster_name(obj)
    for reference in references(obj):
        yield await _referenced(discovered, namespace, reference)
    try:
        snapshot = await read(api, namespace, name)
    except NoClusterError:
        if name:
            yield missing(CLUSTER.kind, namespace, name)
        return
    for below in waiting_below(snapshot, obj):
        yield below
        for reference in part_references(below) if below["kind"] == "Machine" else ():
            yield await _referenced(discovered, namespace, reference)
    if kind != CLUSTER.kind and spec.get("clusterName", name):
        yield snapshot.cluster


def cluster_name(obj: Object) -> str:
    """The Cluster that an object names as its own; empty if it names none."""
    meta = obj["metadata"]
    owner = (o["name"] for o in meta.get("ownerReferences", []) if o.get("kind") == CLUSTER.kind)
    labelled = meta.get("labels", {}).get(LABEL_CLUSTER_NAME)
    return str(obj.get("spec", {}).get("clusterName") or labelled or next(owner, ""))


def references(obj: Object) -> list[Object]:
    """References of a Cluster or a Machine; templates of others explain nothing."""
    spec = obj.get("spec", {})
    if obj["kind"] == CLUSTER.kind:
        candidates = [spec.get("infrastructureRef", {}), spec.get("controlPlaneRef", {})]
        return [reference for reference in candidates if reference.get("name")]
    return part_references(obj) if obj["kind"] == "Machine" else []


def waiting_below(snapshot: Snapshot, obj: Object) -> list[Object]:
    """Dependents of an object that are not settled: sets of workers, and the first Machines."""
    if obj["kind"] == "Machine":
        return []
    scaled = [
        workers for workers in (*snapshot.deployments, *snapshot.pools, *snapshot.sets) if _is_below(workers, obj)
    ]
    owners = {
        obj["metadata"].get("uid"),
        *(workers["metadata"].get("uid") for workers in snapshot.sets if workers in scaled),
    }
    machines = [
        machine
        for machine in snapshot.machines
        if not standing(machine).is_good and (obj["kind"] == CLUSTER.kind or owners & _owner_ids(machine))
    ]
    return [workers for workers in scaled if not is_settled(workers)] + machines[:MACHINES_SHOWN]


def missing(kind: str, namespace: str, name: str) -> Object:
    """A placeholder for an object that does not exist."""
    return {"kind": kind, "metadata": {"namespace": namespace, "name": name}, "status": {"state": "does not exist"}}


def _is_below(below: Object, obj: Object) -> bool:
    if obj["kind"] == CLUSTER.kind:
        return bool(below["kind"] != "MachineSet")  # its MachineDeployment reports the same
    return obj["metadata"].get("uid") in _owner_ids(below)


def _owner_ids(obj: Object) -> set[Any]:
    return {owner.get("uid") for owner in obj["metadata"].get("ownerReferences", [])}


async def _referenced(discovered: Discovered, namespace: str, reference: Object) -> Object:
    referred, kind = await referenced(discovered, namespace, reference), reference.get("kind", "")
    return missing(kind, namespace, reference["name"]) if referred is None else {"kind": kind, **referred}

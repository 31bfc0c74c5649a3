"""Clusters created, scaled and upgraded as any front end does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api import cluster
from ironbell.api.client import Answer, Call, Invalid, Verb
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.core import CONFIG_MAP, NAMESPACE
from ironbell.kube.testing.memory import MemoryApi
from ironbell.operations.cluster.changes import ChangeRejectedError
from ironbell.operations.cluster.lifecycle import NotAppliedError, create, scale, upgrade
from ironbell.operations.cluster.listing import summaries
from ironbell.operations.cluster.snapshot import NoClusterError, read
from ironbell.operations.cluster.tree import tree
from ironbell.operations.progress import Progress
from ironbell.operations.why.model import Ref

REJECTED = "rejected"
LABELS = {"cluster.x-k8s.io/cluster-name": "one"}


class DiscoveredApi(MemoryApi):
    """An API in memory that can be discovered, too, and rejects Clusters of a name."""

    async def call(self, call: Call) -> Answer:
        if call.verb is Verb.PATCH and call.collection == cluster.CLUSTER.collection and call.name == REJECTED:
            raise Invalid("spec is invalid")
        return await super().call(call)

    async def raw(self, _method: str, path: str, **_: Any) -> bytes:
        parts = path.strip("/").split("/")
        group, version = (parts[1], "".join(parts[2:])) if parts[0] == "apis" else ("", parts[1])
        found = [where for where in self.kinds if where.group == group]
        if not version:
            versions = [{"version": where.version} for where in found]
            return msgspec.json.encode({"preferredVersion": versions[0], "versions": versions})
        return msgspec.json.encode(
            {
                "resources": [
                    {"name": where.plural, "kind": self.kinds[where].kind, "namespaced": where.namespaced}
                    for where in found
                ]
            }
        )


def api() -> Any:
    found = DiscoveredApi()
    found.serve([*cluster.KINDS, KUBEADM_CONTROL_PLANE, CONFIG_MAP, NAMESPACE])
    return found


def obj(kind: Any, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "labels": LABELS},
        "spec": spec,
    }


PLANE = obj(KUBEADM_CONTROL_PLANE, "plane", replicas=1, version="v1.34.2")
REFERENCE = {"apiGroup": KUBEADM_CONTROL_PLANE.group, "kind": KUBEADM_CONTROL_PLANE.kind, "name": "plane"}
TEMPLATE = {"spec": {"clusterName": "one", "version": "v1.34.2"}}
OBJECTS = [
    PLANE,
    obj(cluster.MACHINE_DEPLOYMENT, "md", clusterName="one", replicas=1, template=TEMPLATE),
    obj(cluster.CLUSTER, "one", controlPlaneRef=REFERENCE),
]


async def created() -> tuple[Any, list[Progress]]:
    found, steps = api(), list[Progress]()
    places = await create(found, "site", OBJECTS, steps.append)
    assert places[-1] == Ref(cluster.CLUSTER.group, "Cluster", "site", "one")
    return found, steps


async def test_created_objects_are_reported_one_by_one() -> None:
    found, steps = await created()
    assert [(str(step), step.done, step.total) for step in steps] == [
        ("KubeadmControlPlane site/plane applied", 1, 3),
        ("MachineDeployment site/md applied", 2, 3),
        ("Cluster site/one applied", 3, 3),
    ]
    with pytest.raises(NotAppliedError, match="already exists") as error:
        await create(found, "site", OBJECTS, steps.append)
    assert error.value.about.name == "one"
    (summary,) = await summaries(found, "site")
    assert summary.version == "v1.34.2"
    snapshot = await read(found, "site", "one")
    assert [row.name for row in tree(snapshot).children] == ["KubeadmControlPlane site/plane, v1.34.2", "Workers"]


async def test_an_object_that_is_rejected_is_named() -> None:
    found, steps = api(), list[Progress]()
    with pytest.raises(NotAppliedError, match="Cluster site/rejected: spec is invalid") as error:
        await create(found, "site", [PLANE, obj(cluster.CLUSTER, REJECTED)], steps.append)
    assert error.value.about == Ref(cluster.CLUSTER.group, "Cluster", "site", REJECTED)


async def test_changes_are_returned_and_reported() -> None:
    found, steps = await created()
    steps.clear()
    counts: dict[str, Any] = {"control_planes": 3, "workers": 2, "deployment": None}
    changes = await scale(found, "site", "one", **counts, report=steps.append)
    assert [(change.place.name, change.field, change.value) for change in changes] == [
        ("plane", "spec.replicas", 3),
        ("md", "spec.replicas", 2),
    ]
    assert [step.message for step in steps] == list(map(str, changes))
    assert (await read(found, "site", "one")).deployments[0]["spec"]["replicas"] == 2


async def test_an_argument_at_fault_is_a_field_of_the_error() -> None:
    found, _ = await created()
    counts: dict[str, Any] = {"control_planes": None, "workers": 2}
    with pytest.raises(ChangeRejectedError) as error:
        await scale(found, "site", "one", **counts, deployment="no", report=lambda _: None)
    assert error.value.field == "deployment"
    with pytest.raises(NoClusterError) as missing:
        await scale(found, "site", "two", **counts, deployment=None, report=lambda _: None)
    assert (missing.value.namespace, missing.value.name) == ("site", "two")


async def test_an_upgrade_without_a_wait_is_one_step() -> None:
    found, _ = await created()
    done = await upgrade(found, "site", "one", "v1.35.0", timeout_s=None, report=lambda _: None)
    assert [change.place.kind for change in done.changes] == ["KubeadmControlPlane"]
    assert done.workers_wait

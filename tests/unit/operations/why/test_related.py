"""What an object of a cluster is explained by."""

from __future__ import annotations

from typing import Any

from ironbell.operations.cluster.snapshot import Snapshot
from ironbell.operations.why.related import cluster_name, references, waiting_below


def obj(kind: str, name: str, *, owner: str = "", good: bool = True, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"namespace": "site", "name": name, "uid": f"uid-{name}"}
    if owner:
        metadata["ownerReferences"] = [{"kind": "Any", "name": owner, "uid": f"uid-{owner}"}]
    done = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"), int(good))
    conditions = [{"type": "Available", "status": str(good)}]
    return {"kind": kind, "metadata": metadata, "spec": spec, "status": {"conditions": conditions, **done}}


CLUSTER = obj("Cluster", "one", good=False, infrastructureRef={"name": "i"}, controlPlaneRef={"name": "k"})
CONTROL_PLANE = obj("KubeadmControlPlane", "cp", good=False)
DEPLOYMENT = obj("MachineDeployment", "md", good=False)
GOOD_DEPLOYMENT = obj("MachineDeployment", "good")
SET = obj("MachineSet", "ms", owner="md", good=False)
SNAPSHOT = Snapshot(
    CLUSTER,
    control_plane=CONTROL_PLANE,
    deployments=(GOOD_DEPLOYMENT, DEPLOYMENT),
    sets=(SET,),
    machines=(
        obj("Machine", "c", owner="cp", good=False),
        obj("Machine", "fine", owner="ms"),
        *(obj("Machine", f"w-{number}", owner="ms", good=False) for number in (1, 2, 3)),
    ),
)


def names(found: list[dict[str, Any]]) -> list[str]:
    return [one["metadata"]["name"] for one in found]


def test_each_is_explained_by_what_it_has_made_and_is_not_done() -> None:
    assert names(waiting_below(SNAPSHOT, CLUSTER)) == ["md", "c", "w-1"]
    assert names(waiting_below(SNAPSHOT, CONTROL_PLANE)) == ["c"]
    assert names(waiting_below(SNAPSHOT, DEPLOYMENT)) == ["ms", "w-1", "w-2"]
    assert names(waiting_below(SNAPSHOT, GOOD_DEPLOYMENT)) == []
    assert names(waiting_below(SNAPSHOT, SET)) == ["w-1", "w-2"]
    assert names(waiting_below(SNAPSHOT, SNAPSHOT.machines[0])) == []


def test_references_of_clusters_and_machines_are_followed() -> None:
    assert [reference["name"] for reference in references(CLUSTER)] == ["i", "k"]
    machine = obj("Machine", "m", infrastructureRef={"name": "host"}, bootstrap={"configRef": {"name": "config"}})
    assert [reference["name"] for reference in references(machine)] == ["host", "config"]
    assert references(obj("Machine", "m", bootstrap={"dataSecretName": "s"})) == []


def test_the_cluster_is_found_by_field_label_or_owner() -> None:
    assert cluster_name(obj("Machine", "m", clusterName="one")) == "one"
    labelled = obj("DevMachine", "m")
    labelled["metadata"]["labels"] = {"cluster.x-k8s.io/cluster-name": "two"}
    assert cluster_name(labelled) == "two"
    owned = obj("KubeadmControlPlane", "cp")
    owned["metadata"]["ownerReferences"] = [{"kind": "Cluster", "name": "three"}]
    assert cluster_name(owned) == "three"
    assert cluster_name(obj("KubeadmConfig", "m")) == ""

"""What scaling and upgrading change, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.operations.cluster.changes import (
    ChangeRejectedError,
    check_upgrade,
    control_plane_upgrade,
    scaling,
    worker_upgrade,
)
from ironbell.operations.cluster.snapshot import Snapshot


def obj(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "g/v1", "kind": kind, "metadata": {"namespace": "site", "name": name}, "spec": spec}


def deployment(name: str, version: str) -> dict[str, Any]:
    return obj("MachineDeployment", name, replicas=2, template={"spec": {"version": version} if version else {}})


def plain(*deployments: dict[str, Any], version: str = "v1.34.2") -> Snapshot:
    control_plane = obj("KubeadmControlPlane", "one", replicas=1, version=version)
    return Snapshot(obj("Cluster", "one"), control_plane=control_plane, deployments=deployments)


def managed(version: str = "v1.34.2") -> Snapshot:
    workers = {"machineDeployments": [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 1}]}
    topology = {"classRef": {"name": "c"}, "version": version, "controlPlane": {"replicas": 1}, "workers": workers}
    return Snapshot(obj("Cluster", "one", topology=topology))


def test_objects_are_scaled_where_no_class_decides() -> None:
    snapshot = plain(deployment("md", "v1.34.2"))
    control_plane, workers = scaling(snapshot, control_planes=3, workers=5, deployment=None)
    assert control_plane.operations == [{"op": "add", "path": "/spec/replicas", "value": 3}]
    assert str(workers) == "MachineDeployment site/md: spec.replicas = 5"


def test_topology_is_scaled_by_name_even_if_the_list_has_changed() -> None:
    control_plane, workers = scaling(managed(), control_planes=3, workers=5, deployment="b")
    assert str(control_plane) == "Cluster site/one: spec.topology.controlPlane.replicas = 3"
    base = "/spec/topology/workers/machineDeployments/1"
    assert workers.operations == [
        {"op": "test", "path": f"{base}/name", "value": "b"},
        {"op": "add", "path": f"{base}/replicas", "value": 5},
    ]


@pytest.mark.parametrize(
    ("snapshot", "options", "message"),
    [
        (plain(), {}, "set --control-planes or --workers"),
        (plain(), {"control_planes": 0}, "--control-planes must be at least 1"),
        (plain(), {"workers": 1}, "--workers: Cluster site/one has no MachineDeployment"),
        (managed(), {"workers": 1}, "has: a, b"),
        (managed(), {"workers": 1, "deployment": "x"}, "--machine-deployment: Cluster site/one has no 'x'"),
        (plain(deployment("md", "")), {"workers": -1}, "--workers must not be negative"),
        (Snapshot(obj("Cluster", "one")), {"control_planes": 1}, "has no control plane object"),
    ],
)
def test_scaling_that_is_refused_names_the_option(snapshot: Snapshot, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ChangeRejectedError, match=message):
        scaling(snapshot, **{"control_planes": None, "workers": None, "deployment": None, **options})


def test_control_plane_comes_before_workers() -> None:
    snapshot = plain(deployment("md", "v1.34.2"), deployment("image-decides", ""))
    check_upgrade(snapshot, "v1.35.0")
    assert [str(c) for c in control_plane_upgrade(snapshot, "v1.35.0")] == [
        "KubeadmControlPlane site/one: spec.version = v1.35.0"
    ]
    assert [str(c) for c in worker_upgrade(snapshot, "v1.35.0")] == [
        "MachineDeployment site/md: spec.template.spec.version = v1.35.0"
    ]


def test_an_upgrade_that_was_interrupted_goes_on_with_what_is_left() -> None:
    snapshot = plain(deployment("a", "v1.35.0"), deployment("b", "v1.34.2"), version="v1.35.0")
    check_upgrade(snapshot, "v1.35.0")
    assert control_plane_upgrade(snapshot, "v1.35.0") == []
    assert [change.target["metadata"]["name"] for change in worker_upgrade(snapshot, "v1.35.0")] == ["b"]


def test_topology_is_upgraded_in_one_place() -> None:
    check_upgrade(managed(), "v1.35.0")
    assert [change.path for change in control_plane_upgrade(managed(), "v1.35.0")] == ["/spec/topology/version"]
    assert worker_upgrade(managed(), "v1.35.0") == []


@pytest.mark.parametrize(
    ("snapshot", "target", "message"),
    [
        (plain(), "v1.36.0", "upgrade to v1.35 first"),
        (plain(), "v2.0.0", "upgrade to v1.35 first"),
        (plain(), "v1.34.1", "is not possible"),
        (plain(), "1.35", "write it as v1.34.2"),
        (
            plain(deployment("md", "v1.33.0")),
            "v1.35.0",
            "site/md has v1.33.0; upgrade to v1.34 first",
        ),
        (managed(), "v1.36.0", "Cluster site/one has v1.34.2; upgrade to v1.35 first"),
        (Snapshot(obj("Cluster", "one")), "v1.35.0", "no control plane object to upgrade"),
    ],
)
def test_upgrades_that_are_refused(snapshot: Snapshot, target: str, message: str) -> None:
    with pytest.raises(ChangeRejectedError, match=message):
        check_upgrade(snapshot, target)

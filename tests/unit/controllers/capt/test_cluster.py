"""TinkerbellClusters: endpoint, failure domains, pause, and who they belong to."""

from typing import Any

import pytest

from ironbell.api.capt import TINKERBELL_CLUSTER
from ironbell.api.capt.names import LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.cluster import CLUSTER
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.controllers.capt.cluster import TinkerbellClusterReconciler
from ironbell.kube.conditions import find_condition
from ironbell.kube.testing import World, crash_check
from support.captworld import server

CLUSTERS = TinkerbellClusterReconciler()
KEY = ("default", "prod")
ENDPOINT = {"host": "192.0.2.10", "port": 6443}


def scene(
    *, own: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, owned: bool = True, **spec: Any
) -> World:
    world = World()
    infrastructure = {"apiGroup": TINKERBELL_CLUSTER.group, "kind": "TinkerbellCluster", "name": "prod"}
    body = {"metadata": {"namespace": "default", "name": "prod"}, "spec": {"infrastructureRef": infrastructure}}
    body["spec"] |= cluster or {}
    made = world.add(CLUSTER, body)
    owner = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "name": "prod", "uid": made.metadata.uid}
    metadata: dict[str, Any] = {"namespace": "default", "name": "prod"}
    metadata |= {"ownerReferences": [owner]} if owned else {"labels": {"cluster.x-k8s.io/cluster-name": "prod"}}
    world.add(TINKERBELL_CLUSTER, {"metadata": metadata, "spec": {**(own or {}), **spec}})
    world.api.serve([HARDWARE])
    return world


def settled(world: World) -> TinkerbellCluster:
    world.settle(CLUSTERS)
    return world.require(TINKERBELL_CLUSTER, *KEY)


def test_who_takes_a_server_wakes_no_cluster() -> None:
    """Or a thousand claims would each look at a thousand clusters."""
    (watch,) = [one for one in CLUSTERS.watches if one.kind is HARDWARE]
    free = server("a", labels={"rack": "a"})
    owner = {LABEL_OWNER_NAME: "machine", LABEL_OWNER_NAMESPACE: "default"}
    taken, moved = server("a", labels={"rack": "a", **owner}), server("a", labels={"rack": "b", **owner})
    assert not watch.relevant(free, taken)
    assert not watch.relevant(taken, free)
    assert watch.relevant(taken, moved)
    assert watch.relevant(None, free)
    assert watch.relevant(free, None)


@pytest.mark.parametrize("side", ["own", "cluster"])
def test_the_endpoint_comes_from_either_side(side: str) -> None:
    obj = settled(scene(**{side: {"controlPlaneEndpoint": ENDPOINT}}))
    assert (obj.spec.control_plane_endpoint.host, obj.spec.control_plane_endpoint.port) == ("192.0.2.10", 6443)
    assert obj.status.ready
    assert obj.status.initialization.provisioned
    ready = find_condition(obj.status.conditions, "Ready")
    assert ready is not None
    assert ready.status == "True"


def test_without_an_endpoint_it_says_what_to_do() -> None:
    obj = settled(scene())
    ready = find_condition(obj.status.conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "WaitingForEndpoint")
    assert "spec.controlPlaneEndpoint.host" in ready.message
    assert not obj.status.ready


def test_it_finds_its_cluster_by_label() -> None:
    world = scene(own={"controlPlaneEndpoint": ENDPOINT}, owned=False)
    obj = settled(world)
    assert [owner.name for owner in obj.metadata.owner_references] == ["prod"]
    assert obj.metadata.owner_references[0].controller
    assert obj.status.ready


def test_failure_domains_are_the_values_of_a_label() -> None:
    world = scene(own={"controlPlaneEndpoint": ENDPOINT}, failureDomainLabel="rack")
    for name, rack in (("a", "r2"), ("b", "r1"), ("c", "r2")):
        world.add(HARDWARE, server(name, labels={"rack": rack}))
    world.add(HARDWARE, server("d"))
    obj = settled(world)
    assert [(one.name, one.control_plane) for one in obj.status.failure_domains] == [("r1", True), ("r2", True)]


@pytest.mark.parametrize("where", ["object", "cluster"])
def test_pause(where: str) -> None:
    world = scene(own={"controlPlaneEndpoint": ENDPOINT}, cluster={"paused": True} if where == "cluster" else None)
    if where == "object":
        world.change(
            TINKERBELL_CLUSTER,
            world.require(TINKERBELL_CLUSTER, *KEY),
            {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}},
        )
    obj = settled(world)
    paused = find_condition(obj.status.conditions, "Paused")
    assert paused is not None
    assert (paused.status, paused.reason) == ("True", "Paused")
    assert not obj.status.ready


def test_one_that_somebody_else_manages_is_not_touched() -> None:
    world = scene(own={"controlPlaneEndpoint": ENDPOINT})
    world.change(
        TINKERBELL_CLUSTER,
        world.require(TINKERBELL_CLUSTER, *KEY),
        {"metadata": {"annotations": {"cluster.x-k8s.io/managed-by": "x"}}},
    )
    before = world.require(TINKERBELL_CLUSTER, *KEY)
    assert settled(world) == before


def test_it_may_be_killed_anywhere() -> None:
    world = scene(cluster={"controlPlaneEndpoint": ENDPOINT}, owned=False, failureDomainLabel="rack")
    world.add(HARDWARE, server("a", labels={"rack": "r2"}))
    crash_check(CLUSTERS, world)

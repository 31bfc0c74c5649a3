"""TinkerbellClusters: endpoint, failure domains, pause, and who they belong to."""

from typing import Any

import pytest

from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE_TEMPLATE
from ironbell.api.capt.names import LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.cluster import CLUSTER
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.unstructured import dynamic_kind
from ironbell.contract.servers.claim import HELD
from ironbell.controllers.capt.cluster import TinkerbellClusterReconciler
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Key
from ironbell.kube.reconciler import Unsynced
from ironbell.kube.testing import World, crash_check
from support.servers.captworld import server

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


def woken(world: World, old: Hardware | None, new: Hardware) -> list[Key]:
    watches = [one for one in CLUSTERS.declaration.watches if one.kind is HARDWARE and one.relevant(old, new)]
    return [key for watch in watches for key in watch.keys(new, world)]


def test_who_takes_one_server_of_many_wakes_no_cluster() -> None:
    """Or a thousand claims would each look at a thousand clusters."""
    world = scene(own={"controlPlaneEndpoint": ENDPOINT}, failureDomainLabel="rack")
    settled(world)
    owner = {LABEL_OWNER_NAME: "machine", LABEL_OWNER_NAMESPACE: "default"}
    free, taken = server("a", labels={"rack": "a"}), server("a", labels={"rack": "a", **owner})
    moved = server("a", labels={"rack": "b", **owner})
    world.add(HARDWARE, server("like-it", labels={"rack": "a", "ironbell.dev/switch-port": "swp1"}))
    assert not woken(world, free, taken)
    assert not woken(world, taken, free)
    assert woken(world, taken, moved) == [KEY]
    assert woken(world, None, free) == [KEY]
    world.change(HARDWARE, world.require(HARDWARE, "default", "like-it"), {"metadata": {"labels": {"cpu": "x"}}})
    assert woken(world, free, taken) == [KEY], "it was the last of its kind"


def test_only_what_is_read_of_a_cluster_wakes_its_infrastructure() -> None:
    """Its status changes with each of its machines, and each look goes through the servers."""
    world = scene(own={"controlPlaneEndpoint": ENDPOINT})
    watch = next(one for one in CLUSTERS.declaration.watches if one.kind is CLUSTER)
    assert watch.relevant is not None
    first = world.require(CLUSTER, *KEY)
    world.change(CLUSTER, first, {"status": {"phase": "Provisioned"}, "metadata": {"labels": {"a": "b"}}})
    second = world.require(CLUSTER, *KEY)
    world.change(CLUSTER, second, {"spec": {"paused": True}})
    third = world.require(CLUSTER, *KEY)
    steps = ((None, first), (first, second), (second, third), (third, None))
    assert [watch.relevant(*step) for step in steps] == [True, False, True, True]


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
    assert told(obj) == [("r1", True), ("r2", True)]


def told(obj: TinkerbellCluster) -> list[tuple[str, bool]]:
    return [(one.name, bool(one.control_plane)) for one in obj.status.failure_domains]


def test_a_domain_that_can_take_no_machine_is_none_for_control_planes() -> None:
    world = scene(own={"controlPlaneEndpoint": ENDPOINT}, failureDomainLabel="rack")
    owner = {LABEL_OWNER_NAME: "machine", LABEL_OWNER_NAMESPACE: "default"}
    world.add(HARDWARE, server("taken", labels={"rack": "a", **owner}))
    world.add(HARDWARE, server("held", labels={"rack": "b"}, annotations={HELD: "broken"}))
    world.add(HARDWARE, server("bare", labels={"rack": "c"}, spec={"disks": []}))
    world.add(HARDWARE, server("free", labels={"rack": "d"}))
    assert told(settled(world)) == [("a", False), ("b", False), ("c", False), ("d", True)]
    taken = world.require(HARDWARE, "default", "taken")
    gone = {LABEL_OWNER_NAME: None, LABEL_OWNER_NAMESPACE: None}
    freed = world.change(HARDWARE, taken, {"metadata": {"labels": gone}})
    assert woken(world, taken, freed) == [KEY]
    assert told(settled(world))[0] == ("a", True)


def test_a_domain_is_none_for_a_control_plane_that_wants_other_servers() -> None:
    """Of the contracts' two places for the template's name each counts."""
    machines = {"labelSelector": {"matchLabels": {"type": "cp"}}}
    wanted = {"spec": {"template": {"spec": {"hardwareAffinity": {"required": [machines]}}}}}
    for contract, where in (
        ("v1beta1", {"machineTemplate": {"infrastructureRef": {"name": "t"}}}),
        ("v1beta2", {"machineTemplate": {"spec": {"infrastructureRef": {"name": "t"}}}}),
    ):
        kind = dynamic_kind("controlplane.cluster.x-k8s.io", "v1", "SomeControlPlane", "somecontrolplanes")
        plane = {"apiGroup": kind.group, "kind": kind.kind, "name": "plane"}
        own = {"controlPlaneEndpoint": ENDPOINT, "failureDomainLabel": "rack"}
        world = scene(own=own, cluster={"controlPlaneRef": plane})
        world.define(kind, {f"cluster.x-k8s.io/{contract}": "v1"})
        world.add(HARDWARE, server("worker", labels={"rack": "a", "type": "worker"}))
        world.add(HARDWARE, server("plane", labels={"rack": "b", "type": "cp"}))
        world.unsynced[kind.collection] = Unsynced(kind)
        assert not settled(world).status.ready, "it will be known soon"
        del world.unsynced[kind.collection]
        assert told(settled(world)) == [("a", True), ("b", True)], "nobody knows yet"
        world.add(kind, {"metadata": {"namespace": "default", "name": "plane"}, "spec": where})
        world.add(TINKERBELL_MACHINE_TEMPLATE, {"metadata": {"namespace": "default", "name": "t"}, **wanted})
        assert told(settled(world)) == [("a", False), ("b", True)], contract


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

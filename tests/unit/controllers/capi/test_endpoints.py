"""Two Clusters with one endpoint: one has it, and the other reports whose it is and waits."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.contract.conditions.legacy import find_legacy
from ironbell.controllers.capi.cluster import endpoint
from ironbell.controllers.capi.cluster.reconciler import ClusterReconciler
from ironbell.kube.testing.world import World
from support.capi.world import INFRA_CLUSTER, NAMESPACE, add_cluster, capi_world, reported

CLUSTERS = ClusterReconciler()
ENDPOINT = {"host": "192.0.2.10", "port": 6443}
REMEDY = (
    "Endpoint 192.0.2.10:6443 belongs to Cluster default/old. Set another spec.controlPlaneEndpoint on the Cluster and"
    " its FakeCluster, or delete the other Cluster."
)


def add(world: World, name: str, *, host: str = "192.0.2.10", in_spec: bool = False) -> Cluster:
    place = {**ENDPOINT, "host": host}
    world.add(
        INFRA_CLUSTER,
        {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"controlPlaneEndpoint": place},
            "status": {"initialization": {"provisioned": True}},
        },
    )
    world.clock.advance(1)
    return add_cluster(world, name, **({"controlPlaneEndpoint": place} if in_spec else {}))


def again(world: World, obj: Cluster) -> Cluster:
    return world.require(CLUSTER, *obj.key)


def test_a_second_cluster_with_the_same_endpoint_reports_its_owner_and_is_not_provisioned() -> None:
    world = capi_world()
    old = add(world, "old")
    world.settle(CLUSTERS)
    new = add(world, "new")
    world.settle(CLUSTERS)
    assert again(world, old).status.initialization.infrastructure_provisioned is True
    result = again(world, new)
    assert result.status.initialization.infrastructure_provisioned is None
    assert not result.spec.control_plane_endpoint.host
    assert reported(result, "InfrastructureReady") == ("False", "EndpointInUse", REMEDY)
    assert f"* InfrastructureReady: {REMEDY}" in reported(result, "Available")[2]
    assert result.status.deprecated is not None
    assert result.status.deprecated.v1beta1 is not None
    legacy = find_legacy(result.status.deprecated.v1beta1.conditions, "InfrastructureReady")
    assert legacy is not None
    assert (legacy.status, legacy.reason, legacy.message) == ("False", "EndpointInUse", REMEDY)


@pytest.mark.parametrize("released_by", ["deleted", "moved"])
def test_it_continues_once_no_other_cluster_has_the_endpoint(released_by: str) -> None:
    world = capi_world()
    old = add(world, "old")
    world.settle(CLUSTERS)
    new = add(world, "new", host="192.0.2.10")
    world.settle(CLUSTERS)
    previous = again(world, old)
    assert list(endpoint.waiting(previous, world)) == [new.key]
    if released_by == "deleted":
        world.remove(CLUSTER, previous)
        world.settle(CLUSTERS)
        after = world.get(CLUSTER, *old.key)
    else:
        place = {"controlPlaneEndpoint": {"host": "192.0.2.99", "port": 6443}}
        after = world.change(CLUSTER, previous, {"spec": place})
    assert endpoint.is_released(previous, after)
    world.settle(CLUSTERS)
    result = again(world, new)
    assert result.status.initialization.infrastructure_provisioned is True
    assert result.spec.control_plane_endpoint.host == "192.0.2.10"


def test_of_two_that_name_it_themselves_the_older_one_has_it() -> None:
    world = capi_world()
    old, new = add(world, "old", in_spec=True), add(world, "new", in_spec=True)
    world.settle(CLUSTERS)
    assert again(world, old).status.initialization.infrastructure_provisioned is True
    assert reported(again(world, new), "InfrastructureReady")[1] == "EndpointInUse"


def test_another_host_is_another_endpoint() -> None:
    world = capi_world()
    add(world, "old")
    world.settle(CLUSTERS)
    new = add(world, "new", host="192.0.2.11")
    world.settle(CLUSTERS)
    assert again(world, new).status.initialization.infrastructure_provisioned is True


def test_a_cluster_that_runs_keeps_its_endpoint_whoever_is_older() -> None:
    world = capi_world()
    old, new = add(world, "a", in_spec=True), add(world, "old", in_spec=True)
    runs: dict[str, Any] = {"initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}}
    world.set_status(CLUSTER, new, runs)
    world.settle(CLUSTERS)
    assert reported(again(world, old), "InfrastructureReady") == ("False", "EndpointInUse", REMEDY)
    assert reported(again(world, new), "InfrastructureReady")[1] != "EndpointInUse"

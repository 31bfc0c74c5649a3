"""MachinePools: they own their referred objects, and count their Nodes."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.cluster import MACHINE_POOL
from ironbell.api.cluster.machinepool import MachinePool
from ironbell.api.core.node import NodeCondition
from ironbell.api.meta import to_builtin
from ironbell.controllers.capi.machinepool import MachinePoolReconciler
from ironbell.kube.testing.crash import crash_check
from ironbell.kube.testing.world import World
from ironbell.workload.queries import AllNodes, NodeView
from support.capi.world import CONFIG, INFRA_MACHINE, NAMESPACE, add_cluster, capi_world, reference

POOLS = MachinePoolReconciler()


def node(name: str, *, ready: bool = True) -> NodeView:
    conditions = (NodeCondition(type="Ready", status=str(ready), last_transition_time="2025-01-01T00:00:00Z"),)
    return NodeView(name=name, uid=f"uid-{name}", provider_id=f"fake:///{name}", conditions=conditions)


def scene(
    *, nodes: tuple[NodeView, ...] = (), annotations: dict[str, str] | None = None, **infrastructure: Any
) -> tuple[World, MachinePool]:
    world = capi_world()
    world.resolvers = {AllNodes: lambda _world, _query: nodes}
    add_cluster(world)
    pool = {"metadata": {"name": "pool", "namespace": NAMESPACE, "finalizers": ["example.com/f"]}}
    world.add(INFRA_MACHINE, {**pool, **infrastructure})
    world.add(CONFIG, {**pool, "status": {"initialization": {"dataSecretCreated": True}, "dataSecretName": "data"}})
    template = {
        "clusterName": "prod",
        "bootstrap": {"configRef": reference(CONFIG, "pool")},
        "infrastructureRef": reference(INFRA_MACHINE, "pool"),
    }
    metadata = {"name": "mp", "namespace": NAMESPACE, "annotations": annotations or {}}
    spec = {"clusterName": "prod", "replicas": 2, "template": {"spec": template}}
    return world, world.add(MACHINE_POOL, {"metadata": metadata, "spec": spec})


def provisioned(*ids: str, replicas: int = 2) -> dict[str, Any]:
    status = {"initialization": {"provisioned": True}, "replicas": replicas}
    return {"spec": {"providerIDList": [f"fake:///{provider_id}" for provider_id in ids]}, "status": status}


def again(world: World, obj: MachinePool) -> MachinePool:
    return world.require(MACHINE_POOL, *obj.key)


def test_a_pool_owns_its_referred_objects_and_waits_for_them() -> None:
    world, pool = scene()

    world.settle(POOLS)

    now = again(world, pool)
    assert [(owner.kind, owner.controller) for owner in now.metadata.owner_references] == [("Cluster", None)]
    for kind in (INFRA_MACHINE, CONFIG):
        obj = world.require(kind, NAMESPACE, "pool")
        assert [(owner.kind, owner.controller) for owner in obj.metadata.owner_references] == [("MachinePool", True)]
        assert obj.metadata.labels["cluster.x-k8s.io/cluster-name"] == "prod"
    assert now.spec.template.spec.bootstrap.data_secret_name == "data"
    assert now.status.initialization.bootstrap_data_secret_created is True
    assert now.status.phase == "Provisioning"


@pytest.mark.parametrize(
    ("nodes", "phase"),
    [
        ((node("a"), node("b")), "Running"),
        ((node("a"),), "ScalingUp"),
        ((node("a"), node("b", ready=False)), "ScalingUp"),
    ],
)
def test_nodes_are_looked_up_by_the_provider_ids_of_the_infrastructure(nodes: tuple[NodeView, ...], phase: str) -> None:
    world, pool = scene(nodes=(*nodes, node("other")), **provisioned("a", "b"))

    world.settle(POOLS)

    now = again(world, pool)
    assert now.spec.provider_id_list == ["fake:///a", "fake:///b"]
    assert [item.name for item in now.status.node_refs] == [entry.name for entry in nodes]
    assert now.status.replicas == 2
    assert now.status.phase == phase


def test_an_autoscaler_of_the_infrastructure_decides_the_size() -> None:
    annotations = {"cluster.x-k8s.io/replicas-managed-by": ""}
    world, pool = scene(annotations=annotations, nodes=(node("a"),), **provisioned("a", replicas=5))

    world.settle(POOLS)

    assert again(world, pool).spec.replicas == 5
    assert again(world, pool).status.phase == "Scaling"


def test_a_pool_is_deleted_after_its_referred_objects() -> None:
    world, pool = scene(**provisioned("a"))
    world.settle(POOLS)
    world.remove(MACHINE_POOL, again(world, pool))
    world.settle(POOLS)
    assert again(world, pool).status.phase == "Deleting"
    for kind in (INFRA_MACHINE, CONFIG):
        obj = world.require(kind, NAMESPACE, "pool")
        assert obj.metadata.deletion_timestamp is not None
        world.change(kind, obj, {"metadata": {"finalizers": None}})

    world.settle(POOLS)

    assert world.list(MACHINE_POOL) == []


def test_a_pool_again_under_its_name_has_the_nodes_of_its_own_infrastructure() -> None:
    world, pool = scene(nodes=(node("a"), node("b"), node("c")), **provisioned("a", "b"))
    world.settle(POOLS)
    spec = to_builtin(pool.spec)
    world.remove(MACHINE_POOL, again(world, pool))
    world.settle(POOLS)
    for kind in (INFRA_MACHINE, CONFIG):
        world.change(kind, world.require(kind, NAMESPACE, "pool"), {"metadata": {"finalizers": None}})
    world.settle(POOLS)
    assert world.list(MACHINE_POOL) == []

    world.add(INFRA_MACHINE, {"metadata": {"name": "pool", "namespace": NAMESPACE}, **provisioned("c", replicas=1)})
    world.add(CONFIG, {"metadata": {"name": "pool", "namespace": NAMESPACE}})
    second = world.add(MACHINE_POOL, {"metadata": {"name": "mp", "namespace": NAMESPACE}, "spec": spec})
    world.settle(POOLS)

    now = again(world, second)
    assert [item.name for item in now.status.node_refs] == ["c"]
    assert now.status.initialization.bootstrap_data_secret_created is None


def test_a_crash_at_any_point_ends_the_same() -> None:
    world, _ = scene(nodes=(node("a"),), **provisioned("a", "b"))

    crash_check(POOLS, world)

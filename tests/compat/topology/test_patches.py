"""Patches of a class leave what upstream's patch engine leaves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.cluster.classes.clusterclass import ClusterClass
from ironbell.api.cluster.cluster import Cluster
from ironbell.controllers.capi.topology.desired.model import (
    Blueprint,
    Desired,
    Template,
    TopologyError,
    Worker,
    WorkerTemplates,
)
from ironbell.controllers.capi.topology.patches.engine import Context, with_patches
from support.capi.classpatches import request
from support.capi.topologies import (
    CONFIG,
    CONFIG_TEMPLATE,
    DEV_CLUSTER,
    DEV_CLUSTER_TEMPLATE,
    DEV_MACHINE_TEMPLATE,
    DEV_POOL,
    DEV_POOL_TEMPLATE,
    PLANE,
    PLANE_TEMPLATE,
)

FEW, MANY = 500, pytest.param(10000, marks=pytest.mark.soak)
Object = dict[str, Any]


def blueprint(asked: Object) -> Blueprint:
    held, class_ = asked["patch"], msgspec.convert(asked["class"], ClusterClass)
    return Blueprint(
        class_,
        Template(held["infrastructureCluster"], DEV_CLUSTER_TEMPLATE, DEV_CLUSTER),
        Template(held["controlPlane"], PLANE_TEMPLATE, PLANE),
        "v1beta2",
        Template(held["controlPlaneMachine"], DEV_MACHINE_TEMPLATE) if "controlPlaneMachine" in held else None,
        {
            name: WorkerTemplates(
                Template(one["bootstrap"], CONFIG_TEMPLATE), Template(one["infrastructure"], DEV_MACHINE_TEMPLATE)
            )
            for name, one in held["deployments"].items()
        },
        {
            name: WorkerTemplates(
                Template(one["bootstrap"], CONFIG_TEMPLATE, CONFIG),
                Template(one["infrastructure"], DEV_POOL_TEMPLATE, DEV_POOL),
            )
            for name, one in held["pools"].items()
        },
    )


def desired(asked: Object) -> Desired:
    held, workers = asked["patch"]["desired"], asked["cluster"]["spec"]["topology"]["workers"]

    def made(kind: str, part: str) -> tuple[Worker, ...]:
        return tuple(
            Worker(
                one["name"],
                one["class"],
                held[part][one["name"]]["object"],
                held[part][one["name"]]["bootstrap"],
                held[part][one["name"]]["infrastructure"],
            )
            for one in workers[kind]
        )

    return Desired(
        held["infrastructureCluster"],
        held["controlPlane"],
        held.get("controlPlaneMachine"),
        None,
        made("machineDeployments", "deployments"),
        made("machinePools", "pools"),
    )


def patched(asked: Object) -> Object:
    """In the form of the answer."""
    metadata = asked["cluster"]["metadata"]
    cluster = msgspec.convert(asked["cluster"], Cluster)
    context = Context(cluster, metadata.get("labels", {}), metadata.get("annotations", {}))
    found = with_patches(desired(asked), blueprint(asked), context)
    return {
        "infrastructureCluster": found.infrastructure_cluster,
        "controlPlane": found.control_plane,
        **({"controlPlaneMachine": found.control_plane_machine} if found.control_plane_machine is not None else {}),
        "deployments": {
            one.topology_name: {"bootstrap": one.bootstrap, "infrastructure": one.infrastructure}
            for one in found.deployments
        },
        "pools": {
            one.topology_name: {"bootstrap": one.bootstrap, "infrastructure": one.infrastructure} for one in found.pools
        },
    }


@pytest.mark.parametrize("cases", [FEW, MANY])
def test_patches_leave_the_same(oracle: Any, cases: int) -> None:
    requests = [request(seed) for seed in range(cases)]
    applied = 0
    for seed, (asked, answer) in enumerate(zip(requests, oracle(requests), strict=True)):
        told = (seed, asked["class"]["spec"]["patches"], answer.get("error"))
        if "error" in answer:
            with pytest.raises(TopologyError):
                patched(asked)
            continue
        assert patched(asked) == answer["desired"], told
        applied += 1
    assert applied > cases / 5

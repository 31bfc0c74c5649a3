"""MachineDeployments: one MachineSet per template, and the way from one to the next."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machineset import MachineSet
from ironbell.base.clock import rfc3339
from ironbell.controllers.capi.machinedeployment.reconciler import MachineDeploymentReconciler
from ironbell.controllers.capi.machineset.reconciler import MachineSetReconciler
from ironbell.kube.testing.crash import crash_check
from ironbell.kube.testing.world import World
from support.capi.world import (
    CONFIG_TEMPLATE,
    INFRA_TEMPLATE,
    NAMESPACE,
    add_cluster,
    add_machine_deployment,
    capi_world,
    come_up,
    machine_template,
    reference,
    reported,
    template,
)

DEPLOYMENTS = MachineDeploymentReconciler()
BOTH = (DEPLOYMENTS, MachineSetReconciler())


def scene(replicas: int = 3, **more: Any) -> tuple[World, MachineDeployment]:
    world = capi_world()
    add_cluster(world)
    deployment = add_machine_deployment(world, replicas, **more)
    world.settle(*BOTH, horizon_s=30)
    return world, again(world, deployment)


def again(world: World, obj: MachineDeployment) -> MachineDeployment:
    return world.require(MACHINE_DEPLOYMENT, *obj.key)


def sets(world: World) -> Sequence[MachineSet]:
    return sorted(world.list(MACHINE_SET), key=lambda item: int(item.metadata.annotations[REVISION]))


REVISION = "machinedeployment.clusters.x-k8s.io/revision"


def upgrade(world: World, deployment: MachineDeployment, version: str = "v1.35.0", **spec: Any) -> None:
    change = {"template": {"spec": {"version": version}}, **spec}
    world.change(MACHINE_DEPLOYMENT, again(world, deployment), {"spec": change})


def test_a_machine_set_is_created_from_the_template() -> None:
    world, deployment = scene()

    created = sets(world)

    assert len(created) == 1
    assert created[0].metadata.name.startswith("md-")
    assert created[0].spec.replicas == 3
    identity = created[0].metadata.labels["machine-template-hash"]
    assert identity.endswith(created[0].metadata.name.removeprefix("md"))
    assert created[0].spec.selector.match_labels["machine-template-hash"] == identity
    assert created[0].metadata.labels["cluster.x-k8s.io/deployment-name"] == "md"
    owner = created[0].metadata.owner_references[0]
    assert (owner.kind, owner.name, owner.controller) == ("MachineDeployment", "md", True)
    for machine in world.list(MACHINE):
        assert machine.metadata.labels["machine-template-hash"] == identity
    assert deployment.metadata.annotations[REVISION] == "1"
    assert deployment.status.phase == "Running"
    status = deployment.status
    assert (status.replicas, status.available_replicas, status.up_to_date_replicas) == (3, 3, 3)
    assert reported(deployment, "Available")[:2] == ("True", "Available")
    assert reported(deployment, "RollingOut")[:2] == ("False", "NotRollingOut")
    assert [owner.kind for owner in deployment.metadata.owner_references] == ["Cluster"]


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "least"),
    [(1, 0, 4, 3), (0, 1, 3, 2), (0, 0, 3, 2), (2, 1, 5, 2), ("100%", 0, 6, 3)],
)
def test_a_new_version_replaces_all_machines_within_the_limits(
    surge: Any, unavailable: Any, most: int, least: int
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    world, deployment = scene(strategy=strategy)
    world.outside.most, world.outside.least_available = 0, 3
    upgrade(world, deployment)

    world.settle(*BOTH, horizon_s=120)

    assert {machine.spec.version for machine in world.list(MACHINE)} == {"v1.35.0"}
    assert len(world.list(MACHINE)) == 3
    assert world.outside.most <= most
    assert world.outside.least_available >= least
    assert [machine_set.metadata.annotations[REVISION] for machine_set in sets(world)] == ["2"]
    assert again(world, deployment).metadata.annotations[REVISION] == "2"


def test_a_crash_at_any_point_of_a_rollout_ends_the_same() -> None:
    world = capi_world()
    add_cluster(world)
    deployment = add_machine_deployment(world, 1)
    world.settle(*BOTH, horizon_s=30)
    upgrade(world, deployment)

    end = crash_check(BOTH, world, horizon_s=120, ignore=("metadata.annotations.ironbell.dev/machines-made",))

    assert [machine.spec.version for machine in end.list(MACHINE)] == ["v1.35.0"]
    assert len(end.list(MACHINE_SET)) == 1


IN_PLACE = {
    "labels": {"metadata": {"labels": {"tier": "gold"}}},
    "annotations": {"metadata": {"annotations": {"note": "x"}}},
    "taints": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule", "propagation": "Always"}]}},
    "timeouts": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 60, "nodeVolumeDetachTimeoutSeconds": 60}}},
    "readiness gates": {"spec": {"readinessGates": [{"conditionType": "Extra"}]}},
    "min ready": {"spec": {"minReadySeconds": 3}},
}


@pytest.mark.parametrize("change", IN_PLACE.values(), ids=IN_PLACE)
def test_fields_that_change_in_place_create_no_machine_set(change: dict[str, Any]) -> None:
    world, deployment = scene(2)
    previous = [machine.metadata.name for machine in world.list(MACHINE)]
    world.change(MACHINE_DEPLOYMENT, deployment, {"spec": {"template": change}})

    world.settle(*BOTH, horizon_s=30)

    assert len(sets(world)) == 1
    assert [machine.metadata.name for machine in world.list(MACHINE)] == previous
    machine = world.list(MACHINE)[0]
    if "spec" in change:
        template_spec = sets(world)[0].spec.template.spec
        for name in ("taints", "deletion", "readiness_gates", "min_ready_seconds"):
            assert getattr(machine.spec, name) == getattr(template_spec, name)
    else:
        assert machine.metadata.labels.get("tier") == "gold" or machine.metadata.annotations.get("note") == "x"


ROLLS_OUT = {
    "version": {"spec": {"version": "v1.35.0"}},
    "infrastructure": {"spec": {"infrastructureRef": reference(INFRA_TEMPLATE, "bigger")}},
    "bootstrap": {"spec": {"bootstrap": {"configRef": {"name": "other"}}}},
    "failure domain": {"spec": {"failureDomain": "rack-2"}},
}


@pytest.mark.parametrize("change", ROLLS_OUT.values(), ids=ROLLS_OUT)
def test_other_fields_create_a_machine_set(change: dict[str, Any]) -> None:
    world, deployment = scene(1)
    for kind, name in ((INFRA_TEMPLATE, "bigger"), (CONFIG_TEMPLATE, "other")):
        template(world, kind, name)
    world.change(MACHINE_DEPLOYMENT, deployment, {"spec": {"template": change}})

    world.decide(DEPLOYMENTS, deployment.key)
    world.settle(DEPLOYMENTS)

    assert len(world.list(MACHINE_SET)) == 2


def test_a_rollback_takes_the_old_machine_set_again() -> None:
    world, deployment = scene(2)
    old = sets(world)[0].metadata.name
    world.outside.comes_up = False
    upgrade(world, deployment)
    world.settle(*BOTH)
    assert len(sets(world)) == 2
    upgrade(world, deployment, "v1.34.0")
    world.outside.comes_up = True

    world.settle(*BOTH, horizon_s=60)

    assert [machine_set.metadata.name for machine_set in sets(world)] == [old]
    annotations = sets(world)[0].metadata.annotations
    assert annotations[REVISION] == "3"
    assert annotations["machinedeployment.clusters.x-k8s.io/revision-history"] == "1"


def test_on_delete_replaces_only_machines_that_a_user_deletes() -> None:
    world, deployment = scene(2, strategy={"type": "OnDelete"})
    upgrade(world, deployment)
    world.settle(*BOTH, horizon_s=30)
    assert {machine.spec.version for machine in world.list(MACHINE)} == {"v1.34.0"}
    assert sets(world)[0].metadata.annotations["cluster.x-k8s.io/disable-machine-create"] == "true"

    world.remove(MACHINE, world.list(MACHINE)[0])
    world.settle(*BOTH, horizon_s=30)

    assert sorted(machine.spec.version for machine in world.list(MACHINE)) == ["v1.34.0", "v1.35.0"]


def test_rollout_after_starts_when_its_time_has_come() -> None:
    world, deployment = scene(1)
    after = rfc3339(world.now().replace(microsecond=0) + timedelta(hours=1))
    world.change(MACHINE_DEPLOYMENT, deployment, {"spec": {"rollout": {"after": after}}})
    previous = [machine.metadata.name for machine in world.list(MACHINE)]
    world.settle(*BOTH, horizon_s=3000)
    assert [machine.metadata.name for machine in world.list(MACHINE)] == previous

    world.settle(*BOTH, horizon_s=4000)

    assert [machine.metadata.name for machine in world.list(MACHINE)] != previous
    assert len(sets(world)) == 1


def test_a_paused_rollout_follows_the_size_only() -> None:
    world, deployment = scene(2)
    upgrade(world, deployment, paused=True, replicas=4)

    world.settle(*BOTH, horizon_s=60)

    assert len(sets(world)) == 1
    assert [machine.spec.version for machine in world.list(MACHINE)] == ["v1.34.0"] * 4


def test_a_paused_cluster_stops_everything_but_the_condition() -> None:
    world, deployment = scene(1)
    world.change(CLUSTER, world.list(CLUSTER)[0], {"spec": {"paused": True}})
    upgrade(world, deployment, replicas=5)
    previous = {machine_set.metadata.name: machine_set.spec for machine_set in world.list(MACHINE_SET)}

    world.settle(*BOTH, horizon_s=60)

    assert {item.metadata.name: item.spec for item in world.list(MACHINE_SET)} == previous
    assert reported(again(world, deployment), "Paused")[2] == "Cluster spec.paused is set to true"


def test_an_unavailable_old_machine_does_not_stop_a_rollout() -> None:
    world, deployment = scene(3)
    come_up(world, world.list(MACHINE)[0], available=False)
    upgrade(world, deployment)

    world.settle(*BOTH, horizon_s=200)

    assert [machine.spec.version for machine in world.list(MACHINE)] == ["v1.35.0"] * 3


def test_a_missing_template_is_reported() -> None:
    world, deployment = scene(1)
    change = {"spec": {"infrastructureRef": reference(INFRA_TEMPLATE, "absent")}}
    world.change(MACHINE_DEPLOYMENT, deployment, {"spec": {"template": change}})

    world.settle(*BOTH)

    assert len(sets(world)) == 1
    expected = "Scaling up would be blocked because FakeMachineTemplate does not exist"
    assert reported(again(world, deployment), "ScalingUp") == ("False", "NotScalingUp", expected)


def test_orphaned_machine_sets_are_adopted() -> None:
    world = capi_world()
    add_cluster(world)
    labels = machine_template()["metadata"]["labels"]
    spec = {"clusterName": "prod", "replicas": 1, "selector": {"matchLabels": labels}, "template": machine_template()}
    world.add(MACHINE_SET, {"metadata": {"name": "loose", "namespace": NAMESPACE, "labels": labels}, "spec": spec})
    add_machine_deployment(world, 1)

    world.settle(DEPLOYMENTS)

    assert [machine_set.metadata.name for machine_set in world.list(MACHINE_SET)] == ["loose"]
    assert world.list(MACHINE_SET)[0].metadata.owner_references[0].name == "md"
    assert world.list(MACHINE_SET)[0].metadata.labels["cluster.x-k8s.io/deployment-name"] == "md"


def test_a_deleted_machine_deployment_takes_its_machine_sets_along_first() -> None:
    world, deployment = scene(2)
    world.outside.deletes_at_once = False
    world.remove(MACHINE_DEPLOYMENT, deployment)
    world.settle(*BOTH)
    assert reported(again(world, deployment), "Deleting")[2] == "Deleting 2 Machines"
    assert again(world, deployment).status.phase == "ScalingDown"

    world.outside.deletes_at_once = True
    world.settle(*BOTH)

    assert world.list(MACHINE) == world.list(MACHINE_SET) == world.list(MACHINE_DEPLOYMENT) == []


def test_nothing_is_written_when_nothing_changes() -> None:
    world, _ = scene(2)
    writes = world.api.writes

    world.clock.advance(3600)
    world.settle(*BOTH, horizon_s=60)

    assert world.api.writes == writes


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_meanwhile_a_rollout_ends(seed: int) -> None:
    dice = random.Random(seed)
    surge, unavailable = dice.choice([(1, 0), (0, 1), (2, 2), ("50%", "25%")])
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    world, deployment = scene(dice.randint(1, 4), strategy=strategy)
    for number in range(6):
        act = dice.choice(["scale", "upgrade", "roll back", "delete", "relabel", "slow"])
        world.outside.comes_up = act != "slow"
        if act == "scale":
            world.change(MACHINE_DEPLOYMENT, again(world, deployment), {"spec": {"replicas": dice.randint(0, 5)}})
        elif act in ("upgrade", "roll back"):
            upgrade(world, deployment, f"v1.3{5 + number}.0" if act == "upgrade" else "v1.34.0")
        elif act == "delete" and world.list(MACHINE):
            world.remove(MACHINE, dice.choice(world.list(MACHINE)))
        elif act == "relabel":
            labels = {"spec": {"template": {"metadata": {"labels": {"tier": str(number)}}}}}
            world.change(MACHINE_DEPLOYMENT, again(world, deployment), labels)
        world.settle(*BOTH, horizon_s=dice.choice([0, 0, 60]), max_rounds=400)
    world.outside.comes_up = True
    world.settle(*BOTH, horizon_s=300, max_rounds=600)

    desired = again(world, deployment)
    machines = world.list(MACHINE)
    assert len(machines) == desired.spec.replicas
    assert {machine.spec.version for machine in machines} <= {desired.spec.template.spec.version}
    assert all(desired.spec.template.metadata.labels.items() <= m.metadata.labels.items() for m in machines)
    assert len(world.list(MACHINE_SET)) == 1
    assert desired.status.phase == "Running"

"""MachineSets: they make, adopt, replace and delete Machines, and hand on what may change in place."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.client import Invalid
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_SET
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.kind import Kind
from ironbell.api.meta import Condition, to_builtin
from ironbell.contract.conditions.legacy import find_legacy, legacy_conditions
from ironbell.controllers.capi.machineset.reconciler import MachineSetReconciler
from ironbell.kube.conditions import find_condition
from ironbell.kube.testing.crash import crash_check
from ironbell.kube.testing.world import World
from support.capi.world import (
    CONFIG,
    CONFIG_TEMPLATE,
    INFRA_MACHINE,
    INFRA_TEMPLATE,
    NAMESPACE,
    PLANE,
    add_cluster,
    add_machine_set,
    capi_world,
    come_up,
    condition,
    machine_template,
    reference,
    reported,
)

SETS = MachineSetReconciler()


def scene(replicas: int = 3, **more: Any) -> tuple[World, MachineSet]:
    world = capi_world()
    add_cluster(world)
    return world, add_machine_set(world, replicas, **more)


def again(world: World, obj: MachineSet) -> MachineSet:
    return world.require(MACHINE_SET, *obj.key)


def names(world: World) -> list[str]:
    return [machine.metadata.name for machine in world.list(MACHINE)]


def test_machines_are_created_with_all_their_referred_objects() -> None:
    world, machine_set = scene()

    world.settle(SETS, horizon_s=30)

    machines = world.list(MACHINE)
    assert len(machines) == 3
    for machine in machines:
        name = machine.metadata.name
        assert name.startswith("ms-")
        assert len(name) == len("ms-") + 5
        assert machine.metadata.finalizers == ["machine.cluster.x-k8s.io"]
        assert machine.metadata.labels["cluster.x-k8s.io/set-name"] == "ms"
        assert machine.metadata.labels["pool"] == "a"
        owner = machine.metadata.owner_references[0]
        assert (owner.kind, owner.name, owner.controller) == ("MachineSet", "ms", True)
        assert machine.spec.infrastructure_ref.kind == "FakeMachine"
        assert machine.spec.infrastructure_ref.name == machine.spec.bootstrap.config_ref.name == name
        clone = world.require(INFRA_MACHINE, NAMESPACE, name)
        assert clone.body["spec"] == {"size": "workers"}
        assert clone.metadata.annotations["cluster.x-k8s.io/cloned-from-name"] == "workers"
        assert [(o.kind, o.controller) for o in clone.metadata.owner_references] == [("MachineSet", None)]
        assert world.get(CONFIG, NAMESPACE, name) is not None
    status = again(world, machine_set).status
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (3, 3, 3)
    assert [(v.version, v.replicas) for v in status.versions] == [("v1.34.0", 3)]
    assert status.selector == "pool=a"
    assert status.observed_generation == again(world, machine_set).metadata.generation
    assert reported(again(world, machine_set), "MachinesReady")[:2] == ("True", "Ready")
    template = world.require(INFRA_TEMPLATE, NAMESPACE, "workers")
    assert [owner.kind for owner in template.metadata.owner_references] == ["Cluster"]
    owners = again(world, machine_set).metadata.owner_references
    assert [(owner.kind, owner.controller) for owner in owners] == [("Cluster", None)]


def test_a_crash_at_any_point_creates_no_machine_twice() -> None:
    world, _ = scene(2)

    end = crash_check(SETS, world, horizon_s=30)

    assert len(names(end)) == len(end.list(INFRA_MACHINE)) == len(end.list(CONFIG)) == 2


def test_no_name_is_given_twice() -> None:
    world, machine_set = scene(1)
    seen: list[str] = []
    for _ in range(5):
        world.settle(SETS)
        seen += names(world)
        world.remove(MACHINE, world.list(MACHINE)[0])
        world.settle(SETS)
    assert len(set(seen)) == 5
    assert again(world, machine_set).metadata.annotations["ironbell.dev/machines-made"] == "6"


def test_the_objects_of_an_interrupted_creation_are_deleted_if_unneeded() -> None:
    world, machine_set = scene(1)
    world.settle(SETS)
    decision = None
    world.change(MACHINE_SET, machine_set, {"spec": {"replicas": 2}})
    decision = world.decide(SETS, machine_set.key)
    assert decision is not None
    world.act(SETS, decision.actions[:3])
    assert len(world.list(INFRA_MACHINE)) == 2
    world.change(MACHINE_SET, again(world, machine_set), {"spec": {"replicas": 1}})

    world.settle(SETS)

    assert len(world.list(INFRA_MACHINE)) == len(world.list(CONFIG)) == len(names(world)) == 1


@pytest.mark.parametrize("missing", [INFRA_TEMPLATE, CONFIG_TEMPLATE])
def test_a_missing_template_is_reported_and_waited_for(missing: Any) -> None:
    world, machine_set = scene()
    world.remove(missing, world.require(missing, NAMESPACE, "workers"))

    world.settle(SETS)

    assert names(world) == []
    assert reported(again(world, machine_set), "ScalingUp") == (
        "True",
        "ScalingUp",
        f"Scaling up from 0 to 3 replicas is blocked because:\n* {missing.kind} does not exist",
    )


def test_machines_without_controller_are_adopted() -> None:
    world, machine_set = scene(1)
    body = {"metadata": {"name": "loose", "namespace": NAMESPACE, "labels": machine_template()["metadata"]["labels"]}}
    world.add(MACHINE, {**body, "spec": machine_template()["spec"]})

    world.settle(SETS)

    assert names(world) == ["loose"]
    assert world.list(MACHINE)[0].metadata.owner_references[0].uid == machine_set.metadata.uid
    assert [(e.reason, e.message) for e in world.emitted] == [("SuccessfulAdopt", 'Adopted Machine "loose"')]


def test_machines_of_others_are_left_alone() -> None:
    world, _ = scene(1)
    owner = {"apiVersion": "x/v1", "kind": "Other", "name": "o", "uid": "u", "controller": True}
    labels = machine_template()["metadata"]["labels"]
    metadata = {"name": "theirs", "namespace": NAMESPACE, "labels": labels, "ownerReferences": [owner]}
    world.add(MACHINE, {"metadata": metadata, "spec": machine_template()["spec"]})

    world.settle(SETS)

    assert len(names(world)) == 2


def settled(replicas: int = 4, **more: Any) -> tuple[World, MachineSet, list[Machine]]:
    world, machine_set = scene(replicas, **more)
    world.settle(SETS, horizon_s=30)
    return world, again(world, machine_set), list(world.list(MACHINE))


def test_marked_and_unhealthy_machines_are_deleted_first() -> None:
    world, machine_set, machines = settled()
    world.change(MACHINE, machines[2], {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}})
    come_up(world, machines[3], available=False)
    world.change(MACHINE_SET, machine_set, {"spec": {"replicas": 2}})

    world.settle(SETS)

    assert names(world) == [machines[0].metadata.name, machines[1].metadata.name]


@pytest.mark.parametrize("order", ["Random", "Oldest", "Newest"])
def test_a_machine_with_an_unknown_node_is_deleted_before_healthy_machines(order: str) -> None:
    world, machine_set = scene(3, deletion={"order": order})
    world.settle(SETS, horizon_s=30)
    silent = world.list(MACHINE)[1]
    world.set_status(MACHINE, silent, {"conditions": [condition(world, "NodeHealthy", False) | {"status": "Unknown"}]})
    world.change(MACHINE_SET, again(world, machine_set), {"spec": {"replicas": 2}})

    world.settle(SETS)

    assert silent.metadata.name not in names(world)


@pytest.mark.parametrize(("order", "first"), [("Oldest", True), ("Newest", False)])
def test_the_order_of_deletion(order: str, first: bool) -> None:
    world, machine_set = scene(1, deletion={"order": order})
    world.settle(SETS, horizon_s=30)
    oldest = names(world)[0]
    world.clock.advance(86400)
    world.change(MACHINE_SET, again(world, machine_set), {"spec": {"replicas": 2}})
    world.settle(SETS, horizon_s=30)
    world.change(MACHINE_SET, again(world, machine_set), {"spec": {"replicas": 1}})

    world.settle(SETS)

    assert (names(world) != [oldest]) is first


def test_a_change_in_place_reaches_everything_and_creates_no_machine() -> None:
    world, machine_set, machines = settled(2)
    changed = machine_template()
    changed["metadata"] = {"labels": {"pool": "a", "tier": "gold"}, "annotations": {"note": "x"}}
    changed["spec"] |= {
        "deletion": {"nodeDrainTimeoutSeconds": 600},
        "minReadySeconds": 5,
        "taints": [{"key": "a", "effect": "NoSchedule", "propagation": "Always"}],
    }
    world.change(MACHINE_SET, machine_set, {"spec": {"template": changed}})
    world.settle(SETS)

    assert names(world) == [machine.metadata.name for machine in machines]
    for machine in world.list(MACHINE):
        assert machine.metadata.labels["tier"] == "gold"
        assert machine.spec.deletion.node_drain_timeout_seconds == 600
        assert machine.spec.min_ready_seconds == 5
        assert [taint.key for taint in machine.spec.taints] == ["a"]
        for kind in (INFRA_MACHINE, CONFIG):
            clone = world.require(kind, NAMESPACE, machine.metadata.name)
            assert clone.metadata.labels["tier"] == "gold"
            assert clone.metadata.annotations["note"] == "x"

    world.change(
        MACHINE_SET,
        again(world, machine_set),
        {"spec": {"template": {"metadata": {"labels": {"tier": None}}, "spec": {"deletion": None, "taints": None}}}},
    )
    world.settle(SETS)

    for machine in world.list(MACHINE):
        assert "tier" not in machine.metadata.labels
        assert "tier" not in world.require(INFRA_MACHINE, NAMESPACE, machine.metadata.name).metadata.labels
        assert machine.spec.deletion.node_drain_timeout_seconds is None
        assert machine.spec.taints == []


def test_a_machine_that_waits_for_its_deletion_gets_other_time_limits() -> None:
    world, machine_set, (machine, *_) = settled(2)
    world.outside.deletes_at_once = False
    world.remove(MACHINE, machine)
    limits = {"nodeDrainTimeoutSeconds": 60, "nodeVolumeDetachTimeoutSeconds": 61, "nodeDeletionTimeoutSeconds": 62}
    world.change(MACHINE_SET, machine_set, {"spec": {"template": {"spec": {"deletion": limits}}}})
    world.settle(SETS)
    deleting = world.require(MACHINE, *machine.key)
    assert deleting.metadata.deletion_timestamp is not None
    assert to_builtin(deleting.spec.deletion) == limits
    world.change(MACHINE, deleting, {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 1}}})
    world.settle(SETS)
    assert to_builtin(world.require(MACHINE, *machine.key).spec.deletion) == limits


def test_a_version_does_not_change_in_place() -> None:
    world, machine_set, _ = settled(1)
    world.change(MACHINE_SET, machine_set, {"spec": {"template": {"spec": {"version": "v1.35.0"}}}})

    world.settle(SETS)

    assert world.list(MACHINE)[0].spec.version == "v1.34.0"


def test_nothing_is_written_when_nothing_changes() -> None:
    world, _machine_set, _ = settled(3)
    writes = world.api.writes

    world.clock.advance(3600)
    world.settle(SETS, horizon_s=60)

    assert world.api.writes == writes


def test_an_unhealthy_machine_is_replaced() -> None:
    world, _, machines = settled(2)
    unhealthy = [condition(world, "HealthCheckSucceeded", False), condition(world, "OwnerRemediated", False)]
    world.set_status(MACHINE, machines[0], {"conditions": unhealthy})

    world.settle(SETS)

    assert machines[0].metadata.name not in names(world)
    assert len(names(world)) == 2


def test_a_machine_that_recovered_is_not_replaced() -> None:
    world, _, machines = settled(1)
    healed = [condition(world, "HealthCheckSucceeded", True), condition(world, "OwnerRemediated", False)]
    world.set_status(MACHINE, machines[0], {"conditions": healed})

    world.settle(SETS)

    assert names(world) == [machines[0].metadata.name]
    assert [c.type for c in world.list(MACHINE)[0].status.conditions] == ["HealthCheckSucceeded"]


def add_plane(world: World, version: str, running: str | None) -> None:
    cluster = world.list(CLUSTER)[0]
    world.change(CLUSTER, cluster, {"spec": {"controlPlaneRef": reference(PLANE, "plane")}})
    status = {"versions": [{"version": running, "replicas": 1}]} if running else {}
    world.add(
        PLANE, {"metadata": {"name": "plane", "namespace": NAMESPACE}, "spec": {"version": version}, "status": status}
    )


@pytest.mark.parametrize(
    ("version", "running", "reason"),
    [
        ("v1.34.0", None, 'is provisioning ("ControlPlaneIsStable" preflight check failed)'),
        ("v1.34.1", "v1.34.0", 'is upgrading ("ControlPlaneIsStable" preflight check failed)'),
        ("v1.33.0", "v1.33.0", 'higher than ControlPlane version ("KubernetesVersionSkew" preflight check failed)'),
        ("v1.38.0", "v1.38.0", 'than the ControlPlane version ("KubernetesVersionSkew" preflight check failed)'),
    ],
)
def test_machines_wait_for_the_control_plane(version: str, running: str | None, reason: str) -> None:
    world, machine_set = scene(1)
    add_plane(world, version, running)

    world.settle(SETS)

    assert names(world) == []
    assert reported(again(world, machine_set), "ScalingUp")[2].endswith(reason)

    skip = {"machineset.cluster.x-k8s.io/skip-preflight-checks": "All"}
    world.change(MACHINE_SET, again(world, machine_set), {"metadata": {"annotations": skip}})
    world.settle(SETS)
    assert len(names(world)) == 1


def test_machines_come_when_the_control_plane_is_stable() -> None:
    world, _ = scene(1)
    add_plane(world, "v1.36.0", "v1.36.0")

    world.settle(SETS)

    assert len(names(world)) == 1


def test_a_deleted_machine_set_takes_its_machines_along_first() -> None:
    world, machine_set, _ = settled(2)
    world.outside.deletes_at_once = False
    world.remove(MACHINE_SET, machine_set)
    world.settle(SETS)
    assert reported(again(world, machine_set), "Deleting") == ("True", "Deleting", "Deleting 2 Machines")
    assert all(machine.metadata.deletion_timestamp for machine in world.list(MACHINE))

    world.outside.deletes_at_once = True
    world.settle(SETS)

    assert world.list(MACHINE) == world.list(MACHINE_SET) == []


def test_a_machine_that_takes_long_to_go_is_named() -> None:
    world, machine_set, machines = settled(1)
    world.outside.deletes_at_once = False
    world.change(MACHINE_SET, machine_set, {"spec": {"replicas": 0}})
    world.settle(SETS)
    assert reported(again(world, machine_set), "ScalingDown")[2] == "Scaling down from 1 to 0 replicas"

    world.settle(SETS, horizon_s=1000)

    name = machines[0].metadata.name
    expected = f"Scaling down from 1 to 0 replicas\n* Machine {name} is in deletion since more than 15m"
    assert reported(again(world, machine_set), "ScalingDown")[2] == expected


def test_a_paused_machine_set_gets_no_write_but_its_condition() -> None:
    world, machine_set, machines = settled(2)
    world.change(
        MACHINE_SET,
        machine_set,
        {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}, "spec": {"replicas": 5}},
    )
    previous = {machine.metadata.name: machine.metadata.resource_version for machine in machines}

    world.settle(SETS, horizon_s=60)

    after = {machine.metadata.name: machine.metadata.resource_version for machine in world.list(MACHINE)}
    assert after == previous
    paused = reported(again(world, machine_set), "Paused")
    assert paused == ("True", "Paused", "MachineSet has the cluster.x-k8s.io/paused annotation")


def test_machines_are_spread_over_failure_domains_on_request() -> None:
    world = capi_world()
    cluster = add_cluster(world)
    domains = [{"name": name} for name in ("rack-1", "rack-2", "rack-3")]
    world.set_status(CLUSTER, cluster, {"failureDomains": domains})
    machine_set = add_machine_set(world, 6, annotations={"ironbell.dev/spread-failure-domains": "true"})
    world.settle(SETS, horizon_s=30)
    assert (
        sorted(m.spec.failure_domain for m in world.list(MACHINE)) == ["rack-1"] * 2 + ["rack-2"] * 2 + ["rack-3"] * 2
    )

    world.change(MACHINE_SET, again(world, machine_set), {"spec": {"replicas": 3}})
    world.settle(SETS, horizon_s=30)

    assert sorted(m.spec.failure_domain for m in world.list(MACHINE)) == ["rack-1", "rack-2", "rack-3"]


def test_names_follow_a_naming_template() -> None:
    world, _ = scene(1, machineNaming={"template": "{{ .cluster.name }}-{{ .machineSet.name }}-node-{{ .random }}"})

    world.settle(SETS)

    assert names(world)[0].startswith("prod-ms-node-")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (CONFIG, "BootstrapTemplateCloningFailed"),
        (INFRA_MACHINE, "InfrastructureTemplateCloningFailed"),
        (MACHINE, "MachineCreationFailed"),
    ],
)
def test_a_failed_creation_is_reported_until_it_succeeds(kind: Kind[Any], reason: str) -> None:
    world, machine_set = scene(1)
    world.api.create_errors[kind.collection] = Invalid("admission webhook denied it")
    world.settle(SETS, horizon_s=30)
    up = scaling_up(world, machine_set)
    lines = up.message.split("\n")
    assert lines[0] == "Scaling up from 0 to 1 replicas is blocked because:"
    assert lines[1].startswith(f"* {kind.kind} ms-")
    assert lines[1].endswith("could not be created: admission webhook denied it")
    assert legacy(again(world, machine_set), "MachinesCreated") == (
        "False", "Error", reason, "admission webhook denied it"
    )  # fmt: skip
    version = world.api.version
    world.settle(SETS)
    assert world.api.version == version
    del world.api.create_errors[kind.collection]
    world.settle(SETS, horizon_s=30)
    assert len(names(world)) == 1
    assert scaling_up(world, machine_set).message == ""
    assert legacy(again(world, machine_set), "MachinesCreated") == ("True", "", "", "")


def test_no_machine_is_created_while_the_cluster_is_being_deleted() -> None:
    world, machine_set, _ = settled(1)
    cluster = world.require(CLUSTER, NAMESPACE, "prod")
    cluster = world.change(CLUSTER, cluster, {"metadata": {"finalizers": ["cluster.cluster.x-k8s.io"]}})
    world.remove(CLUSTER, cluster)
    world.change(MACHINE_SET, again(world, machine_set), {"spec": {"replicas": 3}})
    world.settle(SETS, horizon_s=30)
    assert len(names(world)) == 1
    assert scaling_up(world, machine_set).message == (
        "Scaling up from 1 to 3 replicas is blocked because:\n"
        "* Cluster default/prod is being deleted: no Machine is created any more"
    )


def test_a_naming_template_that_renders_no_name_is_reported() -> None:
    world, machine_set = scene(1, machineNaming={"template": "{{ .nothing }}-{{ .random }}"})
    world.settle(SETS, horizon_s=30)
    assert "spec.machineNaming.template" in scaling_up(world, machine_set).message
    condition_ = legacy(again(world, machine_set), "MachinesCreated")
    assert condition_[:3] == ("False", "Error", "MachineCreationFailed")


def legacy(machine_set: MachineSet, kind: str) -> tuple[str, str, str, str]:
    result = find_legacy(legacy_conditions(machine_set), kind)
    assert result is not None
    return result.status, result.severity, result.reason, result.message


def scaling_up(world: World, machine_set: MachineSet) -> Condition:
    result = find_condition(again(world, machine_set).status.conditions, "ScalingUp")
    assert result is not None
    return result

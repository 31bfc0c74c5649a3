"""A control plane from its first Machine to its end, in a model of a small cluster."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.client import Invalid, Unavailable
from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.cluster.names import ANNOTATION_REMEDIATION_FOR, ANNOTATION_REMEDIATION_IN_PROGRESS
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE, KubeadmControlPlane
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.kind import Kind
from ironbell.api.meta import to_builtin
from ironbell.contract.clusters.secrets import Purpose, secret_name
from ironbell.contract.conditions.legacy import find_legacy, legacy_conditions
from ironbell.controllers.kubeadm.controlplane.machines.configspec import is_join
from ironbell.controllers.kubeadm.controlplane.machines.deletion import next_step
from ironbell.controllers.kubeadm.controlplane.observed import Observed
from ironbell.controllers.kubeadm.controlplane.reconciler import ControlPlaneReconciler
from ironbell.controllers.kubeadm.controlplane.workload.certificates import CREATE_CERTIFICATES
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Delete
from ironbell.kube.testing.crash import crash_check
from ironbell.kube.testing.world import NotSettledError, World
from support.kubeadm.controlplane import (
    INFRA,
    INFRA_GROUP,
    NS,
    TEMPLATE,
    change,
    control_plane,
    machines,
    plane_world,
    run,
)

UNREPEATABLE = ("metadata.annotations", "status.conditions", "status.lastRemediation")


def statuses(kcp: KubeadmControlPlane) -> dict[str, str]:
    return {condition.type: condition.status for condition in kcp.status.conditions}


def assert_whole(world: World, replicas: int) -> KubeadmControlPlane:
    kcp = control_plane(world)
    assert [error.message for error in world.errors] == []
    assert len(machines(world)) == replicas, world.outside.log
    assert sorted(world.outside.members) == sorted(machine.metadata.name for machine in machines(world))
    assert sorted(world.outside.alive) == sorted(world.outside.members)
    expected = {"Available": "True", "EtcdClusterHealthy": "True", "ControlPlaneComponentsHealthy": "True"}
    assert expected.items() <= statuses(kcp).items(), kcp.status.conditions
    assert statuses(kcp)["ScalingUp"] == statuses(kcp)["ScalingDown"] == statuses(kcp)["RollingOut"] == "False"
    assert (kcp.status.replicas, kcp.status.ready_replicas, kcp.status.up_to_date_replicas) == (replicas,) * 3
    return kcp


def test_certificates_that_are_being_made_are_no_failure_and_those_that_were_not_made_are() -> None:
    world = plane_world(1)

    def legacy() -> tuple[str, str] | None:
        found = find_legacy(legacy_conditions(control_plane(world)), "CertificatesAvailable")
        return None if found is None else (found.status, found.reason or "")

    def broken(_world: World, _arguments: object) -> list[Any]:
        raise Unavailable("the disk is full")

    works = world.performers[CREATE_CERTIFICATES]
    world.performers[CREATE_CERTIFICATES] = broken
    with pytest.raises(NotSettledError):
        world.settle(ControlPlaneReconciler(), max_rounds=1)
    assert statuses(control_plane(world))["CertificatesAvailable"] == "Unknown"
    assert legacy() is None
    with pytest.raises(NotSettledError):
        world.settle(ControlPlaneReconciler(), max_rounds=2)
    assert legacy() == ("False", "CertificatesGenerationFailed")
    world.performers[CREATE_CERTIFICATES] = works
    world.errors.clear()
    run(world)
    assert legacy() == ("True", "")
    assert_whole(world, 1)


@pytest.mark.parametrize("replicas", [1, 3, 5])
def test_a_control_plane_comes_up_one_machine_at_a_time(replicas: int) -> None:
    world = plane_world(replicas)
    run(world)
    kcp = assert_whole(world, replicas)
    assert kcp.status.initialization.control_plane_initialized is True
    assert kcp.status.observed_generation == kcp.metadata.generation
    assert [version.version for version in kcp.status.versions] == ["v1.33.0"]
    joins = [is_join(_spec(world, machine.key)) for machine in machines(world)]
    assert sorted(joins) == [False, *[True] * (replicas - 1)]


@pytest.mark.parametrize("replicas", [0, 1])
def test_no_machine_is_created_while_the_cluster_is_being_deleted(replicas: int) -> None:
    """Workers go first, which takes its time; nothing that is created in the meantime would ever be used."""
    world = plane_world(replicas)
    cluster = world.require(CLUSTER, NS, "c")
    cluster = world.change(CLUSTER, cluster, {"metadata": {"finalizers": ["cluster.cluster.x-k8s.io"]}})
    run(world)
    before = [machine.metadata.name for machine in machines(world)]
    world.remove(CLUSTER, cluster)
    change(world, replicas=3)
    run(world)
    assert [machine.metadata.name for machine in machines(world)] == before
    up = find_condition(control_plane(world).status.conditions, "ScalingUp")
    assert up is not None
    assert up.message == (
        f"Scaling up from {replicas} to 3 replicas is blocked because:\n"
        "* Cluster default/c is being deleted: no Machine is created any more"
    )


def test_no_machine_is_replaced_while_the_cluster_is_being_deleted() -> None:
    world = plane_world(1)
    cluster = world.require(CLUSTER, NS, "c")
    cluster = world.change(CLUSTER, cluster, {"metadata": {"finalizers": ["cluster.cluster.x-k8s.io"]}})
    run(world)
    before = [machine.metadata.name for machine in machines(world)]
    world.remove(CLUSTER, cluster)
    change(world, version="v1.34.0")
    run(world)
    assert [machine.metadata.name for machine in machines(world)] == before


def _spec(world: World, key: tuple[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = world.api.objects[KUBEADM_CONFIG.collection][key]["spec"]
    return found


def test_secrets_are_made_once_and_belong_to_the_control_plane() -> None:
    world = plane_world()
    run(world)
    secrets = {secret.metadata.name: secret for secret in world.list(SECRET_METADATA)}
    assert sorted(secrets) == ["c-ca", "c-etcd", "c-kubeconfig", "c-proxy", "c-sa"]
    for secret in secrets.values():
        assert [(o.kind, o.controller) for o in secret.metadata.owner_references] == [("KubeadmControlPlane", True)]
    made = [effect for effect in world.performed if "certificates" in effect.performer]
    assert len(made) == 1


def test_an_authority_lost_after_initialisation_is_never_made_anew() -> None:
    world = plane_world(3)
    run(world)
    world.remove(SECRET_METADATA, world.require(SECRET_METADATA, NS, "c-sa"))
    run(world)
    kcp = control_plane(world)
    found = next(c for c in kcp.status.conditions if c.type == "CertificatesAvailable")
    assert (found.status, found.message) == (
        "False",
        "Cluster certificate for sa is not available, please check cluster certificate secrets",
    )
    assert world.get(SECRET_METADATA, NS, "c-sa") is None
    change(world, replicas=5)
    kcp = run(world)
    assert len(machines(world)) == 3
    message = next(c.message for c in kcp.status.conditions if c.type == "ScalingUp")
    assert (
        message == "Scaling up from 3 to 5 replicas is blocked because:\n* cluster certificates are missing or unknown"
    )


@pytest.mark.parametrize("sizes", [(1, 3, 1), (3, 5, 3), (5, 1)])
def test_it_grows_and_shrinks_without_losing_quorum(sizes: tuple[int, ...]) -> None:
    world = plane_world(sizes[0])
    run(world)
    for size in sizes[1:]:
        change(world, replicas=size)
        run(world)
        assert_whole(world, size)


@pytest.mark.parametrize(("replicas", "surge"), [(1, 1), (3, 1), (3, 0), (5, 0)])
def test_an_upgrade_replaces_every_machine(replicas: int, surge: int) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}
    world = plane_world(replicas, rollout={"strategy": strategy})
    run(world)
    before = {machine.metadata.name for machine in machines(world)}
    world.outside.most = 0
    change(world, version="v1.34.1")
    run(world)
    kcp = assert_whole(world, replicas)
    assert before.isdisjoint(machine.metadata.name for machine in machines(world))
    assert {machine.spec.version for machine in machines(world)} == {"v1.34.1"}
    assert world.outside.most == replicas + surge
    assert "kubernetesVersion: v1.34.1" in world.outside.config
    assert world.outside.kube_proxy == "registry.k8s.io/kube-proxy:v1.34.1"
    assert [version.version for version in kcp.status.versions] == ["v1.34.1"]


def test_kubeadm_config_is_upgraded_before_the_first_machine_joins() -> None:
    world = plane_world(3)
    run(world)
    world.performed.clear()
    joined = len(world.outside.log)
    change(world, version="v1.34.1")
    with pytest.raises(NotSettledError):
        world.settle(ControlPlaneReconciler(), max_rounds=3)
    assert world.performed[0].performer == "kubeadm-prepare-upgrade"
    assert len(world.outside.log) == joined


def test_a_machine_that_waits_for_its_deletion_gets_other_time_limits() -> None:
    world = plane_world(3)
    run(world)
    machine = machines(world)[0]
    world.remove(MACHINE, machine)
    limits = {"nodeDrainTimeoutSeconds": 60, "nodeVolumeDetachTimeoutSeconds": 61, "nodeDeletionTimeoutSeconds": 62}
    change(world, machineTemplate={"spec": {"deletion": limits}})
    environment, world.environment = world.environment, None
    run(world, 0)
    goes = world.require(MACHINE, *machine.key)
    assert goes.metadata.deletion_timestamp is not None
    assert to_builtin(goes.spec.deletion) == limits
    world.environment = environment
    run(world)
    assert len(machines(world)) == 3


@pytest.mark.parametrize(
    "spec",
    [
        {"machineTemplate": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}},
        {"machineTemplate": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 60}}}},
        {"machineTemplate": {"spec": {"taints": [{"key": "k", "effect": "NoSchedule", "propagation": "Always"}]}}},
        {"machineTemplate": {"spec": {"readinessGates": [{"conditionType": "Mine"}]}}},
        {"kubeadmConfigSpec": {"joinConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 60}}}},
        {"rollout": {"before": {"certificatesExpiryDays": 30}}},
    ],
)
def test_what_needs_no_other_machine_is_changed_in_place(spec: dict[str, Any]) -> None:
    world = plane_world(3)
    run(world)
    before = sorted(machine.metadata.uid for machine in machines(world))
    change(world, **spec)
    run(world)
    assert sorted(machine.metadata.uid for machine in machines(world)) == before
    template = spec.get("machineTemplate", {})
    for machine in machines(world):
        for part in (machine, world.require(INFRA, *machine.key), world.require(KUBEADM_CONFIG, *machine.key)):
            assert template.get("metadata", {}).get("labels", {}).items() <= part.metadata.labels.items()
            assert template.get("metadata", {}).get("annotations", {}).items() <= part.metadata.annotations.items()
        wanted = template.get("spec", {})
        if "deletion" in wanted:
            assert machine.spec.deletion.node_drain_timeout_seconds == 60
        if "taints" in wanted:
            assert [taint.key for taint in machine.spec.taints] == ["k"]
        if "readinessGates" in wanted:
            assert [gate.condition_type for gate in machine.spec.readiness_gates][-2:] == ["EtcdMemberHealthy", "Mine"]


def test_what_the_template_has_no_more_is_taken_away() -> None:
    world = plane_world()
    run(world)
    change(world, machineTemplate={"metadata": {"labels": {"a": "b"}}})
    run(world)
    machine = machines(world)[0]
    world.change(MACHINE, machine, {"metadata": {"labels": {"mine": "x"}}})
    change(world, machineTemplate={"metadata": {"labels": {"a": None}}})
    run(world)
    for part in (machines(world)[0], world.require(INFRA, *machine.key)):
        assert "a" not in part.metadata.labels
    assert machines(world)[0].metadata.labels["mine"] == "x"


@pytest.mark.parametrize(
    "spec",
    [
        {"kubeadmConfigSpec": {"files": [{"path": "/a", "content": "b"}]}},
        {"machineTemplate": {"spec": {"infrastructureRef": {"name": "u"}}}},
        {"rollout": {"after": "2026-01-02T00:00:00Z"}},
    ],
)
def test_what_makes_another_host_rolls_out(spec: dict[str, Any]) -> None:
    world = plane_world(3)
    world.add(TEMPLATE, {"metadata": {"name": "u", "namespace": NS}, "spec": {"template": {"spec": {"a": 2}}}})
    run(world)
    before = {machine.metadata.uid for machine in machines(world)}
    change(world, **spec)
    if "rollout" in spec:
        run(world, 600)
        assert {machine.metadata.uid for machine in machines(world)} == before
        world.clock.advance(24 * 3600)
    run(world)
    assert_whole(world, 3)
    assert before.isdisjoint(machine.metadata.uid for machine in machines(world))


def test_machines_are_spread_over_failure_domains() -> None:
    world = plane_world(5)
    cluster = world.list(CLUSTER)[0]
    domains = [{"name": name, "controlPlane": name != "d"} for name in "abcd"]
    world.set_status(CLUSTER, cluster, {"failureDomains": domains})
    run(world)
    placed = sorted(machine.spec.failure_domain for machine in machines(world))
    assert {placed.count(name) for name in "abc"} == {1, 2}
    change(world, replicas=3)
    run(world)
    assert sorted(machine.spec.failure_domain for machine in machines(world)) == ["a", "b", "c"]


def test_a_machine_with_the_delete_annotation_goes_first() -> None:
    world = plane_world(3)
    run(world)
    doomed = machines(world)[2]
    world.change(MACHINE, doomed, {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}})
    change(world, replicas=1)
    run(world)
    assert f"removed {doomed.metadata.name}" in world.outside.log
    first = next(entry for entry in world.outside.log if entry.startswith("removed"))
    assert first == f"removed {doomed.metadata.name}"


@pytest.mark.parametrize("version", ["v1.33.0", "v1.33.1"])
def test_a_machine_that_is_no_node_yet_goes_before_one_that_is(version: str) -> None:
    """Where servers are lacking it may never become one, and nothing else can go while it is awaited."""
    world = plane_world(1)
    run(world)
    change(world, replicas=3)
    while len(machines(world)) < 3:
        with pytest.raises(NotSettledError):
            world.settle(ControlPlaneReconciler(), max_rounds=1)
    nodes = {machine.metadata.name for machine in machines(world) if machine.status.node_ref.name}
    (waiting,) = {machine.metadata.name for machine in machines(world)} - nodes
    world.outside.stuck.add(waiting)
    run(world)
    assert len(machines(world)) == 3
    change(world, replicas=1, version=version)
    run(world)
    assert_whole(world, 1)
    assert waiting not in {machine.metadata.name for machine in machines(world)}


@pytest.mark.parametrize(("replicas", "dead"), [(3, 1), (5, 1), (5, 2)])
def test_dead_machines_are_replaced_while_there_is_a_quorum(replicas: int, dead: int) -> None:
    world = plane_world(replicas)
    run(world)
    world.outside.health_checks = True
    victims = [machine.metadata.name for machine in machines(world)][:dead]
    for name in victims:
        world.outside.kill(name)
    run(world, 1200)
    assert_whole(world, replicas)
    assert not {machine.metadata.name for machine in machines(world)} & set(victims)
    assert sum(ANNOTATION_REMEDIATION_FOR in machine.metadata.annotations for machine in machines(world)) == dead
    kcp = control_plane(world)
    assert ANNOTATION_REMEDIATION_IN_PROGRESS not in kcp.metadata.annotations
    assert kcp.status.last_remediation.machine in victims


def test_a_machine_that_goes_and_one_that_dies_do_not_wait_for_each_other() -> None:
    """etcd of three cannot let go of a member while another does not run: the dead one goes first."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}
    world = plane_world(3, rollout={"strategy": strategy})
    run(world)
    change(world, version="v1.34.1")
    while not any(machine.metadata.deletion_timestamp for machine in machines(world)):
        with pytest.raises(NotSettledError):
            world.settle(ControlPlaneReconciler(), max_rounds=1)
    going, *staying = sorted(machines(world), key=lambda m: m.metadata.deletion_timestamp is None)
    world.outside.health_checks = True
    dead = staying[0].metadata.name
    world.outside.kill(dead)
    run(world, 1200)
    assert_whole(world, 3)
    removed = [entry for entry in world.outside.log if entry.startswith("removed")]
    assert removed[:2] == [f"removed {dead}", f"removed {going.metadata.name}"]


def test_a_member_without_a_machine_stays_while_its_node_is_ready() -> None:
    """So it looks when the management cluster was restored from a backup that is older than the Machine."""
    world = plane_world(3)
    run(world)
    forgotten = machines(world)[0]
    world.change(MACHINE, forgotten, {"metadata": {"finalizers": None}})
    world.remove(MACHINE, forgotten)
    before = set(world.outside.members)
    with pytest.raises(NotSettledError):
        world.settle(ControlPlaneReconciler(), horizon_s=300, max_rounds=60)
    assert set(world.outside.members) == before
    assert any("its Node is ready" in event.message for event in world.emitted)
    del world.outside.hosts[forgotten.metadata.name]
    run(world, 1200)
    assert f"removed {forgotten.metadata.name}" in world.outside.log
    assert_whole(world, 3)


def test_without_quorum_nothing_is_taken_away() -> None:
    world = plane_world(3)
    run(world)
    world.outside.health_checks = True
    for machine in machines(world)[:2]:
        world.outside.kill(machine.metadata.name)
    run(world, 1200)
    assert len(machines(world)) == 3
    assert all(machine.metadata.deletion_timestamp is None for machine in machines(world))
    kcp = control_plane(world)
    found = next(c for c in kcp.status.conditions if c.type == "EtcdClusterHealthy")
    assert (found.status, found.reason) == ("Unknown", "ConnectionDown")


def test_the_first_machine_is_replaced_until_one_comes_up() -> None:
    world = plane_world(1)
    world.outside.health_checks = True
    with pytest.raises(NotSettledError):
        world.settle(ControlPlaneReconciler(), max_rounds=5)
    first = machines(world)[0].metadata.name
    world.outside.stuck.add(first)
    world.outside.hosts[first].joined = False
    world.outside.members.clear()
    world.outside.config = ""
    run(world)
    assert_whole(world, 1)
    assert machines(world)[0].metadata.name != first


def test_remediation_works_with_external_etcd() -> None:
    """Upstream asks for a list of members that external etcd never has, and never remediates."""
    external = {"endpoints": ["https://192.0.2.9:2379"], "caFile": "a", "certFile": "b", "keyFile": "c"}
    world = plane_world(3, kubeadmConfigSpec={"clusterConfiguration": {"etcd": {"external": external}}})
    world.outside.external_etcd = True
    for name in ("c-etcd", "c-apiserver-etcd-client"):
        world.add(SECRET_METADATA, {"metadata": {"name": name, "namespace": NS}, "type": "Opaque"})
    run(world)
    assert statuses(control_plane(world))["Available"] == "True"
    world.outside.health_checks = True
    dead = machines(world)[0].metadata.name
    world.outside.kill(dead)
    run(world, 1200)
    assert len(machines(world)) == 3
    assert dead not in {machine.metadata.name for machine in machines(world)}
    assert statuses(control_plane(world))["Available"] == "True"


def test_retries_end_at_their_limit() -> None:
    world = plane_world(3, remediation={"maxRetry": 1, "retryPeriodSeconds": 60})
    run(world)
    world.outside.health_checks = True
    world.outside.kill(machines(world)[0].metadata.name)
    for _ in range(3):
        run(world, 300)
        newest = max(machines(world), key=lambda machine: machine.metadata.creation_timestamp or "")
        if newest.metadata.name in world.outside.hosts and world.outside.hosts[newest.metadata.name].alive:
            world.outside.kill(newest.metadata.name)
    kcp = run(world, 300)
    assert len(machines(world)) == 3
    message = next(c.message for c in kcp.status.conditions if c.type == "Remediating")
    assert "the operation already failed 1 times (MaxRetry)" in message


def test_deletion_waits_for_workers_and_then_takes_all_at_once() -> None:
    world = plane_world(3)
    run(world)
    worker = {
        "metadata": {"name": "w", "namespace": NS, "labels": {"cluster.x-k8s.io/cluster-name": "c"}},
        "spec": {
            "clusterName": "c",
            "bootstrap": {"dataSecretName": "x"},
            "infrastructureRef": {"apiGroup": INFRA_GROUP, "kind": "DevMachine", "name": "w"},
        },
    }
    environment, world.environment = world.environment, None
    world.add(MACHINE, worker)
    world.remove(KUBEADM_CONTROL_PLANE, control_plane(world))
    world.settle(ControlPlaneReconciler())
    found = next(c for c in control_plane(world).status.conditions if c.type == "Deleting")
    assert found.message == (
        "KubeadmControlPlane deletion blocked because following objects still exist:\n* Machines: w"
    )
    world.remove(MACHINE, world.require(MACHINE, NS, "w"))
    world.environment = environment
    world.settle(ControlPlaneReconciler(), horizon_s=60)
    assert machines(world) == []
    assert world.get(KUBEADM_CONTROL_PLANE, NS, "cp") is None
    assert not [entry for entry in world.outside.log if entry.startswith("removed")]


def test_a_deleted_control_plane_takes_its_secrets_along() -> None:
    """Else a new one of the same name would take over the authorities of the deleted one: garbage goes when it goes."""
    world = plane_world(1)
    run(world)
    supplied = world.require(SECRET_METADATA, NS, "c-proxy")
    world.change(SECRET_METADATA, supplied, {"metadata": {"ownerReferences": None}})
    secrets = {purpose: world.get(SECRET_METADATA, NS, secret_name("c", purpose)) for purpose in Purpose}
    held = {purpose: secret for purpose, secret in secrets.items() if secret is not None}

    last = next_step(Observed(control_plane(world), secrets=held), world.now())

    assert last.done
    deleted = sorted(action.name for action in last.actions if isinstance(action, Delete))
    assert deleted == ["c-ca", "c-etcd", "c-kubeconfig", "c-sa"]


def test_a_control_plane_that_leaves_orphans_leaves_its_secrets() -> None:
    world = plane_world(1)
    run(world)
    kcp = control_plane(world)
    before = [secret.metadata.name for secret in world.list(SECRET_METADATA)]
    finalizers = [*kcp.metadata.finalizers, "orphan"]
    world.change(KUBEADM_CONTROL_PLANE, kcp, {"metadata": {"finalizers": finalizers}})
    world.remove(KUBEADM_CONTROL_PLANE, control_plane(world))

    world.settle(ControlPlaneReconciler(), horizon_s=60)

    assert control_plane(world).metadata.finalizers == ["orphan"]
    assert [secret.metadata.name for secret in world.list(SECRET_METADATA)] == before


def test_a_deleted_machine_is_replaced_after_its_member_has_left() -> None:
    world = plane_world(3)
    run(world)
    leader = world.outside.leader
    world.remove(MACHINE, world.require(MACHINE, NS, leader))
    run(world)
    assert_whole(world, 3)
    log = world.outside.log
    assert log.index(f"removed {leader}") < log.index(f"released {leader}")


def test_the_deleted_machine_of_a_dead_single_control_plane_goes() -> None:
    world = plane_world(1)
    run(world)
    only = machines(world)[0]
    world.outside.kill(only.metadata.name)
    world.remove(MACHINE, only)
    world.settle(ControlPlaneReconciler(), max_rounds=20)
    assert f"released {only.metadata.name}" in world.outside.log


def test_nothing_is_written_while_paused() -> None:
    world = plane_world(1, kcp={"annotations": {"cluster.x-k8s.io/paused": ""}})
    run(world)
    kcp = control_plane(world)
    assert [(c.type, c.status) for c in kcp.status.conditions] == [("Paused", "True")]
    assert machines(world) == []
    writes = world.api.writes
    run(world)
    assert world.api.writes == writes


def test_all_is_quiet_once_nothing_is_to_be_done() -> None:
    world = plane_world(3)
    run(world)
    writes, performed = world.api.writes, len(world.performed)
    world.settle(ControlPlaneReconciler(), horizon_s=7200, max_rounds=2000)
    assert (world.api.writes, len(world.performed)) == (writes, performed)


def test_few_writes_are_made_for_each_machine() -> None:
    world = plane_world(5)
    run(world)
    ours = world.api.writes
    assert ours < 5 * 45, ours


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_crash_anywhere_ends_the_same(replicas: int) -> None:
    crash_check(ControlPlaneReconciler(), plane_world(replicas), horizon_s=60, ignore=UNREPEATABLE)


def test_a_crash_while_growing_and_shrinking_ends_the_same() -> None:
    world = plane_world(3)
    run(world)
    change(world, replicas=1)
    crash_check(ControlPlaneReconciler(), world, horizon_s=60, ignore=UNREPEATABLE)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (INFRA, "InfrastructureTemplateCloningFailed"),
        (KUBEADM_CONFIG, "BootstrapTemplateCloningFailed"),
        (MACHINE, "MachineGenerationFailed"),
    ],
)
@pytest.mark.parametrize("replicas", [1, 3])
def test_what_cannot_be_made_is_told_until_it_can(kind: Kind[Any], reason: str, replicas: int) -> None:
    world = plane_world(1)
    if replicas > 1:
        run(world)
        change(world, replicas=replicas)
    world.api.create_errors[kind.collection] = Invalid("admission webhook denied it")
    run(world, 60)
    kcp = control_plane(world)
    up = find_condition(kcp.status.conditions, "ScalingUp")
    assert up is not None
    assert up.message.startswith(
        f"Scaling up from {replicas // 2} to {replicas} replicas is blocked because:\n* {kind.kind} cp-"
    )
    assert up.message.endswith("could not be created: admission webhook denied it")
    told = find_legacy(legacy_conditions(kcp), "MachinesCreated")
    assert told is not None
    assert (told.status, told.severity, told.reason) == ("False", "Error", reason)
    del world.api.create_errors[kind.collection]
    world.errors.clear()
    run(world)
    kcp = assert_whole(world, replicas)
    told = find_legacy(legacy_conditions(kcp), "MachinesCreated")
    assert told is not None
    assert told.status == "True"


def test_what_cannot_be_made_for_a_rollout_is_told() -> None:
    world = plane_world(1)
    run(world)
    change(world, version="v1.34.0")
    world.api.create_errors[MACHINE.collection] = Invalid("admission webhook denied it")
    run(world, 60)
    kcp = control_plane(world)
    up = find_condition(kcp.status.conditions, "ScalingUp")
    assert up is not None
    assert up.message.startswith("Scaling up would be blocked because Machine cp-")
    told = find_legacy(legacy_conditions(kcp), "MachinesCreated")
    assert told is not None
    assert told.reason == "MachineGenerationFailed"

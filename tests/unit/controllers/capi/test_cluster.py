"""Clusters: the fields that they copy from their providers, their status, and the order of their deletion."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.core import SECRET
from ironbell.contract.conditions.legacy import find_legacy
from ironbell.controllers.capi.cluster.kubeconfig import KUBECONFIG
from ironbell.controllers.capi.cluster.reconciler import ClusterReconciler
from ironbell.controllers.capi.machinedeployment.reconciler import MachineDeploymentReconciler
from ironbell.controllers.capi.machineset.reconciler import MachineSetReconciler
from ironbell.kube.decision import Action, create
from ironbell.kube.reconciler import Unsynced
from ironbell.kube.testing.crash import crash_check
from ironbell.kube.testing.world import World
from ironbell.workload.queries import Connection, ConnectionState
from support.capi.world import (
    INFRA_CLUSTER,
    INFRA_TEMPLATE,
    NAMESPACE,
    OLD_INFRA_CLUSTER,
    PLANE,
    add_cluster,
    add_machine_deployment,
    capi_world,
    come_up,
    condition,
    machine_template,
    reference,
    reported,
    template,
)

CLUSTERS = ClusterReconciler()
ALL = (CLUSTERS, MachineDeploymentReconciler(), MachineSetReconciler())
ENDPOINT = {"host": "192.0.2.10", "port": 6443}
DOMAINS = [{"name": "rack-1", "controlPlane": True}, {"name": "rack-2", "controlPlane": False}]


def add_infrastructure(world: World, *, provisioned: bool = True, kind: Any = INFRA_CLUSTER, **status: Any) -> None:
    initialization = {"initialization": {"provisioned": True}} if provisioned else {}
    body = {
        "metadata": {"name": "prod", "namespace": NAMESPACE, "finalizers": ["example.com/f"]},
        "spec": {"controlPlaneEndpoint": ENDPOINT},
        "status": {**initialization, "failureDomains": DOMAINS, **status},
    }
    world.add(kind, body)


def add_plane(world: World, *, initialized: bool = True, **status: Any) -> None:
    initialization = {"initialization": {"controlPlaneInitialized": True}} if initialized else {}
    body = {
        "metadata": {"name": "plane", "namespace": NAMESPACE, "finalizers": ["example.com/f"]},
        "spec": {"version": "v1.34.0", "replicas": 3},
        "status": {"versions": [{"version": "v1.34.0", "replicas": 3}], **initialization, **status},
    }
    world.add(PLANE, body)


def scene(**cluster: Any) -> tuple[World, Cluster]:
    world = capi_world()
    return world, add_cluster(world, **cluster)


def again(world: World, obj: Cluster) -> Cluster:
    return world.require(CLUSTER, *obj.key)


def legacy(cluster: Cluster, name: str) -> tuple[str, str]:
    assert cluster.status.deprecated is not None
    assert cluster.status.deprecated.v1beta1 is not None
    result = find_legacy(cluster.status.deprecated.v1beta1.conditions, name)
    assert result is not None
    return (result.status, result.reason)


def finish(world: World, kind: Any, name: str) -> None:
    """The provider removes its finalizer from an object that is being deleted."""
    world.change(kind, world.require(kind, NAMESPACE, name), {"metadata": {"finalizers": None}})


def test_a_cluster_waits_for_missing_objects() -> None:
    world, cluster = scene(controlPlaneRef=reference(PLANE, "plane"))

    world.settle(CLUSTERS)

    now = again(world, cluster)
    assert now.status.phase == "Provisioning"
    assert reported(now, "InfrastructureReady") == ("False", "DoesNotExist", "FakeCluster does not exist")
    assert reported(now, "ControlPlaneAvailable") == ("False", "DoesNotExist", "FakeControlPlane does not exist")
    assert reported(now, "ControlPlaneInitialized") == ("Unknown", "DoesNotExist", "FakeControlPlane does not exist")
    assert reported(now, "RemoteConnectionProbe") == ("False", "ProbeFailed", "Remote connection not established yet")
    assert reported(now, "WorkersAvailable") == ("True", "NoWorkers", "")
    assert reported(now, "Deleting") == ("False", "NotDeleting", "")
    assert reported(now, "Available") == (
        "False",
        "NotAvailable",
        (
            "* RemoteConnectionProbe: Remote connection not established yet\n"
            "* InfrastructureReady: FakeCluster does not exist\n"
            "* ControlPlaneAvailable: FakeControlPlane does not exist"
        ),
    )
    assert [(e.reason, e.message) for e in world.emitted] == [("Provisioning", "Cluster prod is Provisioning")]


def test_the_reports_of_the_providers_are_copied() -> None:
    world, cluster = scene(controlPlaneRef=reference(PLANE, "plane"))
    add_infrastructure(world)
    counts = {"replicas": 3, "readyReplicas": 3, "availableReplicas": 2, "upToDateReplicas": 3}
    add_plane(world, **counts)

    world.settle(CLUSTERS)

    now = again(world, cluster)
    assert (now.spec.control_plane_endpoint.host, now.spec.control_plane_endpoint.port) == ("192.0.2.10", 6443)
    assert [(d.name, d.control_plane) for d in now.status.failure_domains] == [("rack-1", True), ("rack-2", False)]
    assert now.status.phase == "Provisioned"
    assert now.status.initialization.infrastructure_provisioned is True
    assert now.status.initialization.control_plane_initialized is True
    counted = now.status.control_plane
    assert counted is not None
    assert (counted.desired_replicas, counted.replicas, counted.available_replicas) == (3, 3, 2)
    assert [(v.version, v.replicas) for v in counted.versions] == [("v1.34.0", 3)]
    for kind, name in ((INFRA_CLUSTER, "prod"), (PLANE, "plane")):
        claimed = world.require(kind, NAMESPACE, name)
        assert claimed.metadata.labels["cluster.x-k8s.io/cluster-name"] == "prod"
        assert [(o.kind, o.controller) for o in claimed.metadata.owner_references] == [("Cluster", None)]
    assert {e.reason for e in world.emitted} >= {"InfrastructureReady", "ControlPlaneInitialized", "Provisioned"}
    assert legacy(now, "InfrastructureReady") == ("True", "")
    assert legacy(now, "ControlPlaneInitialized") == ("True", "")
    assert legacy(now, "Ready") == ("True", "")
    assert now.status.observed_generation == now.metadata.generation


def test_the_old_contract_is_understood() -> None:
    world, cluster = scene(infrastructureRef=reference(OLD_INFRA_CLUSTER, "prod"))
    domains = {"b": {"controlPlane": True}, "a": {"controlPlane": False, "attributes": {"x": "y"}}}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    add_infrastructure(
        world,
        kind=OLD_INFRA_CLUSTER,
        ready=True,
        failureDomains=domains,
        failureReason="Broken",
        failureMessage="it broke",
        conditions=conditions,
    )

    world.settle(CLUSTERS)

    now = again(world, cluster)
    assert now.status.initialization.infrastructure_provisioned is True
    assert [domain.name for domain in now.status.failure_domains] == ["a", "b"]
    assert reported(now, "InfrastructureReady") == ("True", "Ready", "")
    assert legacy(now, "InfrastructureReady") == ("True", "")
    assert now.status.deprecated is not None
    assert now.status.deprecated.v1beta1 is not None
    assert now.status.deprecated.v1beta1.failure_reason == "Broken"
    assert now.status.deprecated.v1beta1.failure_message == (
        "Failure detected from referenced resource infrastructure.cluster.x-k8s.io/v1beta1, Kind=OldCluster with name"
        ' "prod": it broke'
    )


def test_flags_never_go_back() -> None:
    world, cluster = scene(controlPlaneRef=reference(PLANE, "plane"))
    add_infrastructure(world)
    add_plane(world)
    world.settle(CLUSTERS)
    for kind, name in ((INFRA_CLUSTER, "prod"), (PLANE, "plane")):
        obj = world.require(kind, NAMESPACE, name)
        world.set_status(kind, obj, {"initialization": None})

    world.settle(CLUSTERS)

    now = again(world, cluster)
    assert now.status.phase == "Provisioned"
    assert now.status.initialization.infrastructure_provisioned is True
    assert now.status.initialization.control_plane_initialized is True
    assert reported(now, "ControlPlaneInitialized")[0] == "True"


def test_a_lost_status_is_restored_from_the_providers_and_nothing_else_happens() -> None:
    world, cluster = scene(controlPlaneRef=reference(PLANE, "plane"))
    add_infrastructure(world)
    add_plane(world)
    add_machine_deployment(world, 2)
    world.settle(*ALL, horizon_s=60)
    previous = again(world, cluster)
    machines = {machine.metadata.name: machine.metadata.uid for machine in world.list(MACHINE)}
    for kind in (CLUSTER, MACHINE_DEPLOYMENT, MACHINE_SET):
        for obj in world.list(kind):
            world.set_status(kind, obj, dict.fromkeys(("initialization", "conditions", "phase", "replicas", "workers")))

    world.settle(*ALL, horizon_s=60)

    after = again(world, cluster)
    assert after.status.initialization == previous.status.initialization
    assert after.status.phase == previous.status.phase
    assert len(machines) == 2
    assert {machine.metadata.name: machine.metadata.uid for machine in world.list(MACHINE)} == machines
    assert len(world.list(MACHINE_SET)) == 1


def test_vanished_infrastructure_is_reported_and_not_created_again() -> None:
    world, cluster = scene()
    add_infrastructure(world)
    world.settle(CLUSTERS)
    world.remove(INFRA_CLUSTER, world.require(INFRA_CLUSTER, NAMESPACE, "prod"))
    finish(world, INFRA_CLUSTER, "prod")

    world.settle(CLUSTERS)

    now = again(world, cluster)
    expected = ("False", "Deleted", "FakeCluster has been deleted while the cluster still exists")
    assert reported(now, "InfrastructureReady") == expected
    assert now.status.phase == "Provisioned"
    decision = world.decide(CLUSTERS, cluster.key)
    assert decision is not None
    assert decision.waiting is not None
    assert decision.waiting.message == "FakeCluster has been deleted after being provisioned"


def test_a_kind_that_is_not_known_yet_is_not_missing() -> None:
    world, cluster = scene()
    add_infrastructure(world)
    world.unsynced[INFRA_CLUSTER.collection] = Unsynced(INFRA_CLUSTER, "forbidden")

    world.settle(CLUSTERS)

    expected = ("Unknown", "InternalError", "FakeCluster default/prod cannot be read yet: forbidden")
    assert reported(again(world, cluster), "InfrastructureReady") == expected


def test_workers_are_counted() -> None:
    world, cluster = scene()
    add_infrastructure(world)
    add_machine_deployment(world, 2)

    world.settle(*ALL, horizon_s=60)

    now = again(world, cluster)
    counted = now.status.workers
    assert counted is not None
    assert (counted.desired_replicas, counted.replicas, counted.ready_replicas) == (2, 2, 2)
    assert [(v.version, v.replicas) for v in counted.versions] == [("v1.34.0", 2)]
    assert reported(now, "WorkersAvailable")[:2] == ("True", "Available")
    assert reported(now, "WorkerMachinesReady")[:2] == ("True", "Ready")
    assert reported(now, "ScalingUp")[:2] == ("False", "NotScalingUp")
    assert reported(now, "RollingOut")[:2] == ("False", "NotRollingOut")


def test_unhealthy_workers_are_reported() -> None:
    world, cluster = scene()
    add_infrastructure(world)
    add_machine_deployment(world, 2)
    world.settle(*ALL, horizon_s=60)
    first = world.list(MACHINE)[0]
    come_up(world, first, HealthCheckSucceeded="False")

    world.settle(CLUSTERS)

    name = first.metadata.name
    expected = ("False", "NotRemediating", f"Machine {name} is not healthy (not to be remediated)")
    assert reported(again(world, cluster), "Remediating") == expected


def state_of(world: World, state: ConnectionState) -> None:
    world.resolvers = {Connection: lambda _world, _query: state}
    world.facts.clear()


def test_the_connection_is_reported_with_a_grace_period() -> None:
    world, cluster = scene()
    add_infrastructure(world)
    now = world.now().replace(microsecond=0)
    state_of(world, ConnectionState(connected=True, last_probe_success=now))
    world.settle(CLUSTERS)
    assert reported(again(world, cluster), "RemoteConnectionProbe") == ("True", "ProbeSucceeded", "")

    state_of(world, ConnectionState(connected=True, last_probe_success=now, consecutive_failures=2))
    world.settle(CLUSTERS, horizon_s=40)
    assert reported(again(world, cluster), "RemoteConnectionProbe")[0] == "True"

    world.settle(CLUSTERS, horizon_s=60)
    status, reason, message = reported(again(world, cluster), "RemoteConnectionProbe")
    assert (status, reason) == ("False", "ProbeFailed")
    assert message.startswith("Remote connection probe failed, probe last succeeded at 20")


def test_machines_that_stand_alone_are_a_control_plane() -> None:
    world, cluster = scene()
    add_infrastructure(world)
    labels = {"cluster.x-k8s.io/cluster-name": "prod", "cluster.x-k8s.io/control-plane": ""}
    body = {"metadata": {"name": "cp-0", "namespace": NAMESPACE, "labels": labels}, "spec": machine_template()["spec"]}
    world.outside.comes_up = False
    machine = world.add(MACHINE, body)
    world.settle(CLUSTERS, horizon_s=30)
    now = again(world, cluster)
    message = "Waiting for the first control plane machine to have status.nodeRef set"
    assert reported(now, "ControlPlaneInitialized") == ("False", "NotInitialized", message)
    assert legacy(now, "ControlPlaneInitialized") == ("False", "MissingNodeRef")

    come_up(world, machine)
    world.settle(CLUSTERS)

    now = again(world, cluster)
    assert reported(now, "ControlPlaneInitialized")[:2] == ("True", "Initialized")
    assert now.status.initialization.control_plane_initialized is True
    assert now.status.control_plane is not None
    assert now.status.control_plane.replicas == 1


def test_without_a_control_plane_object_the_kubeconfig_is_created_from_the_authority() -> None:
    created: list[Any] = []

    def performer(_world: World, arguments: Any) -> Sequence[Action]:
        created.append(arguments)
        return [create(SECRET, {"metadata": {"name": "prod-kubeconfig", "namespace": NAMESPACE}})]

    world, _cluster = scene()
    world.performers = {KUBECONFIG: performer}
    world.api.serve([SECRET])
    add_infrastructure(world)
    world.settle(CLUSTERS)
    assert created == []

    world.add(SECRET, {"metadata": {"name": "prod-ca", "namespace": NAMESPACE}})
    world.settle(CLUSTERS)

    assert [arguments.server for arguments in created] == ["https://192.0.2.10:6443"]
    assert [secret.metadata.name for secret in world.list(SECRET)] == ["prod-ca", "prod-kubeconfig"]


def test_a_paused_cluster_gets_no_write_but_its_condition() -> None:
    world, cluster = scene(paused=True)
    add_infrastructure(world)

    world.settle(CLUSTERS)

    now = again(world, cluster)
    assert [c.type for c in now.status.conditions] == ["Paused"]
    assert world.require(INFRA_CLUSTER, NAMESPACE, "prod").metadata.owner_references == []


def test_everything_is_deleted_in_order_and_templates_stay() -> None:
    world, cluster = scene(controlPlaneRef=reference(PLANE, "plane"))
    add_infrastructure(world)
    add_plane(world)
    add_machine_deployment(world, 2)
    world.settle(*ALL, horizon_s=60)
    generated = template(world, INFRA_TEMPLATE, "generated", labels={"topology.cluster.x-k8s.io/owned": ""})
    owner = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "name": "prod", "uid": cluster.metadata.uid}
    world.change(INFRA_TEMPLATE, generated, {"metadata": {"ownerReferences": [owner]}})
    unused = template(world, INFRA_TEMPLATE, "unused")
    world.change(INFRA_TEMPLATE, unused, {"metadata": {"ownerReferences": [owner]}})
    world.outside.deletes_at_once = False
    world.remove(CLUSTER, again(world, cluster))

    world.settle(*ALL)
    now = again(world, cluster)
    assert now.status.phase == "Deleting"
    names = ", ".join(machine.metadata.name for machine in world.list(MACHINE))
    sets = world.list(MACHINE_SET)[0].metadata.name
    expected = f"* MachineDeployments: md\n* MachineSets: {sets}\n* Worker Machines: {names}"
    assert reported(now, "Deleting") == ("True", "WaitingForWorkersDeletion", expected)
    assert world.require(PLANE, NAMESPACE, "plane").metadata.deletion_timestamp is None

    world.outside.deletes_at_once = True
    world.settle(*ALL)
    expected = "Waiting for FakeControlPlane to be deleted"
    assert reported(again(world, cluster), "Deleting") == ("True", "WaitingForControlPlaneDeletion", expected)
    assert world.require(INFRA_CLUSTER, NAMESPACE, "prod").metadata.deletion_timestamp is None

    finish(world, PLANE, "plane")
    world.settle(*ALL)
    expected = "Waiting for FakeCluster to be deleted"
    assert reported(again(world, cluster), "Deleting") == ("True", "WaitingForInfrastructureDeletion", expected)
    assert reported(again(world, cluster), "ControlPlaneAvailable")[1] == "Deleted"

    finish(world, INFRA_CLUSTER, "prod")
    world.settle(*ALL)

    assert world.get(CLUSTER, *cluster.key) is None
    left = {obj.metadata.name: obj.metadata.owner_references for obj in world.list(INFRA_TEMPLATE)}
    assert left == {"workers": [], "unused": []}
    assert ("Deleted", "Cluster prod has been deleted") in [(e.reason, e.message) for e in world.emitted]


def test_a_cluster_stays_while_its_templates_are_not_known() -> None:
    world, cluster = scene()
    world.settle(CLUSTERS)
    world.unsynced[INFRA_TEMPLATE.collection] = Unsynced(INFRA_TEMPLATE)
    world.remove(CLUSTER, again(world, cluster))

    world.settle(CLUSTERS)

    assert reported(again(world, cluster), "Deleting")[1] == "WaitingForTemplates"
    world.unsynced.clear()
    world.settle(CLUSTERS)
    assert world.get(CLUSTER, *cluster.key) is None


def test_a_crash_at_any_point_ends_the_same() -> None:
    world, cluster = scene(controlPlaneRef=reference(PLANE, "plane"))
    add_infrastructure(world)
    add_plane(world)
    end = crash_check(CLUSTERS, world)
    for kind, name in ((PLANE, "plane"), (INFRA_CLUSTER, "prod")):
        finish(end, kind, name)
    end.remove(CLUSTER, again(end, cluster))

    crashed = crash_check(CLUSTERS, end)

    assert crashed.list(CLUSTER) == []
    assert [obj.metadata.name for obj in crashed.list(INFRA_TEMPLATE)] == ["workers"]


def test_nothing_is_written_when_nothing_changes() -> None:
    world, _cluster = scene(controlPlaneRef=reference(PLANE, "plane"))
    add_infrastructure(world)
    add_plane(world)
    add_machine_deployment(world, 2)
    world.settle(*ALL, horizon_s=60)
    writes = world.api.writes

    world.clock.advance(timedelta(hours=2).total_seconds())
    world.settle(*ALL, horizon_s=60)

    assert world.api.writes == writes


@pytest.mark.parametrize(
    ("good", "expected"),
    [(True, ("True", "Available", "")), (False, ("False", "NotAvailable", "* Network: no CNI"))],
)
def test_gates_count_for_availability(good: bool, expected: tuple[str, str, str]) -> None:
    world, cluster = scene(availabilityGates=[{"conditionType": "Network"}])
    add_infrastructure(world)
    state_of(world, ConnectionState(connected=True, last_probe_success=world.now()))
    labels = {"cluster.x-k8s.io/cluster-name": "prod", "cluster.x-k8s.io/control-plane": ""}
    body = {"metadata": {"name": "cp-0", "namespace": NAMESPACE, "labels": labels}, "spec": machine_template()["spec"]}
    world.add(MACHINE, body)
    network = condition(world, "Network", good, message="" if good else "no CNI")
    world.set_status(CLUSTER, again(world, cluster), {"conditions": [network]})

    world.settle(CLUSTERS, horizon_s=30)

    assert reported(again(world, cluster), "Available") == expected

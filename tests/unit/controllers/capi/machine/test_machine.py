"""A Machine on its way to a Node."""

from __future__ import annotations

import msgspec
import pytest

from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.cluster.machinedeployment import MACHINE_DEPLOYMENT
from ironbell.api.cluster.machineset import MACHINE_SET
from ironbell.controllers.capi.machine.node_metadata import OUTDATED, UNINITIALIZED
from ironbell.kube.testing.crash import crash_check
from ironbell.workload.queries import ConnectionState, NodeView
from support.machines import CONFIG, HOST, NAMESPACE, OLD_HOST, PROVIDER_ID, Scene, node, reference, running, scene


def test_without_anything_it_is_pending_and_says_what_it_waits_for() -> None:
    found = scene()
    found.settle()
    assert found.machine.status.phase == "Pending"
    assert found.told("BootstrapConfigReady") == ("False", "ObjectDoesNotExist", "Config does not exist")
    assert found.told("InfrastructureReady") == ("False", "ObjectDoesNotExist", "Host does not exist")
    assert found.told("NodeHealthy") == ("Unknown", "InspectionFailed", "Waiting for Host to report spec.providerID")
    assert found.told("Deleting") == ("False", "NotDeleting", "")
    assert found.told("Available") == ("False", "NotReady", "")
    assert found.told("Ready")[2].splitlines() == [
        "* BootstrapConfigReady: Config does not exist",
        "* InfrastructureReady: Host does not exist",
        "* NodeHealthy: Waiting for Host to report spec.providerID",
    ]
    meta = found.machine.metadata
    assert meta.finalizers == ["machine.cluster.x-k8s.io"]
    assert meta.labels["cluster.x-k8s.io/cluster-name"] == "c1"
    assert [(owner.kind, owner.controller) for owner in meta.owner_references] == [("Cluster", None)]


def test_phases_on_the_way() -> None:
    found = scene()
    found.add_host()
    found.add_config()
    found.settle()
    assert found.machine.status.phase == "Pending"
    assert found.told("BootstrapConfigReady") == (
        "False", "NotReady", "Config status.initialization.dataSecretCreated is false"
    )  # fmt: skip
    assert found.legacy("BootstrapReady") == ("False", "Info", "WaitingForDataSecret", "")
    assert found.legacy("Ready") == ("False", "Info", "WaitingForInfrastructure", "0 of 2 completed")
    found.data_is_there()
    found.settle()
    assert found.machine.status.phase == "Provisioning"
    assert found.machine.spec.bootstrap.data_secret_name == "b1"
    assert found.legacy("Ready") == ("False", "Info", "WaitingForInfrastructure", "1 of 2 completed")
    found.host_is_made()
    found.settle()
    status = found.machine.status
    assert status.phase == "Provisioned"
    assert found.machine.spec.provider_id == PROVIDER_ID
    assert [address.address for address in status.addresses] == ["10.0.0.1", "server-1"]
    assert status.failure_domain == "rack-1"
    found.there.nodes["m1"] = node()
    found.settle()
    assert found.machine.status.phase == "Running"
    assert found.machine.status.node_ref.name == "m1"
    assert found.told("Ready") == ("True", "Ready", "")
    assert found.told("Available") == ("True", "Available", "")
    assert found.legacy("Ready") == ("True", "", "", "")
    assert found.machine.status.observed_generation == found.machine.metadata.generation


def test_both_providers_objects_become_the_machines() -> None:
    found = scene(labels={"cluster.x-k8s.io/set-name": "s"}, owners=[owner("MachineSet", "s")])
    temporary = [{key: value for key, value in owner("MachineSet", "s").items() if key != "controller"}]
    found.world.add(HOST, {"metadata": {"name": "h1", "namespace": NAMESPACE, "ownerReferences": temporary}})
    found.add_config()
    found.settle()
    for kind, name in ((HOST, "h1"), (CONFIG, "b1")):
        meta = found.world.require(kind, NAMESPACE, name).metadata
        assert [(one.kind, one.name, one.controller) for one in meta.owner_references] == [("Machine", "m1", True)]
        assert meta.labels["cluster.x-k8s.io/cluster-name"] == "c1"
    assert [one.kind for one in found.machine.metadata.owner_references] == ["MachineSet"]


def owner(kind: str, name: str) -> dict[str, object]:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": f"u-{name}", "controller": True
    }  # fmt: skip


def test_an_object_that_somebody_else_controls_is_not_taken() -> None:
    found = scene()
    found.world.add(
        HOST, {"metadata": {"name": "h1", "namespace": NAMESPACE, "ownerReferences": [owner("Machine", "other")]}}
    )
    found.settle()
    assert found.told("InfrastructureReady") == ("Unknown", "InternalError", "Host h1 is controlled by Machine other")
    found.delete()
    found.settle()
    assert found.told("Deleting")[2] == "Host is not deleted: Host h1 is controlled by Machine other"
    assert found.world.get(HOST, NAMESPACE, "h1") is not None


def test_a_secret_that_the_user_gave_needs_no_config() -> None:
    found = scene(bootstrap={"dataSecretName": "mine"})
    found.add_host()
    found.settle()
    assert found.told("BootstrapConfigReady") == ("True", "DataSecretProvided", "")
    assert found.machine.status.initialization.bootstrap_data_secret_created is None
    found.host_is_made()
    found.there.nodes["m1"] = node()
    found.settle()
    assert found.machine.status.phase == "Running"


def test_what_a_provider_says_of_itself_is_told_on_the_machine() -> None:
    found = scene()
    host = found.add_host()
    said = {"type": "Ready", "status": "False", "reason": "Imaging", "message": "writes the disk, 40%"}
    found.world.set_status(HOST, host, {"conditions": [said]})
    found.settle()
    assert found.told("InfrastructureReady") == ("False", "Imaging", "writes the disk, 40%")
    assert "* InfrastructureReady: writes the disk, 40%" in found.told("Ready")[2]


def test_what_a_provider_says_too_much_or_wrongly_keeps_no_status_from_being_written() -> None:
    found = scene()
    host = found.add_host()
    said = {"type": "Ready", "status": "False", "reason": "Long", "message": "x" * 40000}
    addresses = [{"type": "InternalIP", "address": ""}, {"type": "Odd", "address": "a"}]
    found.world.change(HOST, host, {"spec": {"providerID": PROVIDER_ID}})
    good = {"type": "ExternalIP", "address": "192.0.2.1"}
    status = {"initialization": {"provisioned": True}, "conditions": [said], "addresses": [*addresses, good]}
    found.world.set_status(HOST, host, status)
    found.settle()
    assert len(found.condition("InfrastructureReady").message) == 32768
    assert len(found.legacy("InfrastructureReady")[3]) == 10240
    assert [address.address for address in found.machine.status.addresses] == ["192.0.2.1"]


def test_a_host_that_vanishes_after_it_was_made_is_a_failure_and_nothing_goes_back() -> None:
    found = running()
    found.world.remove(HOST, found.world.require(HOST, NAMESPACE, "h1"))
    found.settle()
    assert found.told("InfrastructureReady") == (
        "False", "ObjectDeleted", "Host has been deleted while the Machine still exists"
    )  # fmt: skip
    status = found.machine.status
    assert status.initialization.infrastructure_provisioned is True
    assert status.deprecated is not None
    assert status.deprecated.v1beta1 is not None
    assert status.deprecated.v1beta1.failure_reason == "InvalidConfiguration"
    assert status.phase == "Running"


def test_provisioned_stays_true_whatever_the_provider_says_later() -> None:
    found = running()
    host = found.world.require(HOST, NAMESPACE, "h1")
    found.world.set_status(HOST, host, {"initialization": {"provisioned": False}})
    found.settle()
    assert found.machine.status.initialization.infrastructure_provisioned is True


def test_labels_go_to_the_node_and_the_uninitialized_taint_from_it() -> None:
    found = scene(labels={"node.cluster.x-k8s.io/pool": "fast", "team": "x"})
    found.add_host()
    found.add_config()
    found.data_is_there()
    found.host_is_made()
    found.there.nodes["m1"] = node(taints=(UNINITIALIZED,), labels={"own": "1"})
    found.settle()
    after = found.there.nodes["m1"]
    assert after.labels == {"own": "1", "node.cluster.x-k8s.io/pool": "fast"}
    assert after.taints == ()
    assert after.annotations["cluster.x-k8s.io/machine"] == "m1"
    assert found.there.log == ["patch m1"]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (node("m1", provider_id="other://1"), "; Node m1 exists, but has spec.providerID other://1"),
        (node("server-1", provider_id=""), "; Node server-1 exists, but has no spec.providerID"),
        (node("unrelated", provider_id="other://2"), ""),
    ],
)
def test_a_node_of_the_right_name_with_another_provider_id_is_named(other: NodeView, told: str) -> None:
    found = scene()
    found.add_host()
    found.add_config()
    found.data_is_there()
    found.host_is_made()
    found.there.nodes[other.name] = other
    found.settle()
    message = f"Waiting for a Node with spec.providerID {PROVIDER_ID} to exist{told}"
    assert found.told("NodeHealthy") == ("Unknown", "InspectionFailed", message)
    assert found.machine.status.phase == "Provisioned"


def test_a_failed_bootstrap_of_the_host_is_told_while_there_is_no_node() -> None:
    found = scene()
    host = found.add_host()
    found.add_config()
    found.data_is_there()
    found.host_is_made()
    found.world.change(HOST, host, {"metadata": {"annotations": {"ironbell.dev/bootstrap-failure": "kubeadm: no CRI"}}})
    found.settle()
    assert found.told("NodeHealthy")[2].endswith("the bootstrap of the host has failed: kubeadm: no CRI")


def test_two_nodes_with_one_provider_id_are_named() -> None:
    found = scene()
    found.add_host()
    found.add_config()
    found.data_is_there()
    found.host_is_made()
    found.there.nodes |= {"a": node("a"), "b": node("b")}
    found.settle()
    message = f"more than one Node has spec.providerID {PROVIDER_ID}: a, b"
    assert found.told("NodeHealthy") == ("Unknown", "InternalError", message)
    assert found.legacy("NodeHealthy")[2] == "NodeInspectionFailed"


def test_a_node_that_was_deleted_is_told() -> None:
    found = running()
    found.there.nodes.clear()
    found.settle()
    message = "Node m1 has been deleted while the Machine still exists"
    assert found.told("NodeReady") == ("False", "NodeDeleted", message)
    assert found.legacy("NodeHealthy") == ("False", "Error", "NodeNotFound", "")
    assert found.machine.status.node_ref.name == "m1"


def test_a_paused_machine_gets_nothing_but_that_it_is_paused() -> None:
    found = scene(annotations={"cluster.x-k8s.io/paused": ""})
    found.add_host()
    found.settle()
    assert found.told("Paused") == ("True", "Paused", "Machine has the cluster.x-k8s.io/paused annotation")
    assert [one.type for one in found.machine.status.conditions] == ["Paused"]
    assert found.machine.metadata.finalizers == []
    assert found.world.require(HOST, NAMESPACE, "h1").metadata.owner_references == []


def test_a_paused_cluster_pauses_its_machines_even_in_deletion() -> None:
    found = running(cluster={"spec": {"paused": True}})
    assert found.told("Paused") == ("True", "Paused", "Cluster spec.paused is set to true")
    found.delete()
    found.settle()
    assert found.world.get(MACHINE, NAMESPACE, "m1") is None  # never had a finalizer


def test_without_its_cluster_it_waits_and_says_so() -> None:
    found = scene()
    found.world.remove(CLUSTER, found.cluster)
    found.settle()
    assert found.told("Ready") == ("Unknown", "InternalError", "Cluster ns/c1 does not exist")


def test_min_ready_seconds_hold_availability_back() -> None:
    found = running(minReadySeconds=60)
    assert found.told("Available") == ("False", "WaitingForMinReadySeconds", "")
    found.settle(horizon_s=61)
    assert found.told("Available") == ("True", "Available", "")


def test_readiness_gates_count() -> None:
    gates = [{"conditionType": "example.io/Tested"}, {"conditionType": "example.io/Busy", "polarity": "Negative"}]
    found = running(readinessGates=gates)
    assert found.told("Ready")[0] == "Unknown"
    conditions = [
        {"type": "example.io/Tested", "status": "True", "reason": "Tested", "message": ""},
        {"type": "example.io/Busy", "status": "False", "reason": "Idle", "message": ""},
    ]
    known = msgspec.to_builtins(found.machine.status.conditions)
    found.world.set_status(MACHINE, found.machine, {"conditions": [*known, *conditions]})
    found.settle()
    assert found.told("Ready") == ("True", "Ready", "")


def test_certificates_expiry_of_a_control_plane_machine() -> None:
    when = "2027-01-01T00:00:00Z"
    found = scene(labels={"cluster.x-k8s.io/control-plane": ""})
    config = found.add_config()
    found.world.change(
        CONFIG, config, {"metadata": {"annotations": {"machine.cluster.x-k8s.io/certificates-expiry": when}}}
    )
    found.settle()
    assert found.machine.status.certificates_expiry_date == when
    own = {"machine.cluster.x-k8s.io/certificates-expiry": "2028-01-01T00:00:00Z"}
    found.world.change(MACHINE, found.machine, {"metadata": {"annotations": own}})
    found.settle()
    assert found.machine.status.certificates_expiry_date == "2028-01-01T00:00:00Z"


def test_it_survives_being_killed_anywhere_on_its_way() -> None:
    found = scene(labels={"node.cluster.x-k8s.io/pool": "fast"})
    found.add_host()
    found.add_config()
    found.data_is_there()
    found.host_is_made()
    found.there.nodes["m1"] = node()
    crash_check(found.reconciler, found.world)


def test_a_machine_that_runs_is_not_written_again() -> None:
    found = running()
    before = found.machine.metadata.resource_version
    found.settle()
    found.settle()
    assert found.machine.metadata.resource_version == before
    assert found.there.log == []


def silent(found: Scene, *, failures: int = 3) -> None:
    """The cluster has just stopped answering."""
    now = found.world.now()
    found.there.state = ConnectionState(
        connected=False, since=now, last_probe_success=now, consecutive_failures=failures, error="timed out"
    )


def test_what_was_last_heard_of_a_node_stands_for_five_minutes() -> None:
    found = running()
    silent(found)
    version = found.machine.metadata.resource_version
    found.settle()
    assert found.machine.metadata.resource_version == version
    found.world.settle(found.reconciler, horizon_s=302, max_rounds=1000)
    told = ("Unknown", "ConnectionDown", "Last successful probe at 2026-01-01T00:00:00Z")
    assert found.told("NodeReady") == told
    assert found.told("NodeHealthy") == told
    assert found.told("Ready") == ("Unknown", "ReadyUnknown", f"* NodeHealthy: {told[2]}")
    found.there.state = ConnectionState(connected=True)
    found.settle()
    assert found.told("Ready") == ("True", "Ready", "")


@pytest.mark.parametrize(
    ("failures", "told"), [(0, "Remote connection not established yet"), (5, "x509: certificate has expired")]
)
def test_a_cluster_that_never_answered_is_told(failures: int, told: str) -> None:
    found = scene()
    found.add_host()
    found.add_config()
    found.data_is_there()
    found.host_is_made()
    found.there.state = ConnectionState(
        connected=False, consecutive_failures=failures, error="x509: certificate has expired"
    )
    found.settle()
    assert found.told("NodeHealthy") == ("Unknown", "ConnectionDown", told)


def test_an_outdated_revision_is_a_taint_on_the_node_and_a_condition() -> None:
    label, revision = "cluster.x-k8s.io/deployment-name", "machinedeployment.clusters.x-k8s.io/revision"
    found = running(owners=[owner("MachineSet", "s")])
    template = {"spec": {"clusterName": "c1", "version": "v1.33.0"}}
    spec = {"clusterName": "c1", "selector": {}, "template": template}
    found.world.add(MACHINE_SET, {
        "metadata": {"name": "s", "namespace": NAMESPACE, "labels": {label: "d"}, "annotations": {revision: "1"}},
        "spec": spec,
    })  # fmt: skip
    newer = {**spec, "template": {"spec": {"clusterName": "c1", "version": "v1.34.0"}}}
    deployment = found.world.add(MACHINE_DEPLOYMENT, {
        "metadata": {"name": "d", "namespace": NAMESPACE, "annotations": {revision: "2"}}, "spec": newer
    })  # fmt: skip
    found.settle()
    assert found.told("UpToDate") == ("False", "NotUpToDate", "* Version v1.33.0, v1.34.0 required")
    assert found.there.nodes["m1"].taints == (OUTDATED,)
    found.world.change(MACHINE_DEPLOYMENT, deployment, {"metadata": {"annotations": {revision: "1"}}, "spec": spec})
    found.settle()
    assert found.told("UpToDate") == ("True", "UpToDate", "")
    assert found.there.nodes["m1"].taints == ()


def test_a_rollout_that_is_due_makes_machines_outdated() -> None:
    found = running(owners=[owner("MachineSet", "s")])
    spec = {"clusterName": "c1", "selector": {}, "template": {"spec": {"clusterName": "c1"}}}
    labels = {"cluster.x-k8s.io/deployment-name": "d"}
    found.world.add(MACHINE_SET, {"metadata": {"name": "s", "namespace": NAMESPACE, "labels": labels}, "spec": spec})
    rollout = {"rollout": {"after": "2026-01-01T00:10:00Z"}}
    found.world.add(
        MACHINE_DEPLOYMENT, {"metadata": {"name": "d", "namespace": NAMESPACE}, "spec": {**spec, **rollout}}
    )
    found.settle()
    assert found.told("UpToDate")[0] == "True"
    found.settle(horizon_s=602)
    assert found.told("UpToDate") == ("False", "NotUpToDate", "* MachineDeployment spec.rolloutAfter expired")


def test_the_parts_of_a_control_plane_that_say_the_same_are_one_line() -> None:
    parts = ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy")
    found = running(readinessGates=[{"conditionType": kind} for kind in parts])
    found.settle()
    lines = found.told("Ready")[2].splitlines()
    assert lines == ["* Control plane components: Condition not yet reported"]
    known = msgspec.to_builtins(found.machine.status.conditions)
    sick = {"type": parts[0], "status": "False", "reason": "Failed", "message": "crashes"}
    found.world.set_status(MACHINE, found.machine, {"conditions": [*known, sick]})
    found.settle()
    assert len(found.told("Ready")[2].splitlines()) == 4


def test_failures_of_a_provider_of_the_older_contract_are_copied() -> None:
    found = scene(infrastructureRef=reference(OLD_HOST, "old"))
    status = {"ready": True, "failureReason": "CreateError", "failureMessage": "no such disk"}
    found.add_host("old", kind=OLD_HOST, spec={"providerID": PROVIDER_ID, "failureDomain": "r2"}, status=status)
    found.settle()
    deprecated = found.machine.status.deprecated
    assert deprecated is not None
    assert deprecated.v1beta1 is not None
    assert deprecated.v1beta1.failure_reason == "CreateError"
    assert deprecated.v1beta1.failure_message is not None
    assert deprecated.v1beta1.failure_message.endswith('with name "old": no such disk')
    assert found.machine.spec.failure_domain == "r2"
    assert found.told("InfrastructureReady") == ("True", "Ready", "")


def test_a_bootstrap_that_failed_is_reported_on_the_machine_until_it_is_taken_back() -> None:
    found = scene()
    found.add_host()
    found.add_config()
    found.settle()
    assert found.machine.status.conditions
    assert all(one.type != "BootstrapSucceeded" for one in found.machine.status.conditions)
    why = "kubeadm join: connection refused"
    host = found.world.require(HOST, NAMESPACE, "h1")
    host = found.world.change(HOST, host, {"metadata": {"annotations": {"ironbell.dev/bootstrap-failure": why}}})
    found.settle()
    assert found.told("BootstrapSucceeded") == ("False", "BootstrapFailed", why)
    found.world.change(HOST, host, {"metadata": {"annotations": {"ironbell.dev/bootstrap-failure": None}}})
    found.settle()
    assert all(one.type != "BootstrapSucceeded" for one in found.machine.status.conditions)

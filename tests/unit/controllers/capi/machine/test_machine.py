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
from support.capi.machines import CONFIG, HOST, NAMESPACE, OLD_HOST, PROVIDER_ID, Scene, node, reference, running, scene


def test_without_other_objects_it_is_pending_and_reports_the_reason() -> None:
    case = scene()
    case.settle()
    assert case.machine.status.phase == "Pending"
    assert case.told("BootstrapConfigReady") == ("False", "ObjectDoesNotExist", "Config does not exist")
    assert case.told("InfrastructureReady") == ("False", "ObjectDoesNotExist", "Host does not exist")
    assert case.told("NodeHealthy") == ("Unknown", "InspectionFailed", "Waiting for Host to report spec.providerID")
    assert case.told("Deleting") == ("False", "NotDeleting", "")
    assert case.told("Available") == ("False", "NotReady", "")
    assert case.told("Ready")[2].splitlines() == [
        "* BootstrapConfigReady: Config does not exist",
        "* InfrastructureReady: Host does not exist",
        "* NodeHealthy: Waiting for Host to report spec.providerID",
    ]
    meta = case.machine.metadata
    assert meta.finalizers == ["machine.cluster.x-k8s.io"]
    assert meta.labels["cluster.x-k8s.io/cluster-name"] == "c1"
    assert [(owner.kind, owner.controller) for owner in meta.owner_references] == [("Cluster", None)]


def test_phases_on_the_way() -> None:
    case = scene()
    case.add_host()
    case.add_config()
    case.settle()
    assert case.machine.status.phase == "Pending"
    assert case.told("BootstrapConfigReady") == (
        "False", "NotReady", "Config status.initialization.dataSecretCreated is false"
    )  # fmt: skip
    assert case.legacy("BootstrapReady") == ("False", "Info", "WaitingForDataSecret", "")
    assert case.legacy("Ready") == ("False", "Info", "WaitingForInfrastructure", "0 of 2 completed")
    case.data_is_there()
    case.settle()
    assert case.machine.status.phase == "Provisioning"
    assert case.machine.spec.bootstrap.data_secret_name == "b1"
    assert case.legacy("Ready") == ("False", "Info", "WaitingForInfrastructure", "1 of 2 completed")
    case.host_is_made()
    case.settle()
    status = case.machine.status
    assert status.phase == "Provisioned"
    assert case.machine.spec.provider_id == PROVIDER_ID
    assert [address.address for address in status.addresses] == ["10.0.0.1", "server-1"]
    assert status.failure_domain == "rack-1"
    case.there.nodes["m1"] = node()
    case.settle()
    assert case.machine.status.phase == "Running"
    assert case.machine.status.node_ref.name == "m1"
    assert case.told("Ready") == ("True", "Ready", "")
    assert case.told("Available") == ("True", "Available", "")
    assert case.legacy("Ready") == ("True", "", "", "")
    assert case.machine.status.observed_generation == case.machine.metadata.generation


def test_both_providers_objects_become_the_machines() -> None:
    case = scene(labels={"cluster.x-k8s.io/set-name": "s"}, owners=[owner("MachineSet", "s")])
    temporary = [{key: value for key, value in owner("MachineSet", "s").items() if key != "controller"}]
    case.world.add(HOST, {"metadata": {"name": "h1", "namespace": NAMESPACE, "ownerReferences": temporary}})
    case.add_config()
    case.settle()
    for kind, name in ((HOST, "h1"), (CONFIG, "b1")):
        meta = case.world.require(kind, NAMESPACE, name).metadata
        assert [(entry.kind, entry.name, entry.controller) for entry in meta.owner_references] == [
            ("Machine", "m1", True)
        ]
        assert meta.labels["cluster.x-k8s.io/cluster-name"] == "c1"
    assert [item.kind for item in case.machine.metadata.owner_references] == ["MachineSet"]


def owner(kind: str, name: str) -> dict[str, object]:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": f"u-{name}", "controller": True
    }  # fmt: skip


def test_an_object_that_somebody_else_controls_is_not_taken() -> None:
    case = scene()
    case.world.add(
        HOST, {"metadata": {"name": "h1", "namespace": NAMESPACE, "ownerReferences": [owner("Machine", "other")]}}
    )
    case.settle()
    assert case.told("InfrastructureReady") == ("Unknown", "InternalError", "Host h1 is controlled by Machine other")
    case.delete()
    case.settle()
    assert case.told("Deleting")[2] == "Host is not deleted: Host h1 is controlled by Machine other"
    assert case.world.get(HOST, NAMESPACE, "h1") is not None


def test_a_secret_that_the_user_gave_needs_no_config() -> None:
    case = scene(bootstrap={"dataSecretName": "mine"})
    case.add_host()
    case.settle()
    assert case.told("BootstrapConfigReady") == ("True", "DataSecretProvided", "")
    assert case.machine.status.initialization.bootstrap_data_secret_created is None
    case.host_is_made()
    case.there.nodes["m1"] = node()
    case.settle()
    assert case.machine.status.phase == "Running"


def test_the_conditions_of_a_provider_are_mirrored_on_the_machine() -> None:
    case = scene()
    host = case.add_host()
    condition_ = {"type": "Ready", "status": "False", "reason": "Imaging", "message": "writes the disk, 40%"}
    case.world.set_status(HOST, host, {"conditions": [condition_]})
    case.settle()
    assert case.told("InfrastructureReady") == ("False", "Imaging", "writes the disk, 40%")
    assert "* InfrastructureReady: writes the disk, 40%" in case.told("Ready")[2]


def test_a_too_long_or_invalid_condition_of_a_provider_does_not_prevent_the_status() -> None:
    case = scene()
    host = case.add_host()
    condition_ = {"type": "Ready", "status": "False", "reason": "Long", "message": "x" * 40000}
    addresses = [{"type": "InternalIP", "address": ""}, {"type": "Odd", "address": "a"}]
    case.world.change(HOST, host, {"spec": {"providerID": PROVIDER_ID}})
    good = {"type": "ExternalIP", "address": "192.0.2.1"}
    status = {"initialization": {"provisioned": True}, "conditions": [condition_], "addresses": [*addresses, good]}
    case.world.set_status(HOST, host, status)
    case.settle()
    assert len(case.condition("InfrastructureReady").message) == 32768
    assert len(case.legacy("InfrastructureReady")[3]) == 10240
    assert [address.address for address in case.machine.status.addresses] == ["192.0.2.1"]


def test_a_host_that_vanishes_after_its_creation_is_a_failure_and_no_flag_is_reset() -> None:
    case = running()
    case.world.remove(HOST, case.world.require(HOST, NAMESPACE, "h1"))
    case.settle()
    assert case.told("InfrastructureReady") == (
        "False", "ObjectDeleted", "Host has been deleted while the Machine still exists"
    )  # fmt: skip
    status = case.machine.status
    assert status.initialization.infrastructure_provisioned is True
    assert status.deprecated is not None
    assert status.deprecated.v1beta1 is not None
    assert status.deprecated.v1beta1.failure_reason == "InvalidConfiguration"
    assert status.phase == "Running"


def test_provisioned_stays_true_whatever_the_provider_reports_later() -> None:
    case = running()
    host = case.world.require(HOST, NAMESPACE, "h1")
    case.world.set_status(HOST, host, {"initialization": {"provisioned": False}})
    case.settle()
    assert case.machine.status.initialization.infrastructure_provisioned is True


def test_labels_go_to_the_node_and_the_uninitialized_taint_from_it() -> None:
    case = scene(labels={"node.cluster.x-k8s.io/pool": "fast", "team": "x"})
    case.add_host()
    case.add_config()
    case.data_is_there()
    case.host_is_made()
    case.there.nodes["m1"] = node(taints=(UNINITIALIZED,), labels={"own": "1"})
    case.settle()
    after = case.there.nodes["m1"]
    assert after.labels == {"own": "1", "node.cluster.x-k8s.io/pool": "fast"}
    assert after.taints == ()
    assert after.annotations["cluster.x-k8s.io/machine"] == "m1"
    assert case.there.log == ["patch m1"]


@pytest.mark.parametrize(
    ("other", "hint"),
    [
        (node("m1", provider_id="other://1"), "; Node m1 exists, but has spec.providerID other://1"),
        (node("server-1", provider_id=""), "; Node server-1 exists, but has no spec.providerID"),
        (node("unrelated", provider_id="other://2"), ""),
    ],
)
def test_a_node_of_the_right_name_with_another_provider_id_is_named(other: NodeView, hint: str) -> None:
    case = scene()
    case.add_host()
    case.add_config()
    case.data_is_there()
    case.host_is_made()
    case.there.nodes[other.name] = other
    case.settle()
    message = f"Waiting for a Node with spec.providerID {PROVIDER_ID} to exist{hint}"
    assert case.told("NodeHealthy") == ("Unknown", "InspectionFailed", message)
    assert case.machine.status.phase == "Provisioned"


def test_a_failed_bootstrap_of_the_host_is_reported_without_a_node() -> None:
    case = scene()
    host = case.add_host()
    case.add_config()
    case.data_is_there()
    case.host_is_made()
    case.world.change(HOST, host, {"metadata": {"annotations": {"ironbell.dev/bootstrap-failure": "kubeadm: no CRI"}}})
    case.settle()
    assert case.told("NodeHealthy")[2].endswith("the bootstrap of the host has failed: kubeadm: no CRI")


def test_two_nodes_with_one_provider_id_are_named() -> None:
    case = scene()
    case.add_host()
    case.add_config()
    case.data_is_there()
    case.host_is_made()
    case.there.nodes |= {"a": node("a"), "b": node("b")}
    case.settle()
    message = f"more than one Node has spec.providerID {PROVIDER_ID}: a, b"
    assert case.told("NodeHealthy") == ("Unknown", "InternalError", message)
    assert case.legacy("NodeHealthy")[2] == "NodeInspectionFailed"


def test_a_node_that_was_deleted_is_reported() -> None:
    case = running()
    case.there.nodes.clear()
    case.settle()
    message = "Node m1 has been deleted while the Machine still exists"
    assert case.told("NodeReady") == ("False", "NodeDeleted", message)
    assert case.legacy("NodeHealthy") == ("False", "Error", "NodeNotFound", "")
    assert case.machine.status.node_ref.name == "m1"


def test_a_paused_machine_gets_nothing_but_that_it_is_paused() -> None:
    case = scene(annotations={"cluster.x-k8s.io/paused": ""})
    case.add_host()
    case.settle()
    assert case.told("Paused") == ("True", "Paused", "Machine has the cluster.x-k8s.io/paused annotation")
    assert [condition.type for condition in case.machine.status.conditions] == ["Paused"]
    assert case.machine.metadata.finalizers == []
    assert case.world.require(HOST, NAMESPACE, "h1").metadata.owner_references == []


def test_a_paused_cluster_pauses_its_machines_even_in_deletion() -> None:
    case = running(cluster={"spec": {"paused": True}})
    assert case.told("Paused") == ("True", "Paused", "Cluster spec.paused is set to true")
    case.delete()
    case.settle()
    assert case.world.get(MACHINE, NAMESPACE, "m1") is None  # never had a finalizer


def test_without_its_cluster_it_waits_and_reports_that() -> None:
    case = scene()
    case.world.remove(CLUSTER, case.cluster)
    case.settle()
    assert case.told("Ready") == ("Unknown", "InternalError", "Cluster ns/c1 does not exist")


def test_min_ready_seconds_hold_availability_back() -> None:
    case = running(minReadySeconds=60)
    assert case.told("Available") == ("False", "WaitingForMinReadySeconds", "")
    case.settle(horizon_s=61)
    assert case.told("Available") == ("True", "Available", "")


def test_readiness_gates_count() -> None:
    gates = [{"conditionType": "example.io/Tested"}, {"conditionType": "example.io/Busy", "polarity": "Negative"}]
    case = running(readinessGates=gates)
    assert case.told("Ready")[0] == "Unknown"
    conditions = [
        {"type": "example.io/Tested", "status": "True", "reason": "Tested", "message": ""},
        {"type": "example.io/Busy", "status": "False", "reason": "Idle", "message": ""},
    ]
    known = msgspec.to_builtins(case.machine.status.conditions)
    case.world.set_status(MACHINE, case.machine, {"conditions": [*known, *conditions]})
    case.settle()
    assert case.told("Ready") == ("True", "Ready", "")


def test_certificates_expiry_of_a_control_plane_machine() -> None:
    when = "2027-01-01T00:00:00Z"
    case = scene(labels={"cluster.x-k8s.io/control-plane": ""})
    config = case.add_config()
    case.world.change(
        CONFIG, config, {"metadata": {"annotations": {"machine.cluster.x-k8s.io/certificates-expiry": when}}}
    )
    case.settle()
    assert case.machine.status.certificates_expiry_date == when
    own = {"machine.cluster.x-k8s.io/certificates-expiry": "2028-01-01T00:00:00Z"}
    case.world.change(MACHINE, case.machine, {"metadata": {"annotations": own}})
    case.settle()
    assert case.machine.status.certificates_expiry_date == "2028-01-01T00:00:00Z"


def test_it_survives_being_killed_anywhere_on_its_way() -> None:
    case = scene(labels={"node.cluster.x-k8s.io/pool": "fast"})
    case.add_host()
    case.add_config()
    case.data_is_there()
    case.host_is_made()
    case.there.nodes["m1"] = node()
    crash_check(case.reconciler, case.world)


def test_a_machine_that_runs_is_not_written_again() -> None:
    case = running()
    previous = case.machine.metadata.resource_version
    case.settle()
    case.settle()
    assert case.machine.metadata.resource_version == previous
    assert case.there.log == []


def silent(case: Scene, *, failures: int = 3) -> None:
    """The cluster has just stopped answering."""
    now = case.world.now()
    case.there.state = ConnectionState(
        connected=False, since=now, last_probe_success=now, consecutive_failures=failures, error="timed out"
    )


def test_the_last_known_state_of_a_node_is_kept_for_five_minutes() -> None:
    case = running()
    silent(case)
    version = case.machine.metadata.resource_version
    case.settle()
    assert case.machine.metadata.resource_version == version
    case.world.settle(case.reconciler, horizon_s=302, max_rounds=1000)
    hint = ("Unknown", "ConnectionDown", "Last successful probe at 2026-01-01T00:00:00Z")
    assert case.told("NodeReady") == hint
    assert case.told("NodeHealthy") == hint
    assert case.told("Ready") == ("Unknown", "ReadyUnknown", f"* NodeHealthy: {hint[2]}")
    case.there.state = ConnectionState(connected=True)
    case.settle()
    assert case.told("Ready") == ("True", "Ready", "")


@pytest.mark.parametrize(
    ("failures", "hint"), [(0, "Remote connection not established yet"), (5, "x509: certificate has expired")]
)
def test_a_cluster_that_never_answered_is_reported(failures: int, hint: str) -> None:
    case = scene()
    case.add_host()
    case.add_config()
    case.data_is_there()
    case.host_is_made()
    case.there.state = ConnectionState(
        connected=False, consecutive_failures=failures, error="x509: certificate has expired"
    )
    case.settle()
    assert case.told("NodeHealthy") == ("Unknown", "ConnectionDown", hint)


def test_an_outdated_revision_is_a_taint_on_the_node_and_a_condition() -> None:
    label, revision = "cluster.x-k8s.io/deployment-name", "machinedeployment.clusters.x-k8s.io/revision"
    case = running(owners=[owner("MachineSet", "s")])
    template = {"spec": {"clusterName": "c1", "version": "v1.33.0"}}
    spec = {"clusterName": "c1", "selector": {}, "template": template}
    case.world.add(MACHINE_SET, {
        "metadata": {"name": "s", "namespace": NAMESPACE, "labels": {label: "d"}, "annotations": {revision: "1"}},
        "spec": spec,
    })  # fmt: skip
    newer = {**spec, "template": {"spec": {"clusterName": "c1", "version": "v1.34.0"}}}
    deployment = case.world.add(MACHINE_DEPLOYMENT, {
        "metadata": {"name": "d", "namespace": NAMESPACE, "annotations": {revision: "2"}}, "spec": newer
    })  # fmt: skip
    case.settle()
    assert case.told("UpToDate") == ("False", "NotUpToDate", "* Version v1.33.0, v1.34.0 required")
    assert case.there.nodes["m1"].taints == (OUTDATED,)
    case.world.change(MACHINE_DEPLOYMENT, deployment, {"metadata": {"annotations": {revision: "1"}}, "spec": spec})
    case.settle()
    assert case.told("UpToDate") == ("True", "UpToDate", "")
    assert case.there.nodes["m1"].taints == ()


def test_a_due_rollout_outdates_machines() -> None:
    case = running(owners=[owner("MachineSet", "s")])
    spec = {"clusterName": "c1", "selector": {}, "template": {"spec": {"clusterName": "c1"}}}
    labels = {"cluster.x-k8s.io/deployment-name": "d"}
    case.world.add(MACHINE_SET, {"metadata": {"name": "s", "namespace": NAMESPACE, "labels": labels}, "spec": spec})
    rollout = {"rollout": {"after": "2026-01-01T00:10:00Z"}}
    case.world.add(MACHINE_DEPLOYMENT, {"metadata": {"name": "d", "namespace": NAMESPACE}, "spec": {**spec, **rollout}})
    case.settle()
    assert case.told("UpToDate")[0] == "True"
    case.settle(horizon_s=602)
    assert case.told("UpToDate") == ("False", "NotUpToDate", "* MachineDeployment spec.rolloutAfter expired")


def test_equal_messages_of_control_plane_parts_are_one_line() -> None:
    parts = ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy")
    case = running(readinessGates=[{"conditionType": kind} for kind in parts])
    case.settle()
    lines = case.told("Ready")[2].splitlines()
    assert lines == ["* Control plane components: Condition not yet reported"]
    known = msgspec.to_builtins(case.machine.status.conditions)
    sick = {"type": parts[0], "status": "False", "reason": "Failed", "message": "crashes"}
    case.world.set_status(MACHINE, case.machine, {"conditions": [*known, sick]})
    case.settle()
    assert len(case.told("Ready")[2].splitlines()) == 4


def test_failures_of_a_provider_of_the_older_contract_are_copied() -> None:
    case = scene(infrastructureRef=reference(OLD_HOST, "old"))
    status = {"ready": True, "failureReason": "CreateError", "failureMessage": "no such disk"}
    case.add_host("old", kind=OLD_HOST, spec={"providerID": PROVIDER_ID, "failureDomain": "r2"}, status=status)
    case.settle()
    deprecated = case.machine.status.deprecated
    assert deprecated is not None
    assert deprecated.v1beta1 is not None
    assert deprecated.v1beta1.failure_reason == "CreateError"
    assert deprecated.v1beta1.failure_message is not None
    assert deprecated.v1beta1.failure_message.endswith('with name "old": no such disk')
    assert case.machine.spec.failure_domain == "r2"
    assert case.told("InfrastructureReady") == ("True", "Ready", "")


def test_a_bootstrap_that_failed_is_reported_on_the_machine_until_it_is_taken_back() -> None:
    case = scene()
    case.add_host()
    case.add_config()
    case.settle()
    assert case.machine.status.conditions
    assert all(condition.type != "BootstrapSucceeded" for condition in case.machine.status.conditions)
    reason = "kubeadm join: connection refused"
    host = case.world.require(HOST, NAMESPACE, "h1")
    host = case.world.change(HOST, host, {"metadata": {"annotations": {"ironbell.dev/bootstrap-failure": reason}}})
    case.settle()
    assert case.told("BootstrapSucceeded") == ("False", "BootstrapFailed", reason)
    case.world.change(HOST, host, {"metadata": {"annotations": {"ironbell.dev/bootstrap-failure": None}}})
    case.settle()
    assert all(item.type != "BootstrapSucceeded" for item in case.machine.status.conditions)

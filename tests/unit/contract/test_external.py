"""Objects of providers: found by the labels of their definitions, read by both contracts, cloned from templates."""

from __future__ import annotations

import pytest

from ironbell.api.cluster.cluster import FailureDomain
from ironbell.api.cluster.common import MachineAddress
from ironbell.api.meta import OwnerReference
from ironbell.api.unstructured import Unstructured, dynamic_kind
from ironbell.contract.clusters.bootstrap import BootstrapConfig
from ironbell.contract.clusters.controlplane import ControlPlane, VersionCount
from ironbell.contract.clusters.external import (
    External,
    ReferencedObjectMissingError,
    State,
    read_reference,
    read_version,
)
from ironbell.contract.clusters.infrastructure import InfrastructureCluster, InfrastructureMachine
from ironbell.contract.clusters.references import ObjectReference, api_version
from ironbell.contract.templates import clone, cloned_kind, is_cloned_from
from ironbell.kube.decision import Fields
from ironbell.kube.reconciler import Unsynced
from ironbell.kube.testing.world import World

GROUP = "infrastructure.cluster.x-k8s.io"
SERVER = dynamic_kind(GROUP, "v1beta2", "Server", "servers")
OLD_SERVER = dynamic_kind(GROUP, "v1alpha4", "Server", "servers")
TEMPLATE = dynamic_kind(GROUP, "v1beta2", "ServerTemplate", "servertemplates")
BOTH = {"cluster.x-k8s.io/v1beta1": "v1alpha4_v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}
S1 = ObjectReference(GROUP, "Server", "s1")


def world_with(labels: dict[str, str]) -> World:
    world = World()
    world.define(SERVER, labels)
    world.define(TEMPLATE, BOTH)
    return world


def found(body: Fields, contract: str = "v1beta2") -> External:
    obj = SERVER.convert({"metadata": {"name": "s1", "namespace": "prod"}, **body})
    return External(State.EXISTS, S1, "prod", SERVER, contract, obj)


@pytest.mark.parametrize(
    ("labels", "version", "contract"),
    [
        (BOTH, "v1beta2", "v1beta2"),
        ({"cluster.x-k8s.io/v1beta1": "v1beta1_v1_v1alpha4"}, "v1", "v1beta1"),
        ({"cluster.x-k8s.io/v1beta2": "", "cluster.x-k8s.io/v1beta1": "v1beta1"}, "v1beta1", "v1beta1"),
    ],
)
def test_the_newest_version_of_the_newest_contract_is_read(labels: dict[str, str], version: str, contract: str) -> None:
    world = world_with(labels)
    external = read_reference(world, S1, "prod")
    assert external.kind is not None
    assert (external.state, external.kind.version, external.contract) == (State.MISSING, version, contract)
    assert api_version(world, GROUP, "Server") == f"{GROUP}/{version}"
    assert str(external) == "Server prod/s1 does not exist"


def test_what_is_there_is_found_in_its_namespace() -> None:
    world = world_with(BOTH)
    world.add(SERVER, {"metadata": {"name": "s1", "namespace": "prod"}, "spec": {"providerID": "p://1"}})
    external = read_reference(world, S1, "prod")
    assert external.kind_and_object[1].body["spec"] == {"providerID": "p://1"}
    assert read_reference(world, S1, "other").state is State.MISSING


@pytest.mark.parametrize("labels", [None, {"cluster.x-k8s.io/v1alpha3": "v1alpha3"}])
def test_kinds_that_nobody_defines_or_that_keep_no_contract(labels: dict[str, str] | None) -> None:
    world = World()
    if labels is not None:
        world.define(SERVER, labels)
    external = read_reference(world, S1, "prod")
    assert external.state is State.NO_SUCH_KIND
    assert "CustomResourceDefinition" in str(external)
    assert api_version(world, GROUP, "Server") == ""
    with pytest.raises(ReferencedObjectMissingError):
        _ = external.kind_and_object


def test_what_cannot_be_listed_is_unknown_and_not_missing() -> None:
    world = world_with(BOTH)
    world.unsynced[SERVER.collection] = Unsynced(SERVER, "servers is forbidden")
    external = read_reference(world, S1, "prod")
    assert external.state is State.UNKNOWN
    assert not external.is_missing
    assert str(external) == "Server prod/s1 cannot be read yet: servers is forbidden"


def test_a_reference_that_names_a_version_is_read_in_it() -> None:
    world = world_with(BOTH)
    external = read_version(world, f"{GROUP}/v1alpha4", "Server", "prod", "s1")
    assert (external.kind, external.contract) == (OLD_SERVER, "v1beta1")
    assert read_version(world, f"{GROUP}/v9", "Server", "prod", "s1").state is State.NO_SUCH_KIND


@pytest.mark.parametrize(
    ("contract", "status"),
    [("v1beta1", {"ready": True}), ("v1beta2", {"initialization": {"provisioned": True}})],
)
def test_an_infrastructure_machine_by_both_contracts(contract: str, status: Fields) -> None:
    body = {
        "spec": {"providerID": "p://1", "failureDomain": "old"},
        "status": {**status, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "interruptible": True},
    }
    machine = InfrastructureMachine.of(found(body, contract))
    assert machine.provisioned
    assert not InfrastructureMachine.of(found({}, contract)).provisioned
    assert machine.provider_id == "p://1"
    assert machine.addresses == (MachineAddress(type="InternalIP", address="10.0.0.1"),)
    assert machine.interruptible
    assert machine.failure_domain == "old"
    assert InfrastructureMachine.of(found({**body, "status": {"failureDomain": "new"}})).failure_domain == "new"


def test_failure_domains_come_as_a_list_or_as_a_map() -> None:
    expected = (
        FailureDomain(name="a", control_plane=False),
        FailureDomain(name="b", control_plane=True, attributes={"rack": "2"}),
    )
    listed = [{"name": "b", "controlPlane": True, "attributes": {"rack": "2"}}, {"name": "a"}]
    mapped = {"b": {"controlPlane": True, "attributes": {"rack": "2"}}, "a": {}}
    endpoint = {"controlPlaneEndpoint": {"host": "10.0.0.9", "port": 6443}}
    for domains, contract in ((listed, "v1beta2"), (mapped, "v1beta1")):
        cluster = InfrastructureCluster.of(found({"spec": endpoint, "status": {"failureDomains": domains}}, contract))
        assert cluster.failure_domains == expected
        assert cluster.endpoint.is_valid
    assert not InfrastructureCluster.of(found({})).endpoint.is_valid


@pytest.mark.parametrize(
    ("contract", "status"),
    [("v1beta1", {"ready": True}), ("v1beta2", {"initialization": {"dataSecretCreated": True}})],
)
def test_bootstrap_data_by_both_contracts(contract: str, status: Fields) -> None:
    config = BootstrapConfig.of(found({"status": {**status, "dataSecretName": "s1-data"}}, contract))
    assert (config.data_secret_created, config.data_secret_name) == (True, "s1-data")


def test_fields_of_another_type_than_agreed_count_as_missing() -> None:
    machine = InfrastructureMachine.of(
        found({"spec": {"providerID": 7}, "status": {"initialization": {"provisioned": "yes"}, "addresses": {}}})
    )
    assert (machine.provider_id, machine.provisioned, machine.addresses) == ("", False, ())


def control_plane(spec: Fields, status: Fields, contract: str = "v1beta2") -> ControlPlane:
    return ControlPlane.of(found({"spec": spec, "status": status}, contract))


@pytest.mark.parametrize(
    ("spec", "status", "provisioning", "upgrading"),
    [
        ("v1.34.0", {}, True, False),
        ("v1.34.0", {"version": "v1.34.0"}, False, False),
        ("v1.34.0", {"version": "v1.33.4"}, False, True),
        ("v1.34.0", {"versions": [{"version": "v1.33.4", "replicas": 1}, {"version": "v1.34.0"}]}, False, True),
        ("v1.34.0", {"versions": [{"version": "v1.34.0", "replicas": 3}], "version": "v1.33.0"}, False, False),
    ],
)
def test_whether_a_control_plane_is_upgrading(spec: str, status: Fields, provisioning: bool, upgrading: bool) -> None:
    plane = control_plane({"version": spec}, status)
    assert (plane.is_provisioning, plane.is_upgrading) == (provisioning, upgrading)


@pytest.mark.parametrize(
    ("contract", "status", "available", "up_to_date"),
    [
        ("v1beta2", {"availableReplicas": 2, "upToDateReplicas": 1}, 2, 1),
        ("v1beta2", {"updatedReplicas": 3, "unavailableReplicas": 1}, None, None),
        ("v1beta1", {"updatedReplicas": 1}, 3, 1),
        ("v1beta1", {"unavailableReplicas": 1}, 2, None),
    ],
)
def test_the_numbers_of_a_control_plane_by_both_contracts(
    contract: str, status: Fields, available: int | None, up_to_date: int | None
) -> None:
    plane = control_plane({"replicas": 3}, status, contract)
    assert (plane.available_replicas, plane.up_to_date_replicas) == (available, up_to_date)


def test_the_machine_template_of_a_control_plane_by_both_contracts() -> None:
    reference = {"kind": "ServerTemplate", "name": "cp"}
    new = control_plane({"machineTemplate": {"spec": {"infrastructureRef": {**reference, "apiGroup": GROUP}}}}, {})
    old = control_plane(
        {"machineTemplate": {"infrastructureRef": {**reference, "apiVersion": f"{GROUP}/v1beta1"}}}, {}, "v1beta1"
    )
    expected = ObjectReference(GROUP, "ServerTemplate", "cp")
    assert (new.infrastructure_template, old.infrastructure_template) == (expected, expected)
    assert control_plane({}, {}).infrastructure_template is None
    assert control_plane({}, {"versions": [{"version": "v1", "replicas": 2}]}).versions == (VersionCount("v1", 2),)
    assert control_plane({}, {"initialized": True}, "v1beta1").initialized
    assert control_plane({}, {"initialization": {"controlPlaneInitialized": True}}).initialized


def test_a_clone_says_where_it_comes_from() -> None:
    world = world_with(BOTH)
    inner = {
        "metadata": {"labels": {"own": "1", "both": "template"}, "annotations": {"note": "x"}},
        "spec": {"size": "big"},
    }
    world.add(TEMPLATE, {"metadata": {"name": "t", "namespace": "prod"}, "spec": {"template": inner}})
    template = read_reference(world, ObjectReference(GROUP, "ServerTemplate", "t"), "prod")
    kind = cloned_kind(world, template)
    assert kind == SERVER
    owner = OwnerReference(api_version="cluster.x-k8s.io/v1beta2", kind="MachineSet", name="ms", uid="u")
    made = clone(
        template,
        SERVER,
        name="s1",
        cluster="c1",
        labels={"both": "caller"},
        annotations={"why": "scale"},
        owners=[owner],
    )
    assert (made.namespace, made.body["apiVersion"], made.body["kind"]) == ("prod", SERVER.api_version, "Server")
    assert made.body["spec"] == {"size": "big"}
    metadata = made.body["metadata"]
    assert metadata["labels"] == {"own": "1", "both": "caller", "cluster.x-k8s.io/cluster-name": "c1"}
    assert metadata["annotations"] == {
        "note": "x",
        "why": "scale",
        "cluster.x-k8s.io/cloned-from-name": "t",
        "cluster.x-k8s.io/cloned-from-groupkind": f"ServerTemplate.{GROUP}",
    }
    assert [reference["uid"] for reference in metadata["ownerReferences"]] == ["u"]
    assert is_cloned_from(SERVER.convert(made.body), template)
    assert isinstance(SERVER.convert(made.body), Unstructured)


def test_a_template_without_content_makes_an_empty_object() -> None:
    world = world_with(BOTH)
    world.add(TEMPLATE, {"metadata": {"name": "t", "namespace": "prod"}, "spec": {}})
    template = read_reference(world, ObjectReference(GROUP, "ServerTemplate", "t"), "prod")
    made = clone(template, SERVER, name="s1", cluster="c1", labels={}, annotations={})
    assert "spec" not in made.body

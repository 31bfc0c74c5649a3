"""Cluster API's kinds in the embedded API: both versions of them, converted in its own process."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from ironbell.api.client import NO_OPTIONS, BadRequest, Invalid, PatchType, WriteOptions
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.direct import DirectApi
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.app.systems import SYSTEMS, converted_in
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.codec.cel import compile_rule

CONVERTED = converted_in(SYSTEMS)
CRDS = Collection("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
OLD = Collection("cluster.x-k8s.io", "v1beta1", "clusters", namespaced=True)
NEW = Collection("cluster.x-k8s.io", "v1beta2", "clusters", namespaced=True)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    kinds = ClusterKinds()
    opened = ApiServer.open(
        None,
        clock=ManualClock(),
        randomness=SeededRandomness(1),
        compile_rule=compile_rule,
        conversions=kinds.conversions,
    )
    async with opened as server:
        kinds.join(server)
        await kinds.define(server)
        yield server


@pytest.fixture
def api(server: ApiServer) -> DirectApi:
    return DirectApi(server.context, ADMIN)


def _encoded(body: dict[str, Any]) -> bytes:
    return msgspec.json.encode(body)


async def _get(api: DirectApi, collection: Collection, name: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(await api.get(collection, "default", name))
    return found


def _cluster(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": OLD.api_version, "kind": "Cluster", "metadata": {"name": "c"}, "spec": spec}


async def _provider(api: DirectApi, *, labels: dict[str, str]) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": "hostclusters", "kind": "HostCluster"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "hostclusters.hosts.test", "labels": labels},
        "spec": {
            "group": "hosts.test",
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    await api.create(CRDS, "", _encoded(body), NO_OPTIONS)


REFERENCE = {"apiVersion": "hosts.test/v1alpha1", "kind": "HostCluster", "name": "h"}


async def test_objects_of_the_older_version_are_stored_in_the_newer_one(api: DirectApi) -> None:
    await _provider(api, labels={"cluster.x-k8s.io/v1beta1": "v1alpha1_v1beta1", "cluster.x-k8s.io/v1beta2": "v2_v10"})
    await api.create(OLD, "default", _encoded(_cluster(paused=True, infrastructureRef=REFERENCE)), NO_OPTIONS)
    assert (await _get(api, NEW, "c"))["spec"] == {
        "paused": True,
        "infrastructureRef": {"apiGroup": "hosts.test", "kind": "HostCluster", "name": "h"},
    }
    shown = (await _get(api, OLD, "c"))["spec"]["infrastructureRef"]
    assert shown == {"apiVersion": "hosts.test/v10", "kind": "HostCluster", "name": "h", "namespace": "default"}


async def test_a_new_label_of_the_provider_counts_at_once(api: DirectApi) -> None:
    await _provider(api, labels={})
    await api.create(OLD, "default", _encoded(_cluster(infrastructureRef=REFERENCE)), NO_OPTIONS)
    assert (await _get(api, OLD, "c"))["spec"]["infrastructureRef"]["apiVersion"] == "hosts.test/v1beta1"
    patch = _encoded({"metadata": {"labels": {"cluster.x-k8s.io/v1beta2": "v1"}}})
    await api.patch(CRDS, "", "hostclusters.hosts.test", patch, patch_type=PatchType.MERGE)
    assert (await _get(api, OLD, "c"))["spec"]["infrastructureRef"]["apiVersion"] == "hosts.test/v1"


async def test_a_client_of_the_older_version_keeps_what_it_does_not_know(api: DirectApi) -> None:
    reference = {"apiGroup": "hosts.test", "kind": "HostCluster", "name": "h"}
    spec = _cluster(availabilityGates=[{"conditionType": "A"}], paused=False, infrastructureRef=reference)
    body = {**spec, "apiVersion": NEW.api_version}
    await api.create(NEW, "default", _encoded(body), NO_OPTIONS)
    old = await _get(api, OLD, "c")
    old["spec"]["controlPlaneEndpoint"] = {"host": "10.0.0.1", "port": 6443}
    await api.replace(OLD, "default", "c", _encoded(old))
    new = await _get(api, NEW, "c")
    assert new["spec"] == {**body["spec"], "controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}
    assert "annotations" not in new["metadata"]


async def test_a_patch_in_the_older_version_changes_the_stored_object(api: DirectApi) -> None:
    await api.create(OLD, "default", _encoded(_cluster(paused=True, infrastructureRef=REFERENCE)), NO_OPTIONS)
    apply = _encoded(_cluster(clusterNetwork={"services": {"cidrBlocks": ["10.0.0.0/16"]}}))
    options = WriteOptions(field_manager="me")
    await api.patch(OLD, "default", "c", apply, patch_type=PatchType.APPLY, options=options)
    spec = (await _get(api, NEW, "c"))["spec"]
    assert (spec["paused"], spec["clusterNetwork"]) == (True, {"services": {"cidrBlocks": ["10.0.0.0/16"]}})


async def test_all_definitions_are_served_and_defining_again_writes_nothing(server: ApiServer, api: DirectApi) -> None:
    for name in CONVERTED:
        conditions = msgspec.json.decode(await api.get(CRDS, "", name))["status"]["conditions"]
        assert {one["type"]: one["status"] for one in conditions} == {"NamesAccepted": "True", "Established": "True"}
    before = server.resource_version
    await ClusterKinds().define(server)
    assert server.resource_version == before


async def test_writes_are_completed_in_either_version(api: DirectApi) -> None:
    for collection, name in ((OLD, "old"), (NEW, "new")):
        body = {"apiVersion": collection.api_version, "kind": "MachineDeployment", "metadata": {"name": name}}
        spec = {"clusterName": "c", "selector": {}, "template": {"spec": {"clusterName": "c", "bootstrap": BOOTSTRAP}}}
        reference = "apiVersion" if collection is OLD else "apiGroup"
        group = "hosts.test/v1" if collection is OLD else "hosts.test"
        spec["template"]["spec"]["infrastructureRef"] = {reference: group, "kind": "Host", "name": "h"}
        where = Collection(collection.group, collection.version, "machinedeployments", namespaced=True)
        await api.create(where, "default", _encoded({**body, "spec": spec}), NO_OPTIONS)
        stored = await _get(api, Collection(NEW.group, NEW.version, "machinedeployments", namespaced=True), name)
        assert stored["spec"]["replicas"] == 1
        assert stored["spec"]["rollout"]["strategy"]["type"] == "RollingUpdate"
        assert stored["spec"]["selector"]["matchLabels"]["cluster.x-k8s.io/deployment-name"] == name
        assert "cluster.x-k8s.io/conversion-data" not in (stored["metadata"].get("annotations") or {})


BOOTSTRAP = {"dataSecretName": "s"}


@pytest.mark.parametrize("collection", [OLD, NEW], ids=["older", "stored"])
async def test_what_breaks_the_rules_is_refused_with_the_fields_name(api: DirectApi, collection: Collection) -> None:
    machines = Collection(collection.group, collection.version, "machines", namespaced=True)
    reference = "apiVersion" if collection is OLD else "apiGroup"
    group = "hosts.test/v1" if collection is OLD else "hosts.test"
    spec = {
        "clusterName": "c",
        "version": "one",
        "bootstrap": BOOTSTRAP,
        "infrastructureRef": {reference: group, "kind": "Host", "name": "h"},
    }
    body = {"apiVersion": collection.api_version, "kind": "Machine", "metadata": {"name": "m"}, "spec": spec}
    with pytest.raises(Invalid) as refusal:
        await api.create(machines, "default", _encoded(body), NO_OPTIONS)
    assert 'Machine.cluster.x-k8s.io "m" is invalid: spec.version: Invalid value' in str(refusal.value)


async def test_what_does_not_fit_the_schema_is_refused_by_it(api: DirectApi) -> None:
    """Rules read what their schema says is there: they come after it, as upstream's webhooks do."""
    body = {**_cluster(clusterNetwork={"pods": {"cidrBlocks": [7]}}, infrastructureRef=REFERENCE)}
    with pytest.raises(Invalid, match="cidrBlocks"):
        await api.create(OLD, "default", _encoded(body), NO_OPTIONS)
    deployments = Collection(NEW.group, NEW.version, "machinedeployments", namespaced=True)
    spec = {"clusterName": "c", "selector": {"matchExpressions": [{"values": ["a"]}]}}
    body = {"apiVersion": NEW.api_version, "kind": "MachineDeployment", "metadata": {"name": "d"}, "spec": spec}
    with pytest.raises(Invalid, match="matchExpressions"):
        await api.create(deployments, "default", _encoded(body), NO_OPTIONS)


async def test_what_cannot_be_converted_is_the_clients_fault(api: DirectApi) -> None:
    machines = Collection(OLD.group, OLD.version, "machines", namespaced=True)
    spec = {"clusterName": "c", "bootstrap": BOOTSTRAP, "nodeDrainTimeout": "10.0.0.1"}
    body = {"apiVersion": OLD.api_version, "kind": "Machine", "metadata": {"name": "m"}, "spec": spec}
    with pytest.raises(BadRequest, match=r'invalid duration "10\.0\.0\.1"'):
        await api.create(machines, "default", _encoded(body), NO_OPTIONS)

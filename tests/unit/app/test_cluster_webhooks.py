"""Webhooks of Cluster API's kinds: what they answer, and what an installation says about them."""

import base64
from typing import Any

import msgspec
import pytest

from ironbell.api import inclusteripam
from ironbell.api.client import ListOptions, NotFound, Page, Unavailable
from ironbell.api.core import SECRET
from ironbell.api.kind import Collection, Kind
from ironbell.api.meta import Resource
from ironbell.app.admission.handlers import CONVERT_PATH, cluster_handlers, mutate_path, scale_path, validate_path
from ironbell.app.admission.kinds import admissions
from ironbell.app.admission.places import client_configs, places_of, secret_of
from ironbell.app.admission.tls import WebhookTls
from ironbell.app.install.manifests import manifests
from ironbell.app.install.options import InstallOptions
from ironbell.app.systems import SYSTEMS, converted_in
from ironbell.base.clock import ManualClock
from ironbell.kube.serving_certificates import AUTHORITY
from ironbell.kube.testing import MemoryApi

OLD, NEW = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"
_ALL = ListOptions()
MACHINES = "machines.cluster.x-k8s.io"
KCPS = "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"
STORED = {
    "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
    "kind": "KubeadmControlPlane",
    "metadata": {"name": "k", "namespace": "n"},
    "spec": {
        "replicas": 1,
        "version": "v1.36.0",
        "machineTemplate": {
            "spec": {"infrastructureRef": {"apiGroup": "hosts.test", "kind": "HostTemplate", "name": "h"}}
        },
    },
}


CONVERTED = converted_in(SYSTEMS)
ANSWERING = [system for system in SYSTEMS if system.name == "cluster-api"]
PLACES, SECRET_NAME = places_of(ANSWERING), secret_of(ANSWERING)


class _Stored:
    """What the webhooks read."""

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        assert (where.plural, namespace, name) == ("kubeadmcontrolplanes", "n", "k")
        return msgspec.json.encode(STORED)

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = _ALL) -> Page:
        return Page([], "1")


HANDLERS = cluster_handlers(lambda group, _kind: f"{group}/v1", _Stored(), SYSTEMS)
SPEC = {
    "clusterName": "c",
    "bootstrap": {"dataSecretName": "s"},
    "infrastructureRef": {"apiGroup": "hosts.test", "kind": "Host", "name": "h"},
}


def _machine(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "m", "namespace": "n"}
    return {"apiVersion": NEW, "kind": "Machine", "metadata": metadata, "spec": {**SPEC, **spec}}


async def _asked(path: str, **request: Any) -> dict[str, Any]:
    body = msgspec.json.encode({"request": {"uid": "u", **request}})
    response: dict[str, Any] = msgspec.json.decode(await HANDLERS[path](body))["response"]
    assert response["uid"] == "u"
    return response


async def test_objects_are_converted() -> None:
    response = await _asked(CONVERT_PATH, desiredAPIVersion=OLD, objects=[_machine(), _machine(version="v1.36.0")])
    assert response["result"] == {"status": "Success"}
    one, two = response["convertedObjects"]
    assert one["spec"]["infrastructureRef"]["apiVersion"] == "hosts.test/v1"
    assert (one["apiVersion"], two["spec"]["version"]) == (OLD, "v1.36.0")


async def test_one_object_that_cannot_be_converted_fails_the_review() -> None:
    broken = {**_machine(), "apiVersion": OLD, "spec": {"nodeDrainTimeout": "soon"}}
    response = await _asked(CONVERT_PATH, desiredAPIVersion=NEW, objects=[_machine(), broken])
    assert response["result"] == {
        "status": "Failed",
        "message": 'failed to convert object: time: invalid duration "soon"',
    }
    assert "convertedObjects" not in response


async def test_defaults_come_as_a_patch() -> None:
    response = await _asked(mutate_path(MACHINES), operation="CREATE", name="m", object=_machine(version="1.36.0"))
    assert response["allowed"]
    assert response["patchType"] == "JSONPatch"
    patch = msgspec.json.decode(base64.b64decode(response["patch"]))
    changed = {change["path"]: change["value"] for change in patch}
    assert {change["op"] for change in patch} == {"add"}
    assert changed["/spec"]["version"] == "v1.36.0"
    assert changed["/metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "c"


async def test_what_is_complete_is_left_alone() -> None:
    first = await _asked(mutate_path(MACHINES), operation="CREATE", object=_machine())
    body = _machine()
    for change in msgspec.json.decode(base64.b64decode(first["patch"])):
        body[change["path"].removeprefix("/")] = change["value"]
    assert "patch" not in await _asked(mutate_path(MACHINES), operation="UPDATE", object=body, oldObject=body)


async def test_faults_are_refused_as_the_api_server_refuses_them() -> None:
    response = await _asked(validate_path(MACHINES), operation="CREATE", name="m", object=_machine(version="one"))
    assert not response["allowed"]
    status = response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"].startswith('Machine.cluster.x-k8s.io "m" is invalid: [spec.version: Invalid value')
    assert status["details"]["causes"][0]["field"] == "spec.version"
    assert (await _asked(validate_path(MACHINES), operation="CREATE", name="m", object=_machine()))["allowed"]


@pytest.mark.parametrize(("replicas", "allowed"), [(3, True), (2, False), (0, False)])
async def test_a_control_plane_is_not_scaled_to_a_number_that_will_not_do(replicas: int, *, allowed: bool) -> None:
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}}
    response = await _asked(scale_path(KCPS), operation="UPDATE", namespace="n", name="k", object=scale)
    assert response["allowed"] is allowed
    if not allowed:
        assert response["status"]["details"]["causes"][0]["field"] == "spec.replicas"


CLASS = {
    "apiVersion": NEW,
    "kind": "ClusterClass",
    "metadata": {"name": "small", "namespace": "n", "generation": 1},
    "spec": {},
}


class _Classes(_Stored):
    """A class that is not ready, and a Cluster that uses it."""

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        if name == "none":
            raise NotFound("no such class")
        if name == "lost":
            raise Unavailable("the connection was closed")
        return msgspec.json.encode(CLASS)

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = _ALL) -> Page:
        return Page([msgspec.json.encode(_cluster("small"))], "1")


def _cluster(class_: str) -> dict[str, Any]:
    topology = {"classRef": {"name": class_}, "version": "v1.36.0"}
    return {"kind": "Cluster", "metadata": {"name": "c", "namespace": "n"}, "spec": {"topology": topology}}


CLASS_HANDLERS = cluster_handlers(lambda group, _kind: f"{group}/v1", _Classes(), SYSTEMS, patience_s=0)


async def _said(path: str, **request: Any) -> dict[str, Any]:
    body = msgspec.json.encode({"request": {"uid": "u", "namespace": "n", **request}})
    response: dict[str, Any] = msgspec.json.decode(await CLASS_HANDLERS[path](body))["response"]
    return response


@pytest.mark.parametrize(("class_", "told"), [("none", "does not exist"), ("small", "hasn't been successfully")])
async def test_a_class_that_cannot_be_asked_is_a_warning(class_: str, told: str) -> None:
    new = _cluster(class_)
    response = await _said(validate_path("clusters.cluster.x-k8s.io"), operation="CREATE", name="c", object=new)
    assert response["allowed"]
    [warning] = response["warnings"]
    assert told in warning


async def test_a_class_in_use_is_not_deleted() -> None:
    path = validate_path("clusterclasses.cluster.x-k8s.io")
    response = await _said(path, operation="DELETE", name="small", oldObject=CLASS)
    assert not response["allowed"]
    status = response["status"]
    assert (status["code"], status["reason"]) == (403, "Forbidden")
    assert "used by Cluster(s) n/c" in status["message"]


@pytest.mark.parametrize("path", sorted(HANDLERS))
async def test_what_is_no_review_is_told_apart_from_a_defect(path: str) -> None:
    with pytest.raises(msgspec.MsgspecError):
        await HANDLERS[path](b"{}")


def _installed(*words: str) -> list[dict[str, Any]]:
    return manifests(InstallOptions(words=words))


def test_definitions_are_installed_where_something_converts() -> None:
    def definitions(word: str) -> dict[str, dict[str, Any]]:
        found = [document for document in _installed(word) if document["kind"] == "CustomResourceDefinition"]
        return {document["metadata"]["name"]: document for document in found}

    assert not CONVERTED & definitions("tink-controller").keys()
    ours = definitions("cluster-api")
    assert ours.keys() >= CONVERTED
    for name in CONVERTED:
        conversion = ours[name]["spec"]["conversion"]
        assert conversion["strategy"] == "Webhook"
        service = conversion["webhook"]["clientConfig"]["service"]
        assert service == {
            "name": "ironbell-cluster-api",
            "namespace": "ironbell-system",
            "port": 443,
            "path": "/convert",
        }
    assert "conversion" not in ours["providers.clusterctl.cluster.x-k8s.io"]["spec"]


@pytest.mark.parametrize("components", [("cluster-api",), ("cluster-api", "ipam")])
def test_configurations_ask_for_every_kind_with_rules_and_fail_closed(components: tuple[str, ...]) -> None:
    found = {document["kind"]: document for document in _installed(*components)}
    # pools are judged where their provider is installed: nothing defines them elsewhere
    pools = {f"{kind.plural}.{kind.group}" for kind in inclusteripam.KINDS}
    judged = admissions().keys() - (set() if "ipam" in components else pools)
    for kind, path_of in (
        ("MutatingWebhookConfiguration", mutate_path),
        ("ValidatingWebhookConfiguration", validate_path),
    ):
        entries = found[kind]["webhooks"]
        paths = {entry["clientConfig"]["service"]["path"] for entry in entries}
        scales = {scale_path(KCPS)} if kind.startswith("Validating") else set()
        assert paths == {path_of(definition) for definition in judged} | scales
        assert paths <= HANDLERS.keys()
        assert {entry["failurePolicy"] for entry in entries} == {"Fail"}
        assert {entry["matchPolicy"] for entry in entries} == {"Equivalent"}


def test_the_account_may_write_where_the_authority_stands_and_its_secret() -> None:
    documents = _installed("cluster-api")
    roles = {document["metadata"]["name"]: document for document in documents if document["kind"] == "ClusterRole"}
    named = {
        (resource, name)
        for rule in roles["ironbell-cluster-api"]["rules"]
        if "update" in rule["verbs"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ())
    }
    assert named >= {(place.where.plural, place.name) for place in PLACES}
    (role,) = (document for document in documents if document["kind"] == "Role")
    assert SECRET_NAME in {name for rule in role["rules"] for name in rule.get("resourceNames", ())}
    (service,) = (document for document in documents if document["kind"] == "Service")
    assert {"name": "webhooks", "port": 443, "targetPort": 9443} in service["spec"]["ports"]


async def test_the_authority_is_told_wherever_the_api_server_looks() -> None:
    clock = ManualClock()
    api = MemoryApi(clock=clock)
    collections = {place.where for place in PLACES}
    api.serve(
        [
            SECRET,
            *(Kind(c.group, "v1", "Any", c.plural, Resource, namespaced=False) for c in sorted(collections, key=str)),
        ]
    )
    by_name = {(document["kind"], document["metadata"]["name"]): document for document in _installed("cluster-api")}
    for place in PLACES:
        (document,) = (
            document
            for (kind, name), document in by_name.items()
            if name == place.name and f"{kind.lower()}s" == place.where.plural
        )
        await api.create(place.where, "", msgspec.json.encode(document))
    tls = WebhookTls(api, "ns", ("x.ns.svc",), clock, secret=SECRET_NAME, places=PLACES)
    await tls.sync()
    assert tls.is_loaded
    data = api.objects[SECRET.collection]["ns", SECRET_NAME]["data"]
    for place in PLACES:
        configs = client_configs(api.objects[place.where]["", place.name])
        assert configs
        assert {config["caBundle"] for config in configs} == {data[AUTHORITY]}
    writes = api.writes
    await tls.sync()
    assert api.writes == writes


@pytest.mark.parametrize("path", [mutate_path, validate_path])
async def test_a_write_is_refused_with_the_cause_while_its_class_cannot_be_read(path: Any) -> None:
    new = _cluster("lost")
    response = await _said(path("clusters.cluster.x-k8s.io"), operation="CREATE", name="c", object=new)
    status = response["status"]
    assert (response["allowed"], status["code"], status["reason"]) == (False, 503, "ServiceUnavailable")
    assert status["message"] == "ClusterClass n/lost could not be looked up: the connection was closed"

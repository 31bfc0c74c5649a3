"""Conversion webhooks: between the versions of kinds that others define."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from support.api.kubeapi import Answer, KubeApi
from support.api.webhookserver import WebhookServer, webhook_server
from support.waiting import eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Convert = Callable[[dict[str, Any], str], dict[str, Any]]


@pytest.fixture(scope="session")
def webhooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    with webhook_server(tmp_path_factory.mktemp("conversion")) as server:
        yield server


def rename(value: dict[str, Any], api_version: str) -> dict[str, Any]:
    """v1 keeps `spec.hostPort`, v2 keeps `spec.host` and `spec.port`."""
    spec = value.get("spec", {})
    if api_version.endswith("/v2"):
        host, _, port = spec.get("hostPort", ":").partition(":")
        spec = {"host": host, "port": port}
    else:
        spec = {"hostPort": f"{spec.get('host', '')}:{spec.get('port', '')}"}
    return {**value, "apiVersion": api_version, "spec": spec}


def converting(convert: Convert) -> Callable[[dict[str, Any]], Any]:
    """The webhook's answer, by a function of one object."""

    def answer(review: dict[str, Any]) -> Any:
        request = review["request"]
        objects = [convert(value, request["desiredAPIVersion"]) for value in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    return answer


class Kind:
    """A kind with two versions, v1 stored."""

    def __init__(self, api: KubeApi, namespace: str, group: str, path: str) -> None:
        self.api, self.namespace, self.group, self.path = api, namespace, group, path

    def collection(self, version: str) -> str:
        return f"/apis/{self.group}/{version}/namespaces/{self.namespace}/endpoints2"

    def value(self, version: str, name: str = "one", **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group}/{version}", "kind": "Endpoint2", "metadata": {"name": name}, "spec": spec,
        }  # fmt: skip

    def make(self, version: str, name: str = "one", **spec: Any) -> dict[str, Any]:
        return self.api.made(self.collection(version), self.value(version, name, **spec))

    def get(self, version: str, name: str = "one") -> Answer:
        return self.api.get(f"{self.collection(version)}/{name}")


def definition(group: str, config: dict[str, Any]) -> dict[str, Any]:
    def version(name: str, *fields: str, storage: bool) -> dict[str, Any]:
        spec = {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
        schema = {"type": "object", "properties": {"spec": spec}}
        return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}

    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"endpoints2.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": "endpoints2",
                "singular": "endpoint2",
                "kind": "Endpoint2",
                "listKind": "Endpoint2List",
            },
            "versions": [version("v1", "hostPort", storage=True), version("v2", "host", "port", storage=False)],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
            },
        },
    }


@pytest.fixture
def kind(api: KubeApi, namespace: str, webhooks: WebhookServer) -> Iterator[Kind]:
    group, path = f"g{uuid4().hex[:8]}.example.org", f"/{uuid4().hex[:8]}"
    api.made(CRDS, definition(group, webhooks.on(path, converting(rename))))
    made = Kind(api, namespace, group, path)
    for version in ("v1", "v2"):
        eventually(lambda version=version: api.get(made.collection(version)).status == 200)
    yield made
    webhooks.on(path, converting(rename))
    api.delete(f"{CRDS}/endpoints2.{group}")


def test_object_is_read_in_another_version(kind: Kind) -> None:
    made = kind.make("v1", hostPort="a.example.org:80")
    found = kind.get("v2").json
    assert found["apiVersion"] == f"{kind.group}/v2"
    assert found["spec"] == {"host": "a.example.org", "port": "80"}
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_object_is_written_in_another_version(kind: Kind) -> None:
    made = kind.make("v2", host="b", port="81")
    assert made["apiVersion"] == f"{kind.group}/v2"
    assert made["spec"] == {"host": "b", "port": "81"}
    assert kind.get("v1").json["spec"] == {"hostPort": "b:81"}


def test_object_is_changed_in_another_version(kind: Kind) -> None:
    kind.make("v1", hostPort="a:80")
    answer = kind.api.patch(f"{kind.collection('v2')}/one", {"spec": {"port": "82"}})
    assert answer.json["spec"] == {"host": "a", "port": "82"}
    assert kind.get("v1").json["spec"] == {"hostPort": "a:82"}
    found = kind.get("v2").json
    found["spec"]["host"] = "c"
    assert kind.api.put(f"{kind.collection('v2')}/one", found).json["spec"] == {"host": "c", "port": "82"}
    assert kind.get("v1").json["spec"] == {"hostPort": "c:82"}


def test_list_is_converted(kind: Kind) -> None:
    for number in range(20):
        kind.make("v1", f"e{number:02}", hostPort=f"h{number}:1")
    found = kind.api.get(kind.collection("v2")).json
    assert found["apiVersion"] == f"{kind.group}/v2"
    assert [item["spec"]["host"] for item in found["items"]] == [f"h{number}" for number in range(20)]
    assert {item["apiVersion"] for item in found["items"]} == {f"{kind.group}/v2"}


def test_watch_is_converted(kind: Kind) -> None:
    version = kind.api.get(kind.collection("v2")).json["metadata"]["resourceVersion"]
    with kind.api.watch(kind.collection("v2"), resourceVersion=version) as watch:
        kind.make("v1", hostPort="a:80")
        kind.api.patch(f"{kind.collection('v1')}/one", {"spec": {"hostPort": "b:80"}})
        kind.api.delete(f"{kind.collection('v1')}/one")
        events = watch.take(3)
    assert [(one["type"], one["object"]["spec"]["host"]) for one in events] == [
        ("ADDED", "a"), ("MODIFIED", "b"), ("DELETED", "b"),
    ]  # fmt: skip
    assert {one["object"]["apiVersion"] for one in events} == {f"{kind.group}/v2"}


def test_object_is_deleted_in_another_version(kind: Kind) -> None:
    kind.make("v1", hostPort="a:80")
    assert kind.api.delete(f"{kind.collection('v2')}/one").status == 200
    assert kind.get("v1").status == 404


def test_stored_version_needs_no_conversion(kind: Kind, webhooks: WebhookServer) -> None:
    del webhooks.answers[kind.path]
    kind.make("v1", hostPort="a:80")
    assert kind.get("v1").status == 200
    assert kind.get("v2").status == 500


def test_metadata_stays_but_for_labels_and_annotations(kind: Kind, webhooks: WebhookServer) -> None:
    def meddle(value: dict[str, Any], api_version: str) -> dict[str, Any]:
        found = rename(value, api_version)
        meta = found["metadata"] | {"labels": {"by": "webhook"}, "finalizers": ["example.org/hold"]}
        return found | {"metadata": meta}

    kind.make("v1", hostPort="a:80")
    webhooks.on(kind.path, converting(meddle))
    meta = kind.get("v2").json["metadata"]
    assert meta["labels"] == {"by": "webhook"}
    assert "finalizers" not in meta


def test_webhook_that_fails(kind: Kind, webhooks: WebhookServer) -> None:
    def fail(review: dict[str, Any]) -> Any:
        result = {"status": "Failure", "message": "cannot do that"}
        response = {"uid": review["request"]["uid"], "result": result}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    kind.make("v1", hostPort="a:80")
    webhooks.on(kind.path, fail)
    answer = kind.get("v2")
    assert answer.status == 500
    assert answer.message == f"conversion webhook for {kind.group}/v1, Kind=Endpoint2 failed: cannot do that"
    assert kind.get("v1").status == 200


WRONG: list[tuple[Convert, str]] = [
    (lambda value, api_version: value, "invalid groupVersion (expected"),
    (lambda value, api_version: rename(value, api_version) | {"kind": "Other"}, "invalid kind (expected Endpoint2"),
    (
        lambda value, api_version: rename(value, api_version) | {"metadata": {**value["metadata"], "name": "x"}},
        "must have the same name: one != x",
    ),
]


@pytest.mark.parametrize(("convert", "why"), WRONG)
def test_wrong_objects_are_refused(kind: Kind, webhooks: WebhookServer, convert: Convert, why: str) -> None:
    kind.make("v1", hostPort="a:80")
    webhooks.on(kind.path, converting(convert))
    answer = kind.get("v2")
    assert answer.status == 500
    assert answer.message.startswith(f"conversion webhook for {kind.group}/v1, Kind=Endpoint2 returned invalid object")
    assert why in answer.message


def test_too_few_objects_are_refused(kind: Kind, webhooks: WebhookServer) -> None:
    def none(review: dict[str, Any]) -> Any:
        found = converting(rename)(review)
        found["response"]["convertedObjects"] = []
        return found

    kind.make("v1", hostPort="a:80")
    webhooks.on(kind.path, none)
    answer = kind.get("v2")
    assert answer.status == 500
    assert "returned 0 objects, expected 1" in answer.message

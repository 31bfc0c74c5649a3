"""Protocol buffers: what is sent and answered in them means what it means in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ironbell.apiserver.http.protobuf.codec import to_json, wire_fields
from ironbell.apiserver.http.protobuf.writer import from_json
from support.api.kubeapi import Answer, KubeApi
from support.api.kubeobjects import config_map, thing
from support.api.recorded import cases
from support.waiting import eventually

PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPT = {"Accept": PROTOBUF}
METADATA = {"Accept": f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
METADATA_LIST = {"Accept": f"{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def read(answer: Answer) -> Any:
    """The object in an answer in protocol buffers, as JSON."""
    assert answer.headers["Content-Type"] == PROTOBUF, answer.body
    return json.loads(to_json(answer.body))


def sent(value: dict[str, Any]) -> bytes:
    return from_json(json.dumps(value).encode())


def same(found: Any, expected: Any) -> bool:
    """Whether two values differ in nothing but what is empty."""
    return plain(found) == plain(expected)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        known = {key: plain(item) for key, item in value.items()}
        return {key: item for key, item in known.items() if item not in (None, "", {}, [], False, 0)}
    return [plain(item) for item in value] if isinstance(value, list) else value


def definition(plural: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "additionalProperties": {"type": "number", "minimum": 0.5, "enum": [1, 2.5]},
                "default": {"a": 1},
            },
            "list": {"type": "array", "maxItems": 3, "items": {"x-kubernetes-int-or-string": True}},
        },
        "x-kubernetes-validations": [{"rule": "!has(self.list) || size(self.list) > 0", "message": "must have one"}],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.protobuf.example.org"},
        "spec": {
            "group": "protobuf.example.org",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def test_a_definition_in_both_directions(api: KubeApi) -> None:
    wanted = definition("lamps")
    answer = api.call("POST", DEFINITIONS, sent(wanted), content_type=PROTOBUF, headers=ACCEPT)
    assert answer.status == 201, answer.body
    made = read(answer)
    assert made["spec"]["versions"][0]["schema"] == wanted["spec"]["versions"][0]["schema"]
    path = f"{DEFINITIONS}/{wanted['metadata']['name']}"
    assert same(read(api.get(path, headers=ACCEPT))["spec"], api.get(path).json["spec"])
    listed = read_list(api.get(DEFINITIONS, headers=ACCEPT, fieldSelector=f"metadata.name={made['metadata']['name']}"))
    assert same(listed[0]["spec"], made["spec"])
    lamps = "/apis/protobuf.example.org/v1/namespaces/default/lamps"
    eventually(lambda: api.get(lamps).status == 200)
    lamp = {"apiVersion": "protobuf.example.org/v1", "kind": "Lamp", "metadata": {"generateName": "l-"}}
    assert eventually(lambda: api.post(lamps, lamp).json.get("spec")) == {"a": 1}
    assert api.post(lamps, lamp | {"list": []}).status == 422
    assert api.delete(path).status == 200


def read_list(answer: Answer) -> list[Any]:
    """The items of a list in protocol buffers, each as JSON."""
    assert answer.headers["Content-Type"] == PROTOBUF, answer.body
    envelope = dict(wire_fields(answer.body[4:]))
    names = {number: bytes(value).decode() for number, value in wire_fields(as_bytes(envelope[1])) if value}
    items = [value for number, value in wire_fields(as_bytes(envelope[2])) if number == 2]
    return [json.loads(to_json(enveloped(names[1], names[2].removesuffix("List"), as_bytes(item)))) for item in items]


def as_bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def enveloped(api_version: str, kind: str, message: bytes) -> bytes:
    def block(number: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    return b"k8s\0" + block(1, block(1, api_version.encode()) + block(2, kind.encode())) + block(2, message)


def test_objects_lists_and_writes(api: KubeApi, config_maps: str) -> None:
    value = config_map(data={"a": "1"}) | {"binaryData": {"b": "/wA="}}
    answer = api.call("POST", config_maps, sent(value), content_type=PROTOBUF, headers=ACCEPT)
    assert answer.status == 201
    path = f"{config_maps}/one"
    assert same(read(answer), api.get(path).json)
    changed = read(api.patch(path, {"data": {"a": "2"}}, headers=ACCEPT))
    assert (changed["data"], changed["binaryData"]) == ({"a": "2"}, {"b": "/wA="})
    assert changed["metadata"]["managedFields"] == api.get(path).json["metadata"]["managedFields"]
    listed = read_list(api.get(config_maps, headers=ACCEPT, fieldSelector="metadata.name=one"))
    assert [item["data"] for item in listed] == [{"a": "2"}]
    gone = read(api.delete(path, headers=ACCEPT))
    assert (gone["kind"], gone["status"], gone["details"]["name"]) == ("Status", "Success", "one")


def test_kinds_of_every_shape(api: KubeApi, namespace: str) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for path in (
        "/api/v1/namespaces", f"{rbac}/clusterroles", f"{rbac}/clusterrolebindings",
        f"/api/v1/namespaces/{namespace}/serviceaccounts",
    ):  # fmt: skip
        plainly = {item["metadata"]["name"]: item for item in api.get(path).json["items"]}
        for item in read_list(api.get(path, headers=ACCEPT)):
            expected = plainly.get(item["metadata"]["name"])
            assert expected is None or same(
                {key: item.get(key) for key in ("rules", "subjects", "roleRef", "spec", "aggregationRule")},
                {key: expected.get(key) for key in ("rules", "subjects", "roleRef", "spec", "aggregationRule")},
            )


def test_a_pod_with_many_parts(api: KubeApi, namespace: str) -> None:
    container = {
        "name": "c", "image": "i", "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "livenessProbe": {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 3},
        "ports": [{"name": "web", "containerPort": 80}],
    }  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [container], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
                 "serviceAccountName": "default", "automountServiceAccountToken": False},
    }  # fmt: skip
    path = f"/api/v1/namespaces/{namespace}/pods"
    eventually(lambda: api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default").status == 200)
    answer = api.call("POST", path, sent(pod), content_type=PROTOBUF, headers=ACCEPT)
    assert answer.status == 201, answer.body
    assert same(read(answer), api.get(f"{path}/p").json)


SET_BY_SERVERS = ("uid", "creationTimestamp", "resourceVersion", "managedFields")


def without_what_servers_set(value: Any) -> Any:
    found = plain(value)
    for name in SET_BY_SERVERS:
        found["metadata"].pop(name, None)
    for claim in found.get("spec", {}).get("volumeClaimTemplates", ()):
        # messages inside of others do not say what they are
        claim.pop("kind", None)
        claim.pop("apiVersion", None)
    return found


def test_every_builtin_kind(api: KubeApi, namespace: str) -> None:
    """Each is written and read in both forms, and nothing of it is lost in either."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    eventually(lambda: api.get(accounts).status == 200)  # for the pods
    kinds = set()
    for case in cases("builtin_objects"):
        if case.expect["status"] != 201 or case.content is None:
            continue
        path, text = (part.replace("NS", namespace) for part in (case.path, case.content.decode()))
        plainly = api.call("POST", path, text.encode(), dryRun="All")
        assert plainly.status == 201, plainly.body
        value = plainly.json
        for name in SET_BY_SERVERS:
            value["metadata"].pop(name, None)
        answer = api.call("POST", path, sent(value), content_type=PROTOBUF, headers=ACCEPT, dryRun="All")
        assert answer.status == 201, (case.name, answer.body)
        assert without_what_servers_set(read(answer)) == without_what_servers_set(plainly.json), case.name
        kinds.add(value["kind"])
    assert len(kinds) > 30


def test_metadata(api: KubeApi, config_maps: str, things: str) -> None:
    api.made(config_maps, config_map())
    api.made(things, thing())
    for path in (config_maps, things):
        found = read(api.get(f"{path}/one", headers=METADATA))
        assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert same(found["metadata"], api.get(f"{path}/one").json["metadata"])
        names = [item["metadata"]["name"] for item in read_list(api.get(path, headers=METADATA_LIST))]
        assert "one" in names


def test_tables_and_custom_resources_are_not_in_protocol_buffers(api: KubeApi, config_maps: str, things: str) -> None:
    table = {"Accept": f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io"}
    for path, headers in ((config_maps, table), (things, table), (things, ACCEPT)):
        answer = api.get(path, headers=headers)
        assert (answer.status, answer.headers["Content-Type"]) == (
            406,
            "application/json" if headers is table else PROTOBUF,
        )
    both = {"Accept": f"{PROTOBUF},application/json"}
    assert api.get(things, headers=both).json["kind"] == "ThingList"


def test_refusals(api: KubeApi, config_maps: str) -> None:
    answer = api.get(f"{config_maps}/none", headers=ACCEPT)
    assert answer.status == 404
    found = read(answer)
    assert (found["reason"], found["code"], found["details"]["name"]) == ("NotFound", 404, "none")


@contextmanager
def watching(api: KubeApi, path: str, accept: str) -> Iterator[Iterator[tuple[str, Any]]]:
    """Events of a watch in protocol buffers: their types and objects."""
    response = api.pool.request(
        "GET", f"{api.server}{path}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
        "&resourceVersionMatch=NotOlderThan", headers={**dict(api.headers), "Accept": accept}, timeout=30,
        retries=False, preload_content=False,
    )  # fmt: skip

    def events() -> Iterator[tuple[str, Any]]:
        buffer = b""
        for part in response.stream(65536):
            buffer += part
            while len(buffer) > 4 and len(buffer) >= 4 + (size := int.from_bytes(buffer[:4], "big")):
                frame, buffer = buffer[4 : 4 + size], buffer[4 + size :]
                fields = dict(wire_fields(frame))
                raw = dict(wire_fields(as_bytes(fields[2])))[1]
                yield as_bytes(fields[1]).decode(), json.loads(to_json(as_bytes(raw)))

    try:
        assert response.status == 200
        assert response.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
        yield events()
    finally:
        response.close()
        response.release_conn()


@pytest.mark.parametrize("accept", [PROTOBUF, METADATA["Accept"]])
def test_watches(api: KubeApi, namespace: str, accept: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/endpoints"
    one = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "one"}}
    api.made(path, one)
    with watching(api, path, accept) as events:
        first, mark = next(events), next(events)
        kind = "Endpoints" if accept == PROTOBUF else "PartialObjectMetadata"
        assert (first[0], first[1]["kind"], first[1]["metadata"]["name"]) == ("ADDED", kind, "one")
        assert (mark[0], mark[1]["kind"]) == ("BOOKMARK", kind)
        assert mark[1]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
        api.patch(f"{path}/one", {"metadata": {"labels": {"a": "b"}}})
        changed = next(events)
        assert (changed[0], changed[1]["metadata"]["labels"]["a"]) == ("MODIFIED", "b")
        api.delete(f"{path}/one")
        assert next(events)[0] == "DELETED"


def test_discovery(api: KubeApi) -> None:
    for path in ("/api/v1", "/apis/apps/v1", "/apis/apps"):
        answer, plainly = api.get(path, headers=ACCEPT), api.get(path).json
        assert (answer.status, answer.headers["Content-Type"]) == (200, PROTOBUF)
        # kube-apiserver leaves it to the client to know the version of some of these
        message = as_bytes(dict(wire_fields(answer.body[4:]))[2])
        found = json.loads(to_json(enveloped("v1", plainly["kind"], message)))
        assert same(found, plainly | {"apiVersion": "v1"})
    aggregated = f"{PROTOBUF};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    answer = api.get("/apis", headers={"Accept": aggregated})
    assert (answer.status, answer.headers["Content-Type"]) == (200, aggregated)


def test_reviews(api: KubeApi) -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "default"}},
    }  # fmt: skip
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = api.call("POST", path, sent(review), content_type=PROTOBUF, headers=ACCEPT)
    assert answer.status == 201
    assert read(answer)["status"]["allowed"] is True

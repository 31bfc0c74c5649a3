"""What a server says about itself: discovery, OpenAPI, version and health."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from support.api.kubeapi import KubeApi
from support.waiting import eventually

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2 = {"Accept": AGGREGATED}


def test_versions_of_the_core_group(api: KubeApi) -> None:
    found = api.get("/api").json
    assert (found["kind"], found["versions"]) == ("APIVersions", ["v1"])
    assert found["serverAddressByClientCIDRs"][0]["clientCIDR"] == "0.0.0.0/0"


def test_groups(api: KubeApi) -> None:
    found = api.get("/apis").json
    assert (found["kind"], found["apiVersion"]) == ("APIGroupList", "v1")
    groups = {group["name"]: group for group in found["groups"]}
    assert {
        "apps", "batch", "coordination.k8s.io", "apiextensions.k8s.io", "rbac.authorization.k8s.io", "events.k8s.io",
        "authorization.k8s.io", "authentication.k8s.io",
    } <= set(groups)  # fmt: skip
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}


def test_a_group(api: KubeApi) -> None:
    assert api.get("/apis/apps").json == {
        "kind": "APIGroup", "apiVersion": "v1", "name": "apps",
        "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
    }  # fmt: skip


TEXT = {"type": "string"}
CRD = "CustomResourceDefinition"
NAMES = ["name", "singularName", "namespaced", "kind", "shortNames"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1", ["configmaps", "configmap", True, "ConfigMap", ["cm"]]),
        ("/api/v1", ["namespaces", "namespace", False, "Namespace", ["ns"]]),
        ("/api/v1", ["secrets", "secret", True, "Secret", None]),
        ("/api/v1", ["nodes", "node", False, "Node", ["no"]]),
        ("/api/v1", ["events", "event", True, "Event", ["ev"]]),
        ("/apis/apps/v1", ["deployments", "deployment", True, "Deployment", ["deploy"]]),
        (
            "/apis/apiextensions.k8s.io/v1",
            [
                "customresourcedefinitions",
                "customresourcedefinition",
                False,
                "CustomResourceDefinition",
                ["crd", "crds"],
            ],
        ),
        ("/apis/coordination.k8s.io/v1", ["leases", "lease", True, "Lease", None]),
    ],
)
def test_resources(api: KubeApi, path: str, expected: list[Any]) -> None:
    found = api.get(path).json
    assert (found["kind"], found["groupVersion"]) == (
        "APIResourceList",
        path.removeprefix("/api").removeprefix("s").strip("/"),
    )
    resource = next(one for one in found["resources"] if one["name"] == expected[0])
    assert [resource.get(name) for name in NAMES] == expected
    verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    assert set(resource["verbs"]) == (verbs - {"deletecollection"} if expected[0] == "namespaces" else verbs)


@pytest.mark.parametrize(
    ("path", "name", "kind", "verbs"),
    [
        ("/api/v1", "namespaces/finalize", "Namespace", {"update"}),
        ("/api/v1", "namespaces/status", "Namespace", {"get", "patch", "update"}),
        ("/api/v1", "nodes/status", "Node", {"get", "patch", "update"}),
        ("/apis/apps/v1", "deployments/status", "Deployment", {"get", "patch", "update"}),
        ("/apis/apps/v1", "deployments/scale", "Scale", {"get", "patch", "update"}),
    ],
)
def test_subresources(api: KubeApi, path: str, name: str, kind: str, verbs: set[str]) -> None:
    resource = next(one for one in api.get(path).json["resources"] if one["name"] == name)
    assert (resource["kind"], set(resource["verbs"]), resource["singularName"]) == (kind, verbs, "")


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_discovery(api: KubeApi, path: str) -> None:
    answer = api.get(path, headers=V2)
    assert answer.headers["Content-Type"] == AGGREGATED
    found = answer.json
    assert (found["kind"], found["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    groups = {group["metadata"].get("name", ""): group for group in found["items"]}
    if path == "/api":
        assert set(groups) == {""}
        version = groups[""]["versions"][0]
    else:
        version = groups["apps"]["versions"][0]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    resources = {resource["resource"]: resource for resource in version["resources"]}
    one = resources["configmaps" if path == "/api" else "deployments"]
    assert one["scope"] == "Namespaced"
    assert one["singularResource"] == ("configmap" if path == "/api" else "deployment")
    assert one["responseKind"]["kind"] == ("ConfigMap" if path == "/api" else "Deployment")


def test_both_discoveries_say_the_same(api: KubeApi) -> None:
    aggregated = api.get("/apis", headers=V2).json
    for group in aggregated["items"]:
        for version in group["versions"]:
            name = f"{group['metadata']['name']}/{version['version']}"
            if name == "apiregistration.k8s.io/v1":
                continue
            old = {one["name"] for one in api.get(f"/apis/{name}").json["resources"]}
            new = {one["resource"] for one in version["resources"]} | {
                f"{one['resource']}/{sub['subresource']}"
                for one in version["resources"]
                for sub in one.get("subresources") or ()
            }
            assert old == new, name


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_discovery_is_kept_by_its_hash(api: KubeApi, path: str) -> None:
    digest = api.get(path, headers=V2).headers["ETag"]
    answer = api.get(path, headers=V2 | {"If-None-Match": digest})
    assert (answer.status, answer.body) == (304, b"")
    assert answer.headers["ETag"] == digest
    assert api.get(path, headers=V2 | {"If-None-Match": '"another"'}).status == 200


def test_a_client_takes_what_there_is(api: KubeApi) -> None:
    wanted = "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList," + AGGREGATED + ",application/json"
    assert api.get("/apis", headers={"Accept": wanted}).json["kind"] == "APIGroupDiscoveryList"
    old = "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json"
    assert api.get("/apis", headers={"Accept": old}).json["kind"] == "APIGroupList"


def test_a_custom_resource_is_discovered(api: KubeApi, things_served: KubeApi) -> None:
    found = api.get("/apis/conf.example.org/v1").json
    resources = {one["name"]: one for one in found["resources"]}
    assert set(resources) == {"things", "things/status", "things/scale"}
    assert resources["things"]["shortNames"] == ["th"]
    assert resources["things"]["categories"] == ["all"]
    scale = resources["things/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


def test_clients_are_told_when_the_stored_version_changes(api: KubeApi, things_served: KubeApi) -> None:
    def hashes(path: str) -> dict[str, str | None]:
        return {one["name"]: one.get("storageVersionHash") for one in api.get(path).json["resources"]}

    core = hashes("/api/v1")
    assert (core["configmaps"], core["namespaces/status"]) == ("qFsyl6wFWjQ=", None)
    assert hashes("/apis/events.k8s.io/v1") == {"events": core["events"]}
    assert hashes("/apis/authorization.k8s.io/v1")["subjectaccessreviews"] is None
    digest = hashlib.sha256(b"conf.example.org/v1/Thing").digest()
    assert hashes("/apis/conf.example.org/v1")["things"] == base64.b64encode(digest[:8]).decode()


def test_openapi_v2_of_what_it_cannot_say(api: KubeApi) -> None:
    inner: dict[str, Any] = {
        "type": "object",
        "properties": {
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": TEXT}},
            "list": {"type": "array", "nullable": True, "items": TEXT},
            "maybe": {"type": "object", "nullable": True, "properties": {"a": TEXT}},
            "text": TEXT,
        },
        "required": ["list", "text"],
    }
    schemas = {
        "v1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"spec": inner}},
        "v2": {"type": "object", "properties": {"spec": inner}},
    }
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name, schema in schemas.items()
    ]
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "blanks.wide.example.org"},
        "spec": {
            "group": "wide.example.org", "scope": "Namespaced", "versions": versions,
            "names": {"plural": "blanks", "singular": "blank", "kind": "Blank"},
        },
    }  # fmt: skip
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.made(definitions, definition)

    def shown() -> dict[str, Any] | None:
        found: dict[str, Any] = api.get("/openapi/v2").json["definitions"]
        return found if {f"org.example.wide.{name}.Blank" for name in schemas} <= found.keys() else None

    found = eventually(shown)
    kind = [{"group": "wide.example.org", "kind": "Blank", "version": "v1"}]
    assert found["org.example.wide.v1.Blank"] == {"type": "object", "x-kubernetes-group-version-kind": kind}
    assert found["org.example.wide.v2.Blank"]["properties"]["spec"] == {
        "type": "object",
        "properties": {"free": {"x-kubernetes-preserve-unknown-fields": True}, "list": {}, "maybe": {}, "text": TEXT},
        "required": ["text"],
    }
    api.delete(f"{definitions}/blanks.wide.example.org")


def test_openapi_v3_is_an_index(api: KubeApi) -> None:
    paths = api.get("/openapi/v3").json["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/coordination.k8s.io/v1"} <= set(paths)
    url = paths["api/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/api/v1?hash=")
    answer = api.get(url)
    assert answer.json["openapi"].startswith("3.")
    assert "public" in answer.headers["Cache-Control"]
    assert answer.headers["ETag"].strip('"') == url.rpartition("=")[2]
    assert "/api/v1/namespaces/{namespace}/configmaps/{name}" in answer.json["paths"]
    assert "io.k8s.api.core.v1.ConfigMap" in answer.json["components"]["schemas"]


def test_openapi_v3_is_kept_by_its_hash(api: KubeApi) -> None:
    digest = api.get("/openapi/v3/api/v1").headers["ETag"]
    answer = api.get("/openapi/v3/api/v1", headers={"If-None-Match": digest})
    assert (answer.status, answer.body) == (304, b"")


def test_openapi_v3_names_kinds_and_actions(api: KubeApi) -> None:
    document = api.get("/openapi/v3/api/v1").json
    operation = document["paths"]["/api/v1/namespaces/{namespace}/configmaps"]["post"]
    assert operation["x-kubernetes-action"] == "post"
    assert operation["x-kubernetes-group-version-kind"] == {"group": "", "kind": "ConfigMap", "version": "v1"}
    schema = document["components"]["schemas"]["io.k8s.api.core.v1.ConfigMap"]
    assert {"group": "", "kind": "ConfigMap", "version": "v1"} in schema["x-kubernetes-group-version-kind"]
    assert set(schema["properties"]) == {"apiVersion", "kind", "metadata", "data", "binaryData", "immutable"}
    patch = document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]
    assert {"application/apply-patch+yaml", "application/strategic-merge-patch+json"} <= set(
        patch["requestBody"]["content"]
    )


def empty(value: Any, path: str = "") -> list[str]:
    """Where a document has an empty list or map that is no default."""
    if not value and isinstance(value, dict | list) and not path.endswith("/default"):
        return [path]
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for name, part in parts for place in empty(part, f"{path}/{name}")]


def test_openapi_v3_can_be_read_and_written_again(api: KubeApi) -> None:
    """What Go's types leave out when they write it would make another document."""
    versions = [group["preferredVersion"]["groupVersion"] for group in api.get("/apis").json["groups"]]
    paths = ["api/v1", *(f"apis/{version}" for version in versions if not version.split("/")[0].endswith(".org"))]
    for path in paths:
        assert empty(api.get(f"/openapi/v3/{path}").json) == [], path


def test_openapi_v3_lists_its_documents_whatever_is_accepted(api: KubeApi) -> None:
    accept = {"Accept": "text/html"}
    assert api.get("/openapi/v3", headers=accept).status == 200
    assert api.get("/openapi/v3/api/v1", headers=accept).status == 406


def test_openapi_v3_of_nothing(api: KubeApi) -> None:
    assert api.get("/openapi/v3/apis/nope/v1").status == 404


def test_openapi_v2(api: KubeApi) -> None:
    document = api.get("/openapi/v2").json
    assert document["swagger"] == "2.0"
    assert "io.k8s.api.core.v1.ConfigMap" in document["definitions"]
    operation = document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]
    assert "application/apply-patch+yaml" in operation["consumes"]
    assert operation["x-kubernetes-group-version-kind"] == {"group": "", "kind": "ConfigMap", "version": "v1"}


def test_openapi_v2_in_protocol_buffers(api: KubeApi) -> None:
    accept = {"Accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
    answer = api.get("/openapi/v2", headers=accept)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert answer.body.startswith(b"\n\x032.0")


def test_the_version(api: KubeApi) -> None:
    found = api.get("/version").json
    assert found["major"] == "1"
    assert int(found["minor"]) >= 32
    assert found["gitVersion"].startswith(f"v1.{found['minor']}.")
    assert found["platform"].startswith("linux/")


@pytest.mark.parametrize("accept", ["application/yaml", "application/vnd.kubernetes.protobuf", "text/html"])
def test_the_version_is_json(api: KubeApi, accept: str) -> None:
    assert api.get("/version", headers={"Accept": accept}).status == 406
    assert api.get("/version", headers={"Accept": f"{accept}, */*"}).status == 200


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/healthz/ping", "/livez/ping", "/readyz/ping"])
def test_health(api: KubeApi, path: str) -> None:
    answer = api.get(path)
    assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, b"ok", "text/plain; charset=utf-8")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health_in_words(api: KubeApi, path: str) -> None:
    lines = api.get(f"{path}?verbose").body.decode().splitlines()
    assert "[+]ping ok" in lines
    assert lines[-1] == f"{path.strip('/')} check passed"
    assert all(line.startswith("[+]") for line in lines[:-1])


def test_health_without_a_check(api: KubeApi) -> None:
    lines = api.get("/livez?verbose&exclude=ping").body.decode().splitlines()
    assert "[+]ping excluded: ok" in lines


def test_health_without_an_unknown_check(api: KubeApi) -> None:
    lines = api.get("/livez?verbose&exclude=nope").body.decode().splitlines()
    assert 'warn: some health checks cannot be excluded: no matches for "nope"' in lines
    assert lines[-1] == "livez check passed"


def test_metrics(api: KubeApi) -> None:
    answer = api.get("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"# TYPE process_cpu_seconds_total counter" in answer.body


def test_paths_are_listed(api: KubeApi) -> None:
    paths = json.loads(api.get("/").body)["paths"]
    assert {"/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/openapi/v2", "/version"} <= set(
        paths
    )

"""OpenAPI documents say what kubectl looks for."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ironbell.apiserver.http.protobuf.codec import wire_fields
from ironbell.apiserver.openapi.documents import OpenApi
from ironbell.apiserver.openapi.schemas import schema_name
from ironbell.apiserver.openapi.v2 import narrow
from ironbell.apiserver.openapi.v2_protobuf import encode
from ironbell.apiserver.openapi.v3 import resolve
from ironbell.apiserver.resources import ResourceInfo, Resources
from ironbell.apiserver.schema.compiled import plain_shape

SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A thing.",
    "required": ["spec"],
    "properties": {
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "names": {"type": "array", "items": {"type": "string", "nullable": True}},
            },
        },
    },
}


def served(*infos: ResourceInfo) -> Resources:
    resources = Resources()
    for info in infos:
        resources.set([info])
    return resources


THING = ResourceInfo(
    "example.org", "v1", "things", "Thing", True, plain_shape(SCHEMA), has_status=True, custom=True
)  # fmt: skip
NAMESPACE = ResourceInfo("", "v1", "namespaces", "Namespace", False, plain_shape({"type": "object"}))


def references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item
            else:
                yield from references(item)


def v3(api: OpenApi, path: str) -> dict[str, Any]:
    result = api.v3(path)
    assert result is not None
    document: dict[str, Any] = msgspec.json.decode(result[0])
    return document


@pytest.fixture
def api() -> OpenApi:
    return OpenApi(served(THING, NAMESPACE), "v1.32.0")


def test_the_index_names_each_version_with_the_hash_of_its_document(api: OpenApi) -> None:
    paths = msgspec.json.decode(api.index())["paths"]
    assert {"api/v1", "apis/example.org/v1", "apis/authorization.k8s.io/v1"} == set(paths) - {
        "apis/authentication.k8s.io/v1"
    }
    result = api.v3("apis/example.org/v1")
    assert result is not None
    assert paths["apis/example.org/v1"]["serverRelativeURL"] == f"/openapi/v3/apis/example.org/v1?hash={result[1]}"
    assert api.v3("apis/none/v1") is None


def test_all_references_resolve(api: OpenApi) -> None:
    for path in ("api/v1", "apis/example.org/v1", "apis/authorization.k8s.io/v1"):
        document = v3(api, path)
        names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert set(references(document)) <= names
    document = msgspec.json.decode(api.v2())
    assert set(references(document)) <= {f"#/definitions/{name}" for name in document["definitions"]}


@pytest.mark.parametrize(("path", "kind"), [("api/v1", "Namespace"), ("apis/example.org/v1", "Thing")])
def test_patch_tells_that_fields_are_validated(api: OpenApi, path: str, kind: str) -> None:
    patches = [item["patch"] for item in v3(api, path)["paths"].values() if "patch" in item]
    assert {patch["x-kubernetes-group-version-kind"]["kind"] for patch in patches} == {kind}
    for patch in patches:
        queries = {parameter["name"] for parameter in patch["parameters"] if parameter["in"] == "query"}
        assert {"fieldValidation", "dryRun", "fieldManager", "force"} <= queries
        strategic = "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
        assert strategic is (kind == "Namespace")


def test_operation_identifiers_are_unique(api: OpenApi) -> None:
    document = msgspec.json.decode(api.v2())
    result = [
        operation["operationId"]
        for item in document["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    ]
    assert len(result) == len(set(result))


def test_kinds_carry_their_name_and_standard_metadata(api: OpenApi) -> None:
    schemas = v3(api, "apis/example.org/v1")["components"]["schemas"]
    thing = schemas["org.example.v1.Thing"]
    assert thing["x-kubernetes-group-version-kind"] == [{"group": "example.org", "kind": "Thing", "version": "v1"}]
    assert thing["required"] == ["spec"]
    reference = thing["properties"]["metadata"]["allOf"][0]["$ref"]
    assert reference.endswith("ObjectMeta")
    items = schemas["org.example.v1.ThingList"]["properties"]["items"]["items"]
    assert items == {"$ref": "#/components/schemas/org.example.v1.Thing"}


def test_paths_are_those_that_are_served(api: OpenApi) -> None:
    paths = v3(api, "apis/example.org/v1")["paths"]
    base = "/apis/example.org/v1"
    assert set(paths) == {
        f"{base}/things",
        f"{base}/namespaces/{{namespace}}/things",
        f"{base}/namespaces/{{namespace}}/things/{{name}}",
        f"{base}/namespaces/{{namespace}}/things/{{name}}/status",
    }
    assert set(paths[f"{base}/things"]) == {"get", "parameters"}
    assert set(v3(api, "api/v1")["paths"]["/api/v1/namespaces"]) == {"get", "post", "delete", "parameters"}


def test_version_two_leaves_out_what_it_cannot_say() -> None:
    narrowed = narrow(SCHEMA)
    spec = narrowed["properties"]["spec"]["properties"]
    assert spec["port"] == {"x-kubernetes-int-or-string": True}
    assert spec["names"]["items"] == {}


def test_a_property_named_like_a_reference_is_none() -> None:
    schema = {"properties": {"$ref": {"type": "string"}}}
    assert resolve(schema) == schema
    assert narrow(schema) == schema


def test_documents_follow_the_table_of_resources() -> None:
    resources = served(NAMESPACE)
    api = OpenApi(resources, "v1")
    old = api.index(), api.v2()
    assert (api.index(), api.v2()) == old
    resources.set([THING])
    assert b"apis/example.org/v1" in api.index()
    assert b"org.example.v1.Thing" in api.v2()
    resources.drop("things.example.org")
    assert (api.index(), api.v2()) == old


def test_schema_names_are_reversed_groups() -> None:
    assert schema_name("", "v1", "Secret") == "io.k8s.api.core.v1.Secret"
    assert schema_name("coordination.k8s.io", "v1", "Lease") == "io.k8s.api.coordination.v1.Lease"
    assert schema_name("bmc.tinkerbell.org", "v1alpha1", "Job") == "org.tinkerbell.bmc.v1alpha1.Job"


def members(raw: bytes, number: int) -> list[bytes]:
    return [value for tag, value in wire_fields(raw) if tag == number and isinstance(value, bytes)]


def test_version_two_as_protocol_buffers_says_the_same(api: OpenApi) -> None:
    document = msgspec.json.decode(api.v2())
    raw = api.v2(protobuf=True)
    assert members(raw, 1) == [b"2.0"]
    definitions = members(members(raw, 9)[0], 1)
    assert [members(entry, 1)[0].decode() for entry in definitions] == list(document["definitions"])
    paths = members(members(raw, 8)[0], 2)
    assert [members(entry, 1)[0].decode() for entry in paths] == list(document["paths"])
    item = members(paths[list(document["paths"]).index("/api/v1/namespaces/{name}")], 2)[0]
    patch = members(item, 8)[0]
    extensions = {members(entry, 1)[0]: members(members(entry, 2)[0], 2)[0] for entry in members(patch, 13)}
    assert msgspec.json.decode(extensions[b"x-kubernetes-group-version-kind"])["kind"] == "Namespace"
    queries = [members(members(members(entry, 1)[0], 2)[0], 3) for entry in members(patch, 8)[1:]]
    assert b"fieldValidation" in {members(query[0], 4)[0] for query in queries}


def test_every_word_of_a_schema_has_its_place() -> None:
    schema = {
        "type": "object", "format": "f", "title": "t", "description": "d", "default": {"a": 1}, "multipleOf": 2,
        "maximum": 9.5, "exclusiveMaximum": True, "minimum": -1, "exclusiveMinimum": False, "maxLength": 5,
        "minLength": 0, "pattern": "^a$", "maxItems": 3, "minItems": -1, "uniqueItems": True, "maxProperties": 4,
        "minProperties": 1, "required": ["a"], "enum": ["x", 1], "additionalProperties": {"type": "string"},
        "items": {"type": "string"}, "properties": {"a": {"$ref": "#/definitions/b"}}, "x-any": [1],
    }  # fmt: skip
    document = {"swagger": "2.0", "info": {"title": "k", "version": "v"}, "paths": {}, "definitions": {"one": schema}}
    entry = members(members(members(encode(document), 9)[0], 1)[0], 2)[0]
    result = dict(wire_fields(entry))
    assert result[13] == b"^a$"
    assert result[15] == (1 << 64) - 1
    assert struct.unpack("<d", bytes(result[7])) == (9.5,)
    assert len(members(entry, 20)) == 2
    assert 10 not in result
    assert members(members(entry, 22)[0], 1) == [b"object"]

"""Patches: JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.api.kubeapi import JSON, JSON_PATCH, MERGE, STRATEGIC, KubeApi
from support.api.kubeobjects import config_map, refusal

REJECTED = "the server rejected our request due to an error in our request"


@pytest.fixture
def one(api: KubeApi, config_maps: str) -> str:
    api.made(config_maps, config_map(data={"a": "1", "b": "2"}))
    return f"{config_maps}/one"


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        ([{"op": "add", "path": "/data/c", "value": "3"}], {"a": "1", "b": "2", "c": "3"}),
        ([{"op": "add", "path": "/data/a", "value": "3"}], {"a": "3", "b": "2"}),
        ([{"op": "replace", "path": "/data/a", "value": "3"}], {"a": "3", "b": "2"}),
        ([{"op": "replace", "path": "/data/c", "value": "3"}], {"a": "1", "b": "2", "c": "3"}),
        ([{"op": "remove", "path": "/data/a"}], {"b": "2"}),
        ([{"op": "move", "from": "/data/a", "path": "/data/c"}], {"b": "2", "c": "1"}),
        ([{"op": "copy", "from": "/data/a", "path": "/data/c"}], {"a": "1", "b": "2", "c": "1"}),
        (
            [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "9"}],
            {"a": "9", "b": "2"},
        ),
        (
            [{"op": "add", "path": "/data/x~1y", "value": "3"}, {"op": "remove", "path": "/data/x~1y"}],
            {"a": "1", "b": "2"},
        ),
        ([], {"a": "1", "b": "2"}),
    ],
)
def test_operations(api: KubeApi, one: str, operations: list[Any], data: dict[str, str]) -> None:
    answer = api.patch(one, operations, JSON_PATCH)
    assert (answer.status, answer.json.get("data")) == (200, data)


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "test", "path": "/data/a", "value": "x"}],
        [{"op": "test", "path": "/data/nope", "value": "x"}],
        [{"op": "replace", "path": "/nope/a", "value": "x"}],
        [{"op": "remove", "path": "/data/nope"}],
        [{"op": "add", "path": "/nope/x", "value": "1"}],
        [{"op": "burn", "path": "/data/a"}],
        [{"op": "move", "from": "/data/nope", "path": "/data/c"}],
        [{"op": "add", "path": "/data/c", "value": "3"}, {"op": "test", "path": "/data/a", "value": "x"}],
    ],
)
def test_operations_that_cannot_be_carried_out(api: KubeApi, one: str, operations: list[Any]) -> None:
    before = api.get(one).json
    assert refusal(api.patch(one, operations, JSON_PATCH)) == (422, "Invalid", REJECTED)
    assert api.get(one).json == before


@pytest.mark.parametrize("kind", [JSON_PATCH, MERGE])
@pytest.mark.parametrize("body", [b"xx", b'"x"', b"5", b'{"a"'])
def test_bodies_that_are_no_patches(api: KubeApi, one: str, kind: str, body: bytes) -> None:
    answer = api.patch(one, body, kind)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith("error decoding patch: ")


def test_a_json_patch_is_a_list_and_a_merge_patch_an_object(api: KubeApi, one: str) -> None:
    for kind, body in ((JSON_PATCH, b"{}"), (MERGE, b"[]")):
        answer = api.patch(one, body, kind)
        assert (answer.status, answer.reason) == (400, "BadRequest")
        assert answer.message.startswith("error decoding patch: json: cannot unmarshal")


def test_a_json_patch_has_a_limit(api: KubeApi, one: str) -> None:
    answer = api.patch(one, [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001, JSON_PATCH)
    assert refusal(answer) == (
        413,
        "RequestEntityTooLarge",
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
    )


@pytest.mark.parametrize(
    ("patch", "data"),
    [
        ({"data": {"c": "3"}}, {"a": "1", "b": "2", "c": "3"}),
        ({"data": {"a": None}}, {"b": "2"}),
        ({"data": {"a": None, "b": None}}, None),
        ({"data": None}, None),
        ({"data": {"nope": None}}, {"a": "1", "b": "2"}),
        ({}, {"a": "1", "b": "2"}),
    ],
)
@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
def test_merges(api: KubeApi, one: str, kind: str, patch: dict[str, Any], data: dict[str, str] | None) -> None:
    answer = api.patch(one, patch, kind)
    assert (answer.status, answer.json.get("data")) == (200, data)


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (MERGE, {"kind": "Secret"}),
        (MERGE, {"apiVersion": "v2"}),
        (MERGE, {"data": {"a": 1}}),
        (MERGE, {"data": [1]}),
        (MERGE, {"metadata": 5}),
        (JSON_PATCH, [{"op": "replace", "path": "/kind", "value": "Secret"}]),
        (JSON_PATCH, [{"op": "add", "path": "/data/n", "value": 5}]),
    ],
)
def test_results_that_are_of_no_such_kind(api: KubeApi, one: str, kind: str, patch: Any) -> None:
    before = api.get(one).json
    answer = api.patch(one, patch, kind)
    assert (answer.status, answer.reason, answer.causes[0]["field"]) == (422, "Invalid", "patch")
    assert answer.message.startswith(' "" is invalid: patch: Invalid value: ')
    assert api.get(one).json == before


@pytest.mark.parametrize(
    ("patch", "data"),
    [
        ({"data": {"$patch": "replace", "x": "y"}}, {"x": "y"}),
        ({"data": {"$patch": "delete"}}, None),
        ({"data": {"$retainKeys": ["a", "x"], "x": "y"}}, {"a": "1", "x": "y"}),
    ],
)
def test_directives(api: KubeApi, one: str, patch: dict[str, Any], data: dict[str, str] | None) -> None:
    answer = api.patch(one, patch, STRATEGIC)
    assert (answer.status, answer.json.get("data")) == (200, data)


@pytest.mark.parametrize("kind", [JSON, "text/plain", "application/xml"])
def test_types_that_are_no_patches(api: KubeApi, one: str, kind: str) -> None:
    assert refusal(api.patch(one, b"{}", kind)) == (415, "UnsupportedMediaType", "415: Unsupported Media Type")


def test_patching_what_is_not_there(api: KubeApi, config_maps: str) -> None:
    for kind, patch in ((MERGE, {}), (STRATEGIC, {}), (JSON_PATCH, [])):
        answer = api.patch(f"{config_maps}/nope", patch, kind)
        assert refusal(answer) == (404, "NotFound", 'configmaps "nope" not found')


@pytest.fixture
def account(api: KubeApi, namespace: str) -> Iterator[str]:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    value = {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "finalizers": ["example.org/f"]},
        "secrets": [{"name": "a"}, {"name": "b"}],
    }  # fmt: skip
    api.made(path, value)
    yield f"{path}/sa"
    api.patch(f"{path}/sa", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("patch", "secrets"),
    [
        ({"secrets": [{"name": "c"}]}, ["c", "a", "b"]),
        ({"secrets": [{"name": "a"}]}, ["a", "b"]),
        ({"secrets": [{"name": "a", "$patch": "delete"}]}, ["b"]),
        ({"secrets": [{"name": "c"}, {"$patch": "replace"}]}, ["c"]),
        ({"$setElementOrder/secrets": [{"name": "b"}, {"name": "a"}]}, ["b", "a"]),
        (
            {
                "secrets": [{"name": "c"}, {"name": "a", "$patch": "delete"}],
                "$setElementOrder/secrets": [{"name": "c"}, {"name": "b"}],
            },
            ["c", "b"],
        ),
    ],
)
def test_lists_that_merge_by_a_key(api: KubeApi, account: str, patch: dict[str, Any], secrets: list[str]) -> None:
    answer = api.patch(account, patch, STRATEGIC)
    assert answer.status == 200, answer.body
    assert [item["name"] for item in answer.json["secrets"]] == secrets


@pytest.mark.parametrize(
    ("patch", "finalizers"),
    [
        ({"finalizers": ["example.org/g"]}, ["example.org/g", "example.org/f"]),
        ({"$deleteFromPrimitiveList/finalizers": ["example.org/f"]}, None),
        (
            {
                "finalizers": ["example.org/g"],
                "$setElementOrder/finalizers": ["example.org/g", "example.org/f"],
            },
            ["example.org/g", "example.org/f"],
        ),
    ],
)
def test_lists_that_merge_by_value(
    api: KubeApi, account: str, patch: dict[str, Any], finalizers: list[str] | None
) -> None:
    answer = api.patch(account, {"metadata": patch}, STRATEGIC)
    assert answer.status == 200, answer.body
    assert answer.json["metadata"].get("finalizers") == finalizers


def test_a_merge_patch_replaces_lists(api: KubeApi, account: str) -> None:
    assert api.patch(account, {"secrets": [{"name": "c"}]}).json["secrets"] == [{"name": "c"}]


def test_pods_merge_by_name(api: KubeApi, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    container = {"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}], "args": ["x"]}
    value = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
        },
    }  # fmt: skip
    api.made(path, value)
    more = [{"name": "a", "image": "a:2", "args": ["y"]}, {"name": "s", "image": "s"}]
    template = {"spec": {"containers": more}}
    after = api.patch(f"{path}/d", {"spec": {"template": template}}, STRATEGIC).json
    found = {one["name"]: one for one in after["spec"]["template"]["spec"]["containers"]}
    assert set(found) == {"a", "s"}
    assert (found["a"]["image"], found["a"]["args"]) == ("a:2", ["y"])
    assert found["a"]["env"] == [{"name": "X", "value": "1"}]
    gone = {"spec": {"template": {"spec": {"containers": [{"name": "s", "$patch": "delete"}]}}}}
    after = api.patch(f"{path}/d", gone, STRATEGIC).json
    assert [one["name"] for one in after["spec"]["template"]["spec"]["containers"]] == ["a"]


def test_a_strategy_is_replaced_by_kept_keys(api: KubeApi, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    value = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]},
            },
        },
    }  # fmt: skip
    assert api.made(path, value)["spec"]["strategy"]["type"] == "RollingUpdate"
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert api.patch(f"{path}/d", patch, STRATEGIC).json["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
def test_faults_of_a_patch(api: KubeApi, config_maps: str, kind: str) -> None:
    api.made(config_maps, config_map())
    body = b'{"data":{"a":"1","a":"2"},"unk":1,"unk":2,"metadata":{"foo":1}}'
    faults = ['duplicate field "data.a"', 'duplicate field "unk"']
    faults += ['unknown field "metadata.foo"', 'unknown field "unk"']
    answer = api.call("PATCH", f"{config_maps}/one", body, content_type=kind, fieldValidation="Warn")
    assert (answer.status, answer.warnings) == (200, faults)
    answer = api.call("PATCH", f"{config_maps}/one", body, content_type=kind, fieldValidation="Strict")
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message.endswith(f": strict decoding error: {', '.join(faults)}")
    answer = api.call("PATCH", f"{config_maps}/one", body, content_type=kind, fieldValidation="Ignore")
    assert (answer.status, answer.warnings) == (200, [])


def test_faults_of_a_json_patch(api: KubeApi, config_maps: str) -> None:
    api.made(config_maps, config_map())
    body = (
        b'[{"op":"add","path":"/unk","value":1},{"op":"add","path":"/data","value":{"a":"1","a":"2"}},'
        b'{"op":"add","op":"add","path":"/x","value":1}]'
    )
    faults = [
        'json patch duplicate field "[1].value.a"', 'json patch duplicate field "[2].op"',
        'duplicate field "data.a"', 'unknown field "unk"', 'unknown field "x"',
    ]  # fmt: skip
    answer = api.call("PATCH", f"{config_maps}/one", body, content_type=JSON_PATCH, fieldValidation="Warn")
    assert (answer.status, answer.warnings) == (200, faults)
    answer = api.call("PATCH", f"{config_maps}/one", body, content_type=JSON_PATCH, fieldValidation="Strict")
    assert answer.message.endswith(f": strict decoding error: {', '.join(faults)}")

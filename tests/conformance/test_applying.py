"""Server-side apply of built-in kinds: conflicts, shared fields, and what goes when it is no longer applied."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.api.kubeapi import APPLY, Answer, KubeApi
from support.api.kubeobjects import config_map, managers, owned, refusal

LAST = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
def one(api: KubeApi, config_maps: str) -> str:
    api.made(config_maps, config_map(data={"a": "1"}), fieldManager="maker")
    return f"{config_maps}/one"


def entry(value: dict[str, Any], manager: str) -> dict[str, Any]:
    return next(one for one in value["metadata"]["managedFields"] if one["manager"] == manager)


def test_applying_makes_what_is_missing(api: KubeApi, config_maps: str) -> None:
    value = config_map(meta={"labels": {"l": "1"}}, data={"a": "1"})
    answer = api.apply(f"{config_maps}/one", value, manager="me")
    assert answer.status == 201
    assert managers(answer.json) == [
        ("me", "Apply", "", {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:l": {}}}})
    ]


def test_applying_again_answers_otherwise(api: KubeApi, config_maps: str) -> None:
    path = f"{config_maps}/one"
    first = api.apply(path, config_map(data={"a": "1"}), manager="me")
    second = api.apply(path, config_map(data={"a": "1"}), manager="me")
    assert (first.status, second.status) == (201, 200)
    assert second.json == first.json


def test_the_name_may_be_left_to_the_path(api: KubeApi, one: str) -> None:
    answer = api.apply(one, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "1"}}, manager="me")
    assert (answer.status, answer.json["metadata"]["name"]) == (200, "one")


def test_yaml_is_applied(api: KubeApi, config_maps: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: '1'\n"
    answer = api.call("PATCH", f"{config_maps}/one", body, content_type=APPLY, fieldManager="me")
    assert (answer.status, answer.json["data"]) == (201, {"a": "1"})


def test_a_field_of_an_updater_conflicts(api: KubeApi, one: str) -> None:
    answer = api.apply(one, config_map(data={"a": "9"}), manager="me")
    assert refusal(answer) == (
        409,
        "Conflict",
        'Apply failed with 1 conflict: conflict with "maker" using v1: .data.a',
    )
    assert answer.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "maker" using v1', "field": ".data.a"}
    ]


def test_a_field_of_an_applier_conflicts(api: KubeApi, config_maps: str) -> None:
    path = f"{config_maps}/one"
    api.apply(path, config_map(data={"a": "1"}), manager="first")
    answer = api.apply(path, config_map(data={"a": "2"}), manager="second")
    assert refusal(answer) == (409, "Conflict", 'Apply failed with 1 conflict: conflict with "first": .data.a')


def test_several_conflicts_are_listed_by_manager(api: KubeApi, one: str) -> None:
    api.patch(one, {"data": {"b": "1", "c": "1"}}, fieldManager="other")
    answer = api.apply(one, config_map(data={"a": "9", "b": "9", "c": "9"}), manager="me")
    assert refusal(answer) == (
        409,
        "Conflict",
        (
            'Apply failed with 3 conflicts: conflicts with "maker" using v1:\n- .data.a\n'
            'conflicts with "other" using v1:\n- .data.b\n- .data.c'
        ),
    )
    assert sorted(cause["field"] for cause in answer.causes) == [".data.a", ".data.b", ".data.c"]


def test_force_takes_fields_over(api: KubeApi, one: str) -> None:
    after = api.apply(one, config_map(data={"a": "9"}), manager="me", force=True).json
    assert after["data"] == {"a": "9"}
    assert owned(after) == {"me": {"f:data": {"f:a": {}}}, "maker": {"f:data": {}}}


def test_what_is_the_same_is_shared(api: KubeApi, config_maps: str) -> None:
    path = f"{config_maps}/one"
    api.apply(path, config_map(data={"a": "1"}), manager="first")
    after = api.apply(path, config_map(data={"a": "1"}), manager="second").json
    assert owned(after) == {"first": {"f:data": {"f:a": {}}}, "second": {"f:data": {"f:a": {}}}}
    after = api.apply(path, config_map(), manager="first").json
    assert after["data"] == {"a": "1"}
    assert owned(after) == {"second": {"f:data": {"f:a": {}}}}
    after = api.apply(path, config_map(), manager="second").json
    assert "data" not in after
    assert "managedFields" not in after["metadata"]


def test_what_is_no_longer_applied_goes(api: KubeApi, config_maps: str) -> None:
    path = f"{config_maps}/one"
    api.apply(path, config_map(meta={"labels": {"x": "1", "y": "1"}}, data={"a": "1", "b": "2"}), manager="me")
    after = api.apply(path, config_map(meta={"labels": {"x": "1"}}, data={"a": "1"}), manager="me").json
    assert after["data"] == {"a": "1"}
    assert after["metadata"]["labels"] == {"x": "1"}


@pytest.mark.parametrize("what", [{"labels": {"l": "1"}}, {"annotations": {"a": "1"}}, {"finalizers": ["e.org/a"]}])
def test_all_metadata_that_is_no_longer_applied_goes(api: KubeApi, config_maps: str, what: dict[str, Any]) -> None:
    path = f"{config_maps}/one"
    before = api.apply(path, config_map(meta=what, data={"a": "1"}), manager="me").json["metadata"]
    answer = api.apply(path, config_map(data={"a": "1"}), manager="me")
    assert answer.status == 200, answer.body
    after = answer.json["metadata"]
    assert not {"labels", "annotations", "finalizers"} & after.keys()
    assert (after["uid"], after["namespace"]) == (before["uid"], before["namespace"])


def test_what_an_updater_changed_stays(api: KubeApi, config_maps: str) -> None:
    path = f"{config_maps}/one"
    api.apply(path, config_map(data={"a": "1", "b": "2"}), manager="me")
    api.patch(path, {"data": {"b": "3"}}, fieldManager="updater")
    after = api.apply(path, config_map(data={"a": "1"}), manager="me").json
    assert after["data"] == {"a": "1", "b": "3"}


def test_an_apply_leaves_what_it_does_not_say(api: KubeApi, one: str) -> None:
    assert api.apply(one, config_map(data={"b": "2"}), manager="me").json["data"] == {"a": "1", "b": "2"}


def test_the_time_is_that_of_the_last_change(api: KubeApi, config_maps: str) -> None:
    path = f"{config_maps}/one"
    first = entry(api.apply(path, config_map(data={"a": "1"}), manager="me").json, "me")
    assert first["time"]
    again = entry(api.apply(path, config_map(data={"a": "1"}), manager="me").json, "me")
    assert again == first


def test_an_object_without_a_record_is_owned_from_before(api: KubeApi, one: str) -> None:
    api.patch(one, {"metadata": {"managedFields": [{}]}})
    answer = api.apply(one, config_map(data={"a": "2"}), manager="me")
    assert refusal(answer)[2] == ('Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a')
    after = api.apply(one, config_map(data={"b": "1"}), manager="me").json
    assert owned(after) == {"me": {"f:data": {"f:b": {}}}, "before-first-apply": {"f:data": {".": {}, "f:a": {}}}}


def test_an_old_version_conflicts(api: KubeApi, one: str) -> None:
    answer = api.apply(one, config_map(meta={"resourceVersion": "1"}, data={"b": "1"}), manager="me")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "the object has been modified" in answer.message


def test_a_uid_says_that_the_object_is_there(api: KubeApi, config_maps: str) -> None:
    answer = api.apply(f"{config_maps}/gone", config_map("gone", {"uid": "1"}), manager="me")
    assert refusal(answer) == (
        409,
        "Conflict",
        (
            'Operation cannot be fulfilled on configmaps "gone": uid mismatch: the provided object specified uid 1, '
            "and no existing object was found"
        ),
    )


def test_a_version_does_not(api: KubeApi, config_maps: str) -> None:
    answer = api.apply(f"{config_maps}/gone", config_map("gone", {"resourceVersion": "1"}), manager="me")
    assert answer.status == 201


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"metadata": {"name": "one"}}, "/, Kind="),
        ({"kind": "ConfigMap"}, "/, Kind=ConfigMap"),
        ({"apiVersion": "v2", "kind": "ConfigMap"}, "/v2, Kind=ConfigMap"),
        ({"apiVersion": "v1", "kind": "Secret"}, "/v1, Kind=Secret"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "apps/v1, Kind=Deployment"),
    ],
)
def test_another_kind(api: KubeApi, one: str, value: dict[str, Any], shown: str) -> None:
    answer = api.apply(one, value, manager="me")
    assert refusal(answer) == (400, "BadRequest", f"invalid object type: {shown}")


def test_an_object_is_made_by_the_name_that_it_says(api: KubeApi, config_maps: str) -> None:
    for config in (
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": None},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ""}},
    ):
        assert refusal(api.apply(f"{config_maps}/new", config, manager="me")) == (
            400,
            "BadRequest",
            "the name of the object (new based on URL) was undeterminable: name must be provided",
        )


MISTYPED: list[tuple[dict[str, Any], str]] = [
    ({"data": {"a": 1}}, ".data.a: expected string, got "),
    ({"data": ["a"]}, ".data: expected map, got "),
    ({"dat": {"a": "1"}}, ".dat: field not declared in schema"),
    ({"metadata": {"x": "1"}}, ".metadata.x: field not declared in schema"),
    ({"metadata": {"labels": {"a": 1}}}, ".metadata.labels.a: expected string, got "),
    ({"metadata": {"labels": ["a"]}}, ".metadata.labels: expected map, got "),
    ({"metadata": {"finalizers": ["a/b", "a/b"]}}, '.metadata.finalizers: duplicate entries for key [="a/b"]'),
    ({"metadata": {"finalizers": "a/b"}}, ".metadata.finalizers: expected list, got "),
    ({"immutable": "yes"}, ".immutable: expected boolean, got "),
]


@pytest.mark.parametrize(("config", "fault"), MISTYPED)
@pytest.mark.parametrize("name", ["one", "new"])
def test_values_that_are_none(
    api: KubeApi, config_maps: str, one: str, config: dict[str, Any], fault: str, name: str
) -> None:
    value = config_map(name) | config
    value["metadata"] = {**value["metadata"], "name": name}
    status, _, message = refusal(api.apply(f"{config_maps}/{name}", value, manager="me"))
    assert status == (500 if api.is_real else 400)
    assert message.startswith(f"failed to create typed patch object (/{name}; /v1, Kind=ConfigMap): {fault}")


def test_items_that_are_none(api: KubeApi, namespace: str) -> None:
    for ports, fault in (
        ([{"port": 80}, {"port": 80}], '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]'),
        ({"port": 80}, ".spec.ports: expected list, got "),
        ([1], ".spec.ports: element 0: associative list with keys may not have non-map elements"),
        ([{"port": "a"}], '.spec.ports[port="a",protocol="TCP"].port: expected numeric (int or float), got string'),
    ):
        value = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}}
        status, _, message = refusal(api.apply(f"/api/v1/namespaces/{namespace}/services/s", value, manager="me"))
        assert status == (500 if api.is_real else 400)
        assert message.startswith(f"failed to create typed patch object (/s; /v1, Kind=Service): {fault}"), message


TWICE = (
    b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: '1'\n  a: '2'\n",
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"1","a":"2"}}',
)


@pytest.mark.parametrize(("body", "line"), zip(TWICE, (7, 1), strict=True))
def test_a_key_that_is_there_twice(api: KubeApi, config_maps: str, body: bytes, line: int) -> None:
    def apply(**params: str) -> Answer:
        return api.call("PATCH", f"{config_maps}/one", body, content_type=APPLY, fieldManager="me", **params)

    said = f'line {line}: key "a" already set in map'
    why = f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {said}"
    assert refusal(apply(fieldValidation="Strict")) == (400, "BadRequest", why)
    answer = apply()
    assert (answer.status, answer.warnings, answer.json["data"]) == (201, [said], {"a": "2"})
    answer = apply(fieldValidation="Ignore")
    assert (answer.status, answer.warnings) == (200, [])


@pytest.mark.parametrize("body", [b"", b"null", b"{}"])
def test_bodies_that_say_nothing(api: KubeApi, one: str, body: bytes) -> None:
    answer = api.call("PATCH", one, body, content_type=APPLY, fieldManager="me")
    assert refusal(answer) == (400, "BadRequest", "invalid object type: /, Kind=")


def test_another_name(api: KubeApi, one: str) -> None:
    assert refusal(api.apply(one, config_map("two"), manager="me"))[:2] == (400, "BadRequest")


@pytest.mark.parametrize("body", [b"a: b: c", b"[]", b"x"])
def test_bodies_that_are_no_configurations(api: KubeApi, one: str, body: bytes) -> None:
    answer = api.call("PATCH", one, body, content_type=APPLY, fieldManager="me")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith("error decoding YAML: ")


def test_a_record_is_not_applied(api: KubeApi, one: str) -> None:
    answer = api.apply(one, config_map(meta={"managedFields": [{"manager": "x"}]}), manager="me")
    assert refusal(answer) == (400, "BadRequest", "metadata.managedFields must be nil")


def test_applying_needs_a_manager(api: KubeApi, one: str) -> None:
    answer = api.call("PATCH", one, config_map(), content_type=APPLY)
    assert refusal(answer) == (
        422,
        "Invalid",
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    )


def test_force_is_for_applies(api: KubeApi, one: str) -> None:
    assert refusal(api.patch(one, {}, force=True)) == (
        422,
        "Invalid",
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
    )


def test_applying_to_a_namespace_that_is_not_there(api: KubeApi) -> None:
    answer = api.apply("/api/v1/namespaces/nowhere-at-all/configmaps/one", config_map(), manager="me")
    assert refusal(answer) == (404, "NotFound", 'namespaces "nowhere-at-all" not found')


def test_the_result_is_checked(api: KubeApi, one: str) -> None:
    answer = api.apply(one, config_map(data={"b c": "1"}), manager="me")
    assert (answer.status, answer.reason, answer.causes[0]["field"]) == (422, "Invalid", "data[b c]")


def test_finalizers_are_a_set(api: KubeApi, config_maps: str) -> None:
    path = f"{config_maps}/one"
    api.apply(path, config_map(meta={"finalizers": ["example.org/a"]}), manager="first")
    after = api.apply(path, config_map(meta={"finalizers": ["example.org/b"]}), manager="second").json
    assert sorted(after["metadata"]["finalizers"]) == ["example.org/a", "example.org/b"]
    assert owned(after)["second"] == {"f:metadata": {"f:finalizers": {'v:"example.org/b"': {}}}}
    after = api.apply(path, config_map(), manager="first").json
    assert after["metadata"]["finalizers"] == ["example.org/b"]
    api.apply(path, config_map(), manager="second")


def test_containers_are_a_map(api: KubeApi, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/podtemplates/p"

    def template(*containers: dict[str, Any]) -> dict[str, Any]:
        meta = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "p"}}
        return {**meta, "template": {"spec": {"containers": list(containers)}}}

    api.apply(path, template({"name": "a", "image": "a:1"}), manager="first")
    after = api.apply(path, template({"name": "b", "image": "b:1"}), manager="second").json
    assert {one["name"] for one in after["template"]["spec"]["containers"]} == {"a", "b"}
    answer = api.apply(path, template({"name": "a", "image": "a:2"}), manager="second")
    assert refusal(answer)[2] == (
        'Apply failed with 1 conflict: conflict with "first": .template.spec.containers[name="a"].image'
    )
    after = api.apply(path, template({"name": "a", "image": "a:1", "workingDir": "/x"}), manager="second").json
    (container,) = after["template"]["spec"]["containers"]
    assert (container["image"], container["workingDir"]) == ("a:1", "/x")


def test_kubectl_goes_from_its_side_to_the_server(api: KubeApi, config_maps: str) -> None:
    path = f"{config_maps}/one"
    written = config_map(data={"a": "1", "b": "2"})
    last = json.dumps(written)
    api.made(
        config_maps,
        config_map(meta={"annotations": {LAST: last}}, data=written["data"]),
        fieldManager="kubectl-client-side-apply",
    )
    answer = api.apply(path, config_map(data={"a": "9", "b": "2"}), manager="kubectl")
    assert answer.status == 200, answer.body
    assert answer.json["data"]["a"] == "9"
    assert json.loads(answer.json["metadata"]["annotations"][LAST])["data"] == {"a": "9", "b": "2"}


def test_others_do_not_go_that_way(api: KubeApi, config_maps: str) -> None:
    written = config_map(data={"a": "1"})
    annotated = config_map(meta={"annotations": {LAST: json.dumps(written)}}, data={"a": "1"})
    api.made(config_maps, annotated, fieldManager="kubectl-client-side-apply")
    answer = api.apply(f"{config_maps}/one", config_map(data={"a": "9"}), manager="me")
    assert refusal(answer)[2] == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.a'
    )


def test_what_was_changed_since_is_not_taken_over(api: KubeApi, config_maps: str) -> None:
    written = config_map(data={"a": "1"})
    annotated = config_map(meta={"annotations": {LAST: json.dumps(written)}}, data={"a": "1"})
    api.made(config_maps, annotated, fieldManager="kubectl-client-side-apply")
    api.patch(f"{config_maps}/one", {"data": {"a": "5"}}, fieldManager="editor")
    answer = api.apply(f"{config_maps}/one", config_map(data={"a": "9"}), manager="kubectl")
    assert refusal(answer)[2] == 'Apply failed with 1 conflict: conflict with "editor" using v1: .data.a'


def test_force_conflicts_can_be_seen_dry(api: KubeApi, one: str) -> None:
    answer = api.apply(one, config_map(data={"a": "9"}), manager="me", force=True, dryRun="All")
    assert (answer.status, answer.json["data"]) == (200, {"a": "9"})
    assert api.get(one).json["data"] == {"a": "1"}

"""Creates: names, labels, and bodies that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.api.kubeapi import Answer, KubeApi
from support.api.kubeobjects import config_map, names, refusal

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_KEY = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
DATA_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}
EVENT = {**OWNER, "kind": "Event"}
TWO = [{**OWNER, "controller": True}, {**OWNER, "name": "y", "uid": "2", "controller": True}]
STANDARD = "name is neither a standard finalizer name nor is it fully qualified"

FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "Q_"}, "metadata.name", f'Invalid value: "Q_": {SUBDOMAIN}'),
    ({"name": "-q"}, "metadata.name", f'Invalid value: "-q": {SUBDOMAIN}'),
    ({"name": "q" * 254}, "metadata.name", f'Invalid value: "{"q" * 254}": must be no more than 253 characters'),
    ({"labels": {"a b": "c"}}, "metadata.labels", f'Invalid value: "a b": {NAME_PART}'),
    ({"labels": {"A_/b": "c"}}, "metadata.labels", f'Invalid value: "A_/b": prefix part {SUBDOMAIN}'),
    ({"labels": {"/b": "c"}}, "metadata.labels", 'Invalid value: "/b": prefix part must be non-empty'),
    ({"labels": {"a/b/c": "c"}}, "metadata.labels", f'Invalid value: "a/b/c": {LABEL_KEY}'),
    (
        {"labels": {"a" * 64: "c"}},
        "metadata.labels",
        f'Invalid value: "{"a" * 64}": name part must be no more than 63 bytes',
    ),
    ({"labels": {"a": "c d"}}, "metadata.labels", f'Invalid value: "c d": {LABEL_VALUE}'),
    ({"labels": {"a": "c" * 64}}, "metadata.labels", f'Invalid value: "{"c" * 64}": must be no more than 63 bytes'),
    ({"annotations": {"a b": "c"}}, "metadata.annotations", f'Invalid value: "a b": {NAME_PART}'),
    (
        {"annotations": {"a": "c" * 262145}},
        "metadata.annotations",
        "Too long: may not be more than 262144 bytes",
    ),
    ({"finalizers": ["abc"]}, "metadata.finalizers[0]", f'Invalid value: "abc": {STANDARD}'),
    (
        {"ownerReferences": [{**OWNER, "uid": ""}]},
        "metadata.ownerReferences.uid",
        'Invalid value: "": must not be empty',
    ),
    (
        {"ownerReferences": [EVENT]},
        "metadata.ownerReferences",
        f"Invalid value: {json.dumps(EVENT, separators=(',', ':'))}: /v1, Kind=Event is disallowed from being an owner",
    ),
    (
        {"ownerReferences": TWO},
        "metadata.ownerReferences",
        (
            f"Invalid value: {json.dumps(TWO, separators=(',', ':'))}: Only one reference can have Controller set to "
            'true. Found "true" in references for ConfigMap/x and ConfigMap/y'
        ),
    ),
]


@pytest.mark.parametrize(("meta", "field", "fault"), FAULTS)
def test_faults_of_metadata(api: KubeApi, config_maps: str, meta: dict[str, Any], field: str, fault: str) -> None:
    value = config_map("q", meta)
    answer = api.post(config_maps, value)
    name = value["metadata"]["name"]
    assert refusal(answer) == (422, "Invalid", f'ConfigMap "{name}" is invalid: {field}: {fault}')
    assert [(cause["field"], cause["message"]) for cause in answer.causes] == [(field, fault)]
    assert (answer.json["details"]["kind"], answer.json["details"]["name"]) == ("ConfigMap", name)


def test_all_faults_are_named_at_once(api: KubeApi, config_maps: str) -> None:
    answer = api.post(config_maps, config_map("Q", {"labels": {"a": "b c"}}, data={"x y": "z"}))
    assert [cause["field"] for cause in answer.causes] == ["metadata.name", "metadata.labels", "data[x y]"]
    assert answer.causes[2]["message"] == f'Invalid value: "x y": {DATA_KEY}'
    assert answer.message.startswith('ConfigMap "Q" is invalid: [metadata.name: ')


@pytest.mark.parametrize(
    "meta",
    [
        {"labels": {"a": ""}},
        {"labels": {"example.com/a": "A_.-z"}},
        {"annotations": {"EXAMPLE.com/A": "any text ☃"}},
        {"finalizers": ["example.org/f"]},
        {"name": "a.b-c.0"},
        {"labels": None, "annotations": {}},
    ],
)
def test_metadata_that_is_fine(api: KubeApi, config_maps: str, meta: dict[str, Any]) -> None:
    assert api.post(config_maps, config_map("q", meta), dryRun="All").status == 201


def test_a_namespace_has_the_name_of_a_label(api: KubeApi) -> None:
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}
    assert refusal(api.post("/api/v1/namespaces", value)) == (
        422,
        "Invalid",
        'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
    )


def test_names_are_generated(api: KubeApi, config_maps: str) -> None:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}}
    made = [api.made(config_maps, value)["metadata"] for _ in range(3)]
    assert len({meta["name"] for meta in made}) == 3
    assert all(meta["name"].startswith("gen-") and len(meta["name"]) == 9 for meta in made)
    assert made[0]["generateName"] == "gen-"


def test_a_name_wins_over_a_generated_one(api: KubeApi, config_maps: str) -> None:
    assert api.made(config_maps, config_map("x", {"generateName": "gen-"}))["metadata"]["name"] == "x"


def test_a_base_for_names_must_begin_a_name(api: KubeApi, config_maps: str) -> None:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "G_"}}
    answer = api.post(config_maps, value)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes[0] == {
        "reason": "FieldValueInvalid",
        "message": f'Invalid value: "G_": {SUBDOMAIN}',
        "field": "metadata.generateName",
    }


def test_neither_name_nor_base(api: KubeApi, config_maps: str) -> None:
    answer = api.post(config_maps, {"apiVersion": "v1", "kind": "ConfigMap"})
    assert refusal(answer) == (
        422,
        "Invalid",
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    )


def test_a_name_is_taken_while_its_object_is_deleted(api: KubeApi, config_maps: str) -> None:
    api.made(config_maps, config_map(meta={"finalizers": ["example.org/f"]}))
    api.delete(f"{config_maps}/one")
    assert refusal(api.post(config_maps, config_map())) == (
        409,
        "AlreadyExists",
        'object is being deleted: configmaps "one" already exists',
    )
    api.patch(f"{config_maps}/one", {"metadata": {"finalizers": None}})
    assert api.post(config_maps, config_map()).status == 201


def test_the_namespace_must_be_there(api: KubeApi) -> None:
    answer = api.post("/api/v1/namespaces/nowhere-at-all/configmaps", config_map())
    assert refusal(answer) == (404, "NotFound", 'namespaces "nowhere-at-all" not found')
    assert answer.json["details"] == {"name": "nowhere-at-all", "kind": "namespaces"}


def test_the_namespace_is_that_of_the_path(api: KubeApi, config_maps: str) -> None:
    assert refusal(api.post(config_maps, config_map(meta={"namespace": "default"}))) == (
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    )


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_only_reading_goes_across_namespaces(api: KubeApi, config_maps: str, method: str) -> None:
    api.made(config_maps, config_map())
    answer = api.call(method, "/api/v1/configmaps", config_map("two") if method == "POST" else None)
    assert refusal(answer) == (
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
    assert "one" in names(api.get(config_maps))


@pytest.mark.parametrize("missing", [["kind"], ["kind", "apiVersion"]])
def test_the_path_says_the_kind(api: KubeApi, config_maps: str, missing: list[str]) -> None:
    value = {key: part for key, part in config_map().items() if key not in missing}
    made = api.made(config_maps, value)
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")


@pytest.mark.parametrize(
    ("kind", "api_version", "beginning"),
    [
        ("Secret", "v1", 'Secret in version "v1" cannot be handled as a ConfigMap: '),
        ("Foo", "v1", 'Foo in version "v1" cannot be handled as a ConfigMap: '),
        ("ConfigMap", "v2", 'ConfigMap in version "v2" cannot be handled as a ConfigMap: '),
        ("Deployment", "apps/v1", 'Deployment in version "v1" cannot be handled as a ConfigMap: '),
    ],
)
def test_another_kind(api: KubeApi, config_maps: str, kind: str, api_version: str, beginning: str) -> None:
    answer = api.post(config_maps, {**config_map(), "kind": kind, "apiVersion": api_version})
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith(beginning)


@pytest.mark.parametrize("body", [b"", b"garbage", b"[]", b'{"apiVersion":"v1","kind":"ConfigMap"', b'"x"', b"5"])
def test_bodies_that_are_no_objects(api: KubeApi, config_maps: str, body: bytes) -> None:
    answer = api.post(config_maps, body)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith("the object provided is unrecognized (must be of type ConfigMap): ")


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"data": {"a": 1}}, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        (
            {"metadata": {"name": "q", "labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        ({"data": []}, "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"),
        ({"immutable": "x"}, "json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool"),
    ],
)
def test_fields_of_another_type(api: KubeApi, config_maps: str, value: dict[str, Any], fault: str) -> None:
    assert refusal(api.post(config_maps, {**config_map("q"), **value})) == (
        400,
        "BadRequest",
        f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {fault}',
    )


def test_unknown_and_duplicate_fields_are_reported_in_their_place(api: KubeApi, config_maps: str) -> None:
    text = (
        b'{"apiVersion":"v1","first":0,"kind":"ConfigMap","metadata":{"name":"one","nope":1},'
        b'"data":{"a":"1","a":"2"},"last":1}'
    )
    faults = [
        'unknown field "first"',
        'unknown field "metadata.nope"',
        'duplicate field "data.a"',
        'unknown field "last"',
    ]
    why = f"strict decoding error: {', '.join(faults)}"
    expected = (400, "BadRequest", f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {why}')
    assert refusal(api.post(config_maps, text, fieldValidation="Strict")) == expected
    assert api.post(config_maps, text).warnings == faults


def test_faults_of_custom_resources_are_reported_together(api: KubeApi, things: str) -> None:
    text = (
        b'{"apiVersion":"conf.example.org/v1","kind":"Thing","metadata":{"name":"one"},'
        b'"spec":{"nope":0,"size":1,"size":2}}'
    )
    faults = ['duplicate field "spec.size"', 'unknown field "spec.nope"']
    why = f"strict decoding error: {', '.join(faults)}"
    expected = (400, "BadRequest", f'Thing in version "v1" cannot be handled as a Thing: {why}')
    assert refusal(api.post(things, text, fieldValidation="Strict")) == expected
    assert api.post(things, text).warnings == faults


def test_a_body_that_is_too_large(api: KubeApi, config_maps: str) -> None:
    answer = api.post(config_maps, config_map(data={"a": "c" * 4_000_000}))
    assert refusal(answer) == (413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")


@pytest.mark.differs("A malformed request is the client's fault")
def test_a_new_object_has_no_version(api: KubeApi, config_maps: str) -> None:
    answer = api.post(config_maps, config_map(meta={"resourceVersion": "5"}))
    assert (answer.status, answer.message) == (500, "resourceVersion should not be set on objects to be created")


def test_what_only_the_server_sets(api: KubeApi, config_maps: str) -> None:
    given = {
        "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5, "selfLink": "/x",
    }  # fmt: skip
    meta = api.made(config_maps, config_map(meta=given))["metadata"]
    assert meta["uid"] != "mine"
    assert not meta["creationTimestamp"].startswith("2001")
    assert "deletionTimestamp" not in meta
    assert "deletionGracePeriodSeconds" not in meta
    assert "selfLink" not in meta


BOTH_FAULTS = b"""
apiVersion: %b
kind: %b
metadata:
  name: one
  foo: x
%b: {a: '1', b: 1, a: '2'}
unk: 1
"""


@pytest.mark.parametrize("custom", [False, True])
def test_faults_of_yaml_texts(api: KubeApi, config_maps: str, things: str, custom: bool) -> None:
    if custom:
        path, kind, text = things, "Thing", BOTH_FAULTS % (b"conf.example.org/v1", b"Thing", b"spec")
    else:
        path, kind, text = config_maps, "ConfigMap", BOTH_FAULTS % (b"v1", b"ConfigMap", b"data")
        text = text.replace(b"b: 1", b"b: 'x'")

    def post(validation: str) -> Answer:
        return api.call("POST", path, text, content_type="application/yaml", fieldValidation=validation, dryRun="All")

    twice = 'line 7: key "a" already set in map'
    unknown = ['unknown field "metadata.foo"', 'unknown field "unk"']
    if custom:
        unknown[1:1] = ['unknown field "spec.a"', 'unknown field "spec.b"']
    answer = post("Warn")
    assert (answer.status, answer.warnings) == (201, [twice, *unknown])
    why = ", ".join([f"yaml: unmarshal errors:\n  {twice}", *unknown])
    message = f'{kind} in version "v1" cannot be handled as a {kind}: strict decoding error: {why}'
    assert refusal(post("Strict")) == (400, "BadRequest", message)
    assert post("Ignore").warnings == []

"""Dry runs, and what becomes of fields that are not known."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.kubeapi import APPLY, JSON_PATCH, MERGE, STRATEGIC, Answer, KubeApi
from support.api.kubeobjects import config_map, names, refusal

DRY = 'dryRun: Unsupported value: ["Foo"]: supported values: "All"'
VALIDATION = 'fieldValidation: Unsupported value: "Foo": supported values: "", "Ignore", "Strict", "Warn"'
KINDS = {"post": "CreateOptions", "put": "UpdateOptions", "patch": "PatchOptions", "delete": "DeleteOptions"}


@pytest.fixture
def one(api: KubeApi, config_maps: str) -> str:
    api.made(config_maps, config_map(data={"a": "1"}))
    return f"{config_maps}/one"


def ask(api: KubeApi, verb: str, path: str, **query: Any) -> Answer:
    match verb:
        case "post":
            return api.post(path.rpartition("/")[0], config_map("new"), **query)
        case "put":
            return api.put(path, config_map(data={"a": "2"}), **query)
        case "patch":
            return api.patch(path, {"data": {"a": "2"}}, **query)
    return api.delete(path, **query)


@pytest.mark.parametrize("verb", list(KINDS))
def test_a_dry_run_is_all_or_nothing(api: KubeApi, one: str, verb: str) -> None:
    answer = ask(api, verb, one, dryRun="Foo")
    assert refusal(answer) == (422, "Invalid", f'{KINDS[verb]}.meta.k8s.io "" is invalid: {DRY}')


@pytest.mark.parametrize("verb", list(KINDS))
def test_a_dry_run_leaves_everything_as_it_is(api: KubeApi, config_maps: str, one: str, verb: str) -> None:
    before = api.get(one).json
    answer = ask(api, verb, one, dryRun="All")
    assert answer.status == (201 if verb == "post" else 200)
    if verb in {"put", "patch"}:
        assert answer.json["data"] == {"a": "2"}
    assert api.get(one).json == before
    assert "new" not in names(api.get(config_maps))


def test_a_dry_run_is_checked_as_any_write(api: KubeApi, config_maps: str, one: str) -> None:
    assert api.post(config_maps, config_map(), dryRun="All").reason == "AlreadyExists"
    assert api.post(config_maps, config_map("Q"), dryRun="All").reason == "Invalid"
    assert api.put(one, config_map(meta={"resourceVersion": "1"}), dryRun="All").reason == "Conflict"
    assert api.delete(f"{config_maps}/nope", dryRun="All").reason == "NotFound"


def test_a_dry_run_of_a_new_object(api: KubeApi, config_maps: str) -> None:
    meta = api.post(config_maps, config_map("new"), dryRun="All").json["metadata"]
    assert meta["uid"]
    assert meta["creationTimestamp"]
    assert "resourceVersion" not in meta


def test_a_dry_run_of_a_generated_name(api: KubeApi, config_maps: str) -> None:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}}
    assert api.post(config_maps, value, dryRun="All").json["metadata"]["name"].startswith("gen-")


def test_a_dry_run_of_an_apply(api: KubeApi, config_maps: str) -> None:
    answer = api.apply(f"{config_maps}/new", config_map("new", data={"a": "1"}), manager="m", dryRun="All")
    assert (answer.status, answer.json["data"]) == (201, {"a": "1"})
    assert api.get(f"{config_maps}/new").status == 404


def test_a_dry_run_of_a_delete_with_finalizers(api: KubeApi, config_maps: str) -> None:
    path = f"{config_maps}/held"
    api.made(config_maps, config_map("held", {"finalizers": ["example.org/f"]}))
    assert "deletionTimestamp" in api.delete(path, dryRun="All").json["metadata"]
    assert "deletionTimestamp" not in api.get(path).json["metadata"]
    api.patch(path, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("verb", ["post", "put", "patch"])
def test_an_unknown_way_to_validate(api: KubeApi, one: str, verb: str) -> None:
    answer = ask(api, verb, one, fieldValidation="Foo")
    assert refusal(answer) == (422, "Invalid", f'{KINDS[verb]}.meta.k8s.io "" is invalid: {VALIDATION}')


@pytest.mark.parametrize(
    ("value", "listed"),
    [
        ({"foo": 1}, 'unknown field "foo"'),
        ({"foo": 1, "bar": {"a": 1}}, 'unknown field "foo", unknown field "bar"'),
        ({"metadata": {"name": "one", "foo": 1}}, 'unknown field "metadata.foo"'),
    ],
)
@pytest.mark.parametrize("verb", ["post", "put"])
def test_strict_validation_of_objects(
    api: KubeApi, config_maps: str, verb: str, value: dict[str, Any], listed: str
) -> None:
    body = {**config_map(), **value}
    if verb == "put":
        api.made(config_maps, config_map())
        answer = api.put(f"{config_maps}/one", body, fieldValidation="Strict")
    else:
        answer = api.post(config_maps, body, fieldValidation="Strict")
    assert refusal(answer) == (
        400,
        "BadRequest",
        f'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: {listed}',
    )


PATCHES = [
    (MERGE, {"foo": 1}),
    (STRATEGIC, {"foo": 1}),
    (JSON_PATCH, [{"op": "add", "path": "/foo", "value": 1}]),
]


@pytest.mark.parametrize(("kind", "patch"), PATCHES)
def test_strict_validation_of_patches(api: KubeApi, one: str, kind: str, patch: Any) -> None:
    answer = api.patch(one, patch, kind, fieldValidation="Strict")
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message.startswith(' "" is invalid: patch: Invalid value: ')
    assert answer.message.endswith('strict decoding error: unknown field "foo"')
    assert answer.causes[0]["field"] == "patch"


@pytest.mark.parametrize("query", [{}, {"fieldValidation": "Warn"}])
@pytest.mark.parametrize("verb", ["post", "put"])
def test_unknown_fields_are_warned_of(api: KubeApi, one: str, verb: str, query: dict[str, str]) -> None:
    body = {**config_map("new" if verb == "post" else "one"), "foo": 1, "bar": 2}
    path = one.rpartition("/")[0] if verb == "post" else one
    answer = api.call(verb.upper(), path, body, **query)
    assert answer.status in {200, 201}
    assert answer.warnings == ['unknown field "foo"', 'unknown field "bar"']
    assert "foo" not in answer.json


@pytest.mark.parametrize(("kind", "patch"), PATCHES)
def test_unknown_fields_of_patches_are_warned_of(api: KubeApi, one: str, kind: str, patch: Any) -> None:
    answer = api.patch(one, patch, kind)
    assert (answer.status, answer.warnings) == (200, ['unknown field "foo"'])


def test_unknown_fields_can_be_ignored(api: KubeApi, config_maps: str) -> None:
    answer = api.post(config_maps, {**config_map(), "foo": 1}, fieldValidation="Ignore")
    assert (answer.status, answer.warnings) == (201, [])


def test_an_apply_has_no_unknown_fields(api: KubeApi, one: str) -> None:
    answer = api.call(
        "PATCH", one, {**config_map(), "foo": 1}, content_type=APPLY, fieldManager="m", fieldValidation="Ignore"
    )
    assert answer.message == (
        "failed to create typed patch object (/one; /v1, Kind=ConfigMap): .foo: field not declared in schema"
    )


def test_known_fields_are_not_warned_of(api: KubeApi, config_maps: str) -> None:
    assert api.post(config_maps, config_map(data={"a": "b"})).warnings == []

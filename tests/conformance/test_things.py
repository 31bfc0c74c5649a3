"""Custom resources: written, applied, and refused as any other object, but for what their schema says."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.kubeapi import STRATEGIC, KubeApi
from support.api.kubeobjects import managers, owned, refusal, thing

COUNT = '.spec.parts[name="a"].count'


@pytest.fixture
def one(api: KubeApi, things: str) -> str:
    spec = {"size": 1, "tags": ["a"], "parts": [{"name": "x", "count": 1}], "free": {"q": {"r": [1]}}, "port": "http"}
    api.made(things, thing(spec=spec), fieldManager="maker")
    return f"{things}/one"


def test_who_makes_a_thing_owns_what_it_says(api: KubeApi, one: str) -> None:
    assert owned(api.get(one).json) == {
        "maker": {
            "f:spec": {
                ".": {},
                "f:free": {".": {}, "f:q": {".": {}, "f:r": {}}},
                "f:parts": {".": {}, 'k:{"name":"x"}': {".": {}, "f:count": {}, "f:name": {}}},
                "f:port": {},
                "f:size": {},
                "f:tags": {".": {}, 'v:"a"': {}},
            }
        }
    }


def test_generations_count_specs(api: KubeApi, one: str) -> None:
    assert api.get(one).json["metadata"]["generation"] == 1
    assert api.patch(one, {"spec": {"size": 2}}).json["metadata"]["generation"] == 2
    assert api.patch(one, {"metadata": {"labels": {"a": "b"}}}).json["metadata"]["generation"] == 2
    assert api.patch(f"{one}/status", {"status": {"phase": "Up"}}).json["metadata"]["generation"] == 2


def test_a_status_is_written_apart(api: KubeApi, things: str, one: str) -> None:
    assert "status" not in api.made(things, thing("two", status={"phase": "Up"}))
    written = {"status": {"phase": "Up"}, "spec": {"size": 9}, "metadata": {"labels": {"a": "b"}}}
    after = api.patch(f"{one}/status", written).json
    assert (after["status"], after["spec"]["size"]) == ({"phase": "Up"}, 1)
    assert "labels" not in after["metadata"]
    assert api.patch(one, {"status": {"phase": "Down"}}).json["status"] == {"phase": "Up"}


def test_a_status_is_applied_apart(api: KubeApi, one: str) -> None:
    answer = api.apply(f"{one}/status", thing(status={"phase": "New"}, spec={"size": 4}), manager="me")
    assert (answer.json["status"], answer.json["spec"]["size"]) == ({"phase": "New"}, 1)
    assert ("me", "Apply", "status", {"f:status": {"f:phase": {}}}) in managers(answer.json)


def test_a_status_of_nothing_is_not_applied(api: KubeApi, things: str) -> None:
    answer = api.apply(f"{things}/gone/status", thing("gone", status={"phase": "New"}), manager="me")
    assert refusal(answer) == (404, "NotFound", 'things.conf.example.org "gone" not found')


def test_replacing_needs_a_version(api: KubeApi, one: str) -> None:
    answer = api.put(one, thing(spec={"size": 1}))
    assert refusal(answer) == (
        422,
        "Invalid",
        (
            'things.conf.example.org "one" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified '
            "for an update"
        ),
    )


def test_there_is_no_strategic_merge(api: KubeApi, one: str) -> None:
    answer = api.patch(one, {"spec": {"size": 1}}, STRATEGIC)
    assert refusal(answer) == (
        415,
        "UnsupportedMediaType",
        (
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        ),
    )


@pytest.mark.parametrize("verb", ["post", "patch"])
def test_another_kind(api: KubeApi, things: str, one: str, verb: str) -> None:
    value = {**thing(), "kind": "Foo"}
    answer = api.post(things, value) if verb == "post" else api.patch(one, {"kind": "Foo"})
    assert refusal(answer) == (
        422,
        "Invalid",
        'Foo.conf.example.org "one" is invalid: kind: Invalid value: "Foo": must be Thing',
    )


def test_another_version(api: KubeApi, things: str) -> None:
    answer = api.post(things, {**thing("two"), "apiVersion": "conf.example.org/v2"})
    assert refusal(answer) == (
        400,
        "BadRequest",
        (
            "the API version in the data (conf.example.org/v2) does not match the expected API version "
            "(conf.example.org/v1)"
        ),
    )


def test_unknown_fields(api: KubeApi, things: str, one: str) -> None:
    answer = api.post(things, thing("two", spec={"foo": 1, "parts": [{"name": "x", "bar": 1}]}))
    assert sorted(answer.warnings) == ['unknown field "spec.foo"', 'unknown field "spec.parts[0].bar"']
    answer = api.post(things, thing("three", spec={"foo": 1}), fieldValidation="Strict")
    assert refusal(answer)[2] == (
        'Thing in version "v1" cannot be handled as a Thing: strict decoding error: unknown field "spec.foo"'
    )
    answer = api.patch(one, {"spec": {"foo": 1}}, fieldValidation="Strict")
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message.endswith('strict decoding error: unknown field "spec.foo"')


def test_an_unqualified_finalizer_is_warned_of(api: KubeApi, things: str) -> None:
    answer = api.post(things, thing("two", {"finalizers": ["abc"]}))
    assert answer.warnings == [
        (
            'metadata.finalizers: "abc": prefer a domain-qualified finalizer name to avoid accidental conflicts with '
            "other finalizer writers"
        )
    ]
    api.patch(f"{things}/two", {"metadata": {"finalizers": None}})


def test_fields_of_another_type(api: KubeApi, things: str) -> None:
    answer = api.post(things, thing("two", spec={"size": "x", "tags": "y"}))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert {cause["field"] for cause in answer.causes} == {"spec.size", "spec.tags"}


def test_only_declared_fields_are_selected_by(api: KubeApi, things: str) -> None:
    assert refusal(api.get(things, fieldSelector="spec.size=1")) == (
        400,
        "BadRequest",
        "field label not supported: spec.size",
    )


def test_applying_conflicts_by_the_schema(api: KubeApi, one: str) -> None:
    spec = {"parts": [{"name": "x", "count": 5, "note": "n"}], "port": 80, "tags": ["a", "b"], "labels": {"l": "1"}}
    answer = api.apply(one, thing(spec=spec), manager="me")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert sorted(cause["field"] for cause in answer.causes) == ['.spec.parts[name="x"].count', ".spec.port"]


def test_applying_merges_by_the_schema(api: KubeApi, one: str) -> None:
    spec = {
        "parts": [{"name": "y", "count": 2}, {"name": "x", "note": "n"}],
        "tags": ["b"], "plain": ["p"], "labels": {"l": "1"}, "fixed": {"a": "1"}, "port": 80,
    }  # fmt: skip
    after = api.apply(one, thing(spec=spec), manager="me", force=True).json
    assert after["spec"] == {
        "size": 1,
        "port": 80,
        "parts": [{"name": "y", "count": 2}, {"name": "x", "count": 1, "note": "n"}],
        "tags": ["a", "b"],
        "plain": ["p"],
        "labels": {"l": "1"},
        "fixed": {"a": "1"},
        "free": {"q": {"r": [1]}},
    }
    assert owned(after)["me"] == {
        "f:spec": {
            "f:fixed": {},
            "f:labels": {"f:l": {}},
            "f:parts": {
                'k:{"name":"x"}': {".": {}, "f:name": {}, "f:note": {}},
                'k:{"name":"y"}': {".": {}, "f:count": {}, "f:name": {}},
            },
            "f:plain": {},
            "f:port": {},
            "f:tags": {'v:"b"': {}},
        }
    }


def test_what_is_no_longer_applied_goes_by_the_schema(api: KubeApi, one: str) -> None:
    spec = {
        "parts": [{"name": "y", "count": 2}, {"name": "x", "note": "n"}],
        "tags": ["b"], "plain": ["p"], "labels": {"l": "1"}, "fixed": {"a": "1"},
    }  # fmt: skip
    api.apply(one, thing(spec=spec), manager="me")
    after = api.apply(one, thing(spec={"parts": [{"name": "y"}]}), manager="me").json
    assert after["spec"] == {
        "size": 1,
        "port": "http",
        "parts": [{"name": "y"}, {"name": "x", "count": 1}],
        "tags": ["a"],
        "free": {"q": {"r": [1]}},
    }
    after = api.apply(one, thing(), manager="me").json
    assert after["spec"]["parts"] == [{"name": "x", "count": 1}]


@pytest.mark.parametrize(
    ("first", "second", "fields"),
    [
        ({"plain": ["a"]}, {"plain": ["b"]}, [".spec.plain"]),
        ({"fixed": {"a": "1"}}, {"fixed": {"b": "1"}}, [".spec.fixed"]),
        ({"labels": {"a": "1"}}, {"labels": {"a": "2"}}, [".spec.labels.a"]),
        ({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, []),
        ({"tags": ["a"]}, {"tags": ["b"]}, []),
        ({"parts": [{"name": "a", "count": 1}]}, {"parts": [{"name": "a", "note": "n"}]}, []),
        (
            {"parts": [{"name": "a", "count": 1}]},
            {"parts": [{"name": "a", "count": 2}]},
            ['.spec.parts[name="a"].count'],
        ),
        ({"port": 80}, {"port": "80"}, [".spec.port"]),
        ({"port": 80}, {"port": 80}, []),
        ({"free": {"a": {"b": 1}}}, {"free": {"a": {"c": 1}}}, []),
        ({"free": {"a": {"b": 1}}}, {"free": {"a": {"b": 2}}}, [".spec.free.a.b"]),
        ({"free": {"a": [1]}}, {"free": {"a": [2]}}, [".spec.free.a"]),
    ],
)
def test_what_two_appliers_may_say(
    api: KubeApi, things: str, first: dict[str, Any], second: dict[str, Any], fields: list[str]
) -> None:
    path = f"{things}/two"
    assert api.apply(path, thing("two", spec=first), manager="first").status == 201
    answer = api.apply(path, thing("two", spec=second), manager="second")
    assert answer.status == (409 if fields else 200)
    if fields:
        assert [cause["field"] for cause in answer.causes] == fields


@pytest.mark.differs("A malformed request is the client's fault")
@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"parts": [{"name": "y"}, {"name": "y"}]}, '.spec.parts: duplicate entries for key [name="y"]'),
        ({"tags": ["y", "y"]}, '.spec.tags: duplicate entries for key [="y"]'),
        ({"foo": 1}, ".spec.foo: field not declared in schema"),
    ],
)
def test_configurations_that_do_not_fit(api: KubeApi, one: str, spec: dict[str, Any], fault: str) -> None:
    answer = api.apply(one, thing(spec=spec), manager="me")
    assert (answer.status, answer.message) == (
        500,
        f"failed to create typed patch object (/one; conf.example.org/v1, Kind=Thing): {fault}",
    )


def test_null_is_applied_where_it_may_be(api: KubeApi, one: str) -> None:
    after = api.apply(one, thing(spec={"maybe": None}), manager="me").json
    assert after["spec"]["maybe"] is None
    assert owned(after)["me"] == {"f:spec": {"f:maybe": {}}}


def test_defaults_are_nobodys_who_applies(api: KubeApi, things: str) -> None:
    made = api.apply(f"{things}/two", thing("two", spec={"port": 1}), manager="me").json
    assert made["spec"] == {"port": 1, "size": 3}
    assert owned(made) == {"me": {"f:spec": {"f:port": {}}}}


def test_replicas_are_scaled(api: KubeApi, one: str) -> None:
    api.patch(one, {"spec": {"replicas": 2}})
    scale = api.get(f"{one}/scale").json
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
    scale["spec"]["replicas"] = 4
    assert api.put(f"{one}/scale", scale).json["spec"] == {"replicas": 4}
    assert api.get(one).json["spec"]["replicas"] == 4
    assert api.patch(f"{one}/scale", {"spec": {"replicas": 5}}).json["spec"] == {"replicas": 5}


def test_scaling_has_an_owner_of_its_own(api: KubeApi, one: str) -> None:
    api.patch(one, {"spec": {"replicas": 2}}, fieldManager="maker")
    api.patch(f"{one}/scale", {"spec": {"replicas": 5}}, fieldManager="scaler")
    assert ("scaler", "Update", "scale", {"f:spec": {"f:replicas": {}}}) in managers(api.get(one).json)


def test_items_of_lists_are_whole(api: KubeApi, things: str, one: str) -> None:
    (item,) = api.get(things).json["items"]
    assert (item["kind"], item["apiVersion"]) == ("Thing", "conf.example.org/v1")
    assert item == api.get(one).json

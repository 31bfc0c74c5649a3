"""Deletes: conditions, marks and finalizers, and collections."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.kubeapi import KubeApi
from support.api.kubeobjects import config_map, names, refusal

FINALIZER = {"finalizers": ["example.org/f"]}
POLICIES = 'supported values: "Foreground", "Background", "Orphan", "nil"'


@pytest.fixture
def one(api: KubeApi, config_maps: str) -> str:
    api.made(config_maps, config_map())
    return f"{config_maps}/one"


@pytest.fixture
def held(api: KubeApi, config_maps: str) -> str:
    api.made(config_maps, config_map("held", FINALIZER))
    return f"{config_maps}/held"


def release(api: KubeApi, path: str) -> None:
    api.patch(path, {"metadata": {"finalizers": None}})


def test_what_is_gone_at_once_is_answered_with_a_status(api: KubeApi, one: str) -> None:
    uid = api.get(one).json["metadata"]["uid"]
    answer = api.delete(one)
    assert answer.status == 200
    assert answer.json == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": "one", "kind": "configmaps", "uid": uid},
    }  # fmt: skip
    assert api.get(one).status == 404


def test_deleting_what_is_not_there(api: KubeApi, config_maps: str) -> None:
    assert refusal(api.delete(f"{config_maps}/nope")) == (404, "NotFound", 'configmaps "nope" not found')


def test_a_finalizer_holds_an_object(api: KubeApi, held: str) -> None:
    marked = api.delete(held).json
    assert marked["kind"] == "ConfigMap"
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["finalizers"] == ["example.org/f"]
    assert api.delete(held).json["metadata"] == marked["metadata"]
    released = api.patch(held, {"metadata": {"finalizers": None}})
    assert released.status == 200
    assert "deletionTimestamp" in released.json["metadata"]
    assert api.get(held).status == 404


def test_a_marked_object_is_written_as_any_other(api: KubeApi, held: str) -> None:
    api.delete(held)
    after = api.patch(held, {"data": {"a": "b"}, "metadata": {"deletionTimestamp": None}}).json
    assert after["data"] == {"a": "b"}
    assert "deletionTimestamp" in after["metadata"]
    release(api, held)


def test_a_marked_object_gets_no_new_finalizers(api: KubeApi, held: str) -> None:
    api.delete(held)
    answer = api.patch(held, {"metadata": {"finalizers": ["example.org/f", "example.org/g"]}})
    why = (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"example.org/g"}'
    )
    assert refusal(answer) == (422, "Invalid", f'ConfigMap "held" is invalid: metadata.finalizers: {why}')
    release(api, held)


def test_one_finalizer_of_two_can_go(api: KubeApi, config_maps: str) -> None:
    path = f"{config_maps}/two"
    api.made(config_maps, config_map("two", {"finalizers": ["example.org/f", "example.org/g"]}))
    api.delete(path)
    assert api.patch(path, {"metadata": {"finalizers": ["example.org/g"]}}).status == 200
    assert api.get(path).json["metadata"]["finalizers"] == ["example.org/g"]
    release(api, path)
    assert api.get(path).status == 404


@pytest.mark.parametrize("place", ["body", "query"])
@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_propagation_is_a_finalizer(api: KubeApi, one: str, place: str, policy: str, finalizer: str) -> None:
    answer = (
        api.delete(one, {"propagationPolicy": policy}) if place == "body" else api.delete(one, propagationPolicy=policy)
    )
    assert answer.json["metadata"]["finalizers"] == [finalizer]


def test_orphaning_in_the_old_way(api: KubeApi, one: str) -> None:
    assert api.delete(one, {"orphanDependents": True}).json["metadata"]["finalizers"] == ["orphan"]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"propagationPolicy": "Foo"}, f'propagationPolicy: Unsupported value: "Foo": {POLICIES}'),
        (
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
        ),
        ({"dryRun": ["Some"]}, 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
    ],
)
def test_options_that_are_none(api: KubeApi, one: str, options: dict[str, Any], fault: str) -> None:
    answer = api.delete(one, options)
    assert refusal(answer) == (422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: {fault}')
    assert api.get(one).status == 200


@pytest.mark.parametrize(
    "body", [b"xx", b"[]", b'{"kind":"Secret","apiVersion":"v1"}', b'{"preconditions":5}', b'{"dryRun":"All"}']
)
def test_bodies_that_are_no_options(api: KubeApi, one: str, body: bytes) -> None:
    answer = api.delete(one, body)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert api.get(one).status == 200


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "DeleteOptions", "apiVersion": "v1"},
        {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"},
        {"kind": "DeleteOptions", "apiVersion": "v1", "unknown": 1},
        {"gracePeriodSeconds": 30},
        {"propagationPolicy": "Background"},
        {},
    ],
)
def test_options_that_are_fine(api: KubeApi, one: str, options: dict[str, Any]) -> None:
    assert api.delete(one, options).json["status"] == "Success"


def test_a_period_of_grace_must_be_a_number(api: KubeApi, one: str) -> None:
    assert refusal(api.delete(one, gracePeriodSeconds="abc")) == (
        400,
        "BadRequest",
        'strconv.ParseInt: parsing "abc": invalid syntax',
    )


def test_the_uid_as_a_condition(api: KubeApi, one: str) -> None:
    uid = api.get(one).json["metadata"]["uid"]
    answer = api.delete(one, {"preconditions": {"uid": "123"}})
    assert refusal(answer) == (
        409,
        "Conflict",
        (
            'Operation cannot be fulfilled on ConfigMap "one": the UID in the precondition (123) does not match '
            f"the UID in record ({uid}). The object might have been deleted and then recreated"
        ),
    )
    assert api.delete(one, {"preconditions": {"uid": uid}}).status == 200


def test_the_version_as_a_condition(api: KubeApi, one: str) -> None:
    version = api.get(one).json["metadata"]["resourceVersion"]
    answer = api.delete(one, {"preconditions": {"resourceVersion": "1"}})
    assert refusal(answer) == (
        409,
        "Conflict",
        (
            'Operation cannot be fulfilled on ConfigMap "one": the ResourceVersion in the precondition (1) does not '
            f"match the ResourceVersion in record ({version}). The object might have been modified"
        ),
    )
    assert api.delete(one, {"preconditions": {"resourceVersion": version}}).status == 200


def labelled(api: KubeApi, path: str, count: int) -> None:
    for number in range(count):
        api.made(path, config_map(f"l{number}", {"labels": {"of": "many"}}))


def test_a_collection_is_deleted_by_labels(api: KubeApi, config_maps: str) -> None:
    labelled(api, config_maps, 3)
    api.made(config_maps, config_map("other"))
    answer = api.delete(config_maps, labelSelector="of=many")
    assert (answer.json["kind"], names(answer)) == ("ConfigMapList", ["l0", "l1", "l2"])
    assert answer.json["metadata"]["resourceVersion"]
    assert "other" in names(api.get(config_maps))
    assert not names(api.get(config_maps, labelSelector="of=many"))


def test_a_collection_is_deleted_by_fields(api: KubeApi, config_maps: str) -> None:
    labelled(api, config_maps, 2)
    assert names(api.delete(config_maps, fieldSelector="metadata.name=l1")) == ["l1"]
    assert names(api.get(config_maps, labelSelector="of=many")) == ["l0"]


def test_a_collection_is_deleted_page_by_page(api: KubeApi, config_maps: str) -> None:
    labelled(api, config_maps, 4)
    answer = api.delete(config_maps, labelSelector="of=many", limit=3)
    assert names(answer) == ["l0", "l1", "l2"]
    assert answer.json["metadata"]["continue"]
    assert names(api.get(config_maps, labelSelector="of=many")) == ["l3"]


def test_a_collection_of_nothing(api: KubeApi, config_maps: str) -> None:
    assert names(api.delete(config_maps, labelSelector="of=none")) == []


def test_a_collection_with_finalizers_is_marked(api: KubeApi, config_maps: str, held: str) -> None:
    assert names(api.delete(config_maps, fieldSelector="metadata.name=held")) == ["held"]
    assert "deletionTimestamp" in api.get(held).json["metadata"]
    release(api, held)


def test_a_collection_takes_options(api: KubeApi, config_maps: str) -> None:
    labelled(api, config_maps, 1)
    answer = api.delete(config_maps, {"propagationPolicy": "Foo"}, labelSelector="of=many")
    assert (answer.status, answer.reason) == (422, "Invalid")
    api.delete(config_maps, {"dryRun": ["All"]}, labelSelector="of=many")
    assert names(api.get(config_maps, labelSelector="of=many")) == ["l0"]
    api.delete(config_maps, {"propagationPolicy": "Orphan"}, labelSelector="of=many")


@pytest.mark.parametrize("precondition", [{"uid": "of-another"}, {"resourceVersion": "1"}, {"resourceVersion": "x"}])
def test_a_collection_that_is_not_what_was_expected(
    api: KubeApi, config_maps: str, precondition: dict[str, str]
) -> None:
    api.made(config_maps, config_map("a"))
    api.made(config_maps, config_map("b"))
    answer = api.delete(config_maps, {"preconditions": precondition})
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert "precondition" in answer.json["message"]
    assert {"a", "b"} <= set(names(api.get(config_maps)))


def test_namespaces_are_no_collection_to_delete(api: KubeApi) -> None:
    assert refusal(api.delete("/api/v1/namespaces", labelSelector="of=none")) == (
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_namespaces_that_stay(api: KubeApi, name: str) -> None:
    assert refusal(api.delete(f"/api/v1/namespaces/{name}")) == (
        403,
        "Forbidden",
        f'namespaces "{name}" is forbidden: this namespace may not be deleted',
    )

"""The life of a namespace: from its label to the last thing in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from support.api.kubeapi import KubeApi
from support.api.kubeobjects import config_map, refusal
from support.waiting import eventually

ALL = "/api/v1/namespaces"
REMOVED = {
    "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances",
    ),
    "NamespaceFinalizersRemaining": (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: example.org/f in 1 resource instances",
    ),
}


def made(api: KubeApi, **meta: Any) -> str:
    name = f"life-{uuid4().hex[:8]}"
    api.made(ALL, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **meta}})
    return name


@pytest.fixture(scope="module")
def ending(api: KubeApi) -> Iterator[dict[str, str]]:
    """Namespaces that are deleted all at once: kube-controller-manager takes five seconds until it looks at one."""
    found = {name: made(api) for name in ("empty", "full", "held", "released")}
    found["finalized"] = made(api, finalizers=["example.org/f"])
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}}
    api.made(f"{ALL}/{found['full']}/configmaps", config_map())
    api.made(f"{ALL}/{found['full']}/secrets", secret)
    for name in ("held", "released"):
        api.made(f"{ALL}/{found[name]}/configmaps", config_map(meta={"finalizers": ["example.org/f"]}))
    for name in found.values():
        answer = api.delete(f"{ALL}/{name}")
        assert answer.json["status"] == {"phase": "Terminating"}
        assert answer.json["metadata"]["deletionTimestamp"]
    yield found
    for name in ("held", "released"):
        api.patch(f"{ALL}/{found[name]}/configmaps/one", {"metadata": {"finalizers": None}})


@pytest.fixture
def held(ending: dict[str, str]) -> str:
    """An ending namespace with an object in it that a finalizer holds."""
    return ending["held"]


def test_a_new_namespace(api: KubeApi) -> None:
    name = made(api)
    found = api.get(f"{ALL}/{name}").json
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    assert found["spec"] == {"finalizers": ["kubernetes"]}
    assert found["status"] == {"phase": "Active"}
    api.delete(f"{ALL}/{name}")


def test_the_label_of_its_name_comes_back(api: KubeApi, namespace: str) -> None:
    labels = {"kubernetes.io/metadata.name": "another", "x": "y"}
    after = api.patch(f"{ALL}/{namespace}", {"metadata": {"labels": labels}}).json
    assert after["metadata"]["labels"] == {"kubernetes.io/metadata.name": namespace, "x": "y"}


def test_its_finalizers_are_put_apart(api: KubeApi, namespace: str) -> None:
    after = api.patch(f"{ALL}/{namespace}", {"spec": {"finalizers": ["example.org/f"]}}).json
    assert after["spec"] == {"finalizers": ["kubernetes"]}


def test_nothing_new_comes_into_an_ending_namespace(api: KubeApi, held: str) -> None:
    answer = api.post(f"{ALL}/{held}/configmaps", config_map("late"))
    assert refusal(answer) == (
        403,
        "Forbidden",
        (
            f'configmaps "late" is forbidden: unable to create new content in namespace {held} '
            "because it is being terminated"
        ),
    )
    assert answer.causes == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {held} is being terminated",
            "field": "metadata.namespace",
        }
    ]


def test_what_is_in_an_ending_namespace_is_written_still(api: KubeApi, held: str) -> None:
    assert api.patch(f"{ALL}/{held}/configmaps/one", {"data": {"a": "b"}}).status == 200


def test_it_says_what_it_waits_for(api: KubeApi, held: str) -> None:
    def conditions() -> dict[str, tuple[str, str, str]]:
        status = api.get(f"{ALL}/{held}").json["status"]
        return {one["type"]: (one["status"], one["reason"], one["message"]) for one in status.get("conditions", [])}

    eventually(lambda: conditions() == REMOVED)


def test_its_end_can_be_put(api: KubeApi, namespace: str) -> None:
    path = f"{ALL}/{namespace}"
    before = api.get(path).json
    after = api.put(f"{path}/finalize", before | {"spec": {"finalizers": ["kubernetes", "example.org/f"]}}).json
    assert after["spec"]["finalizers"] == ["kubernetes", "example.org/f"]
    after = api.put(f"{path}/finalize", after | {"spec": {"finalizers": ["kubernetes"]}}).json
    assert after["spec"]["finalizers"] == ["kubernetes"]


def test_an_empty_namespace_goes(api: KubeApi, ending: dict[str, str]) -> None:
    eventually(lambda: api.get(f"{ALL}/{ending['empty']}").status == 404)


def test_a_namespace_takes_its_contents_along(api: KubeApi, ending: dict[str, str]) -> None:
    path = f"{ALL}/{ending['full']}"
    eventually(lambda: api.get(path).status == 404)
    assert [api.get(f"{path}/{kind}").json["items"] for kind in ("configmaps", "secrets")] == [[], []]


def test_a_finalizer_of_its_own_holds_it(api: KubeApi, ending: dict[str, str]) -> None:
    path = f"{ALL}/{ending['finalized']}"
    eventually(lambda: api.get(path).json["spec"] == {})
    assert api.get(path).json["status"]["phase"] == "Terminating"
    api.patch(path, {"metadata": {"finalizers": None}})
    assert api.get(path).status == 404


def test_it_goes_with_the_last_thing_in_it(api: KubeApi, ending: dict[str, str]) -> None:
    path = f"{ALL}/{ending['released']}"
    eventually(lambda: "deletionTimestamp" in api.get(f"{path}/configmaps/one").json["metadata"])
    assert api.get(path).json["status"]["phase"] == "Terminating"
    api.patch(f"{path}/configmaps/one", {"metadata": {"finalizers": None}})
    eventually(lambda: api.get(path).status == 404)

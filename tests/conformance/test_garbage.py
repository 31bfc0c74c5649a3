"""Owners and dependents: what goes with what, and what stays."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.kubeapi import KubeApi
from support.api.kubeobjects import config_map, secret
from support.waiting import eventually


@pytest.fixture
def owner(api: KubeApi, config_maps: str) -> dict[str, Any]:
    return api.made(config_maps, config_map("owner"))


@pytest.fixture
def secrets(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


def reference(owner: dict[str, Any], **more: Any) -> dict[str, Any]:
    meta = owner["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"], **more}


def is_gone(api: KubeApi, path: str) -> bool:
    return api.get(path).status == 404


def settled(api: KubeApi, config_maps: str, secrets: str) -> None:
    """Let the collector see a dependent come and go, so that it has seen everything made before."""
    uid = "00000000-0000-4000-8000-000000000000"
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": uid}
    api.made(secrets, secret("witness", {"ownerReferences": [gone]}))
    eventually(lambda: is_gone(api, f"{secrets}/witness"))


@pytest.mark.parametrize("options", [{}, {"propagationPolicy": "Background"}])
def test_dependents_go_after_their_owner(
    api: KubeApi, config_maps: str, secrets: str, owner: dict[str, Any], options: dict[str, str]
) -> None:
    api.made(secrets, secret("child", {"ownerReferences": [reference(owner)]}))
    assert api.delete(f"{config_maps}/owner", options).json["status"] == "Success"
    eventually(lambda: is_gone(api, f"{secrets}/child"))


def test_dependents_of_dependents_go_too(api: KubeApi, config_maps: str, secrets: str, owner: dict[str, Any]) -> None:
    child = api.made(config_maps, config_map("child", {"ownerReferences": [reference(owner)]}))
    api.made(secrets, secret("grandchild", {"ownerReferences": [reference(child)]}))
    api.delete(f"{config_maps}/owner")
    eventually(lambda: is_gone(api, f"{secrets}/grandchild"))


def test_orphans_stay_and_forget_their_owner(
    api: KubeApi, config_maps: str, secrets: str, owner: dict[str, Any]
) -> None:
    api.made(secrets, secret("child", {"ownerReferences": [reference(owner)]}))
    settled(api, config_maps, secrets)
    api.delete(f"{config_maps}/owner", {"propagationPolicy": "Orphan"})
    eventually(lambda: is_gone(api, f"{config_maps}/owner"))
    assert "ownerReferences" not in api.get(f"{secrets}/child").json["metadata"]


def test_a_foreground_owner_waits_for_whom_it_blocks(
    api: KubeApi, config_maps: str, secrets: str, owner: dict[str, Any]
) -> None:
    blocking = reference(owner, blockOwnerDeletion=True)
    api.made(secrets, secret("child", {"ownerReferences": [blocking], "finalizers": ["example.org/f"]}))
    settled(api, config_maps, secrets)
    marked = api.delete(f"{config_maps}/owner", {"propagationPolicy": "Foreground"}).json
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: "deletionTimestamp" in api.get(f"{secrets}/child").json["metadata"])
    assert api.get(f"{config_maps}/owner").status == 200
    api.patch(f"{secrets}/child", {"metadata": {"finalizers": None}})
    eventually(lambda: is_gone(api, f"{config_maps}/owner"))


def test_a_foreground_owner_does_not_wait_for_others(
    api: KubeApi, config_maps: str, secrets: str, owner: dict[str, Any]
) -> None:
    api.made(secrets, secret("child", {"ownerReferences": [reference(owner)], "finalizers": ["example.org/f"]}))
    settled(api, config_maps, secrets)
    api.delete(f"{config_maps}/owner", {"propagationPolicy": "Foreground"})
    eventually(lambda: is_gone(api, f"{config_maps}/owner"))
    eventually(lambda: "deletionTimestamp" in api.get(f"{secrets}/child").json["metadata"])
    api.patch(f"{secrets}/child", {"metadata": {"finalizers": None}})


def test_a_foreground_owner_goes_once_it_is_blocked_no_more(
    api: KubeApi, config_maps: str, secrets: str, owner: dict[str, Any]
) -> None:
    blocking = reference(owner, blockOwnerDeletion=True)
    api.made(secrets, secret("child", {"ownerReferences": [blocking], "finalizers": ["example.org/f"]}))
    settled(api, config_maps, secrets)
    api.delete(f"{config_maps}/owner", {"propagationPolicy": "Foreground"})
    eventually(lambda: "deletionTimestamp" in api.get(f"{secrets}/child").json["metadata"])
    api.patch(f"{secrets}/child", {"metadata": {"ownerReferences": [{**blocking, "blockOwnerDeletion": False}]}})
    eventually(lambda: is_gone(api, f"{config_maps}/owner"))
    api.patch(f"{secrets}/child", {"metadata": {"finalizers": None}})


def test_a_circle_of_owners_goes_in_the_foreground(
    api: KubeApi, config_maps: str, secrets: str, owner: dict[str, Any]
) -> None:
    """Each would wait for the one before: the last reference of the circle stops blocking."""
    second = api.made(
        config_maps, config_map("second", {"ownerReferences": [reference(owner, blockOwnerDeletion=True)]})
    )
    third = api.made(
        config_maps, config_map("third", {"ownerReferences": [reference(second, blockOwnerDeletion=True)]})
    )
    closing = {"metadata": {"ownerReferences": [reference(third, blockOwnerDeletion=True)]}}
    api.patch(f"{config_maps}/owner", closing)
    settled(api, config_maps, secrets)
    api.delete(f"{config_maps}/owner", {"propagationPolicy": "Foreground"})
    for name in ("owner", "second", "third"):
        eventually(lambda name=name: is_gone(api, f"{config_maps}/{name}"))


def test_with_two_owners_one_is_enough(api: KubeApi, config_maps: str, secrets: str, owner: dict[str, Any]) -> None:
    other = api.made(config_maps, config_map("other"))
    api.made(secrets, secret("child", {"ownerReferences": [reference(owner), reference(other)]}))
    settled(api, config_maps, secrets)
    api.delete(f"{config_maps}/owner")

    def left() -> list[str]:
        found = api.get(f"{secrets}/child").json["metadata"]["ownerReferences"]
        return [one["name"] for one in found]

    eventually(lambda: left() == ["other"])
    api.delete(f"{config_maps}/other")
    eventually(lambda: is_gone(api, f"{secrets}/child"))


def test_an_owner_that_never_was_is_gone(api: KubeApi, secrets: str, owner: dict[str, Any]) -> None:
    dangling = reference(owner) | {"name": "never", "uid": "00000000-0000-4000-8000-000000000001"}
    api.made(secrets, secret("child", {"ownerReferences": [dangling]}))
    eventually(lambda: is_gone(api, f"{secrets}/child"))


def test_an_owner_of_another_uid_is_another(api: KubeApi, config_maps: str, secrets: str) -> None:
    first = api.made(config_maps, config_map("owner"))
    api.delete(f"{config_maps}/owner")
    api.made(config_maps, config_map("owner"))
    api.made(secrets, secret("child", {"ownerReferences": [reference(first)]}))
    eventually(lambda: is_gone(api, f"{secrets}/child"))


def test_an_owner_in_another_namespace_is_none(
    api: KubeApi, namespace: str, secrets: str, owner: dict[str, Any]
) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    api.delete(f"{path}/abroad-{namespace}")
    abroad = api.made(path, config_map(f"abroad-{namespace}"))
    try:
        api.made(secrets, secret("child", {"ownerReferences": [reference(abroad)]}))
        eventually(lambda: is_gone(api, f"{secrets}/child"))
    finally:
        api.delete(f"{path}/abroad-{namespace}")


def test_a_cluster_wide_owner_is_one(api: KubeApi, namespace: str, config_maps: str, secrets: str) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{namespace}"}}
    made = api.made("/api/v1/nodes", node)
    api.made(secrets, secret("child", {"ownerReferences": [reference(made, kind="Node")]}))
    settled(api, config_maps, secrets)
    assert api.get(f"{secrets}/child").status == 200
    api.delete(f"/api/v1/nodes/node-{namespace}")
    eventually(lambda: is_gone(api, f"{secrets}/child"))


def test_a_dependent_may_go_alone(api: KubeApi, config_maps: str, secrets: str, owner: dict[str, Any]) -> None:
    api.made(secrets, secret("child", {"ownerReferences": [reference(owner, blockOwnerDeletion=True)]}))
    api.delete(f"{secrets}/child")
    settled(api, config_maps, secrets)
    assert api.get(f"{config_maps}/owner").status == 200


def test_a_finalizer_holds_a_dependent(api: KubeApi, config_maps: str, secrets: str, owner: dict[str, Any]) -> None:
    meta = {"ownerReferences": [reference(owner)], "finalizers": ["example.org/f"]}
    api.made(secrets, secret("child", meta))
    api.delete(f"{config_maps}/owner")
    eventually(lambda: "deletionTimestamp" in api.get(f"{secrets}/child").json["metadata"])
    api.patch(f"{secrets}/child", {"metadata": {"finalizers": None}})
    assert is_gone(api, f"{secrets}/child")

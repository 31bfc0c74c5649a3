"""One object's life: created, read, replaced, deleted."""

from __future__ import annotations

from typing import Any

from support.api.kubeapi import KubeApi


def config_map(name: str = "one", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_created_object_has_what_the_server_sets(api: KubeApi, config_maps: str) -> None:
    made = api.made(config_maps, config_map(a="1"))
    meta = made["metadata"]
    assert meta["uid"]
    assert meta["resourceVersion"]
    assert meta["creationTimestamp"].endswith("Z")
    assert made["data"] == {"a": "1"}


def test_second_object_of_a_name_is_refused(api: KubeApi, config_maps: str) -> None:
    api.made(config_maps, config_map())
    answer = api.post(config_maps, config_map())
    assert (answer.status, answer.reason, answer.message) == (
        409,
        "AlreadyExists",
        'configmaps "one" already exists',
    )
    assert answer.json["details"] == {"name": "one", "kind": "configmaps"}


def test_what_is_not_there_is_not_found(api: KubeApi, config_maps: str) -> None:
    answer = api.get(f"{config_maps}/missing")
    assert (answer.status, answer.reason, answer.message) == (404, "NotFound", 'configmaps "missing" not found')
    assert answer.json["details"] == {"name": "missing", "kind": "configmaps"}


def test_replacing_with_an_old_version_conflicts(api: KubeApi, config_maps: str) -> None:
    made = api.made(config_maps, config_map(a="1"))
    assert api.put(f"{config_maps}/one", made | {"data": {"a": "2"}}).status == 200
    answer = api.put(f"{config_maps}/one", made | {"data": {"a": "3"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "one": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def test_watch_tells_of_changes_in_order(api: KubeApi, config_maps: str) -> None:
    version = api.get(config_maps).json["metadata"]["resourceVersion"]
    with api.watch(config_maps, resourceVersion=version) as watch:
        api.made(config_maps, config_map(a="1"))
        api.patch(f"{config_maps}/one", {"data": {"a": "2"}})
        api.delete(f"{config_maps}/one")
        events = watch.until(lambda event: event["object"]["metadata"]["name"] == "one"), *watch.take(2)
    assert [(event["type"], event["object"]["data"]["a"]) for event in events] == [
        ("ADDED", "1"),
        ("MODIFIED", "2"),
        ("DELETED", "2"),
    ]

"""Who owns which fields: `managedFields` through every kind of write."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.kubeapi import STRATEGIC, KubeApi
from support.api.kubeobjects import config_map, managers, owned, refusal


@pytest.fixture
def one(api: KubeApi, config_maps: str) -> str:
    api.made(config_maps, config_map(data={"a": "1"}), fieldManager="maker")
    return f"{config_maps}/one"


def test_who_makes_an_object_owns_what_it_says(api: KubeApi, config_maps: str) -> None:
    meta = {"labels": {"x": "y"}, "finalizers": ["example.org/f"], "generateName": "g-"}
    made = api.made(config_maps, config_map("q", meta, data={"a": "1"}), fieldManager="maker")
    (entry,) = made["metadata"]["managedFields"]
    assert entry.pop("time") == made["metadata"]["creationTimestamp"]
    assert entry == {
        "manager": "maker",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:data": {".": {}, "f:a": {}},
            "f:metadata": {
                "f:finalizers": {".": {}, 'v:"example.org/f"': {}},
                "f:generateName": {},
                "f:labels": {".": {}, "f:x": {}},
            },
        },
    }
    api.patch(f"{config_maps}/q", {"metadata": {"finalizers": None}})


def test_the_record_is_written_in_one_order(api: KubeApi, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    service = {
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "one", "labels": {"b": "1", "a": "2"}, "finalizers": ["b.org/f", "a.org/f"]},
        "spec": {
            "type": "ClusterIP",
            "selector": {"z": "1"},
            "ports": [
                {"name": "c", "port": 100, "protocol": "UDP"}, {"name": "b", "port": 20}, {"name": "a", "port": 100},
            ],
        },
    }  # fmt: skip
    api.apply(f"{path}/one", service, manager="me")
    (entry,) = api.get(f"{path}/one").json["metadata"]["managedFields"]
    assert list(entry) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"]
    fields = entry["fieldsV1"]
    assert list(fields) == ["f:metadata", "f:spec"]
    assert list(fields["f:metadata"]) == ["f:finalizers", "f:labels"]
    assert list(fields["f:metadata"]["f:finalizers"]) == ['v:"a.org/f"', 'v:"b.org/f"']
    assert list(fields["f:metadata"]["f:labels"]) == ["f:a", "f:b"]
    assert list(fields["f:spec"]) == ["f:ports", "f:selector", "f:type"]
    assert list(fields["f:spec"]["f:ports"]) == [
        'k:{"port":20,"protocol":"TCP"}', 'k:{"port":100,"protocol":"TCP"}', 'k:{"port":100,"protocol":"UDP"}',
    ]  # fmt: skip
    assert list(fields["f:spec"]["f:ports"]['k:{"port":20,"protocol":"TCP"}']) == [".", "f:name", "f:port"]


def test_a_client_without_a_name_is_called_by_its_program(api: KubeApi, config_maps: str) -> None:
    made = api.made(config_maps, config_map(data={"a": "1"}), headers={"User-Agent": "kubectl/v1.36.3 (linux/amd64)"})
    assert managers(made)[0][0] == "kubectl"


def test_an_object_that_says_nothing_is_nobodys(api: KubeApi, config_maps: str) -> None:
    assert "managedFields" not in api.made(config_maps, config_map())["metadata"]


def test_who_changes_a_field_owns_it(api: KubeApi, one: str) -> None:
    after = api.patch(one, {"data": {"a": "2", "b": "1"}}, fieldManager="other").json
    assert owned(after) == {"maker": {"f:data": {}}, "other": {"f:data": {"f:a": {}, "f:b": {}}}}


def test_who_writes_the_same_owns_nothing(api: KubeApi, one: str) -> None:
    before = api.get(one).json
    after = api.patch(one, {"data": {"a": "1"}}, fieldManager="other").json
    assert after["metadata"]["managedFields"] == before["metadata"]["managedFields"]


def test_what_is_removed_is_nobodys(api: KubeApi, one: str) -> None:
    api.patch(one, {"data": {"b": "1"}}, fieldManager="other")
    after = api.patch(one, {"data": {"a": None}}, fieldManager="third").json
    assert owned(after) == {"maker": {"f:data": {}}, "other": {"f:data": {"f:b": {}}}}
    after = api.put(one, config_map(), fieldManager="fourth").json
    assert "managedFields" not in after["metadata"]


def test_one_manager_has_one_entry(api: KubeApi, one: str) -> None:
    for number in range(3):
        after = api.patch(one, {"data": {f"k{number}": "v"}}, fieldManager="other").json
    assert owned(after)["other"] == {"f:data": {"f:k0": {}, "f:k1": {}, "f:k2": {}}}


def test_labels_are_owned_one_by_one(api: KubeApi, one: str) -> None:
    api.patch(one, {"metadata": {"labels": {"a": "1"}}}, fieldManager="first")
    after = api.patch(one, {"metadata": {"labels": {"b": "1"}}}, fieldManager="second").json
    assert owned(after)["first"] == {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}
    assert owned(after)["second"] == {"f:metadata": {"f:labels": {"f:b": {}}}}


def test_owner_references_are_owned_by_uid(api: KubeApi, one: str) -> None:
    uid = api.get(one).json["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": uid}
    path = one.rpartition("/")[0]
    made = api.made(path, config_map("two", {"ownerReferences": [owner]}), fieldManager="maker")
    assert owned(made) == {"maker": {"f:metadata": {"f:ownerReferences": {".": {}, f'k:{{"uid":"{uid}"}}': {}}}}}


def test_a_namespace_gets_its_label_from_whoever_makes_it(api: KubeApi, namespace: str) -> None:
    found = managers(api.get(f"/api/v1/namespaces/{namespace}").json)
    assert found[0][3] == {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}}


def test_plain_text_of_a_secret_is_owned_as_data(api: KubeApi, namespace: str) -> None:
    value = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
    made = api.made(f"/api/v1/namespaces/{namespace}/secrets", value, fieldManager="maker")
    assert owned(made) == {"maker": {"f:data": {".": {}, "f:a": {}}, "f:type": {}}}


def test_a_spec_is_not_owned_itself(api: KubeApi, namespace: str) -> None:
    value = {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 5},
    }  # fmt: skip
    made = api.made(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", value, fieldManager="maker")
    assert owned(made) == {"maker": {"f:spec": {"f:holderIdentity": {}, "f:leaseDurationSeconds": {}}}}


def test_containers_are_owned_by_name(api: KubeApi, namespace: str) -> None:
    value = {
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "p"},
        "template": {"spec": {"containers": [{"name": "a", "image": "i", "ports": [{"containerPort": 80}]}]}},
    }  # fmt: skip
    made = api.made(f"/api/v1/namespaces/{namespace}/podtemplates", value, fieldManager="maker")
    container = owned(made)["maker"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"a"}']
    assert {".", "f:name", "f:image", "f:ports"} <= set(container)
    assert set(container["f:ports"]) == {".", 'k:{"containerPort":80,"protocol":"TCP"}'}


def test_a_status_has_owners_of_its_own(api: KubeApi) -> None:
    path = "/api/v1/nodes/conformance-ownership"
    api.delete(path)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "conformance-ownership"}}
    api.made("/api/v1/nodes", node | {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, fieldManager="maker")
    try:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        after = api.patch(f"{path}/status", {"status": ready}, STRATEGIC, fieldManager="maker").json
        times = {"f:lastHeartbeatTime": {}, "f:lastTransitionTime": {}}
        condition = {".": {}, "f:status": {}, "f:type": {}} | times
        assert managers(after) == [
            ("maker", "Update", "", {"f:spec": {"f:taints": {}}}),
            ("maker", "Update", "status", {"f:status": {"f:conditions": {".": {}, 'k:{"type":"Ready"}': condition}}}),
        ]
    finally:
        api.delete(path)


def test_there_are_at_most_ten_updaters(api: KubeApi, one: str) -> None:
    for number in range(12):
        after = api.patch(one, {"data": {f"k{number:02}": "v"}}, fieldManager=f"m{number:02}").json
    names = [name for name, *_ in managers(after)]
    assert len(names) == 10
    assert "ancient-changes" in names


@pytest.mark.parametrize("reset", [[{}], []])
def test_the_record_can_be_taken_away(api: KubeApi, one: str, reset: list[Any]) -> None:
    after = api.patch(one, {"metadata": {"managedFields": reset}}).json
    assert "managedFields" not in after["metadata"]
    after = api.patch(one, {"data": {"b": "1"}}, fieldManager="other").json
    assert "managedFields" not in after["metadata"]


def test_the_record_can_be_written(api: KubeApi, one: str) -> None:
    entry = {
        "manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2020-01-01T00:00:00Z", "fieldsV1": {"f:data": {"f:zz": {}}},
    }  # fmt: skip
    after = api.patch(one, {"metadata": {"managedFields": [entry]}}).json
    assert after["metadata"]["managedFields"] == [entry]


@pytest.mark.parametrize(
    "entry",
    [
        {"operation": "Foo", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}},
        {"operation": "Update", "apiVersion": "v1", "fieldsType": "Foo", "fieldsV1": {}},
        {"operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {}},
        {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"a": {}}},
    ],
)
def test_a_record_that_is_none_changes_nothing(api: KubeApi, one: str, entry: dict[str, Any]) -> None:
    before = api.get(one).json["metadata"]["managedFields"]
    answer = api.patch(one, {"metadata": {"managedFields": [{"manager": "x", **entry}]}})
    assert (answer.status, answer.json["metadata"]["managedFields"]) == (200, before)


def test_replacing_without_the_record_keeps_it(api: KubeApi, one: str) -> None:
    after = api.put(one, config_map(data={"a": "1", "b": "2"}), fieldManager="other").json
    assert owned(after) == {"maker": {"f:data": {".": {}, "f:a": {}}}, "other": {"f:data": {"f:b": {}}}}


@pytest.mark.parametrize(
    ("manager", "fault"),
    [
        ("x" * 129, "Too long: may not be more than 128 bytes"),
        ("a\nb", 'Invalid value: "a\\nb": invalid character U+000A (at position 1)'),
    ],
)
def test_managers_that_are_none(api: KubeApi, one: str, manager: str, fault: str) -> None:
    for answer, kind in (
        (api.patch(one, {}, fieldManager=manager), "PatchOptions"),
        (api.put(one, config_map(), fieldManager=manager), "UpdateOptions"),
        (api.post(one.rpartition("/")[0], config_map("q"), fieldManager=manager), "CreateOptions"),
    ):
        assert refusal(answer) == (422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: fieldManager: {fault}')

"""What a copy is, and when it says what its source says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.operations.pivot import copies as pauses
from ironbell.operations.pivot.copies import adopted, copy_of, difference, released, status_difference, status_of
from ironbell.operations.pivot.items import SECRETS, Item, MovedKind

CLUSTER = MovedKind("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters", has_status=True, forced=True)
HARDWARE = MovedKind("tinkerbell.org", "v1alpha1", "Hardware", "hardware", has_status=True, forced=True)
OWNERS = [
    {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": True},
    {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "9"},
]
RECORD = [{"manager": "kubectl", "operation": "Apply"}, {"manager": "ironbell-pivot", "operation": "Update"}]


def source(kind: MovedKind = CLUSTER, **more: Any) -> Item:
    meta = {
        "name": "c", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 4, "labels": {"a": "b"},
        "creationTimestamp": "t", "ownerReferences": OWNERS, "finalizers": ["f"], "managedFields": RECORD,
        **more.pop("meta", {}),
    }  # fmt: skip
    return Item(kind, {"metadata": meta, "spec": {"x": [1, 2]}, **more})


def copied(item: Item, **more: Any) -> Item:
    body = copy_of(item, uids={"1": "11"}, pivot="p", kept=False)
    return Item(item.kind, {**body, "metadata": {**body["metadata"], "uid": "new", "resourceVersion": "1"}, **more})


def test_a_copy_has_all_but_what_an_api_gives() -> None:
    found = copy_of(source(status={"ready": True}), uids={"1": "11"}, pivot="p", kept=True)
    meta = found["metadata"]
    assert (found["apiVersion"], found["kind"], found["spec"]) == ("cluster.x-k8s.io/v1beta2", "Cluster", {"x": [1, 2]})
    assert "status" not in found
    assert meta.keys() == {"name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"}
    assert meta["ownerReferences"] == [{**OWNERS[0], "uid": "11"}]
    assert meta["labels"] == {"a": "b", "ironbell.dev/pivot": "p"}
    assert (meta["annotations"]["ironbell.dev/pivot-source"], meta["annotations"]["ironbell.dev/pivot-kept"]) == (
        "u",
        "true",
    )


def test_a_status_that_cannot_be_written_apart_goes_along() -> None:
    plain = MovedKind("x.io", "v1", "Thing", "things")
    assert copy_of(source(plain, status={"a": 1}), uids={}, pivot="p", kept=False)["status"] == {"a": 1}


def test_what_the_target_adds_is_no_difference_and_what_it_drops_is() -> None:
    item = source()
    wanted = copy_of(item, uids={"1": "11"}, pivot="p", kept=False)
    assert difference(copied(item), wanted) == ""
    assert difference(copied(item, spec={"x": [1, 2], "default": 1}), wanted) == ""
    assert difference(copied(item, spec={"x": [1]}), wanted) == "spec.x"
    assert difference(copied(item, spec={"x": [1, 3]}), wanted) == "spec.x[1]"
    assert difference(copied(source(meta={"labels": {"a": "c"}})), wanted) == "metadata.labels.a"
    assert difference(copied(source(meta={"labels": {"a": "b", "z": ""}})), wanted) == "metadata.labels.z"
    assert difference(copied(source(meta={"finalizers": []})), wanted) == "metadata.finalizers"
    assert difference(copied(source(meta={"ownerReferences": []})), wanted) == "metadata.ownerReferences"


def test_a_difference_in_a_secret_names_the_key_and_never_the_value() -> None:
    item = Item(SECRETS, {"metadata": {"name": "s", "namespace": "n", "uid": "u"}, "data": {"password": "c2VjcmV0"}})
    wanted = copy_of(item, uids={}, pivot="p", kept=False)
    assert difference(copied(item, data={"password": "eA=="}), wanted) == "data.password"
    assert "c2VjcmV0" not in repr(item)


@pytest.mark.parametrize(
    ("observed", "generation", "expected"), [(4, 1, 1), (3, 1, None), (4, 3, 3), (2, 3, 2), (9, 2, 2)]
)
def test_generations_count_as_they_do_there(observed: int, generation: int, expected: int | None) -> None:
    status = {"observedGeneration": observed, "conditions": [{"type": "A", "observedGeneration": observed}]}
    found = status_of(source(status=status), generation)
    assert found is not None
    assert (found.get("observedGeneration"), found["conditions"][0].get("observedGeneration")) == (expected, expected)


def test_that_both_sides_say_they_pause_is_no_difference() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "1"}
    paused = {"type": "Paused", "status": "True", "reason": "Paused"}
    wanted = {"conditions": [ready, paused], "replicas": 1, "empty": []}
    later = {**ready, "lastTransitionTime": "2"}
    assert status_difference(source(status={"conditions": [later], "replicas": 1, "more": 1}), wanted) == ""
    assert status_difference(source(status={"conditions": [later], "replicas": 2}), wanted) == "status.replicas"
    assert status_difference(source(status={"replicas": 1}), wanted) == "status.conditions"


def test_the_record_of_owners_comes_back_at_the_end() -> None:
    patch = released(copied(source()))["metadata"]
    assert patch["managedFields"] == RECORD[:1]
    assert patch["labels"] == {"ironbell.dev/pivot": None}
    assert set(patch["annotations"].values()) == {None}
    large = source(meta={"managedFields": [{"manager": "x" * 200_000}]})
    assert "managedFields" not in released(copied(large))["metadata"]


def test_pauses_say_whose_they_are() -> None:
    item = source()
    patch = pauses.pause(item, "p")
    assert patch is not None
    assert patch["spec"] == {"paused": True}
    paused = source(spec={"paused": True}, meta={"annotations": patch["metadata"]["annotations"]})
    assert pauses.pause(paused, "p") is None
    assert pauses.resume(paused, "p")["spec"] == {"paused": None}
    assert pauses.resume(paused, "another") == {}
    users = source(spec={"paused": True})
    assert (pauses.pause(users, "p"), pauses.resume(users, "p")) == (None, {})


def test_a_pause_of_clusterctl_becomes_ours() -> None:
    paused = source(spec={"paused": True})
    patch = pauses.pause(paused, "p", adopts=True)
    assert patch is not None
    assert patch["metadata"]["annotations"] == {"ironbell.dev/pivot-paused": "p"}
    ours = source(spec={"paused": True}, meta={"annotations": patch["metadata"]["annotations"]})
    assert pauses.pause(ours, "p", adopts=True) is None


def test_what_clusterctl_took_from_a_source_stays_on_its_copy() -> None:
    gone = source(meta={"annotations": {"clusterctl.cluster.x-k8s.io/delete-for-move": ""}})
    copy = source(meta={"annotations": {"users": "own"}})
    body = adopted(copy_of(gone, uids={}, pivot="p", kept=False), copy)
    assert body["metadata"]["annotations"].keys() == {
        "users",
        "ironbell.dev/pivot-source",
        "ironbell.dev/pivot-managed-fields",
    }


def test_tinkerbells_controllers_are_told_in_their_own_way() -> None:
    patch = pauses.pause(source(HARDWARE), "p")
    assert patch is not None
    assert set(patch["metadata"]["annotations"]) == {"tinkerbell.org/disabled", "ironbell.dev/pivot-paused"}
    assert msgspec.json.encode(pauses.resume(source(HARDWARE, meta=patch["metadata"]), "p"))


def test_a_provider_that_blocks_or_has_not_paused_is_waited_for() -> None:
    blocks = source(meta={"annotations": {"clusterctl.cluster.x-k8s.io/block-move": ""}})
    runs = source(status={"conditions": [{"type": "Paused", "status": "False"}]})
    assert "block-move" in pauses.unready([blocks], acknowledged=False)
    assert "has not been paused" in pauses.unready([runs], acknowledged=True)
    assert pauses.unready([runs, source()], acknowledged=False) == ""


def test_what_a_controller_on_the_target_derives_of_a_server_is_no_difference() -> None:
    """A hold's finalizer, phase and power: an earlier version on the source has none of them."""
    wanted = copy_of(source(HARDWARE), uids={"1": "11"}, pivot="p", kept=False)
    copy = copied(source(HARDWARE))
    shown = {"ironbell.dev/phase": "Held", "ironbell.dev/power": "on"}
    meta = {**copy.meta, "annotations": {**copy.annotations, **shown}, "finalizers": ["f", "ironbell.dev/hold"]}
    assert difference(Item(HARDWARE, {**copy.body, "metadata": meta}), wanted) == ""
    other = {**meta, "finalizers": ["ironbell.dev/hold"]}
    assert difference(Item(HARDWARE, {**copy.body, "metadata": other}), wanted) == "metadata.finalizers"
    held = {**copy.annotations, "ironbell.dev/hold": "fan"}
    assert "hold" in difference(Item(HARDWARE, {**copy.body, "metadata": {**meta, "annotations": held}}), wanted)

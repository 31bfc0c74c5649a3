from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.cluster.cluster import ClusterInitializationStatus, ClusterStatus
from ironbell.api.kind import Kind
from ironbell.api.meta import Condition, ObjectMeta, OwnerReference, Resource
from ironbell.kube import patches
from ironbell.kube.conditions import find_condition, is_true, set_condition
from ironbell.kube.decision import (
    Create,
    Decision,
    Delete,
    Effect,
    Emit,
    JsonPatch,
    MergePatch,
    Need,
    Waiting,
    create,
    do,
)
from ironbell.kube.describe import describe
from ironbell.kube.draft import replace
from ironbell.kube.finalizers import add_finalizer, has_finalizer, remove_finalizer
from ironbell.kube.manager.act import Written
from ironbell.kube.reconciler import owner_keys
from ironbell.kube.testing.example import RACK, SLOT, PowerOn, PowerState, Slot, SlotStatus

NOW, LATER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
SECRET: Kind[Resource] = Kind("", "v1", "Secret", "secrets", Resource)

objects: Any = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans() | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=12,
)
documents = st.dictionaries(st.sampled_from("abcd"), objects, max_size=4)


@given(documents, documents)
def test_a_merge_patch_turns_old_into_new_and_is_empty_when_they_are_equal(old: Any, new: Any) -> None:
    change = patches.diff(old, new)
    assert patches.apply(old, change) == new
    assert (change == {}) == (old == new)
    assert patches.diff(new, new) == {}


def test_merge_patches_follow_the_rfc() -> None:
    assert patches.apply({"a": "b", "c": {"d": 1, "e": 2}}, {"a": "z", "c": {"e": None}}) == {"a": "z", "c": {"d": 1}}
    assert patches.apply({"a": [1]}, {"a": {"b": 1}}) == {"a": {"b": 1}}
    assert patches.apply({}, {"a": {"bb": {"ccc": None}}}) == {"a": {"bb": {}}}


def test_a_status_that_did_not_change_is_not_written() -> None:
    slot = Slot(metadata=ObjectMeta(name="s", namespace="n", resource_version="5"))
    assert patches.status_change(SLOT, slot, slot.status, SlotStatus()) is None
    change = patches.status_change(SLOT, slot, SlotStatus(attempt=1, power="on"), SlotStatus(attempt=2))
    assert change is not None
    assert change.body == {"status": {"attempt": 2, "power": None}}
    assert (change.subresource, change.resource_version) == ("status", "5")


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    first = set_condition([], Condition(type="Ready", status="False", reason="A"), now=NOW)
    again = set_condition(first, Condition(type="Ready", status="False", reason="B"), now=LATER)
    other = set_condition(again, Condition(type="Up", status="True"), now=LATER)
    turned = set_condition(other, Condition(type="Ready", status="True", reason="C"), now=LATER)
    assert first[0].last_transition_time == again[0].last_transition_time == "2026-01-01T00:00:00Z"
    assert [(c.type, c.last_transition_time) for c in turned] == [
        ("Ready", "2026-01-02T00:00:00Z"),
        ("Up", "2026-01-02T00:00:00Z"),
    ]
    assert set_condition(turned, Condition(type="Up", status="True"), now=LATER) == turned
    assert is_true(turned, "Ready")
    assert find_condition(turned, "None") is None


def test_finalizers_are_added_and_removed_under_the_observed_version() -> None:
    slot = Slot(metadata=ObjectMeta(name="s", namespace="n", resource_version="5", finalizers=["others"]))
    added = add_finalizer(SLOT, slot, "ours")
    assert added is not None
    assert added.body == {"metadata": {"finalizers": ["others", "ours"]}}
    assert added.resource_version == "5"
    ours = msgspec.structs.replace(slot, metadata=msgspec.structs.replace(slot.metadata, finalizers=["ours"]))
    assert has_finalizer(ours, "ours")
    assert add_finalizer(SLOT, ours, "ours") is None
    removed = remove_finalizer(SLOT, ours, "ours")
    assert removed is not None
    assert removed.body == {"metadata": {"finalizers": None}}
    assert remove_finalizer(SLOT, slot, "ours") is None
    deleting = msgspec.structs.replace(slot.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    assert add_finalizer(SLOT, msgspec.structs.replace(slot, metadata=deleting), "ours") is None


def test_owner_keys_are_those_of_the_controlling_owner_in_any_version() -> None:
    def owner(**fields: Any) -> OwnerReference:
        standard = {"api_version": RACK.api_version, "kind": "Rack", "name": "r", "uid": "u", "controller": True}
        return OwnerReference(**{**standard, **fields})

    owners = [
        owner(),
        owner(name="older", api_version=f"{RACK.group}/v1beta1"),
        owner(name="no-controller", controller=None),
        owner(name="other-group", api_version="x/v1"),
    ]
    slot = Slot(metadata=ObjectMeta(name="s", namespace="n", owner_references=owners))
    assert owner_keys(RACK, slot) == [("n", "r"), ("n", "older")]


def test_create_fills_in_type_and_namespace() -> None:
    action = create(SLOT, Slot(metadata=ObjectMeta(name="s", namespace="n")))
    assert (action.namespace, action.body["apiVersion"], action.body["kind"]) == ("n", SLOT.api_version, "Slot")


def test_decisions_print_as_plain_data_without_secrets() -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    decision = Decision(
        (
            Create(SECRET, "n", secret),
            JsonPatch(SECRET, "n", "s", ({"op": "add", "path": "/data/x", "value": "hunter2"},)),
            Delete(SLOT, "n", "s", uid="u"),
            Effect("power-on", PowerOn(("n", "s"), 1), intent="i"),
            Emit(SLOT, "n", "s", "u", reason="R", message="m"),
        ),
        (Need(PowerState(("n", "s"), ""), 60.0),),
        Waiting("W", "why"),
        5.0,
    )
    text = msgspec.json.encode(describe(decision)).decode()
    assert "hunter2" not in text
    assert '"effect":"power-on"' in text
    assert '"requeueAfterSeconds":5.0' in text
    assert describe(do()) == {}


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (b'{"metadata":{"name":"a","resourceVersion":"12"}}', "12"),
        (b'{"metadata":{"annotations":{"resourceVersion":"9"},"resourceVersion":"12"}}', "12"),
        (b'{"spec":{"text":"\\"resourceVersion\\":\\"9\\""},"metadata":{"resourceVersion":"12"}}', "12"),
        (b'{"kind": "Status", "metadata": {}}', ""),
        (b'{"metadata": {"resourceVersion": "12"}}', "12"),
    ],
)
def test_the_version_of_an_answer_is_that_of_its_metadata(body: bytes, version: str) -> None:
    written = Written()
    written.record(MergePatch(SLOT, "n", "a", {}), body, "")
    assert written.versions[SLOT.collection] == version


def test_an_empty_part_of_a_status_stays_out_of_what_is_stored() -> None:
    """A part with a minimum of one property would be rejected, were it stored as an empty object."""
    changed = replace(ClusterStatus(), initialization=ClusterInitializationStatus(), phase="Pending")
    assert msgspec.to_builtins(changed) == {"phase": "Pending"}

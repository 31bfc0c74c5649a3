"""Server-side apply: who says a field owns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ironbell.api.client import BadRequest, Conflict, Invalid, PatchType

Make = Callable[..., dict[str, Any]]


async def apply(admin: Any, widgets: Any, name: str, spec: dict[str, Any], manager: str, **more: Any) -> dict[str, Any]:
    value = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
    result: dict[str, Any] = await admin.patch(widgets, name, value, kind=PatchType.APPLY, manager=manager, **more)
    return result


def managers(value: dict[str, Any]) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in value["metadata"].get("managedFields", [])}


async def test_applying_makes_what_is_missing(admin: Any, widgets: Any) -> None:
    created = await apply(admin, widgets, "a", {"color": "red"}, "me")
    assert created["spec"] == {"color": "red", "size": 3}
    assert managers(created) == {"me": {"f:spec": {"f:color": {}}}}


async def test_applying_the_same_again_writes_nothing(admin: Any, widgets: Any) -> None:
    created = await apply(admin, widgets, "a", {"color": "red"}, "me")
    assert await apply(admin, widgets, "a", {"color": "red"}, "me") == created


async def test_what_is_no_longer_applied_goes(admin: Any, widgets: Any) -> None:
    await apply(admin, widgets, "a", {"color": "red", "replicas": 2}, "me")
    after = await apply(admin, widgets, "a", {"color": "red"}, "me")
    assert "replicas" not in after["spec"]


async def test_what_somebody_else_applies_too_stays(admin: Any, widgets: Any) -> None:
    await apply(admin, widgets, "a", {"color": "red"}, "me")
    await apply(admin, widgets, "a", {"color": "red", "replicas": 1}, "you")
    after = await apply(admin, widgets, "a", {}, "me")
    assert after["spec"]["color"] == "red"
    assert managers(after) == {"me": {"f:spec": {}}, "you": {"f:spec": {"f:color": {}, "f:replicas": {}}}}


async def test_two_managers_of_one_field_conflict_unless_forced(admin: Any, widgets: Any) -> None:
    await apply(admin, widgets, "a", {"color": "red"}, "me")
    with pytest.raises(Conflict, match=r'Apply failed with 1 conflict: conflict with "me": .spec.color'):
        await apply(admin, widgets, "a", {"color": "blue"}, "you")
    after = await apply(admin, widgets, "a", {"color": "blue"}, "you", force=True)
    assert after["spec"]["color"] == "blue"
    assert managers(after) == {"you": {"f:spec": {"f:color": {}}}}


async def test_an_update_takes_the_fields_that_it_changes(admin: Any, widgets: Any) -> None:
    await apply(admin, widgets, "a", {"color": "red", "replicas": 1}, "me")
    await admin.patch(widgets, "a", {"spec": {"replicas": 5}}, manager="scaler")
    with pytest.raises(Conflict, match=r'conflict with "scaler" using example.org/v1: .spec.replicas'):
        await apply(admin, widgets, "a", {"color": "red", "replicas": 1}, "me")
    after = await apply(admin, widgets, "a", {"color": "red"}, "me")
    assert after["spec"]["replicas"] == 5


async def test_items_of_maps_have_owners_of_their_own(admin: Any, widgets: Any) -> None:
    await apply(admin, widgets, "a", {"parts": [{"name": "x", "count": 1}]}, "me")
    await apply(admin, widgets, "a", {"parts": [{"name": "y", "count": 2}, {"name": "x", "note": "n"}]}, "you")
    both = await admin.get(widgets, "a")
    assert both["spec"]["parts"] == [{"name": "y", "count": 2}, {"name": "x", "count": 1, "note": "n"}]
    after = await apply(admin, widgets, "a", {}, "you")
    assert after["spec"]["parts"] == [{"name": "x", "count": 1}]


async def test_sets_are_merged_and_plain_lists_replaced(admin: Any, widgets: Any) -> None:
    await apply(admin, widgets, "a", {"tags": ["a"], "plain": [1]}, "me")
    await apply(admin, widgets, "a", {"tags": ["b"]}, "you")
    after = await apply(admin, widgets, "a", {"tags": ["c"], "plain": [2]}, "me")
    assert (sorted(after["spec"]["tags"]), after["spec"]["plain"]) == (["b", "c"], [2])


async def test_an_object_without_a_record_is_owned_before_the_first_apply(
    admin: Any, widgets: Any, widget: Make
) -> None:
    await admin.create(widgets, widget("a", color="red"))
    await admin.patch(widgets, "a", {"metadata": {"managedFields": [{}]}})
    with pytest.raises(Conflict, match="before-first-apply"):
        await apply(admin, widgets, "a", {"color": "blue"}, "me")
    after = await apply(admin, widgets, "a", {"color": "red", "replicas": 1}, "me")
    assert "f:color" in managers(after)["me"]["f:spec"]


async def test_status_is_applied_apart(admin: Any, widgets: Any, widget: Make) -> None:
    await admin.create(widgets, widget("a"))
    value = {"apiVersion": "example.org/v1", "kind": "Widget", "status": {"phase": "Up"}, "spec": {"size": 8}}
    after = await admin.patch(widgets, "a", value, kind=PatchType.APPLY, manager="me", sub="status")
    assert (after["status"], after["spec"]["size"]) == ({"phase": "Up"}, 3)
    entry = next(element for element in after["metadata"]["managedFields"] if element["manager"] == "me")
    assert entry["subresource"] == "status"


async def test_applying_needs_a_manager_and_known_fields(admin: Any, widgets: Any) -> None:
    with pytest.raises(Invalid, match="is required for apply patch"):
        await apply(admin, widgets, "a", {}, "")
    with pytest.raises(BadRequest, match=r".spec.bogus: field not declared in schema"):
        await apply(admin, widgets, "a", {"bogus": 1}, "me")
    with pytest.raises(BadRequest, match='an element that omits key field "name"'):
        await apply(admin, widgets, "a", {"parts": [{"count": 1}]}, "me")


async def test_labels_and_finalizers_are_merged(admin: Any, widgets: Any, widget: Make) -> None:
    value = widget("a")
    value["metadata"] |= {"labels": {"mine": "1"}, "finalizers": ["example.org/a"]}
    await admin.create(widgets, value)
    expected = {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"labels": {"yours": "1"}, "finalizers": ["example.org/b"]},
    }
    after = await admin.patch(widgets, "a", expected, kind=PatchType.APPLY, manager="me")
    assert after["metadata"]["labels"] == {"mine": "1", "yours": "1"}
    assert after["metadata"]["finalizers"] == ["example.org/a", "example.org/b"]

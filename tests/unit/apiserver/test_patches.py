"""Patches of every type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.client import ApiError, BadRequest, Conflict, Invalid, PatchType, UnsupportedMediaType, WriteOptions
from ironbell.apiserver.patches.jsonpatch import apply_json_patch
from ironbell.apiserver.patches.merge import merge, strategic_merge

Make = Callable[..., dict[str, Any]]

# RFC 7386, appendix A.
RFC_7386: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), RFC_7386)
def test_merge_patches_as_in_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge(target, patch) == result


LISTS = {
    "type": "object",
    "properties": {
        "map": {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"sub": {"type": "object"}}},
        },
        "set": {"x-kubernetes-list-type": "set"},
        "atomic": {"x-kubernetes-list-type": "atomic"},
    },
}
STRATEGIC: list[tuple[Any, Any, Any]] = [
    ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
    ({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 1}}, {"a": {"c": 1}}),
    ({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}),
    ({"a": {"b": 1, "c": 2}}, {"a": {"$retainKeys": ["b"], "b": 3}}, {"a": {"b": 3}}),
    ({"atomic": [1]}, {"atomic": [2]}, {"atomic": [2]}),
    ({"set": ["a"]}, {"set": ["b", "a"]}, {"set": ["b", "a"]}),
    ({"set": ["a", "b"]}, {"$deleteFromPrimitiveList/set": ["a"]}, {"set": ["b"]}),
    (
        {"map": [{"name": "x", "v": 1}]},
        {"map": [{"name": "x", "w": 2}, {"name": "y"}]},
        {"map": [{"name": "x", "v": 1, "w": 2}, {"name": "y"}]},
    ),
    ({"map": [{"name": "x"}, {"name": "y"}]}, {"map": [{"name": "x", "$patch": "delete"}]}, {"map": [{"name": "y"}]}),
    ({"map": [{"name": "x"}]}, {"map": [{"name": "y"}, {"$patch": "replace"}]}, {"map": [{"name": "y"}]}),
    (
        {"map": [{"name": "x"}, {"name": "y"}]},
        {"$setElementOrder/map": [{"name": "y"}, {"name": "x"}], "map": [{"name": "x", "v": 1}]},
        {"map": [{"name": "y"}, {"name": "x", "v": 1}]},
    ),
    (
        {"set": ["a", "own", "b"]},
        {"$setElementOrder/set": ["b", "a"]},
        {"set": ["own", "b", "a"]},
    ),
]


@pytest.mark.parametrize(("target", "patch", "result"), STRATEGIC)
def test_strategic_merge(target: Any, patch: Any, result: Any) -> None:
    assert strategic_merge(target, patch, LISTS) == result


@pytest.mark.parametrize("patch", [{"$patch": "burn"}, {"map": [{"v": 1}]}, {"set": ["a"], "$setElementOrder/set": 1}])
def test_malformed_strategic_patches_are_refused(patch: Any) -> None:
    with pytest.raises(BadRequest):
        strategic_merge({"set": ["a"]}, patch, LISTS)


JSON_FAULTS: list[tuple[Any, type[ApiError]]] = [
    ({"op": "add"}, BadRequest),
    ([{"op": "burn", "path": "/a"}], Invalid),
    ([{"path": "/a"}], Invalid),
    ([1], BadRequest),
    ([{"op": "remove", "path": "/missing"}], Invalid),
    ([{"op": "test", "path": "/a", "value": 2}], Invalid),
    ([{"op": "add", "path": "", "value": 1}], Invalid),
    ([{"op": "add", "path": "/a", "value": 1}] * 10_001, ApiError),
    ([{"op": "copy", "from": "/big", "path": f"/n{n}"} for n in range(4)], BadRequest),
]


@pytest.mark.parametrize(("operations", "error"), JSON_FAULTS)
def test_json_patches_that_do_not_work_are_refused(operations: Any, error: type[ApiError]) -> None:
    with pytest.raises(error):
        apply_json_patch({"a": 1, "big": "x" * (1 << 20)}, operations)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]), "path": st.text(max_size=6)},
        optional={"from": st.text(max_size=6), "value": JSON},
    ),
    max_size=4,
)


@given(OPERATIONS, st.dictionaries(st.text(max_size=3), JSON, max_size=3))
def test_any_json_patch_gives_an_object_or_a_refusal(operations: Any, target: dict[str, Any]) -> None:
    try:
        assert isinstance(apply_json_patch(target, operations), dict)
    except ApiError:
        return


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=3), st.dictionaries(st.text(max_size=12), JSON, max_size=3))
def test_any_strategic_patch_gives_an_object_or_a_refusal(target: dict[str, Any], patch: dict[str, Any]) -> None:
    try:
        assert isinstance(strategic_merge(target, patch, LISTS), dict)
    except ApiError:
        return


async def test_merge_and_json_patches_change_objects(admin: Any, widgets: Any, widget: Make) -> None:
    await admin.create(widgets, widget("a", size=1, tags=["x"]))
    await admin.patch(widgets, "a", {"spec": {"color": "red", "tags": None}})
    last = await admin.patch(widgets, "a", [{"op": "replace", "path": "/spec/size", "value": 4}], kind=PatchType.JSON)
    assert last["spec"] == {"size": 4, "color": "red"}


async def test_a_patch_with_an_old_version_is_a_conflict(admin: Any, widgets: Any, widget: Make) -> None:
    created = await admin.create(widgets, widget("a", size=1))
    await admin.patch(widgets, "a", {"spec": {"size": 2}})
    version = created["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        await admin.patch(widgets, "a", {"metadata": {"resourceVersion": version}, "spec": {"size": 3}})


async def test_strategic_patches_are_for_core_kinds(admin: Any, widgets: Any, widget: Make, nodes: Any) -> None:
    await admin.create(widgets, widget("a"))
    with pytest.raises(UnsupportedMediaType):
        await admin.patch(widgets, "a", {}, kind=PatchType.STRATEGIC)
    node = {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    await admin.create(nodes, node, namespace="")
    patch = {"status": {"conditions": [{"type": "Disk", "status": "False"}, {"type": "Ready", "status": "True"}]}}
    after = await admin.patch(nodes, "n", patch, kind=PatchType.STRATEGIC, namespace="", sub="status")
    assert [entry["status"] for entry in after["status"]["conditions"]] == ["False", "True"]


@pytest.mark.parametrize("kind", list(PatchType))
@pytest.mark.parametrize("body", [b"", b"[", b"1", b"null", b'"x"', b"\xff"])
async def test_bodies_that_are_no_patches_are_refused(
    admin: Any, config_maps: Any, kind: PatchType, body: bytes
) -> None:
    await admin.create(config_maps, {"metadata": {"name": "a"}})
    options = WriteOptions(field_manager="me")
    with pytest.raises(BadRequest):
        await admin.api.patch(config_maps, "default", "a", body, patch_type=kind, options=options)


async def test_a_patch_cannot_rename(admin: Any, widgets: Any, widget: Make) -> None:
    await admin.create(widgets, widget("a"))
    with pytest.raises(BadRequest, match="does not match the name on the URL"):
        await admin.patch(widgets, "a", {"metadata": {"name": "b"}})


async def test_a_patch_of_the_uid_is_refused(admin: Any, widgets: Any, widget: Make) -> None:
    await admin.create(widgets, widget("a"))
    with pytest.raises(Invalid, match=r"metadata\.uid: Invalid value: .other.: field is immutable"):
        await admin.patch(widgets, "a", {"metadata": {"uid": "other"}})

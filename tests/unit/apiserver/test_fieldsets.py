"""Sets of field paths: as trees they are what they are as sets of paths."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.apiserver.managedfields.compare import applied_fields, compare
from ironbell.apiserver.managedfields.fieldset import (
    Fields,
    Path,
    contains,
    difference,
    in_order,
    intersection,
    is_fields,
    paths,
    show,
    union,
)
from ironbell.apiserver.managedfields.managers import UPDATE, Manager, bounded

PATHS = st.sets(st.lists(st.sampled_from(["f:a", "f:b", 'v:"c"']), min_size=1, max_size=3).map(tuple), max_size=6)
NAMES = st.text("abc", min_size=1, max_size=2)
VALUES = st.recursive(
    st.integers() | st.booleans() | st.text(max_size=3),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=12,
)


def single(path: Path) -> Fields:
    return {path[0]: single(path[1:])} if path else {}


def tree(members: set[Path]) -> Fields:
    return reduce(union, (single(member) for member in sorted(members)), {})


MALFORMED = ["k:a", "k:[1]", "v:", "v:{", "i:x", "i:", "x:a"]


@pytest.mark.parametrize("element", MALFORMED)
def test_elements_that_are_none(element: str) -> None:
    assert not is_fields({element: {}})
    assert list(in_order({element: {}, "f:b": {}, "f:a": {}})) == ["f:a", "f:b", element]


def test_elements_are_written_in_one_order() -> None:
    ordered = [
        ".", "f:a", "f:b", 'k:{"a":2,"b":"x"}', 'k:{"a":10}', 'k:{"b":1}', "v:2", "v:10.5", 'v:"a"', "v:true", "v:null",
        "i:2", "i:10",
    ]  # fmt: skip
    assert list(in_order({element: {} for element in reversed(ordered)})) == ordered


@given(PATHS, PATHS)
def test_trees_are_sets(one: set[Path], other: set[Path]) -> None:
    assert set(paths(tree(one))) == one
    assert is_fields(tree(one))
    assert set(paths(union(tree(one), tree(other)))) == one | other
    assert set(paths(difference(tree(one), tree(other)))) == one - other
    assert set(paths(intersection(tree(one), tree(other)))) == one & other
    assert all(contains(tree(one), path) is (path in one) for path in one | other)


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_changes_is_said_afterwards(old: dict[str, Any], new: dict[str, Any]) -> None:
    result = compare(old, new, {})
    assert compare(new, new, {}) == ({}, {})
    assert not difference(result.changed, compare({}, new, {}).changed)
    assert bool(result.changed or result.removed) is (old != new)


def test_a_configuration_says_leaves_and_what_no_schema_declares() -> None:
    schema = {
        "properties": {
            "spec": {
                "properties": {
                    "parts": {"items": {}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
                    "plain": {"items": {}},
                    "names": {"additionalProperties": {"properties": {"x": {}}}},
                }
            }
        }
    }
    value = {"spec": {"parts": [{"name": "x", "n": 1}], "plain": [1], "names": {"a": {"x": 1}}}}
    assert applied_fields(value, schema) == {
        "f:spec": {
            "f:parts": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:n": {}}},
            "f:plain": {},
            "f:names": {"f:a": {".": {}, "f:x": {}}},
        }
    }


def test_the_oldest_updates_are_put_together() -> None:
    managers = [Manager(f"m{n:02}", UPDATE, {f"f:{n}": {}}, "v1", "", f"2026-01-01T00:00:{n:02}Z") for n in range(12)]
    kept = bounded(managers)
    assert len(kept) == 10
    ancient = next(entry for entry in kept if entry.name == "ancient-changes")
    assert ancient.fields == {"f:0": {}, "f:1": {}, "f:2": {}}
    assert ancient.time == "2026-01-01T00:00:02Z"


def test_paths_are_shown_as_kubernetes_shows_them() -> None:
    assert show(("f:spec", 'k:{"name":"x"}', "f:count")) == '.spec[name="x"].count'
    assert show(("f:tags", 'v:"a"')) == '.tags[="a"]'

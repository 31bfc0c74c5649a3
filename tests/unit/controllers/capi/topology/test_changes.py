"""The part of an object that applying an intent would change."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.controllers.capi.topology.changes import ANNOTATION_APPLIED, Change, change, covers, intent
from ironbell.controllers.capi.topology.plain import put

OWNER = {"apiVersion": "v1", "kind": "Cluster", "name": "prod", "uid": "1"}


def obj(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "d", "labels": {"owned": ""}, "ownerReferences": [OWNER]}
    return {"apiVersion": "g/v1", "kind": "T", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("live", "desired", "is_covered"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"a": True}, False),
        ({}, {"a": {}, "b": [], "c": ""}, True),
        ({"a": "x"}, {"a": ""}, False),
        ({"a": [{"x": 1, "y": 2}, {"x": 3}]}, {"a": [{"x": 1}, {"x": 3}]}, True),
        ({"a": [{"x": 3}, {"x": 1}]}, {"a": [{"x": 1}, {"x": 3}]}, False),
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, True),
        ({"a": 0}, {"a": 0}, True),
        ({}, {"a": 0}, False),
        ({"a": {"apiVersion": "g/v2", "kind": "T"}}, {"a": {"apiVersion": "g/v1", "kind": "T"}}, True),
        ({"a": {"apiVersion": "h/v1", "kind": "T"}}, {"a": {"apiVersion": "g/v1", "kind": "T"}}, False),
        ({"a": {"apiVersion": "g/v2"}}, {"a": {"apiVersion": "g/v1"}}, False),
        ({"a": "10m0s"}, {"a": "600s"}, True),
        ({"a": "10m0s"}, {"a": "601s"}, False),
        ({"a": "10m0s"}, {"a": "x"}, False),
    ],
)
def test_an_object_covers_the_desired_content(live: Any, desired: Any, *, is_covered: bool) -> None:
    assert covers(live, desired) is is_covered


@pytest.mark.parametrize(
    ("live", "desired", "expected", "of_template"),
    [
        (obj(a=1), obj(a=1), Change.NONE, Change.NONE),
        (obj(a=1), obj(a=2), Change.SPEC, Change.SPEC),
        (obj(a=1, b=1), obj(a=1), Change.SPEC, Change.SPEC),
        (put(obj(a=1), "x", ("metadata", "labels", "more")), obj(a=1), Change.METADATA, Change.METADATA),
        (obj(a=1), put(obj(a=1), "x", ("metadata", "labels", "more")), Change.METADATA, Change.METADATA),
        (obj(a=1), {**obj(a=1), "kind": "U"}, Change.SPEC, Change.SPEC),
    ],
)
def test_changes_of_applied_content(
    live: dict[str, Any], desired: dict[str, Any], expected: Change, of_template: Change
) -> None:
    assert change(intent(live), intent(desired)) is expected
    assert change(intent(live), intent(desired), is_template=True) is of_template


def test_changes_of_other_writers_are_corrected_but_never_replace_a_template() -> None:
    live = put(intent(obj(a=1, b=1)), 2, ("spec", "a"))
    assert change(live, intent(obj(a=1, b=1))) is Change.SPEC
    assert change(live, intent(obj(a=1, b=1)), is_template=True) is Change.NONE


@pytest.mark.parametrize(
    ("live", "expected"),
    [(obj(a=1, filled=2), Change.METADATA), (obj(a=2), Change.SPEC)],
)
def test_a_template_that_others_applied_is_taken_over_if_it_has_everything(
    live: dict[str, Any], expected: Change
) -> None:
    assert change(live, intent(obj(a=1)), is_template=True) is expected


def test_zero_endpoints_are_nobodys_opinion() -> None:
    expected = intent(obj(controlPlaneEndpoint={"host": "", "port": 0}, a=1))
    assert expected["spec"] == {"controlPlaneEndpoint": {}, "a": 1}
    assert ANNOTATION_APPLIED in expected["metadata"]["annotations"]

"""The parts of the patch engine: paths, operations, selectors, values."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from ironbell.api.cluster.classes.patches import ClusterClassPatch
from ironbell.controllers.capi.topology.desired.model import TopologyError, Worker
from ironbell.controllers.capi.topology.patches.inline import patched
from ironbell.controllers.capi.topology.patches.items import Item, Place, is_named
from ironbell.controllers.capi.topology.patches.operations import applied
from ironbell.controllers.capi.topology.patches.rendering import rendered_value, value_at
from ironbell.controllers.capi.topology.plain import copied

BODY: dict[str, Any] = {"spec": {"list": [1, 2], "map": {"a/b": 1, "c~d": 2}, "deep": [{"x": 1}]}}
VARIABLES: dict[str, Any] = {
    "text": "abc",
    "flag": True,
    "count": 3,
    "many": 1000000,
    "hosts": ["a", {"name": "b", "ports": [1, 2]}],
    "builtin": {"cluster": {"name": "prod"}},
    "nothing": None,
}


@pytest.mark.parametrize(
    ("operation", "spec"),
    [
        (("add", "/spec/new", 1), {**BODY["spec"], "new": 1}),
        (("add", "/spec/list/-", 3), {**BODY["spec"], "list": [1, 2, 3]}),
        (("add", "/spec/list/0", 3), {**BODY["spec"], "list": [3, 1, 2]}),
        (("add", "/spec/list/2", 3), {**BODY["spec"], "list": [1, 2, 3]}),
        (("add", "/spec/map", None), {**BODY["spec"], "map": None}),
        (("replace", "/spec/list/1", 3), {**BODY["spec"], "list": [1, 3]}),
        (("replace", "/spec/map/a~1b", 3), {**BODY["spec"], "map": {"a/b": 3, "c~d": 2}}),
        (("remove", "/spec/map/c~0d", None), {**BODY["spec"], "map": {"a/b": 1}}),
        (("remove", "/spec/list/0", None), {**BODY["spec"], "list": [2]}),
        (("replace", "/spec//map/", 3), {**BODY["spec"], "map": {"a/b": 1, "c~d": 2, "": 3}}),
        (("add", "/spec/deep/0/y", 2), {**BODY["spec"], "deep": [{"x": 1, "y": 2}]}),
    ],
)
def test_operations(operation: tuple[str, str, Any], spec: dict[str, Any]) -> None:
    previous = copy.deepcopy(BODY)
    op, path, value = operation
    assert applied(BODY, [{"op": op, "path": path, "value": value}]) == {"spec": spec}
    assert previous == BODY


@pytest.mark.parametrize(
    ("op", "path"),
    [
        ("add", "/spec/missing/new"),
        ("replace", "/spec/missing"),
        ("remove", "/spec/missing"),
        ("replace", "/spec/list/2"),
        ("remove", "/spec/list/-"),
        ("add", "/spec/list/4"),
        ("add", "/spec/list/x"),
        ("add", "/spec/list/0/x"),
        ("add", ""),
    ],
)
def test_operations_on_missing_paths_are_errors(op: str, path: str) -> None:
    with pytest.raises(TopologyError):
        applied(BODY, [{"op": op, "path": path, "value": 1}])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("text", "abc"),
        ("hosts[0]", "a"),
        ("hosts[1].name", "b"),
        ("hosts[1].ports[1]", 2),
        ("builtin.cluster.name", "prod"),
        ("nothing", None),
    ],
)
def test_values_by_path(path: str, value: Any) -> None:
    assert value_at(VARIABLES, path) == value


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing", 'variable "missing" does not exist'),
        ("missing.a", 'variable "missing" does not exist'),
        ("builtin.cluster.uid", 'failed to lookup segment "uid"'),
        ("hosts[2]", "array does not have index 2"),
        ("text[0]", 'failed to get array "text"'),
        ("hosts[0", "failed to parse path segment"),
        ("hosts[x]", "failed to parse path segment"),
    ],
)
def test_paths_that_lead_nowhere(path: str, problem: str) -> None:
    with pytest.raises(TopologyError) as caught:
        value_at(VARIABLES, path)
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ .text }}", "abc"),
        ("{{ .count }}", 3),
        ('"{{ .count }}"', "3"),
        ("{{ .many }}", 1e06),
        ("name: {{ .text | upper }}\nlist: [{{ .count }}, x]", {"name": "ABC", "list": [3, "x"]}),
        ("{{ range .hosts }}x{{ end }}", "xx"),
        ("", None),
    ],
)
def test_templates_give_yaml(template: str, value: Any) -> None:
    assert rendered_value(template, VARIABLES) == value


@pytest.mark.parametrize("template", ["{{ .text", "{{ nope }}", "a: [", "{{ .text | nindent }}"])
def test_templates_that_give_nothing_usable(template: str) -> None:
    with pytest.raises(TopologyError):
        rendered_value(template, VARIABLES)


@pytest.mark.parametrize(
    ("class_name", "name", "is_meant"),
    [
        ("worker", "worker", True),
        ("worker", "*", True),
        ("gpu-worker", "*-worker", True),
        ("gpu-worker", "gpu-*", True),
        ("gpu-worker", "*-gpu", False),
        ("worker", "work", False),
    ],
)
def test_classes_are_named_with_a_wildcard(class_name: str, name: str, *, is_meant: bool) -> None:
    assert is_named(class_name, ["other", name]) is is_meant


def item(place: Place = Place.CONTROL_PLANE, class_name: str = "") -> Item:
    body = {
        "apiVersion": "g/v1",
        "kind": "T",
        "metadata": {"name": "t", "labels": {"a": "b"}},
        "spec": {"x": 1},
        "other": 1,
    }
    worker = Worker("md-0", class_name, {"metadata": {"name": "w"}}, {}, {}) if class_name else None
    return Item(place, body, worker)


def patch(*operations: dict[str, Any], enabled_if: str = "", **resources: Any) -> ClusterClassPatch:
    match = resources or {"controlPlane": True}
    definition = {
        "selector": {"apiVersion": "g/v1", "kind": "T", "matchResources": match},
        "jsonPatches": list(operations),
    }
    body = {"name": "p", "enabledIf": enabled_if, "definitions": [definition]}
    return msgspec.convert(body, ClusterClassPatch)


CHANGE = {"op": "add", "path": "/spec/y", "value": 2}


@pytest.mark.parametrize(
    ("place", "class_name", "resources", "is_meant"),
    [
        (Place.INFRASTRUCTURE_CLUSTER, "", {"infrastructureCluster": True}, True),
        (Place.INFRASTRUCTURE_CLUSTER, "", {"controlPlane": True}, False),
        (Place.CONTROL_PLANE, "", {"controlPlane": True}, True),
        (Place.CONTROL_PLANE_MACHINE, "", {"controlPlane": True}, True),
        (Place.CONTROL_PLANE, "", {"controlPlane": False, "infrastructureCluster": True}, False),
        (Place.DEPLOYMENT_BOOTSTRAP, "worker", {"machineDeploymentClass": {"names": ["worker"]}}, True),
        (Place.DEPLOYMENT_INFRASTRUCTURE, "worker", {"machineDeploymentClass": {"names": ["other"]}}, False),
        (Place.DEPLOYMENT_INFRASTRUCTURE, "worker", {"machinePoolClass": {"names": ["worker"]}}, False),
        (Place.POOL_INFRASTRUCTURE, "worker", {"machinePoolClass": {"names": ["work*"]}}, True),
    ],
)
def test_selectors(place: Place, class_name: str, resources: dict[str, Any], *, is_meant: bool) -> None:
    result = patched(item(place, class_name), patch(CHANGE, **resources), VARIABLES)
    assert ("y" in result.body["spec"]) is is_meant


def test_a_selector_means_one_type() -> None:
    other = item().with_body({**item().body, "apiVersion": "g/v2"})
    assert patched(other, patch(CHANGE), VARIABLES) is other


@pytest.mark.parametrize(
    ("condition", "is_enabled"),
    [
        ("", True),
        ("{{ .flag }}", True),
        ("{{ if .missing }}true{{ end }}", False),
        ('"true"', False),
        ("{{ ne .text `abc` }}", False),
    ],
)
def test_a_patch_is_enabled_by_true_alone(condition: str, *, is_enabled: bool) -> None:
    result = patched(item(), patch(CHANGE, enabled_if=condition), VARIABLES)
    assert ("y" in result.body["spec"]) is is_enabled


def test_only_spec_labels_and_annotations_are_changed() -> None:
    operations = [
        {"op": "replace", "path": "/spec/x", "valueFrom": {"variable": "hosts[1].name"}},
        {"op": "replace", "path": "/other", "value": 2},
        {"op": "replace", "path": "/metadata/name", "value": "u"},
        {"op": "add", "path": "/metadata/labels/c", "valueFrom": {"template": "{{ .text }}"}},
    ]
    result = patched(item(), patch(*operations), VARIABLES).body
    assert result == {
        **item().body,
        "metadata": {"name": "t", "labels": {"a": "b", "c": "abc"}},
        "spec": {"x": "b"},
    }


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        ({"op": "add", "path": "/spec/y"}, "neither .value nor .valueFrom are set"),
        ({"op": "add", "path": "/spec/y", "value": 1, "valueFrom": {"variable": "a"}}, "both .value and .valueFrom"),
        ({"op": "add", "path": "/spec/y", "valueFrom": {}}, "neither .valueFrom.variable nor .valueFrom.template"),
        ({"op": "add", "path": "/spec/y", "valueFrom": {"variable": "missing"}}, 'variable "missing" does not exist'),
        ({"op": "remove", "path": "/spec/y"}, "doc is missing path: /spec/y"),
    ],
)
def test_problems_of_a_patch(operation: dict[str, Any], problem: str) -> None:
    with pytest.raises(TopologyError) as caught:
        patched(item(), patch(operation), VARIABLES)
    assert problem in caught.value.message


def test_kept_fields_need_their_place() -> None:
    target = {"kind": "K", "metadata": {"name": "n", "labels": {"owned": ""}}}
    path = ("metadata", "labels")
    kept = [("metadata", "labels", "owned")]
    assert copied({"metadata": {"labels": {"a": "b"}}}, target, [(path, path)], kept) == {
        "kind": "K",
        "metadata": {"name": "n", "labels": {"a": "b", "owned": ""}},
    }
    with pytest.raises(TopologyError, match=r"K n: failed to set .*: \.metadata\.labels is not an object"):
        copied({"metadata": {"labels": "none"}}, target, [(path, path)], kept)

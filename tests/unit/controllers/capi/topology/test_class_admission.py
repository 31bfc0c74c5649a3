"""Validation of ClusterClasses."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ironbell.controllers.capi.admission.classes.clusterclass import validate
from support.capi.topologies import DEV_MACHINE_TEMPLATE, NAMESPACE, PLANE_TEMPLATE, documents, reference, small_class
from support.programs.upstream import manifest

SELECTOR = {
    "apiVersion": DEV_MACHINE_TEMPLATE.api_version,
    "kind": DEV_MACHINE_TEMPLATE.kind,
    "matchResources": {"controlPlane": True},
}


def class_of(**spec: Any) -> dict[str, Any]:
    return small_class(**spec)[-1]


def patched(selector: dict[str, Any] | None = None, **operation: Any) -> dict[str, Any]:
    """The class with one patch."""
    held = {"op": "add", "path": "/spec/a", "value": 1, **operation}
    spec_ = {name: value for name, value in held.items() if value is not None}
    definition = {"selector": {**SELECTOR, **(selector or {})}, "jsonPatches": [spec_]}
    return class_of(patches=[{"name": "p", "definitions": [definition]}])


@pytest.mark.parametrize(
    ("class_", "path", "problem"),
    [
        (
            class_of(infrastructure={"templateRef": {"kind": "X", "apiVersion": "v1", "name": "a"}}),
            "kind",
            "<name>",
        ),
        (class_of(variables=[{"name": "builtin"}]), "spec.variables[builtin].name", "reserved"),
        (class_of(variables=[{"name": "a.b"}]), "spec.variables[a.b].name", 'cannot contain "."'),
        (class_of(variables=[{"name": "a"}, {"name": "a"}]), "spec.variables[a].name", "must be unique"),
        (class_of(kubernetesVersions=["v1.34.0", "v1.33.0"]), "kubernetesVersions[1]", "must be greater than v1.34.0"),
        (
            class_of(kubernetesVersions=["v1.33.0", "v1.35.0"]),
            "kubernetesVersions[1]",
            "expecting a version",
        ),
        (class_of(patches=[{"name": "inline", "definitions": []}]), "spec.patches[0].name", "can not be used"),
        (class_of(patches=[{"name": "p", "external": {}}]), "spec.patches[0].external", "not supported"),
        (patched(path="/metadata/name"), "jsonPatches[0].path", 'must start with "/spec"'),
        (patched(path="/spec/list/1"), "jsonPatches[0].path", "arrays can only be accessed"),
        (patched(op="remove", path="/spec/list/0"), "jsonPatches[0].path", "can not be accessed in a remove operation"),
        (patched(value=None), "jsonPatches[0]", "must define one of value or valueFrom"),
        (patched(valueFrom={"variable": "a"}), "jsonPatches[0]", "both value and valueFrom"),
        (patched(value=None, valueFrom={"variable": "a.b"}), "valueFrom.variable", "cannot be found"),
        (patched(value=None, valueFrom={"template": "{{ .a"}), "valueFrom.template", "can not be parsed"),
        (patched({"matchResources": {}}), "selector", "no selector enabled"),
        (patched({"kind": "Other"}), "matchResources.controlPlane", "matches neither"),
        (patched({"matchResources": {"machineDeploymentClass": {"names": ["x"]}}}), "names[0]", "matches neither"),
        (
            patched({"matchResources": {"machineDeploymentClass": {"names": ["w*r"]}}}),
            "names[0]",
            "beginning, or ending",
        ),
    ],
)
def test_invalid_classes_are_rejected(class_: dict[str, Any], path: str, problem: str) -> None:
    problems = [item for item in validate(class_, None) if item.path.endswith(path) and problem in item.message]
    assert problems, [str(entry) for entry in validate(class_, None)]


def test_kinds_stay() -> None:
    changed = copy.deepcopy(class_of())
    changed["spec"]["workers"]["machineDeployments"][0]["infrastructure"] = reference(PLANE_TEMPLATE, "x")
    assert {problem.path.rpartition(".")[2] for problem in validate(changed, class_of())} == {"apiVersion", "kind"}


def test_upstreams_quick_start_is_accepted() -> None:
    path = manifest("cluster-api/clusterclass-quick-start.yaml")
    [class_] = [
        document for document in documents(path, {"NAMESPACE": NAMESPACE}) if document["kind"] == "ClusterClass"
    ]
    assert validate(class_, class_) == []

"""From a template to objects."""

from __future__ import annotations

import pytest

from ironbell.codec.envsubst import MissingVariablesError
from ironbell.operations.cluster.template import TemplateError, built_in, objects_of

OTHER = "{apiVersion: v1, kind: B, metadata: {name: b}}"


def test_clusters_come_last() -> None:
    text = "{apiVersion: v1, kind: Cluster, metadata: {name: '${CLUSTER_NAME}'}}\n---\n" + OTHER + "\n---\n"
    found = objects_of(text, {"CLUSTER_NAME": "one"}, source="f")
    assert [(obj["kind"], obj["metadata"]["name"]) for obj in found] == [("B", "b"), ("Cluster", "one")]


def test_options_become_variables_only_where_they_are_given() -> None:
    given = built_in("one", "site", kubernetes_version="1.34.2", control_planes=3, workers=None)
    assert given == {
        "CLUSTER_NAME": "one",
        "NAMESPACE": "site",
        "KUBERNETES_VERSION": "1.34.2",
        "CONTROL_PLANE_MACHINE_COUNT": "3",
    }
    with pytest.raises(TemplateError, match="--kubernetes-version: 'new' is not a valid version"):
        built_in("one", "site", kubernetes_version="new", control_planes=None, workers=None)


def test_all_missing_variables_are_named() -> None:
    with pytest.raises(MissingVariablesError, match="no value for A, B: give each with --set") as missing:
        objects_of("${B} ${A} ${C:=d}", {}, source="f")
    assert missing.value.names == ("A", "B")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "document 1: has no apiVersion, kind, metadata.name"),
        (
            "{apiVersion: v1, kind: B, metadata: {name: b}}\n---\n{kind: C}",
            "document 2: has no apiVersion, metadata.name",
        ),
        ("# nothing", "contains no objects"),
        ("a: [", "f, with its variables replaced: "),
    ],
)
def test_what_is_no_list_of_objects_is_refused(text: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        objects_of(text, {}, source="f")

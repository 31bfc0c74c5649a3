"""Printer column paths reach what the real API server's would."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.apiserver.tables.jsonpath import Path, PathError

OBJECT: dict[str, Any] = {
    "metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "one"}, "name": "m"},
    "spec": {"interfaces": [{"mac": "a"}, {"mac": "b"}], "count": 3, "on": True, "empty": None},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "weight": 1},
            {"type": "Paused", "status": "False", "weight": 2.5, "on": True},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["m"]),
        ("{.metadata.name}", ["m"]),
        ("$.metadata.name", ["m"]),
        ("metadata.name", ["m"]),
        (r".metadata.labels.cluster\.x-k8s\.io/cluster-name", ["one"]),
        (r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", ["one"]),
        (".metadata.labels['cluster.x-k8s.io/cluster-name']", ["one"]),
        ('.metadata["name"]', ["m"]),
        (".spec.interfaces[0].mac", ["a"]),
        (".spec.interfaces[-1].mac", ["b"]),
        (".spec.interfaces[9].mac", []),
        (".spec.interfaces[*].mac", ["a", "b"]),
        (".spec.interfaces[0:1].mac", ["a"]),
        (".spec.interfaces[:].mac", ["a", "b"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Paused')].status", ["False"]),
        (".status.conditions[?(@.weight > 1)].type", ["Paused"]),
        (".status.conditions[?(@.on)].type", ["Paused"]),
        (".status.conditions[?(@.on==true)].type", ["Paused"]),
        (".status.conditions[?(@.type<3)].type", []),
        ('.status.conditions[?(@.type=="None")].status', []),
        (".spec.nothing.at.all", []),
        (".spec.count.deeper", []),
        (".spec.empty", [None]),
        (".spec.interfaces.mac", []),
    ],
)
def test_reaches_values(path: str, found: list[Any]) -> None:
    assert Path(path).find(OBJECT) == found


@pytest.mark.parametrize("path", [".a[", ".a[]", ".a[?(@.b=~'x')]", "..a", ".a[?(@.b==c)]", ".a['x", ".a b"])
def test_refuses_what_is_outside_the_subset(path: str) -> None:
    with pytest.raises(PathError):
        Path(path)


@given(st.text(alphabet=".[]?()@'\"\\*:-=<>ab01 ", max_size=20))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        path = Path(text)
    except PathError:
        return
    path.find(OBJECT)

"""What `ironbell pivot` prints at its end."""

from __future__ import annotations

import json

from ironbell.cli.objects.pivot import _json, _lines
from ironbell.operations.pivot.graph import Selection
from ironbell.operations.pivot.items import CLUSTER
from ironbell.operations.pivot.moving import Outcome

DONE = Outcome("1", "begin", 1, ((CLUSTER, "a", "one"),), (("ConfigMap", "a", "shared"),), ((CLUSTER, "a", "one"),))


def test_json_has_kinds_namespaces_and_names() -> None:
    found = json.loads(_json(DONE))
    assert found["clusters"] == found["paused"] == [{"kind": CLUSTER, "namespace": "a", "name": "one"}]
    assert found["kept"] == [{"kind": "ConfigMap", "namespace": "a", "name": "shared"}]


def test_one_object_is_no_plural() -> None:
    assert _lines(DONE, Selection()) == [
        "moved: 1 object, Cluster a/one",
        "on both sides: ConfigMap a/shared",
        f"paused as before: {CLUSTER} a/one",
    ]
    assert _lines(Outcome("1", "abort", 1), Selection()) == ["undone: removed 1 copy; the sources are active again"]


def test_a_cluster_that_stays_paused_is_told_with_the_remedy() -> None:
    paused = Outcome(course="nothing", left_paused=((CLUSTER, "a", "one"),))
    assert _lines(paused, Selection(frozenset(["a"]))) == [
        "nothing to move in a",
        f"still paused on the target: {CLUSTER} a/one; if clusterctl has paused it, set its spec.paused to false",
    ]
    assert json.loads(_json(paused))["left_paused"] == [{"kind": CLUSTER, "namespace": "a", "name": "one"}]

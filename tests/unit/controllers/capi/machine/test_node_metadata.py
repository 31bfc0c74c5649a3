"""The labels, annotations and taints that a Machine sets on its Node, and removes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from ironbell.api.cluster.common import MachineTaint
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.core.node import Taint
from ironbell.controllers.capi.machine.node_metadata import (
    OUTDATED,
    UNINITIALIZED,
    PatternError,
    Synced,
    managed_annotations,
    managed_labels,
    node_patch,
    read_synced,
)
from ironbell.kube import patches
from ironbell.workload.queries import NodeView

LABELS_FROM = "cluster.x-k8s.io/labels-from-machine"
ANNOTATIONS_FROM = "cluster.x-k8s.io/annotations-from-machine"
TAINTS_FROM = "cluster.x-k8s.io/taints-from-machine"


def machine(**metadata: Any) -> Machine:
    body = {"metadata": {"name": "m1", "namespace": "ns", **metadata}, "spec": {"clusterName": "c1"}}
    return MACHINE.decode(msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("label", "synced"),
    [
        ("node-role.kubernetes.io/worker", True),
        ("node-restriction.kubernetes.io/zone", True),
        ("rack.node-restriction.kubernetes.io/zone", True),
        ("node.cluster.x-k8s.io/pool", True),
        ("gpu.node.cluster.x-k8s.io/kind", True),
        ("sub.node-role.kubernetes.io/worker", False),
        ("mynode.cluster.x-k8s.io/pool", False),
        ("cluster.x-k8s.io/cluster-name", False),
        ("team", False),
    ],
)
def test_which_labels_go_to_the_node(label: str, synced: bool) -> None:
    assert (label in managed_labels(machine(labels={label: "x"}))) is synced


def test_further_labels_and_annotations_go_by_pattern() -> None:
    patterns = Synced((re.compile("^team$"),), (re.compile("^note"),))
    assert managed_labels(machine(labels={"team": "a", "teams": "b"}), patterns) == {"team": "a"}
    result = managed_annotations(
        machine(annotations={"note/x": "1", "node.cluster.x-k8s.io/y": "2", "z": "3"}), patterns
    )
    assert result.keys() >= {"note/x", "node.cluster.x-k8s.io/y"}
    assert "z" not in result


def test_patterns_are_read_from_the_options_of_a_command() -> None:
    result = read_synced(["^team$,rack", " "], ["note"])
    assert [item.pattern for item in result.labels] == ["^team$", "rack"]
    assert [entry.pattern for entry in result.annotations] == ["note"]
    with pytest.raises(PatternError, match="is not a valid regular expression"):
        read_synced(["("], [])


def test_annotations_name_cluster_machine_and_owner() -> None:
    assert managed_annotations(machine()) == {
        "cluster.x-k8s.io/cluster-name": "c1",
        "cluster.x-k8s.io/cluster-namespace": "ns",
        "cluster.x-k8s.io/machine": "m1",
    }
    owner = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineSet",
        "name": "s",
        "uid": "u",
        "controller": True,
    }
    result = managed_annotations(machine(ownerReferences=[owner]))
    assert result["cluster.x-k8s.io/owner-kind"] == "MachineSet"
    assert result["cluster.x-k8s.io/owner-name"] == "s"


def test_interruptible_is_a_label() -> None:
    assert managed_labels(machine(), interruptible=True) == {"cluster.x-k8s.io/interruptible": ""}


def patched(node: NodeView, patch: dict[str, Any] | None) -> NodeView:
    """The node after a merge patch."""
    plain = {
        "metadata": {"labels": dict(node.labels), "annotations": dict(node.annotations)},
        "spec": {"taints": [msgspec.to_builtins(taint) for taint in node.taints]},
    }
    after = patches.apply(plain, patch or {})
    return replace(
        node,
        labels=after["metadata"].get("labels", {}),
        annotations=after["metadata"].get("annotations", {}),
        taints=tuple(msgspec.convert(taint, Taint) for taint in after["spec"].get("taints") or ()),
    )


def synced(
    node: NodeView,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    taints: list[MachineTaint] | None = None,
    outdated: bool = False,
) -> NodeView:
    """The node once it is in step; a second look must find nothing to do."""
    given = (labels or {}, annotations or {}, taints or [])
    after = patched(node, node_patch(node, *given, outdated=outdated))
    assert node_patch(after, *given, outdated=outdated) is None
    return after


OWN = {"cluster.x-k8s.io/machine": "m1"}


def test_first_sync_removes_the_uninitialized_taint() -> None:
    foreign = Taint(key="dedicated", value="gpu", effect="NoSchedule", time_added="2026-01-01T00:00:00Z")
    node = synced(NodeView("n", labels={"kept": "1"}, taints=(UNINITIALIZED, foreign)), labels={"a": "b"})
    assert node.taints == (foreign,)
    assert node.labels == {"kept": "1", "a": "b"}
    assert node.annotations == {LABELS_FROM: "a", ANNOTATIONS_FROM: "", TAINTS_FROM: ""}


def test_only_keys_that_the_machine_no_longer_has_are_removed() -> None:
    node = synced(
        NodeView("n", labels={"mine": "1"}, annotations={"hand": "made"}),
        labels={"a": "1", "b": "2"},
        annotations={"x": "1", "y": "2", **OWN},
    )
    node = synced(node, labels={"b": "3"}, annotations={"y": "2", **OWN})
    assert node.labels == {"mine": "1", "b": "3"}
    assert node.annotations == {
        "hand": "made", "y": "2", **OWN, LABELS_FROM: "b", ANNOTATIONS_FROM: "y", TAINTS_FROM: ""
    }  # fmt: skip


def test_own_annotations_are_not_tracked_but_removed_all_the_same() -> None:
    owner = {"cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "s"}
    node = synced(NodeView("n"), annotations={**OWN, **owner})
    assert node.annotations[ANNOTATIONS_FROM] == ""
    node = synced(node, annotations=OWN)
    assert not owner.keys() & node.annotations.keys()


def taint(key: str, propagation: str = "Always", value: str = "", effect: str = "NoSchedule") -> MachineTaint:
    return MachineTaint(key=key, value=value, effect=effect, propagation=propagation)


def keys(node: NodeView) -> list[str]:
    return [item.key for item in node.taints]


def test_lasting_taints_are_kept_in_step() -> None:
    node = synced(NodeView("n"), taints=[taint("a"), taint("b")])
    assert node.annotations[TAINTS_FROM] == "a:NoSchedule,b:NoSchedule"
    assert keys(synced(replace(node, taints=()), taints=[taint("a"), taint("b")])) == ["a", "b"]
    node = synced(node, taints=[taint("b", value="new")])
    assert [(item.key, item.value) for item in node.taints] == [("b", "new")]
    assert keys(synced(node)) == []


def test_initial_taints_are_set_once() -> None:
    initial = [taint("once", "OnInitialization"), taint("ever")]
    node = synced(NodeView("n"), taints=initial)
    assert keys(node) == ["once", "ever"]
    assert node.annotations[TAINTS_FROM] == "ever:NoSchedule"
    without = replace(node, taints=tuple(item for item in node.taints if item.key != "once"))
    assert keys(synced(without, taints=initial)) == ["ever"]


def test_a_lasting_taint_that_becomes_initial_stays() -> None:
    node = synced(NodeView("n"), taints=[taint("a")])
    node = synced(node, taints=[taint("a", "OnInitialization")])
    assert keys(node) == ["a"]
    assert node.annotations[TAINTS_FROM] == ""


def test_one_key_with_two_effects_is_two_taints() -> None:
    node = synced(NodeView("n"), taints=[taint("a"), taint("a", effect="NoExecute")])
    node = synced(node, taints=[taint("a", effect="NoExecute")])
    assert [(item.key, item.effect) for item in node.taints] == [("a", "NoExecute")]


def test_the_taint_of_an_outdated_revision_is_set_and_removed() -> None:
    node = synced(NodeView("n"), outdated=True)
    assert node.taints == (OUTDATED,)
    assert synced(node).taints == ()


def test_a_node_that_is_up_to_date_is_not_written() -> None:
    node = synced(NodeView("n"), labels={"a": "b"}, annotations=OWN, taints=[taint("t")])
    assert node_patch(node, {"a": "b"}, OWN, [taint("t")], outdated=False) is None

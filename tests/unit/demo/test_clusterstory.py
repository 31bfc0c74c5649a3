"""The story of a cluster's servers: who is meant, each thing once, and what the demonstration waits for."""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.bmc.machine import Machine, MachineStatus
from ironbell.api.core import EVENT, NODE
from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.demo.clusterstory import READY_LABEL, ClusterStory
from ironbell.demo.newcluster import PODS


def story() -> ClusterStory:
    return ClusterStory({"cp-1": "namespace", "q-1": "qemu"})


def hardware(*, owner: str = "", wiped: str = "") -> Any:
    labels = {"v1alpha1.tinkerbell.org/ownerName": owner, "v1alpha1.tinkerbell.org/ownerNamespace": "default"}
    annotations = {"ironbell.dev/wiped": wiped} if wiped else {}
    meta = {"name": "q-1", "namespace": "default", "labels": labels if owner else {}, "annotations": annotations}
    return HARDWARE.decode(msgspec.json.encode({"metadata": meta}))


def workflow(state: str, message: str = "", *, uid: str = "u", percent: int = 0) -> Any:
    action = {"id": "a", "name": "stream image", "state": state, "message": message}
    annotations = {"ironbell.dev/progress": f'{{"percent": {percent}}}'} if percent else {}
    return WORKFLOW.decode(msgspec.json.encode({
        "metadata": {"name": "demo-q-x", "uid": uid, "annotations": annotations},
        "spec": {"hardwareRef": "q-1"},
        "status": {"state": state, "tasks": [{"name": "t", "id": "t", "agentID": "m", "actions": [action]}]},
    }))  # fmt: skip


def node(name: str, ready: str) -> Any:
    info = {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://1", "osImage": "Debian"}
    return NODE.decode(msgspec.json.encode({
        "metadata": {"name": name},
        "spec": {"providerID": f"tinkerbell://default/{name}"},
        "status": {"conditions": [{"type": "Ready", "status": ready}], "nodeInfo": info},
    }))  # fmt: skip


def pod(place: str, phase: str = "Running") -> Any:
    return PODS.decode(msgspec.json.encode({
        "metadata": {"name": f"hello-{place}"},
        "spec": {"nodeName": place},
        "status": {"phase": phase, "podIP": "10.1"},
    }))  # fmt: skip


def test_lines_say_which_server_of_which_kind() -> None:
    seen = story()
    machine = Machine(metadata=ObjectMeta(name="q-1"), status=MachineStatus(power_state="on"))
    (line,) = seen.power(machine)
    assert line.about == "q-1 (qemu)"
    assert seen.power(machine) == []
    body = {
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Hardware", "name": "cp-1"}, "reason": "DHCPLeased",
        "message": "x",
    }  # fmt: skip
    assert [one.about for one in seen.event(EVENT.decode(msgspec.json.encode(body)))] == ["cp-1 (namespace)"]
    assert seen.power(Machine(metadata=ObjectMeta(name="other"), status=MachineStatus(power_state="on"))) == []


def test_a_server_is_claimed_and_given_back_wiped() -> None:
    seen = story()
    assert seen.hardware_changed(hardware()) == []
    assert [line.text for line in seen.hardware_changed(hardware(owner="m"))] == ["by TinkerbellMachine default/m"]
    assert seen.hardware_changed(hardware(owner="m")) == []
    lines = seen.hardware_changed(hardware(wiped='{"wiped": true, "message": "by discard"}'))
    assert [(line.label, line.text) for line in lines] == [("wiped", "by discard"), ("free", "released")]
    assert (seen.free, seen.wiped) == ({"q-1"}, {"q-1"})


def test_without_a_certificate_nothing_counts_as_wiped() -> None:
    for said in ("", '{"wiped": false, "message": "policy none"}', "[]"):
        seen = story()
        seen.hardware_changed(hardware(owner="m"))
        assert seen.hardware_changed(hardware(wiped=said))[0].is_bad
        assert (seen.free, seen.wiped) == ({"q-1"}, set())


def test_a_failed_installation_is_told_and_remembered() -> None:
    seen = story()
    seen.workflow_changed(workflow("RUNNING", percent=40))
    assert seen.progress == {"q-1": "40 %"}
    assert any(line.is_bad for line in seen.workflow_changed(workflow("FAILED", "no such disk")))
    assert "no such disk" in seen.last_failure
    seen.workflow_deleted(workflow("FAILED"))
    assert seen.progress == {}


def test_nodes_join_become_ready_and_leave() -> None:
    seen = story()
    assert [line.label for line in seen.nodes_seen([node("q-1", "False")])] == ["node"]
    assert seen.ready == set()
    assert [line.label for line in seen.nodes_seen([node("q-1", "True")])] == [READY_LABEL]
    assert seen.nodes_seen([node("q-1", "True")]) == []
    assert [line.is_bad for line in seen.nodes_seen([node("q-1", "Unknown")])] == [True]
    seen.nodes_seen([node("q-1", "True")])
    assert [line.text for line in seen.nodes_seen([])] == ["has left the cluster"]
    assert (seen.nodes, seen.ready) == (set(), set())


def test_pods_count_while_they_run() -> None:
    seen = story()
    assert seen.pods_seen([pod("q-1", "Pending")]) == []
    assert [line.about for line in seen.pods_seen([pod("q-1")])] == ["q-1 (qemu)"]
    assert seen.pods_seen([pod("q-1")]) == []
    seen.pods_seen([])
    assert seen.running == {}

"""`ironbell why`: told from what is stored alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ironbell.operations.why.text import explain

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def workflow(**status: Any) -> dict[str, Any]:
    return {
        "kind": "Workflow",
        "metadata": {"name": "w", "namespace": "site", "uid": "u-1"},
        "spec": {},
        "status": status,
    }


def event(name: str, reason: str, *, at: str = "2026-01-01T11:59:30Z", uid: str = "u-1", **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"e-{reason}", "resourceVersion": more.pop("version", "1")},
        "involvedObject": {"kind": "Workflow", "name": name, "uid": uid},
        "reason": reason,
        "message": f"about {reason}",
        "lastTimestamp": at,
        **more,
    }


def test_failed_action_and_condition_are_named() -> None:
    actions = [
        {"name": "wipe", "state": "SUCCESS"},
        {"name": "write", "state": "FAILED", "message": "the disk is too small"},
    ]
    conditions = [
        {"type": "Succeeded", "status": "False", "reason": "ActionFailed", "message": "write failed"},
        {"type": "BootJobComplete", "status": "True"},
        {"type": "BootJobFailed", "status": "False"},
    ]
    text = explain(workflow(state="FAILED", tasks=[{"actions": actions}], conditions=conditions), [], NOW).text()
    assert text.splitlines() == [
        "Workflow site/w: FAILED",
        "  action 2 of 2, write, is FAILED: the disk is too small",
        "  Succeeded is False: ActionFailed: write failed",
    ]


def test_waiting_reason_and_progress() -> None:
    obj = workflow(
        state="RUNNING",
        conditions=[{"type": "Succeeded", "status": "Unknown", "reason": "AgentNotSeen", "message": "waits"}],
    )
    obj["metadata"]["annotations"] = {"ironbell.dev/progress": '{"percent": 41.5, "bytesPerSecond": 120000000}'}
    lines = explain(obj, [], NOW).lines
    assert "Succeeded is Unknown: AgentNotSeen: waits" in lines
    assert "progress: 41.5 %, 120 MB/s" in lines


def test_damaged_progress_is_left_out() -> None:
    obj = workflow(state="RUNNING")
    obj["metadata"]["annotations"] = {"ironbell.dev/progress": "{"}
    assert explain(obj, [], NOW).lines == ()


def test_events_of_this_object_only_in_order_with_age() -> None:
    events = [
        event("w", "Second", version="10"),
        event("w", "First", version="9", type="Warning", count=3),
        event("w", "OfAnEarlierOne", uid="u-0"),
        event("other", "NotOurs"),
    ]
    assert explain(workflow(), events, NOW).events == (
        "   30s ago  ! First: about First (3 times)",
        "   30s ago  Second: about Second",
    )


def test_object_that_is_being_deleted_names_its_finalizers() -> None:
    obj = workflow(state="RUNNING")
    obj["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["ironbell.dev/workflow-cleanup"]}
    assert "ironbell.dev/workflow-cleanup" in explain(obj, [], NOW).text()


def test_a_machine_that_does_not_exist_has_no_power_state() -> None:
    missing = {"kind": "Machine", "metadata": {"name": "m", "namespace": "x"}, "status": {"state": "does not exist"}}
    assert explain(missing, [], NOW).state == "does not exist"
    there = {"kind": "Machine", "metadata": {"name": "m", "namespace": "x"}, "status": {"powerState": "on"}}
    assert explain(there, [], NOW).state == "power on"


def test_a_machine_of_a_cluster_has_a_phase_and_says_its_group_where_asked() -> None:
    conditions = [
        {"type": "Ready", "status": "False", "reason": "NotReady", "message": "* A:\n  * b"},
        {"type": "Updating", "status": "False", "reason": "NotUpdating"},
        {"type": "Paused", "status": "True", "reason": "Paused"},
    ]
    metadata = {"name": "m", "namespace": "x"}
    status = {"phase": "Provisioning", "conditions": conditions}
    obj = {"kind": "Machine", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": metadata, "status": status}
    assert explain(obj, [], NOW, with_group=True).text().splitlines() == [
        "Machine.cluster.x-k8s.io x/m: Provisioning",
        "  Ready is False: NotReady: A: b",
        "  Paused is True: Paused",
    ]
    assert explain({**obj, "status": {}}, [], NOW).state == "waits"

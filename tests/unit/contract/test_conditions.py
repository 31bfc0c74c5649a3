"""Conditions of both sets: what they add up to, and what is said of it (compared with upstream in tests/compat)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.meta import Condition
from ironbell.api.unstructured import dynamic_kind
from ironbell.contract.conditions import Fallback, Owned, Reasons, aggregate, conditions_of, mirror, owned
from ironbell.contract.conditions import set_condition as set_new
from ironbell.contract.conditions import summary as summed
from ironbell.contract.conditions.legacy import (
    legacy_aggregate,
    legacy_conditions,
    legacy_false,
    legacy_mirror,
    legacy_summary,
    legacy_true,
    set_legacy,
    without_legacy,
)
from ironbell.contract.conditions.merge import Priority, Sourced
from ironbell.contract.conditions.mirror import ready_fallback

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
OLD = "2025-01-01T00:00:00Z"
SERVER = dynamic_kind("infrastructure.cluster.x-k8s.io", "v1beta2", "Server", "servers")


def cond(name: str, status: str, message: str = "", reason: str = "R", since: str | None = OLD) -> Condition:
    return Condition(type=name, status=status, reason=reason, message=message, last_transition_time=since)


def ready(kind: str, name: str, status: str, message: str = "", *, control_plane: bool = False) -> Owned:
    return Owned(kind, name, [cond("Ready", status, message)], control_plane)


def test_a_summary_tells_what_is_wrong_in_the_order_of_its_types() -> None:
    conditions = [
        cond("NodeHealthy", "Unknown", "no Node yet"),
        cond("Deleting", "True", "* Pod a: x\n* Pod b: y"),
        cond("InfrastructureReady", "False", reason="NotReady"),
        cond("Fine", "True", "all is well"),
    ]
    types = ["Deleting", "BootstrapConfigReady", "InfrastructureReady", "NodeHealthy", "Fine", "Gate"]
    made = summed(conditions, "Ready", types, negative=["Deleting"], ignore_if_missing=["Gate"])
    assert (made.type, made.status, made.reason) == ("Ready", "False", "IssuesReported")
    assert made.message.split("\n") == [
        "* Deleting:",
        "  * Pod a: x",
        "  * Pod b: y",
        "* BootstrapConfigReady: Condition not yet reported",
        "* InfrastructureReady: NotReady",
        "* NodeHealthy: no Node yet",
    ]


def test_a_good_summary_tells_only_what_has_something_to_say() -> None:
    made = summed([cond("A", "True", "up since Monday"), cond("B", "True")], "Ready", ["A", "B"])
    assert (made.status, made.reason, made.message) == ("True", "InfoReported", "* A: up since Monday")


def test_a_summary_with_an_override_its_own_reasons_priority_and_lines() -> None:
    reasons = Reasons("NotAvailable", "AvailableUnknown", "Available")
    conditions = [cond("A", "True"), cond("B", "False", "later")]
    calm = summed(conditions, "Available", ["A", "B"], overrides=[cond("B", "Unknown", "soon")], reason=reasons)
    assert (calm.status, calm.reason, calm.message) == ("Unknown", "AvailableUnknown", "* B: soon")

    def first(issues: list[Sourced], unknown: list[Sourced], fine: list[Sourced]) -> str:
        return [*issues, *unknown, *fine][0].condition.type

    made = summed(
        conditions,
        "Available",
        ["A", "B"],
        reason=first,  # type: ignore[arg-type]
        priority=lambda condition: Priority.UNKNOWN if condition.type == "B" else Priority.INFO,
        transform=lambda lines: [line.upper() for line in lines],
    )
    assert (made.status, made.reason, made.message) == ("Unknown", "B", "* B: LATER")


def test_a_summary_of_nothing_is_a_defect() -> None:
    with pytest.raises(ValueError, match="Ready"):
        summed([], "Ready", ["A"], ignore_if_missing=["A"])
    with pytest.raises(ValueError, match="Ready"):
        aggregate([], "Ready")


def test_an_aggregate_groups_objects_by_what_they_say() -> None:
    objects = [
        *(ready("Machine", f"w{number}", "False", "disk is full") for number in range(5)),
        ready("Machine", "w8", "Unknown", "no Node yet"),
        ready("Machine", "cp2", "False", "etcd is down", control_plane=True),
        ready("Machine", "w9", "True", "fine"),
        Owned("MachineSet", "ms", []),
        ready("MachineSet", "ms2", "False", "* A: x"),
    ]
    made = aggregate(objects, "Ready", target="MachinesReady", reason=Reasons("NotReady", "ReadyUnknown", "Ready"))
    assert (made.type, made.status, made.reason) == ("MachinesReady", "False", "NotReady")
    assert made.message.split("\n") == [
        "* Machine cp2: etcd is down",
        "* Machines w0, w1, w2, ... (2 more): disk is full",
        "* Machine w8: no Node yet",
        "And 1 MachineSet with other issues",
        "And 1 MachineSet with status unknown",
    ]


def test_a_negative_aggregate_is_true_when_something_is_wrong() -> None:
    objects = [Owned("Machine", "a", [cond("Deleting", "True", "going")]), Owned("Machine", "b", [])]
    assert aggregate(objects, "Deleting", negative=True).status == "True"
    assert aggregate(objects, "Deleting", negative=True, positive_target=True).status == "False"


def test_a_mirror_copies_or_falls_back() -> None:
    copied = mirror([cond("Ready", "False", "no power")], "Ready", target="InfrastructureReady")
    assert copied == cond("InfrastructureReady", "False", "no power")
    assert mirror([], "Ready").message == "Condition Ready not yet reported"
    fallback = ready_fallback(False, "Server", "status.initialization.provisioned", reasons=("Ready", "NotReady"))
    assert fallback == Fallback("False", "NotReady", "Server status.initialization.provisioned is false")
    assert mirror([], "Ready", target="InfrastructureReady", fallback=fallback).status == "False"


def test_conditions_stand_in_their_order_and_keep_their_times() -> None:
    held = [cond("NodeHealthy", "True"), cond("Deleting", "False")]
    held = set_new(held, cond("Ready", "True", since=None), now=NOW, generation=2)
    held = set_new(held, cond("MyGate", "True", since="2025-06-01T00:00:00Z"), now=NOW, generation=2)
    held = set_new(held, cond("NodeHealthy", "True", "changed", since=None), now=NOW, generation=2)
    assert [(c.type, c.last_transition_time, c.observed_generation) for c in held] == [
        ("Ready", "2026-01-02T03:04:05Z", 2),
        ("NodeHealthy", OLD, 2),
        ("MyGate", "2025-06-01T00:00:00Z", 2),
        ("Deleting", OLD, 0),
    ]
    assert set_new(held, held[0], now=NOW, generation=2) == held


def test_conditions_of_providers_are_read_from_where_they_are() -> None:
    new = {"type": "Ready", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": OLD}
    old = {"type": "Ready", "status": "False", "severity": "Error", "reason": "Down"}
    bad = [{"type": "X", "status": "perhaps"}, {"status": "True"}, "text"]
    both = SERVER.convert({"status": {"conditions": [old], "v1beta2": {"conditions": [new, *bad]}}})
    assert [(c.status, c.reason) for c in conditions_of(both)] == [("True", "Up")]
    assert [(c.status, c.severity) for c in legacy_conditions(both)] == [("False", "Error")]
    moved = SERVER.convert(
        {"status": {"conditions": [{**new, "reason": ""}], "deprecated": {"v1beta1": {"conditions": [old]}}}}
    )
    assert [(c.status, c.reason) for c in conditions_of(moved)] == [("True", "NoReasonReported")]
    assert [c.reason for c in legacy_conditions(moved)] == ["Down"]
    nothing = SERVER.convert({})
    assert (list(conditions_of(nothing)), list(legacy_conditions(nothing))) == ([], [])


def test_a_control_plane_machine_is_told_by_its_label() -> None:
    machine = MACHINE.convert(
        {
            "metadata": {"name": "m", "labels": {"cluster.x-k8s.io/control-plane": ""}},
            "status": {
                "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}],
                "deprecated": {"v1beta1": {"conditions": [{"type": "Ready", "status": "True"}]}},
            },
        }
    )
    source = owned(MACHINE, machine)
    assert (source.kind, source.name, source.is_control_plane_machine) == ("Machine", "m", True)
    assert [c.type for c in source.conditions] == ["Ready"]
    assert [c.type for c in legacy_conditions(machine)] == ["Ready"]


def test_a_legacy_summary_counts_steps_and_takes_the_worst() -> None:
    conditions = [
        legacy_true("A"),
        legacy_false("B", "Slow", "Info", "still"),
        legacy_false("C", "Dead", "Error", "gone"),
    ]
    made = legacy_summary(conditions, types=["A", "B", "C"], step_counter=True)
    assert made == legacy_false("Ready", "Dead", "Error", "1 of 3 completed")
    assert legacy_summary(conditions, types=["A", "B"]) == legacy_false("Ready", "Slow", "Info", "still")
    assert legacy_summary([legacy_true("A")]) == legacy_true("Ready")
    assert legacy_summary([]) is None
    assert legacy_summary([legacy_false("Bad", "", "")], negative=["Bad"]) == legacy_true("Ready")


def test_a_legacy_condition_changes_its_time_with_anything_in_it() -> None:
    held = [LegacyCondition(type="Z", status="False", severity="Info", reason="R", last_transition_time=OLD)]
    same = set_legacy(held, legacy_false("Z", "R", "Info"), now=NOW)
    assert same == held
    changed = set_legacy(held, legacy_false("Z", "R", "Info", "more"), now=NOW)
    assert changed[0].last_transition_time == "2026-01-02T03:04:05Z"
    assert [c.type for c in set_legacy(changed, legacy_true("Ready"), now=NOW)] == ["Ready", "Z"]
    assert set_legacy(held, None, now=NOW) == held
    assert without_legacy(held, "Z") == []


def test_a_legacy_mirror_copies_ready_or_falls_back() -> None:
    source = [legacy_false("Ready", "Off", "Warning", "no power")]
    assert legacy_mirror(source, "InfrastructureReady") == legacy_false(
        "InfrastructureReady", "Off", "Warning", "no power"
    )
    assert legacy_mirror([], "X") is None
    assert legacy_mirror([], "X", fallback=legacy_true("")) == legacy_true("X")
    assert legacy_aggregate([], "X") is None

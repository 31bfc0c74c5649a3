"""A node's health in one word."""

from __future__ import annotations

import pytest

from ironbell.api.core.node import NodeCondition
from ironbell.controllers.capi.machine.node import health, is_unreachable, legacy_health, readiness
from ironbell.workload.queries import NodeView

PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def node(ready: str = "True", pressure: str = "False", *, message: str = "", left_out: str = "") -> NodeView:
    items = [NodeCondition(type="Ready", status=ready, message=message, last_transition_time="2026-01-01T00:00:00Z")]
    items += [NodeCondition(type=kind, status=pressure, message=message) for kind in PRESSURES]
    return NodeView("n", conditions=tuple(item for item in items if item.type != left_out))


@pytest.mark.parametrize(
    ("view", "status", "reason", "message"),
    [
        (node(), "True", "NodeHealthy", ""),
        (node("False", message="no CNI"), "False", "NodeNotHealthy", "* Node.Ready: no CNI"),
        (node("False"), "False", "NodeNotHealthy", "* Node.Ready: Condition is False"),
        (node("Unknown"), "Unknown", "NodeHealthyUnknown", "* Node.Ready: Condition is Unknown"),
        (
            node("Unknown", "Unknown", message="Kubelet stopped"),
            "Unknown", "NodeHealthyUnknown", "* Node.AllConditions: Kubelet stopped",
        ),
        (
            node("True", "True", message="full", left_out="PIDPressure"),
            "False", "NodeNotHealthy", "* Node.AllConditions: full",
        ),
        (
            node(left_out="Ready"),
            "Unknown", "NodeHealthyUnknown", "* Node.Ready: Condition not yet reported",
        ),
    ],
)  # fmt: skip
def test_health(view: NodeView, status: str, reason: str, message: str) -> None:
    conditions = health(view)
    assert (conditions.status, conditions.reason, conditions.message) == (status, reason, message)


@pytest.mark.parametrize(
    ("view", "status", "reason", "message"),
    [
        (node(message="fine"), "True", "NodeReady", ""),
        (node("False", message="no CNI"), "False", "NodeNotReady", "* Node.Ready: no CNI"),
        (node("Unknown"), "Unknown", "NodeReadyUnknown", ""),
        (node(left_out="Ready"), "Unknown", "NodeReadyUnknown", "* Node.Ready: Condition not yet reported"),
    ],
)
def test_readiness(view: NodeView, status: str, reason: str, message: str) -> None:
    conditions = readiness(view)
    assert (conditions.status, conditions.reason, conditions.message) == (status, reason, message)


def test_readiness_keeps_the_nodes_own_transition_time() -> None:
    assert readiness(node()).since == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (node(), ("True", "")),
        (node("False"), ("False", "Node condition Ready is False")),
        (node("Unknown"), ("True", "Node condition Ready is Unknown")),
        (node("True", "True"), ("False", ". ".join(f"Node condition {kind} is True" for kind in PRESSURES))),
    ],
)
def test_legacy_health(view: NodeView, expected: tuple[str, str]) -> None:
    assert legacy_health(view) == expected


def test_legacy_health_is_unknown_only_if_all_are() -> None:
    assert legacy_health(node("Unknown", "Unknown"))[0] == "Unknown"


def test_unreachable() -> None:
    assert is_unreachable(node("Unknown"))
    assert not is_unreachable(node("False"))
    assert not is_unreachable(node(left_out="Ready"))

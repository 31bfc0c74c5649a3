"""A Node's health in one word, for the conditions of its Machine. Pure.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_status.go (summarizeNodeConditions),
machine_controller_noderef.go (summarizeNodeV1beta1Conditions).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ironbell.controllers.capi.machine.names import Reason
from ironbell.workload.queries import NodeView

READY: Final = "Ready"
_GOOD: Final = {READY: "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
"""Conditions that count, and the status that is as it should be."""
_NOT_REPORTED: Final = "Condition not yet reported"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition without its type."""

    status: str
    reason: str
    message: str = ""
    since: str | None = None


def readiness(node: NodeView) -> Verdict:
    """What the Node says of being ready, with its own transition time."""
    ready = node.condition(READY)
    if ready is None:
        return Verdict("Unknown", Reason.NODE_READY_UNKNOWN, f"* Node.Ready: {_NOT_REPORTED}")
    reasons = {"True": Reason.NODE_READY, "False": Reason.NODE_NOT_READY}
    message = f"* Node.Ready: {ready.message}" if ready.status != "True" and ready.message else ""
    reason = reasons.get(ready.status, Reason.NODE_READY_UNKNOWN)
    return Verdict(ready.status, reason, message, ready.last_transition_time)


def health(node: NodeView) -> Verdict:
    """All conditions that count, taken together."""
    bad = list(_bad(node))
    lines = [f"* Node.{kind}: {message}" for kind, _, message in bad]
    reported = [message for _, _, message in bad if message != _NOT_REPORTED]
    if len(reported) > 1 and len(set(reported)) == 1:
        lines = [f"* Node.AllConditions: {reported[0]}"]
    message = "\n".join(lines)
    if any(status not in ("Unknown", "") for _, status, _ in bad):
        return Verdict("False", Reason.NODE_NOT_HEALTHY, message)
    if bad:
        return Verdict("Unknown", Reason.NODE_HEALTHY_UNKNOWN, message)
    return Verdict("True", Reason.NODE_HEALTHY)


def legacy_health(node: NodeView) -> tuple[str, str]:
    """The same as the older conditions tell it: status and message. Unknown only if all four are."""
    bad = [(kind, status) for kind, status, _ in _bad(node) if status]
    message = ". ".join(f"Node condition {kind} is {status}" for kind, status in bad)
    if any(status != "Unknown" for _, status in bad):
        return "False", message
    return ("True" if len(bad) < len(_GOOD) else "Unknown"), message


def is_unreachable(node: NodeView) -> bool:
    """Whether nothing is heard of the node's kubelet: nobody ends its pods or detaches its volumes."""
    ready = node.condition(READY)
    return ready is not None and ready.status == "Unknown"


def _bad(node: NodeView) -> Iterator[tuple[str, str, str]]:
    """Type, status (empty if not reported) and message of what is not as it should be."""
    for kind, good in _GOOD.items():
        condition = node.condition(kind)
        if condition is None:
            yield kind, "", _NOT_REPORTED
        elif condition.status != good:
            yield kind, condition.status, condition.message or f"Condition is {condition.status}"

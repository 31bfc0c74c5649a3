"""Conditions of the provider's objects, and those that request a Machine's replacement from its owner. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.machine import Machine
from ironbell.api.meta import Condition, to_builtin
from ironbell.contract.conditions.legacy import WARNING, legacy_conditions, legacy_false, set_legacy
from ironbell.kube.conditions import set_condition
from ironbell.kube.decision import MergePatch, patch_status

READY: Final = "Ready"
OWNER_REMEDIATED: Final = "OwnerRemediated"
HEALTH_CHECK_SUCCEEDED: Final = "HealthCheckSucceeded"


def new_condition(type_: str, status: bool | None, reason: str, message: str = "", *, generation: int = 0) -> Condition:
    """Return a condition. A status of None means Unknown."""
    text = {True: "True", False: "False", None: "Unknown"}[status]
    return Condition(type=type_, status=text, reason=reason, message=message, observed_generation=generation)


def with_all(conditions: Sequence[Condition], updates: Sequence[Condition], now: datetime) -> list[Condition]:
    """Return the conditions with the updates applied."""
    updated = list(conditions)
    for condition in updates:
        updated = set_condition(updated, condition, now=now)
    return updated


def request_remediation(machine: Machine, now: datetime, *failed: Condition) -> MergePatch:
    """Return the write that requests a Machine's replacement from its owner; the conditions give the reason."""
    request = Condition(
        type=OWNER_REMEDIATED, status="False", reason="WaitingForRemediation", message="Waiting for remediation"
    )
    older = legacy_conditions(machine)
    for condition in (*failed, request):
        older = set_legacy(older, legacy_false(condition.type, condition.reason, WARNING), now=now)
    status = {
        "conditions": to_builtin(with_all(machine.status.conditions, [*failed, request], now)),
        "deprecated": {"v1beta1": {"conditions": to_builtin(older)}},
    }
    return patch_status(MACHINE, machine, status)

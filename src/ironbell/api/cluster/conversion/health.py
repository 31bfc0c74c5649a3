"""Both versions of health checks: of MachineHealthCheck, and of those in topologies and classes.

Source: kubernetes-sigs/cluster-api: api/core/v1beta1/conversion.go, core/webhooks/conversion/machinehealthcheck.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.conversion.paths import MISSING, Body, objects, path, put, take
from ironbell.api.conversion.rules import (
    Restored,
    Rule,
    Target,
    TemplateReference,
    from_seconds,
    move,
    seconds,
    to_seconds,
)
from ironbell.api.conversion.status import Status


@dataclass(frozen=True, slots=True)
class _Conditions:
    """Conditions with the time after which they make a Machine unhealthy; the older version always has one."""

    old: tuple[str, ...]
    new: tuple[str, ...]

    def up(self, body: Body, kept: Body | None) -> None:
        conditions = take(body, self.old)
        if conditions is not MISSING and conditions:
            put(body, self.new, [_newer(condition) for condition in objects(conditions)])

    def down(self, body: Body, target: Target) -> None:
        conditions = take(body, self.new)
        if conditions is not MISSING and conditions:
            put(body, self.old, [_older(condition) for condition in objects(conditions)])


def _newer(condition: Body) -> Body:
    converted: dict[str, Any] = {name: value for name, value in condition.items() if name != "timeout"}
    return {**converted, "timeoutSeconds": to_seconds(condition.get("timeout") or "0s")}


def _older(condition: Body) -> Body:
    converted: dict[str, Any] = {name: value for name, value in condition.items() if name != "timeoutSeconds"}
    return {**converted, "timeout": from_seconds(condition.get("timeoutSeconds") or 0)}


def checks(old: str, new: str) -> tuple[Rule, ...]:
    """Checks and remediation, with the beginnings of the paths in both versions."""
    return (
        _Conditions(path(f"{old}unhealthyConditions"), path(f"{new}checks.unhealthyNodeConditions")),
        _Conditions(path(f"{old}unhealthyMachineConditions"), path(f"{new}checks.unhealthyMachineConditions")),
        seconds(f"{old}nodeStartupTimeout", f"{new}checks.nodeStartupTimeoutSeconds"),
        move(f"{old}maxUnhealthy", f"{new}remediation.triggerIf.unhealthyLessThanOrEqualTo"),
        move(f"{old}unhealthyRange", f"{new}remediation.triggerIf.unhealthyInRange"),
        TemplateReference(path(f"{old}remediationTemplate"), path(f"{new}remediation.templateRef")),
    )


_COUNTERS: Final = ("expectedMachines", "currentHealthy", "remediationsAllowed")

MACHINE_HEALTH_CHECK: Final[tuple[Rule, ...]] = (
    *checks("spec.", "spec."),
    *(Restored(("status", name), ("status", name), 0) for name in _COUNTERS),
    Status(),
)

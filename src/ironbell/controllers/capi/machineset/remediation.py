"""The decision which unhealthy Machines of a MachineSet are replaced now, and the conditions of the others.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller.go (reconcileUnhealthyMachines).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ironbell.api.cluster.machine import Machine
from ironbell.controllers.capi.machines import is_false, is_to_be_remediated, is_true
from ironbell.controllers.capi.machineset.order import to_remediate
from ironbell.kube.conditions import find_condition
from ironbell.kube.finalizers import is_deleting

CANNOT_BE_REMEDIATED: Final = "CannotBeRemediated"
DEFERRED: Final = "RemediationDeferred"
MACHINE_DELETING: Final = "MachineDeleting"

_PENDING_ROLLOUT: Final = "Machine won't be remediated because it is pending removal due to rollout"
_DELETING: Final = "Machine is deleting"


@dataclass(frozen=True, slots=True)
class RemediationDecision:
    """The decision about one unhealthy Machine."""

    machine: Machine
    reason: str
    """Reason of OwnerRemediated; empty if the Machine is healthy again and the condition is removed."""
    message: str = ""
    legacy_message: str = ""

    @property
    def deletes(self) -> bool:
        return self.reason == MACHINE_DELETING


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of remediation."""

    outdated: bool = False
    """Whether the MachineSet belongs to a MachineDeployment and is not its current one."""
    max_in_flight: int | None = None
    max_in_flight_text: str = ""


def remediation_decisions(
    machines: Sequence[Machine], rules: Rules, preflight: Sequence[str]
) -> list[RemediationDecision]:
    """Decide about the Machines that are or were unhealthy.

    Args:
        machines: all Machines of the MachineSet.
        rules: the limits of remediation.
        preflight: the checks that fail now.
    """
    alive = [machine for machine in machines if not is_deleting(machine)]
    healthy_again = [m for m in alive if is_true(m, "HealthCheckSucceeded") and is_false(m, "OwnerRemediated")]
    recovered = [RemediationDecision(machine, "") for machine in healthy_again]
    waiting = [machine for machine in alive if is_to_be_remediated(machine)]
    if not waiting:
        return recovered
    if rules.outdated:
        return recovered + [RemediationDecision(machine, CANNOT_BE_REMEDIATED, _PENDING_ROLLOUT) for machine in waiting]
    ordered = to_remediate(waiting)
    room = len(ordered)
    if rules.max_in_flight is not None:
        room = max(rules.max_in_flight - sum(_in_flight(machine) for machine in machines), 0)
    now, later = ordered[:room], ordered[room:]
    full = (
        "Waiting because there are already too many remediations in progress"
        f" (spec.strategy.remediation.maxInFlight is {rules.max_in_flight_text})"
    )
    deferred = [RemediationDecision(machine, DEFERRED, full) for machine in later]
    if preflight:
        message, legacy = "\n".join(f"* {text}" for text in preflight), "; ".join(preflight)
        return recovered + deferred + [RemediationDecision(machine, DEFERRED, message, legacy) for machine in now]
    return recovered + deferred + [RemediationDecision(machine, MACHINE_DELETING, _DELETING) for machine in now]


def _in_flight(machine: Machine) -> bool:
    """Return whether a Machine is being deleted to be replaced."""
    condition = find_condition(machine.status.conditions, "OwnerRemediated")
    return (
        is_deleting(machine)
        and condition is not None
        and (condition.status, condition.reason) == ("False", MACHINE_DELETING)
    )

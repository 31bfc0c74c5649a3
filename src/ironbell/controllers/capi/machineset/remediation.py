"""The decision which unhealthy Machines of a MachineSet are replaced now, and the conditions of the others.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller.go (reconcileUnhealthyMachines).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import WARNING, legacy_false, legacy_true
from ironbell.controllers.capi.machinedeployment.limits import NoIntOrPercentError, scaled
from ironbell.controllers.capi.machines import is_false, is_to_be_remediated, is_true
from ironbell.controllers.capi.machineset.observed import Observed
from ironbell.controllers.capi.machineset.order import to_remediate
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Action, MergePatch, delete
from ironbell.kube.finalizers import is_deleting

OWNER_REMEDIATED: Final = "OwnerRemediated"
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


def remediation(observed: Observed, preflight: Sequence[str]) -> list[RemediationDecision]:
    """Decide about the Machines that are or were unhealthy; `preflight` are the checks that fail now."""
    machines = observed.machines
    alive = [machine for machine in machines if not is_deleting(machine)]
    healthy_again = [m for m in alive if is_true(m, "HealthCheckSucceeded") and is_false(m, OWNER_REMEDIATED)]
    recovered = [RemediationDecision(machine, "") for machine in healthy_again]
    waiting = [machine for machine in alive if is_to_be_remediated(machine)]
    if not waiting:
        return recovered
    owner = observed.owner if observed.is_owned else None
    if owner is not None and not observed.is_current:
        return recovered + [RemediationDecision(machine, CANNOT_BE_REMEDIATED, _PENDING_ROLLOUT) for machine in waiting]
    ordered = to_remediate(waiting)
    limit = _max_in_flight(owner) if owner is not None else None
    room = len(ordered) if limit is None else max(limit - sum(_in_flight(machine) for machine in machines), 0)
    now, later = ordered[:room], ordered[room:]
    full = (
        "Waiting because there are already too many remediations in progress"
        f" (spec.strategy.remediation.maxInFlight is {owner.spec.remediation.max_in_flight if owner else None})"
    )
    deferred = [RemediationDecision(machine, DEFERRED, full) for machine in later]
    if preflight:
        message, legacy = "\n".join(f"* {text}" for text in preflight), "; ".join(preflight)
        return recovered + deferred + [RemediationDecision(machine, DEFERRED, message, legacy) for machine in now]
    return recovered + deferred + [RemediationDecision(machine, MACHINE_DELETING, _DELETING) for machine in now]


def remediated(decisions: Sequence[RemediationDecision], now: datetime) -> list[Action | None]:
    """The actions that report the decisions on the Machines, and delete Machines to be replaced."""
    doomed = [delete(MACHINE, decision.machine) for decision in decisions if decision.deletes]
    return [*(_report(decision, now) for decision in decisions), *doomed]


def _report(decision: RemediationDecision, now: datetime) -> MergePatch | None:
    draft = ConditionsDraft(MACHINE, decision.machine, now)
    if not decision.reason:
        draft.drop_both(OWNER_REMEDIATED)
        return draft.status_write()
    draft.set(OWNER_REMEDIATED, "False", decision.reason, decision.message)
    if decision.deletes:
        draft.put_legacy(legacy_true(OWNER_REMEDIATED))
    elif decision.legacy_message:
        draft.put_legacy(legacy_false(OWNER_REMEDIATED, "WaitingForRemediation", WARNING, decision.legacy_message))
    return draft.status_write()


def _max_in_flight(owner: MachineDeployment) -> int | None:
    """The limit of remediations at a time; None for no limit."""
    limit, replicas = owner.spec.remediation.max_in_flight, owner.spec.replicas
    try:
        return None if limit is None else scaled(limit, 1 if replicas is None else replicas, round_up=True)
    except NoIntOrPercentError:
        return 0


def _in_flight(machine: Machine) -> bool:
    """Return whether a Machine is being deleted to be replaced."""
    condition = find_condition(machine.status.conditions, OWNER_REMEDIATED)
    return (
        is_deleting(machine)
        and condition is not None
        and (condition.status, condition.reason) == ("False", MACHINE_DELETING)
    )

"""The status of a MachineDeployment: sums over its MachineSets, phase, both sets of conditions.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinedeployment/machinedeployment_status.go,
machinedeployment_sync.go (syncDeploymentStatus).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from ironbell.api.cluster import MACHINE_SET
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machinedeployment import MachineDeployment, MachineDeploymentPhase
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.meta import Condition
from ironbell.contract.clusters.machine_causes import cause_lines
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import (
    INFO,
    WARNING,
    legacy_conditions,
    legacy_false,
    legacy_mirror,
    legacy_true,
)
from ironbell.contract.selectors import text
from ironbell.controllers.capi.machinedeployment.limits import ROLLING_UPDATE, Limits
from ironbell.controllers.capi.machinedeployment.observed import Observed
from ironbell.controllers.capi.machines import joined_versions, stale_line, unhealthy_message
from ironbell.controllers.capi.rollup import (
    machines_ready,
    machines_up_to_date,
    missing_templates,
    remediating,
    scaling_down,
)
from ironbell.controllers.capi.status import paused
from ironbell.kube.conditions import find_condition
from ironbell.kube.draft import replace
from ironbell.kube.finalizers import is_deleting

_OWNER_SUFFIX = " by MachineDeployment/MachineSet"


def total(sets: Iterable[MachineSet], count: Callable[[MachineSet], int | None]) -> int | None:
    """The sum of a counter; None if no MachineSet has it."""
    known = [value for value in map(count, sets) if value is not None]
    return sum(known) if known else None


def report(
    draft: ConditionsDraft[MachineDeployment], observed: Observed, limits: Limits, new: MachineSet | None
) -> None:
    """Bring the status up to date."""
    sets, now = observed.sets, draft.now
    available = total(sets, lambda s: s.status.available_replicas)
    draft.put(
        paused(draft, observed.cluster),
        _available(observed, limits, available),
        _rolling_out(observed),
        _scaling_up(observed),
        _no_replicas(observed, "ScalingDown")
        or scaling_down(observed.machines, _current(observed), _desired(observed), now),
        machines_ready(observed.machines, "MachinesReady"),
        machines_up_to_date(observed.machines, "MachinesUpToDate", now),
        remediating(observed.machines, unhealthy_message(observed.machines, _OWNER_SUFFIX)),
        _deleting(observed, now),
    )
    draft.status = replace(
        draft.status,
        selector=text(draft.obj.spec.selector),
        replicas=total(sets, lambda s: s.status.replicas),
        ready_replicas=total(sets, lambda s: s.status.ready_replicas),
        available_replicas=available,
        up_to_date_replicas=total(sets, lambda s: s.status.up_to_date_replicas),
        versions=joined_versions(version for s in sets for version in s.status.versions),
        phase=_phase(observed),
    )
    draft.set_older(
        updated_replicas=(new.status.replicas or 0) if new is not None else 0,
        ready_replicas=draft.status.ready_replicas or 0,
        available_replicas=available or 0,
        unavailable_replicas=max(sum(s.spec.replicas or 0 for s in sets) - (available or 0), 0),
    )
    draft.put_legacy(*_legacy(limits, new, available or 0))
    draft.summarize_legacy("Available")
    draft.observe_generation()


def is_complete(observed: Observed, replicas: int) -> bool:
    """Return whether all Machines match the template and are available."""
    counters = ("replicas", "up_to_date_replicas", "available_replicas")
    return all(
        (total(observed.sets, lambda s, name=name: getattr(s.status, name)) or 0) == replicas  # type: ignore[misc]
        for name in counters
    )


def _current(observed: Observed) -> int:
    return total(observed.sets, lambda s: s.status.replicas) or 0


def _desired(observed: Observed) -> int:
    return 0 if is_deleting(observed.deployment) else observed.deployment.spec.replicas or 0


def _phase(observed: Observed) -> str:
    if observed.deployment.spec.replicas is None:
        return MachineDeploymentPhase.UNKNOWN.value
    if is_deleting(observed.deployment):
        return MachineDeploymentPhase.SCALING_DOWN.value
    current, desired = _current(observed), _desired(observed)
    if current == desired:
        return MachineDeploymentPhase.RUNNING.value
    return (MachineDeploymentPhase.SCALING_UP if current < desired else MachineDeploymentPhase.SCALING_DOWN).value


def _available(observed: Observed, limits: Limits, available: int | None) -> Condition:
    deployment = observed.deployment
    if deployment.spec.replicas is None:
        message = "Waiting for spec.replicas set"
        return Condition(type="Available", status="Unknown", reason="WaitingForReplicasSet", message=message)
    if available is None:
        message = "Waiting for status.availableReplicas set"
        return Condition(type="Available", status="Unknown", reason="WaitingForAvailableReplicasSet", message=message)
    needed = limits.replicas - limits.max_unavailable
    if available >= needed:
        return Condition(type="Available", status="True", reason="Available", message="")
    message = f"{available} available replicas, at least {needed} required"
    if limits.strategy == ROLLING_UPDATE:
        rolling = deployment.spec.rollout.strategy.rolling_update
        message += (
            f" (spec.strategy.rollout.maxUnavailable is {rolling.max_unavailable or 0}, spec.replicas is"
            f" {limits.replicas})"
        )
    obstacles = [f"* {missing}"] if (missing := _missing(observed)) else []
    message = "\n".join([message, *obstacles, *cause_lines(observed.machines)])
    if is_deleting(deployment):
        message = "Deletion in progress"
    return Condition(type="Available", status="False", reason="NotAvailable", message=message)


def _rolling_out(observed: Observed) -> Condition:
    conditions = [find_condition(machine.status.conditions, "UpToDate") for machine in observed.machines]
    outdated = [condition for condition in conditions if condition is not None and condition.status == "False"]
    if not outdated:
        return Condition(type="RollingOut", status="False", reason="NotRollingOut", message="")
    lines = {line for condition in outdated for line in condition.message.split("\n") if condition.message}
    reasons = sorted(lines, key=lambda line: (not line.startswith("* Version"), line))
    message = "\n".join([f"Rolling out {len(outdated)} not up-to-date replicas", *reasons])
    return Condition(type="RollingOut", status="True", reason="RollingOut", message=message)


def _scaling_up(observed: Observed) -> Condition:
    if (waiting := _no_replicas(observed, "ScalingUp")) is not None:
        return waiting
    current, desired, missing = _current(observed), _desired(observed), _missing(observed)
    if current >= desired:
        message = (
            f"Scaling up would be blocked because {missing}" if missing and not is_deleting(observed.deployment) else ""
        )
        return Condition(type="ScalingUp", status="False", reason="NotScalingUp", message=message)
    message = f"Scaling up from {current} to {desired} replicas" + (f" is blocked because {missing}" if missing else "")
    return Condition(type="ScalingUp", status="True", reason="ScalingUp", message=message)


def _deleting(observed: Observed, now: datetime) -> Condition:
    if not is_deleting(observed.deployment):
        return Condition(type="Deleting", status="False", reason="NotDeleting", message="")
    machines, sets = len(observed.machines), len(observed.sets)
    message = "Deletion completed"
    if machines:
        progress = f"Deleting {machines} Machine{'' if machines == 1 else 's'}{stale_line(observed.machines, now)}"
        message = "\n".join([progress, *cause_lines(observed.machines)])
    elif sets:
        message = f"Deleting {sets} MachineSets"
    return Condition(type="Deleting", status="True", reason="Deleting", message=message)


def _no_replicas(observed: Observed, condition: str) -> Condition | None:
    if observed.deployment.spec.replicas is not None:
        return None
    message = "Waiting for spec.replicas set"
    return Condition(type=condition, status="Unknown", reason="WaitingForReplicasSet", message=message)


def _missing(observed: Observed) -> str:
    return missing_templates(observed.bootstrap, observed.infrastructure)


def _legacy(limits: Limits, new: MachineSet | None, available: int) -> list[LegacyCondition | None]:
    """Conditions of version v1beta1, except for the summary."""
    needed = limits.replicas - limits.max_unavailable
    message = f"Minimum availability requires {needed} replicas, current {available} available"
    is_enough = available >= needed
    unavailable = legacy_false("Available", "WaitingForAvailableMachines", WARNING, message)
    if new is None:
        of_set: LegacyCondition | None = legacy_false(
            "MachineSetReady", "WaitingForMachineSet", INFO, f"{MACHINE_SET.kind} not found"
        )
    else:
        fallback = legacy_false("MachineSetReady", "WaitingForMachineSet", INFO)
        of_set = legacy_mirror(legacy_conditions(new), "MachineSetReady", fallback=fallback)
    return [legacy_true("Available") if is_enough else unavailable, of_set]

"""The status of a MachineSet: counters, both sets of conditions.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller_status.go,
machineset_controller.go (reconcileV1Beta1Status).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.meta import Condition
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import ERROR, WARNING, legacy_false, legacy_true
from ironbell.contract.selectors import text
from ironbell.controllers.capi.machines import (
    has_node,
    is_true,
    is_updating,
    stale_line,
    unhealthy_message,
    versions_of,
)
from ironbell.controllers.capi.machineset.desired import labels
from ironbell.controllers.capi.machineset.observed import Observed
from ironbell.controllers.capi.machineset.scaling import Failed
from ironbell.controllers.capi.rollup import (
    legacy_machines_ready,
    machines_ready,
    machines_up_to_date,
    missing_templates,
    remediating,
    scaling_down,
)
from ironbell.controllers.capi.status import paused
from ironbell.kube.draft import replace
from ironbell.kube.finalizers import is_deleting

_OWNER_SUFFIX = " by MachineSet"


def report(
    draft: ConditionsDraft[MachineSet], observed: Observed, preflight: Sequence[str] = (), failed: Failed | None = None
) -> None:
    """Bring the status up to date.

    Args:
        draft: the MachineSet.
        observed: the input of the decision.
        preflight: checks that prevent the creation of Machines.
        failed: the last failed attempt to create a Machine.
    """
    machines, now = observed.machines, draft.now
    counted = [machine for machine in machines if not is_updating(machine)]
    ready = sum(is_true(machine, "Ready") for machine in counted)
    available = sum(is_true(machine, "Available") for machine in counted)
    draft.put(
        paused(draft, observed.cluster),
        _scaling_up(observed, [*preflight, *([failed.full_message] if failed else [])]),
        scaling_down(machines, len(machines), observed.replicas, now),
        machines_ready(machines, "MachinesReady"),
        machines_up_to_date(machines, "MachinesUpToDate", now),
        remediating(machines, unhealthy_message(machines, _OWNER_SUFFIX)),
        _deleting(observed, now),
    )
    draft.status = replace(
        draft.status,
        selector=text(draft.obj.spec.selector),
        replicas=len(machines),
        ready_replicas=ready,
        available_replicas=available,
        up_to_date_replicas=sum(is_true(machine, "UpToDate") for machine in counted),
        versions=versions_of(machines),
    )
    template = labels(draft.obj).items()
    draft.set_older(
        fully_labeled_replicas=sum(template <= machine.metadata.labels.items() for machine in machines),
        ready_replicas=sum(is_true(machine, "NodeHealthy") and has_node(machine) for machine in machines),
        available_replicas=available,
    )
    draft.put_legacy(*_legacy(observed, preflight, failed, ready))
    draft.summarize_legacy("MachinesCreated", "Resized", "MachinesReady")
    draft.observe_generation()


def _scaling_up(observed: Observed, reasons: Sequence[str]) -> Condition:
    desired, current = observed.replicas, len(observed.machines)
    missing = missing_templates(observed.bootstrap, observed.infrastructure)
    if current >= desired:
        message = f"Scaling up would be blocked because {missing}" if missing else ""
        return Condition(type="ScalingUp", status="False", reason="NotScalingUp", message=message)
    message = f"Scaling up from {current} to {desired} replicas"
    blocked = [*reasons, *([missing] if missing else [])]
    if blocked:
        message += " is blocked because:\n" + "\n".join(f"* {reason}" for reason in blocked)
    return Condition(type="ScalingUp", status="True", reason="ScalingUp", message=message)


def _deleting(observed: Observed, now: datetime) -> Condition:
    if not is_deleting(observed.machine_set):
        return Condition(type="Deleting", status="False", reason="NotDeleting", message="")
    count = len(observed.machines)
    message = f"Deleting {count} Machine{'' if count == 1 else 's'}{stale_line(observed.machines, now)}"
    message = message if count else "Deletion completed"
    return Condition(type="Deleting", status="True", reason="Deleting", message=message)


def _legacy(
    observed: Observed, preflight: Sequence[str], failed: Failed | None, ready: int
) -> list[LegacyCondition | None]:
    """Conditions of version v1beta1, except for the summary."""
    desired, current = observed.replicas, len(observed.machines)
    conditions: list[LegacyCondition | None] = []
    if current < desired:
        message = f"Scaling up MachineSet to {desired} replicas (actual {current})"
        conditions.append(legacy_false("Resized", "ScalingUp", WARNING, message))
    elif current > desired:
        message = f"Scaling down MachineSet to {desired} replicas (actual {current})"
        conditions.append(legacy_false("Resized", "ScalingDown", WARNING, message))
    elif ready == current:
        conditions.append(legacy_true("Resized"))
    if preflight:
        conditions.append(legacy_false("MachinesCreated", "PreflightCheckFailed", ERROR, "; ".join(preflight)))
    elif failed is not None:
        conditions.append(legacy_false("MachinesCreated", failed.reason, ERROR, failed.message))
    elif current >= desired:
        conditions.append(legacy_true("MachinesCreated"))
    conditions.append(legacy_machines_ready(observed.machines, "MachinesReady"))
    return conditions

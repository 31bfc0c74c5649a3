"""The status of a MachineSet: counters, both sets of conditions.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller_status.go,
machineset_controller.go (reconcileV1Beta1Status).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ironbell.api.cluster import MACHINE_SET
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.meta import Condition, to_builtin
from ironbell.contract.clusters.paused import paused_condition
from ironbell.contract.conditions.legacy import ERROR, WARNING, legacy_false, legacy_true
from ironbell.contract.selectors import text
from ironbell.controllers.capi.machines import (
    has_node,
    is_true,
    is_updating,
    stale_message,
    unhealthy_message,
    versions_of,
)
from ironbell.controllers.capi.machineset.desired import labels
from ironbell.controllers.capi.machineset.observed import Observed
from ironbell.controllers.capi.machineset.scaling import Failed
from ironbell.controllers.capi.rollup import legacy_machines_ready, machines_ready, machines_up_to_date, remediating
from ironbell.controllers.capi.status import status_patch
from ironbell.kube.decision import Fields, MergePatch
from ironbell.kube.finalizers import is_deleting

_OWNER_SUFFIX = " by MachineSet"


def status_change(
    observed: Observed, preflight: Sequence[str], now: datetime, *, failed: Failed | None = None
) -> MergePatch | None:
    """The patch that brings the status up to date; None if nothing changes.

    Args:
        observed: the input of the decision.
        preflight: checks that prevent the creation of Machines.
        now: the moment of the decision.
        failed: the last failed attempt to create a Machine.
    """
    machine_set, machines = observed.machine_set, observed.machines
    counted = [machine for machine in machines if not is_updating(machine)]
    ready = sum(is_true(machine, "Ready") for machine in counted)
    available = sum(is_true(machine, "Available") for machine in counted)
    conditions = [
        _paused(observed),
        _scaling_up(observed, [*preflight, *([failed.full_message] if failed else [])]),
        _scaling_down(observed, now),
        machines_ready(machines, "MachinesReady"),
        machines_up_to_date(machines, "MachinesUpToDate", now),
        remediating(machines, unhealthy_message(machines, _OWNER_SUFFIX)),
        _deleting(observed, now),
    ]
    changes: Fields = {
        "selector": text(machine_set.spec.selector),
        "replicas": len(machines),
        "readyReplicas": ready,
        "availableReplicas": available,
        "upToDateReplicas": sum(is_true(machine, "UpToDate") for machine in counted),
        "versions": to_builtin(versions_of(machines)),
    }
    template = labels(machine_set).items()
    deprecated: Fields = {
        "fullyLabeledReplicas": sum(template <= machine.metadata.labels.items() for machine in machines),
        "readyReplicas": sum(is_true(machine, "NodeHealthy") and has_node(machine) for machine in machines),
        "availableReplicas": available,
    }
    return status_patch(
        MACHINE_SET,
        machine_set,
        changes,
        conditions,
        legacy=_legacy(observed, preflight, failed, ready),
        summary=("MachinesCreated", "Resized", "MachinesReady"),
        deprecated=deprecated,
        now=now,
    )


def pause_change(observed: Observed, now: datetime) -> MergePatch | None:
    """The patch of the condition Paused alone; None if nothing changes."""
    return status_patch(MACHINE_SET, observed.machine_set, {}, [_paused(observed)], now=now, observe=False)


def missing_references(observed: Observed) -> str:
    """The message that templates do not exist; empty if all do."""
    externals = (observed.bootstrap, observed.infrastructure)
    kinds = [external.reference.kind for external in externals if external is not None and external.is_missing]
    return f"{' and '.join(kinds)} do{'es' if len(kinds) == 1 else ''} not exist" if kinds else ""


def _paused(observed: Observed) -> Condition:
    cluster = observed.cluster
    paused = cluster is not None and bool(cluster.spec.paused)
    return paused_condition(MACHINE_SET.kind, observed.machine_set, cluster_paused=paused)


def _scaling_up(observed: Observed, reasons: Sequence[str]) -> Condition:
    desired, current = observed.replicas, len(observed.machines)
    missing = missing_references(observed)
    if current >= desired:
        message = f"Scaling up would be blocked because {missing}" if missing else ""
        return Condition(type="ScalingUp", status="False", reason="NotScalingUp", message=message)
    message = f"Scaling up from {current} to {desired} replicas"
    blocked = [*reasons, *([missing] if missing else [])]
    if blocked:
        message += " is blocked because:\n" + "\n".join(f"* {reason}" for reason in blocked)
    return Condition(type="ScalingUp", status="True", reason="ScalingUp", message=message)


def _scaling_down(observed: Observed, now: datetime) -> Condition:
    desired, current = observed.replicas, len(observed.machines)
    if current <= desired:
        return Condition(type="ScalingDown", status="False", reason="NotScalingDown", message="")
    message = f"Scaling down from {current} to {desired} replicas{_stale(observed, now)}"
    return Condition(type="ScalingDown", status="True", reason="ScalingDown", message=message)


def _deleting(observed: Observed, now: datetime) -> Condition:
    if not is_deleting(observed.machine_set):
        return Condition(type="Deleting", status="False", reason="NotDeleting", message="")
    count = len(observed.machines)
    message = f"Deleting {count} Machine{'' if count == 1 else 's'}{_stale(observed, now)}"
    message = message if count else "Deletion completed"
    return Condition(type="Deleting", status="True", reason="Deleting", message=message)


def _stale(observed: Observed, now: datetime) -> str:
    message = stale_message(observed.machines, now)
    return f"\n* {message}" if message else ""


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

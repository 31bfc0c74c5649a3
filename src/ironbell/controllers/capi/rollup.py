"""Conditions of owners that aggregate the conditions of their dependents.

Source: kubernetes-sigs/cluster-api: core/reconcilers/*/..._status.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import Machine
from ironbell.api.meta import Condition
from ironbell.contract.clusters.external import External
from ironbell.contract.conditions import Owned, Reasons, aggregate, owned
from ironbell.contract.conditions.legacy import LegacySource, legacy_aggregate, legacy_conditions, legacy_true
from ironbell.controllers.capi.machines import counts_for_up_to_date, is_to_be_remediated, stale_line
from ironbell.kube.conditions import find_condition

NO_REPLICAS = "NoReplicas"


def machines_ready(machines: Sequence[Machine], target: str) -> Condition:
    """Condition for the readiness of Machines."""
    return _of_machines(machines, "Ready", target, Reasons("NotReady", "ReadyUnknown", "Ready"))


def machines_up_to_date(machines: Sequence[Machine], target: str, now: datetime) -> Condition:
    """Condition for whether Machines match the spec of their owner; very young Machines are left out."""
    counted = [machine for machine in machines if counts_for_up_to_date(machine, now)]
    return _of_machines(counted, "UpToDate", target, Reasons("NotUpToDate", "UpToDateUnknown", "UpToDate"))


def remediating(machines: Sequence[Machine], otherwise: str) -> Condition:
    """Condition for the replacement of unhealthy Machines; `otherwise` is the message if none is being replaced."""
    doomed = [owned(MACHINE, machine) for machine in machines if is_to_be_remediated(machine)]
    if not doomed:
        return Condition(type="Remediating", status="False", reason="NotRemediating", message=otherwise)
    message = aggregate(doomed, "OwnerRemediated", target="Remediating").message
    return Condition(type="Remediating", status="True", reason="Remediating", message=message)


def scaling_down(machines: Sequence[Machine], current: int, desired: int, now: datetime) -> Condition:
    """Condition for the deletion of surplus Machines."""
    if current <= desired:
        return Condition(type="ScalingDown", status="False", reason="NotScalingDown", message="")
    message = f"Scaling down from {current} to {desired} replicas{stale_line(machines, now)}"
    return Condition(type="ScalingDown", status="True", reason="ScalingDown", message=message)


def missing_templates(*templates: External | None) -> str:
    """The message that templates do not exist; empty if all do."""
    kinds = [template.reference.kind for template in templates if template is not None and template.is_missing]
    return f"{' and '.join(kinds)} do{'es' if len(kinds) == 1 else ''} not exist" if kinds else ""


def available(objects: Sequence[Owned], target: str) -> Condition:
    """Condition for the availability of sets of Machines."""
    reasons = Reasons("NotAvailable", "AvailableUnknown", "Available")
    return aggregate(objects, "Available", target=target, reason=reasons)


def under_way(objects: Sequence[Owned], condition: str) -> Condition:
    """Condition for an operation that is in progress in any of the objects: it is normally False."""
    if not objects:
        return Condition(type=condition, status="False", reason=f"Not{condition}", message="")
    reasons = Reasons(condition, f"{condition}Unknown", f"Not{condition}")
    return aggregate(objects, condition, negative=True, reason=reasons)


def legacy_machines_ready(machines: Sequence[Machine], target: str) -> LegacyCondition | None:
    """MachinesReady of version v1beta1."""
    if not machines:
        return legacy_true(target)
    sources = [LegacySource(MACHINE.kind, m.metadata.name, legacy_conditions(m)) for m in machines]
    return legacy_aggregate(sources, target, name_source=True)


def _of_machines(machines: Sequence[Machine], source: str, target: str, reasons: Reasons) -> Condition:
    if not machines:
        return Condition(type=target, status="True", reason=NO_REPLICAS, message="")
    # A Machine that is plainly good does not change the result, and is not reported.
    reported = [machine for machine in machines if not _is_plainly_good(machine, source)]
    if not reported:
        return Condition(type=target, status="True", reason=reasons.info, message="")
    return aggregate([owned(MACHINE, machine) for machine in reported], source, target=target, reason=reasons)


def _is_plainly_good(machine: Machine, source: str) -> bool:
    """Return whether a condition is True and has no message: then there is nothing to aggregate."""
    condition = find_condition(machine.status.conditions, source)
    return condition is not None and condition.status == "True" and not condition.message

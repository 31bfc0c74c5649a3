"""Conditions of owners that add up those of what they own.

Source: kubernetes-sigs/cluster-api: core/reconcilers/*/..._status.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import Machine
from ironbell.api.meta import Condition
from ironbell.contract.conditions import Owned, Reasons, aggregate, owned
from ironbell.contract.conditions.legacy import LegacySource, legacy_aggregate, legacy_conditions, legacy_true
from ironbell.controllers.capi.machines import counts_for_up_to_date, is_to_be_remediated
from ironbell.kube.conditions import find_condition

NO_REPLICAS = "NoReplicas"


def machines_ready(machines: Sequence[Machine], target: str) -> Condition:
    """Whether Machines are ready."""
    return _of_machines(machines, "Ready", target, Reasons("NotReady", "ReadyUnknown", "Ready"))


def machines_up_to_date(machines: Sequence[Machine], target: str, now: datetime) -> Condition:
    """Whether Machines are what their owners ask for; very young ones do not count."""
    counted = [machine for machine in machines if counts_for_up_to_date(machine, now)]
    return _of_machines(counted, "UpToDate", target, Reasons("NotUpToDate", "UpToDateUnknown", "UpToDate"))


def remediating(machines: Sequence[Machine], otherwise: str) -> Condition:
    """Whether Machines are being replaced because they are unhealthy; `otherwise` tells of those that are not."""
    doomed = [owned(MACHINE, machine) for machine in machines if is_to_be_remediated(machine)]
    if not doomed:
        return Condition(type="Remediating", status="False", reason="NotRemediating", message=otherwise)
    message = aggregate(doomed, "OwnerRemediated", target="Remediating").message
    return Condition(type="Remediating", status="True", reason="Remediating", message=message)


def available(objects: Sequence[Owned], target: str) -> Condition:
    """Whether sets of Machines are available."""
    reasons = Reasons("NotAvailable", "AvailableUnknown", "Available")
    return aggregate(objects, "Available", target=target, reason=reasons)


def under_way(objects: Sequence[Owned], condition: str) -> Condition:
    """Whether something is under way in any of the objects: a condition that is good when False."""
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
    # Those that are plainly good neither change what the others add up to nor are told of.
    told = [machine for machine in machines if not _is_plainly_good(machine, source)]
    if not told:
        return Condition(type=target, status="True", reason=reasons.info, message="")
    return aggregate([owned(MACHINE, machine) for machine in told], source, target=target, reason=reasons)


def _is_plainly_good(machine: Machine, source: str) -> bool:
    """Whether a condition is True and nothing is to be told: then nothing is to be added up."""
    found = find_condition(machine.status.conditions, source)
    return found is not None and found.status == "True" and not found.message

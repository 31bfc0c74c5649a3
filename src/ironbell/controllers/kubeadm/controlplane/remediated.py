"""Machines that are healthy again are not to be remediated any more, pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/remediation.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from ironbell.api.cluster.machine import Machine
from ironbell.contract.conditions.legacy import find_legacy, legacy_conditions
from ironbell.controllers.kubeadm.controlplane.assess import without_condition
from ironbell.controllers.kubeadm.controlplane.model import condition_true, is_deleting, is_false
from ironbell.controllers.kubeadm.controlplane.names import HEALTH_CHECK_SUCCEEDED, MachineCondition


def recovered(machines: Iterable[Machine]) -> tuple[Machine, ...]:
    """The Machines, without the condition OwnerRemediated where the health check succeeds again."""
    return tuple(
        without_condition(machine, MachineCondition.OWNER_REMEDIATED) if _has_recovered(machine) else machine
        for machine in machines
    )


def _has_recovered(machine: Machine) -> bool:
    if is_deleting(machine):
        return False
    if condition_true(machine, HEALTH_CHECK_SUCCEEDED) and is_false(machine, MachineCondition.OWNER_REMEDIATED):
        return True
    checked = find_legacy(legacy_conditions(machine), HEALTH_CHECK_SUCCEEDED)
    remediated = find_legacy(legacy_conditions(machine), MachineCondition.OWNER_REMEDIATED)
    return (checked is not None and checked.status == "True") and (
        remediated is not None and remediated.status == "False"
    )

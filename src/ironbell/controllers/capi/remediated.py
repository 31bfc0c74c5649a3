"""What the owner of an unhealthy Machine tells of its replacement, on the Machine.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller.go (patchMachineConditions).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.machine import Machine
from ironbell.api.meta import Condition
from ironbell.contract.conditions.legacy import WARNING, legacy_false, legacy_true
from ironbell.controllers.capi.status import status_patch
from ironbell.kube.decision import MergePatch

OWNER_REMEDIATED: Final = "OwnerRemediated"


def remediation_patch(
    machine: Machine, reason: str, message: str, legacy_message: str, now: datetime, *, deletes: bool = False
) -> MergePatch | None:
    """The patch to OwnerRemediated in both sets of conditions; without a reason both go. None if nothing changes."""
    if not reason:
        return status_patch(MACHINE, machine, {}, (), gone=(OWNER_REMEDIATED,), now=now, observe=False)
    condition = Condition(type=OWNER_REMEDIATED, status="False", reason=reason, message=message)
    older = None
    if deletes:
        older = legacy_true(OWNER_REMEDIATED)
    elif legacy_message:
        older = legacy_false(OWNER_REMEDIATED, "WaitingForRemediation", WARNING, legacy_message)
    legacy = [older] if older is not None else []
    return status_patch(MACHINE, machine, {}, [condition], legacy=legacy, now=now, observe=False)

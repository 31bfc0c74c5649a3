"""A Machine as one decision leaves it. Its steps (bootstrap, infrastructure, node, deletion) each change the draft."""

from __future__ import annotations

from datetime import datetime

from ironbell.api.cluster.deprecated import DeprecatedFailureStatus, V1Beta1FailureStatus
from ironbell.api.cluster.machine import MACHINE, Machine, MachineDeletionStatus, MachineSpec, MachineStatus
from ironbell.base.clock import rfc3339
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import legacy_false
from ironbell.kube.draft import replace

__all__ = ["Draft", "replace"]


class Draft(ConditionsDraft[Machine]):
    """The Machine's next state."""

    spec: MachineSpec
    status: MachineStatus

    def __init__(self, machine: Machine, now: datetime) -> None:
        super().__init__(MACHINE, machine, now, deprecated=DeprecatedFailureStatus, v1beta1=V1Beta1FailureStatus)
        self.bootstrap_problem = ""
        """Why the bootstrap config that was found cannot be used."""
        self.infrastructure_problem = ""
        """Why the infrastructure that was found cannot be used."""
        self.deleting: tuple[str, str] | None = None
        """Reason and message of the condition Deleting; None leaves it as it is."""

    @property
    def machine(self) -> Machine:
        return self.obj

    @property
    def deletion(self) -> MachineDeletionStatus:
        return self.status.deletion or MachineDeletionStatus()

    def legacy_false(self, kind: str, reason: str, severity: str, message: str = "") -> None:
        self.put_legacy(legacy_false(kind, reason, severity, message))

    def fail(self, reason: str | None, message: str | None) -> None:
        """Record a failure where the older API version shows it."""
        self.set_older(failure_reason=reason or None, failure_message=message or None)

    def started(self, step: str) -> str:
        """The time when a step of the deletion (a field of `status.deletion`) began: now, if it had not begun."""
        known: str | None = getattr(self.deletion, step)
        if known is None:
            known = rfc3339(self.now)
            self.status = replace(self.status, deletion=replace(self.deletion, **{step: known}))
        return known

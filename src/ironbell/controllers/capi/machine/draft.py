"""The draft of a Machine, which the steps of one decision (bootstrap, infrastructure, node, deletion) change."""

from __future__ import annotations

from datetime import datetime

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
        super().__init__(MACHINE, machine, now)
        self.bootstrap_problem = ""
        """Reason why the existing bootstrap config cannot be used."""
        self.infrastructure_problem = ""
        """Reason why the existing infrastructure object cannot be used."""
        self.deleting: tuple[str, str] | None = None
        """Reason and message of the condition Deleting; None leaves it unchanged."""

    @property
    def machine(self) -> Machine:
        return self.obj

    @property
    def deletion(self) -> MachineDeletionStatus:
        return self.status.deletion or MachineDeletionStatus()

    def legacy_false(self, kind: str, reason: str, severity: str, message: str = "") -> None:
        self.put_legacy(legacy_false(kind, reason, severity, message))

    def fail(self, reason: str | None, message: str | None) -> None:
        """Record a failure in the fields of the older API version."""
        self.set_older(failure_reason=reason or None, failure_message=message or None)

    def started(self, step: str) -> str:
        """The time when a step of the deletion (a field of `status.deletion`) started: now, if it had not started."""
        known: str | None = getattr(self.deletion, step)
        if known is None:
            known = rfc3339(self.now)
            self.status = replace(self.status, deletion=replace(self.deletion, **{step: known}))
        return known

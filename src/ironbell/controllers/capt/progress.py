"""What is known of a machine while a decision is made: conditions and status, and how a decision ends. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellcluster import Initialization
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine, TinkerbellMachineAddress, TinkerbellMachineStatus
from ironbell.api.meta import Condition
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.controllers.capt.conditions import READY, told, with_all
from ironbell.kube import patches
from ironbell.kube.decision import Action, Decision, do, wait


@dataclass
class Progress:
    """The status as it will be; lives for one decision."""

    obj: TinkerbellMachine
    now: datetime
    conditions: list[Condition] = field(default_factory=list)
    state: str = ""
    changes: dict[str, Any] = field(default_factory=dict)

    def note(self, type_: str, status: bool | None, reason: str, message: str = "") -> None:
        """Set a condition."""
        generation = self.obj.metadata.generation
        self.conditions.append(told(type_, status, reason, message, generation=generation))

    def has(self, hardware: Hardware, failure_domain: str) -> None:
        """Say which server it has."""
        first = hardware.spec.interfaces[0].dhcp if hardware.spec.interfaces else None
        address = first.ip.address if first is not None and first.ip is not None else ""
        addresses = [TinkerbellMachineAddress(type="InternalIP", address=address)] if address else []
        if first is not None and first.hostname:
            addresses.append(TinkerbellMachineAddress(type="Hostname", address=first.hostname))
        self.changes |= {
            "target_namespace": hardware.metadata.namespace,
            "addresses": addresses,
            "failure_domain": failure_domain,
        }

    def provisioned(self) -> None:
        """It is done; this is never taken back."""
        self.changes |= {"ready": True, "initialization": Initialization(provisioned=True)}

    def status(self) -> Action | None:
        """The write, if anything changed."""
        old = self.obj.status
        status: TinkerbellMachineStatus = msgspec.structs.replace(
            old,
            conditions=with_all(old.conditions, self.conditions, self.now),
            instance_state=self.state or old.instance_state,
            **self.changes,
        )
        return patches.status_change(TINKERBELL_MACHINE, self.obj, old, status)

    def waits(self, reason: str, message: str, *actions: Action | None, after_s: float | None = None) -> Decision:
        """Say why it is not ready, and end."""
        self.note(READY, False, reason, message)
        return wait(reason, message, *actions, self.status(), requeue_after_s=after_s)

    def goes_on(self, *actions: Action | None, after_s: float | None = None) -> Decision:
        """Write and end, without a new reason: what is written brings it back."""
        return do(*actions, self.status(), requeue_after_s=after_s)

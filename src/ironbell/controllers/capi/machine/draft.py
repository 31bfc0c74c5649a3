"""A Machine as one decision leaves it: what is changed of it, and what else is to be done. Lives within `decide` only.

The steps of a decision (bootstrap, infrastructure, node, deletion) each change the draft; at its end it gives the
actions, in an order that survives a crash at any point: first the Machine's spec and metadata, then objects it owns,
then its status, then what must not happen before that is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ironbell.api.cluster.deprecated import DeprecatedFailureStatus, LegacyCondition, V1Beta1FailureStatus
from ironbell.api.cluster.machine import MACHINE, Machine, MachineDeletionStatus, MachineSpec, MachineStatus
from ironbell.api.meta import Condition, ObjectMeta
from ironbell.base.clock import rfc3339
from ironbell.contract.conditions import set_condition
from ironbell.contract.conditions.legacy import find_legacy, legacy_false, set_legacy
from ironbell.kube import patches
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Action, Decision, Emit, Need, Waiting, do, emit, patch

replace = msgspec.structs.replace

MESSAGE_LIMIT = 32768
"""Characters that the API takes in the message of a condition; a provider may have said more."""
LEGACY_MESSAGE_LIMIT = 10240


@dataclass(slots=True)
class Draft:
    """The Machine's next state. Every field is replaced, never changed in place."""

    machine: Machine
    now: datetime
    metadata: ObjectMeta = field(init=False)
    spec: MachineSpec = field(init=False)
    status: MachineStatus = field(init=False)
    owned: list[Action] = field(default_factory=list)
    """Changes of objects that belong to the Machine."""
    last: list[Action] = field(default_factory=list)
    """What happens once the status is stored."""
    needs: list[Need[Any]] = field(default_factory=list)
    bootstrap_problem: str = ""
    """Why the bootstrap config that was found cannot be used."""
    infrastructure_problem: str = ""
    """Why the infrastructure that was found cannot be used."""
    deleting: tuple[str, str] | None = None
    """Reason and message of the condition Deleting; None leaves it as it is."""
    waiting: Waiting | None = None
    _events: list[Emit] = field(default_factory=list)
    _look_again_s: float | None = None

    def __post_init__(self) -> None:
        self.metadata, self.spec, self.status = self.machine.metadata, self.machine.spec, self.machine.status

    @property
    def is_deleting(self) -> bool:
        return self.machine.metadata.deletion_timestamp is not None

    @property
    def older(self) -> V1Beta1FailureStatus:
        """The part of the status that the older API version knows."""
        deprecated = self.status.deprecated
        return (deprecated.v1beta1 if deprecated is not None else None) or V1Beta1FailureStatus()

    @property
    def deletion(self) -> MachineDeletionStatus:
        return self.status.deletion or MachineDeletionStatus()

    def condition(self, kind: str) -> Condition | None:
        return find_condition(self.status.conditions, kind)

    def set(self, kind: str, status: str, reason: str, message: str = "", since: str | None = None) -> None:
        """Set a condition; `since` is when it came to be so, where somebody else knows that."""
        self.put(Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=since))

    @property
    def generation(self) -> int:
        """The Machine's generation once its spec is written: nobody else writes before the status is."""
        return self.machine.metadata.generation + (self.spec != self.machine.spec)

    def observe_generation(self) -> None:
        """Say that the whole spec was looked at."""
        self.status = replace(self.status, observed_generation=self.generation)

    def put(self, new: Condition) -> None:
        """Set a condition."""
        new = replace(new, message=_shortened(new.message, MESSAGE_LIMIT))
        conditions = set_condition(self.status.conditions, new, now=self.now, generation=self.generation)
        self.status = replace(self.status, conditions=conditions)

    def drop(self, kind: str) -> None:
        """Remove a condition that is neither true nor false any more."""
        kept = [condition for condition in self.status.conditions if condition.type != kind]
        if len(kept) != len(self.status.conditions):
            self.status = replace(self.status, conditions=kept)

    def legacy(self, kind: str) -> LegacyCondition | None:
        return find_legacy(self.older.conditions, kind)

    def put_legacy(self, new: LegacyCondition | None) -> None:
        """Set a condition of the older kind."""
        if new is not None:
            new = replace(new, message=_shortened(new.message, LEGACY_MESSAGE_LIMIT))
        self._set_older(conditions=set_legacy(self.older.conditions, new, now=self.now))

    def legacy_false(self, kind: str, reason: str, severity: str, message: str = "") -> None:
        self.put_legacy(legacy_false(kind, reason, severity, message))

    def fail(self, reason: str | None, message: str | None) -> None:
        """Record a failure where the older API version shows it."""
        self._set_older(failure_reason=reason or None, failure_message=message or None)

    def started(self, step: str) -> str:
        """When a step of the deletion began (a field of `status.deletion`): now, if it had not begun."""
        known: str | None = getattr(self.deletion, step)
        if known is None:
            known = rfc3339(self.now)
            self.status = replace(self.status, deletion=replace(self.deletion, **{step: known}))
        return known

    def need(self, *needs: Need[Any]) -> None:
        self.needs += needs

    def tell(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Emit an event about the Machine."""
        self._events.append(emit(MACHINE, self.machine, reason=reason, message=message, warning=warning))

    def wait(self, reason: str, message: str) -> None:
        """Say what is waited for; the first that says so is right."""
        if self.waiting is None:
            self.waiting = Waiting(reason, message)

    def look_again(self, after: timedelta) -> None:
        """Decide again after this time at the latest."""
        seconds = max(after.total_seconds(), 0.0)
        self._look_again_s = seconds if self._look_again_s is None else min(seconds, self._look_again_s)

    def decision(self) -> Decision:
        """Everything that was drafted."""
        machine = self.machine
        changed = _change(machine, self.metadata, self.spec)
        actions = (
            patch(MACHINE, machine, changed, locked=True) if changed else None,
            *self.owned,
            patches.status_change(MACHINE, machine, machine.status, self.status),
            *self._events,
            *self.last,
        )
        return do(*actions, needs=self.needs, waiting=self.waiting, requeue_after_s=self._look_again_s)

    def _set_older(self, **changes: Any) -> None:
        changed = replace(self.older, **changes)
        if changed != self.older:
            self.status = replace(self.status, deprecated=DeprecatedFailureStatus(v1beta1=changed))


def _change(machine: Machine, metadata: ObjectMeta, spec: MachineSpec) -> dict[str, Any]:
    """The merge patch of what a decision changes outside the status."""
    if machine.metadata == metadata and machine.spec == spec:
        return {}
    return patches.diff(_plain(machine.metadata, machine.spec), _plain(metadata, spec))


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _plain(metadata: ObjectMeta, spec: MachineSpec) -> dict[str, Any]:
    fields = msgspec.to_builtins(metadata)
    kept = {name: fields[name] for name in ("labels", "finalizers", "ownerReferences") if name in fields}
    return {"metadata": kept, "spec": msgspec.to_builtins(spec)}

"""The next state of one object while a reconciler decides. Lives within `decide` only.

Each step of a decision changes the draft. At its end `Draft.decision` returns the actions in an order that survives a
crash at any point: the object's own metadata and spec, objects that it owns, its status, events, and last what must
not happen before the status is stored.

APIs differ in how they keep conditions (Cluster API sorts them and stamps the generation), so a draft may be given the
function that sets one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from ironbell.api.kind import Kind
from ironbell.api.meta import Condition, Resource
from ironbell.kube import patches
from ironbell.kube.conditions import find_condition, set_condition
from ironbell.kube.decision import Action, Decision, Emit, Fields, MergePatch, Need, Waiting, do, emit, patch

R = TypeVar("R", bound=Resource)
_OWN_METADATA = ("labels", "finalizers", "ownerReferences")
S = TypeVar("S", bound=msgspec.Struct)


class SetCondition(Protocol):
    """Returns the conditions with one of them set, as an API keeps them."""

    def __call__(
        self, conditions: Sequence[Any], condition: Condition, *, now: datetime, generation: int
    ) -> Sequence[Any]: ...


def replace(struct: S, **changes: Any) -> S:
    """Return a struct with other values of these fields.

    A value that is equal to the old value is not replaced: msgspec leaves out a default only while it is that object.
    """
    kept = {name: value for name, value in changes.items() if value != getattr(struct, name)}
    return msgspec.structs.replace(struct, **kept) if kept else struct


def _in_place(
    conditions: Sequence[Condition], condition: Condition, *, now: datetime, generation: int
) -> list[Condition]:
    return set_condition(conditions, replace(condition, observed_generation=generation), now=now)


class Draft(Generic[R]):
    """An object's next state. `metadata`, `spec` and `status` are replaced, never changed in place."""

    spec: Any
    status: Any

    def __init__(self, kind: Kind[R], obj: R, now: datetime, *, set_condition: SetCondition = _in_place) -> None:
        self.kind, self.obj, self.now = kind, obj, now
        self._set_condition = set_condition
        self.metadata = obj.metadata
        self._old_spec: Any = getattr(obj, "spec", None)
        self._old_status: Any = getattr(obj, "status", None)
        self.spec, self.status = self._old_spec, self._old_status
        self.first: list[Action | None] = []
        """Writes of the object itself that precede all others, such as its finalizer."""
        self.owned: list[Action | None] = []
        """Changes of objects that belong to the object."""
        self.last: list[Action | None] = []
        """Actions once the status is stored. None in these lists is left out."""
        self.needs: list[Need[Any]] = []
        self.waiting: Waiting | None = None
        self._events: list[Emit] = []
        self._requeue_after_s: float | None = None

    @property
    def is_deleting(self) -> bool:
        return self.obj.metadata.deletion_timestamp is not None

    @property
    def generation(self) -> int:
        """The object's generation once its spec is written: no other client writes before the status is."""
        is_written = self.spec is not self._old_spec and self.spec != self._old_spec
        return self.obj.metadata.generation + int(is_written)

    def observe_generation(self) -> None:
        """Report that the whole spec was acted on."""
        self.status = replace(self.status, observed_generation=self.generation)

    def condition(self, condition_type: str) -> Condition | None:
        return find_condition(self.status.conditions, condition_type)

    def set(self, condition_type: str, status: str, reason: str, message: str = "", since: str | None = None) -> None:
        """Set a condition; `since` is the time of its transition where another object reports that."""
        new = Condition(type=condition_type, status=status, reason=reason, message=message, last_transition_time=since)
        self.put(new)

    def put(self, *conditions: Condition) -> None:
        """Set conditions."""
        held, generation = self.status.conditions, self.generation
        for condition in conditions:
            held = self._set_condition(held, condition, now=self.now, generation=generation)
        self.status = replace(self.status, conditions=held)

    def drop(self, *condition_types: str) -> None:
        """Remove conditions that are neither true nor false any more."""
        kept = [condition for condition in self.status.conditions if condition.type not in condition_types]
        if len(kept) != len(self.status.conditions):
            self.status = replace(self.status, conditions=kept)

    def need(self, *needs: Need[Any]) -> None:
        """Record facts that the decision depends on."""
        self.needs += needs

    def emit(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Emit an event about the object."""
        self._events.append(self.event(reason, message, warning=warning))

    def event(self, reason: str, message: str, *, warning: bool = False) -> Emit:
        """Return an event about the object, for a place among other actions."""
        return emit(self.kind, self.obj, reason=reason, message=message, warning=warning)

    def wait(self, reason: str, message: str) -> None:
        """Record the reason for waiting; the first recorded reason wins."""
        if self.waiting is None:
            self.waiting = Waiting(reason, message)

    def requeue_after(self, delay: timedelta | float | None) -> None:
        """Decide again after this time (seconds if a number) at the latest; None leaves it open."""
        if delay is None:
            return
        seconds = max(delay.total_seconds() if isinstance(delay, timedelta) else delay, 0.0)
        earlier = self._requeue_after_s
        self._requeue_after_s = seconds if earlier is None else min(seconds, earlier)

    def status_write(self) -> MergePatch | None:
        """The write of the status; None if it is stored already."""
        return patches.status_change(self.kind, self.obj, self._old_status, self.status)

    def decision(self) -> Decision:
        """Everything that was drafted, in its order."""
        changed = self._own_change()
        return do(
            *self.first,
            patch(self.kind, self.obj, changed, locked=True) if changed else None,
            *self.owned,
            self.status_write(),
            *self._events,
            *self.last,
            needs=self.needs,
            waiting=self.waiting,
            requeue_after_s=self._requeue_after_s,
        )

    def _own_change(self) -> Fields:
        """The merge patch of what was changed outside the status."""
        old = self.obj.metadata
        if old is self.metadata and self._old_spec is self.spec:
            return {}
        if old == self.metadata and self._old_spec == self.spec:
            return {}
        return patches.diff(_plain(old, self._old_spec), _plain(self.metadata, self.spec))


def _plain(metadata: msgspec.Struct, spec: Any) -> Fields:
    fields = msgspec.to_builtins(metadata)
    kept = {name: fields[name] for name in _OWN_METADATA if name in fields}
    return {"metadata": kept, "spec": msgspec.to_builtins(spec)}

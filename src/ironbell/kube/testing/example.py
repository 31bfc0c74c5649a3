"""A worked example of controllers, for the tests and the benchmark of the runtime; new ones are modelled on it.

A Rack has `spec.count` Slots as children, named after it, and rolls up how many are on. A Slot powers something on by
an effect that must not be repeated blindly: each attempt is an intent in the Slot's status; when an attempt's outcome
is unknown, the Slot looks at the fact `PowerState` that is newer than the attempt, and only then tries again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from msgspec import field

from ironbell.api.kind import Kind
from ironbell.api.meta import Condition, Model, ObjectMeta, OwnerReference, Resource
from ironbell.base.clock import parse_rfc3339, rfc3339_micro
from ironbell.kube.conditions import set_condition
from ironbell.kube.decision import (
    DONE,
    Action,
    Decision,
    Effect,
    Fact,
    Key,
    MergePatch,
    Need,
    Query,
    create,
    delete,
    do,
    emit,
    wait,
)
from ironbell.kube.patches import status_change
from ironbell.kube.reconciler import Cache, Declaration, Index, by_owner_uid, owned_by

GROUP = "example.ironbell.dev"


class RackSpec(Model, frozen=True):
    count: int = 0


class RackStatus(Model, frozen=True):
    slots: int = 0
    ready: int = 0
    conditions: list[Condition] = field(default_factory=list)


class Rack(Resource, frozen=True):
    """The parent."""

    spec: RackSpec = RackSpec()
    status: RackStatus = RackStatus()


class SlotSpec(Model, frozen=True):
    powered: bool = False


class SlotStatus(Model, frozen=True):
    attempt: int = 0
    started: str | None = None
    """When the last attempt began; removed with its outcome."""
    power: str = ""


class Slot(Resource, frozen=True):
    """A child."""

    spec: SlotSpec = SlotSpec()
    status: SlotStatus = SlotStatus()


RACK: Kind[Rack] = Kind(GROUP, "v1", "Rack", "racks", Rack, has_status=True)
SLOT: Kind[Slot] = Kind(GROUP, "v1", "Slot", "slots", Slot, has_status=True)
SLOTS_BY_OWNER: Index[Slot] = by_owner_uid(SLOT)


@dataclass(frozen=True, slots=True)
class RackState:
    rack: Rack
    slots: tuple[Slot, ...]


class RackReconciler:
    """Keeps as many Slots as asked for and counts those that are on."""

    name = "example-rack"
    declaration = Declaration(RACK, watches=(owned_by(RACK, SLOT),), indexes=(SLOTS_BY_OWNER,))

    def observe(self, cache: Cache, key: Key) -> RackState | None:
        rack = cache.get(RACK, *key)
        if rack is None or rack.metadata.deletion_timestamp is not None:
            return None
        return RackState(rack, tuple(cache.indexed(SLOTS_BY_OWNER, rack.metadata.uid)))

    def decide(self, observed: RackState, now: datetime) -> Decision:
        rack = observed.rack
        desired = [slot_name(rack, number) for number in range(rack.spec.count)]
        existing = {slot.metadata.name for slot in observed.slots}
        surplus = [slot for slot in observed.slots if slot.metadata.name not in desired]
        actions = [create(SLOT, new_slot(rack, name)) for name in desired if name not in existing]
        status = self._status(observed, now)
        if actions or surplus or status is not None:
            return do(*actions, *(delete(SLOT, slot) for slot in surplus), status)
        if rack.status.ready < rack.spec.count:
            return wait("SlotsNotReady", f"{rack.status.ready} of {rack.spec.count} slots are on")
        return DONE

    def _status(self, observed: RackState, now: datetime) -> MergePatch | None:
        old = observed.rack.status
        ready = sum(slot.status.power == "on" for slot in observed.slots)
        complete = ready == observed.rack.spec.count
        condition = Condition(
            type="Ready",
            status="True" if complete else "False",
            reason="AllOn" if complete else "SlotsNotReady",
            observed_generation=observed.rack.metadata.generation,
        )
        conditions = set_condition(old.conditions, condition, now=now)
        new = RackStatus(slots=len(observed.slots), ready=ready, conditions=conditions)
        return status_change(RACK, observed.rack, old, new)


def slot_name(rack: Rack, number: int) -> str:
    return f"{rack.metadata.name}-{number}"


def new_slot(rack: Rack, name: str) -> Slot:
    """A child that is to be on, owned by its Rack."""
    owner = OwnerReference(
        api_version=RACK.api_version,
        kind=RACK.kind,
        name=rack.metadata.name,
        uid=rack.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    metadata = ObjectMeta(name=name, namespace=rack.metadata.namespace, owner_references=[owner])
    return Slot(metadata=metadata, spec=SlotSpec(powered=True))


@dataclass(frozen=True, slots=True)
class PowerState(Query[str]):
    """Power state of the device in a Slot: `on` or `off`."""

    subject: ClassVar[str] = "the power state"

    slot: Key
    uid: str


@dataclass(frozen=True, slots=True)
class PowerOn:
    """Arguments of the effect `power-on`."""

    slot: Key
    attempt: int


@dataclass(frozen=True, slots=True)
class SlotState:
    slot: Slot
    power: Fact[str] | None


class SlotReconciler:
    """Powers a Slot on, each attempt recorded before it starts."""

    name = "example-slot"
    declaration = Declaration(SLOT)

    def observe(self, cache: Cache, key: Key) -> SlotState | None:
        slot = cache.get(SLOT, *key)
        return None if slot is None else SlotState(slot, cache.fact(PowerState(key, slot.metadata.uid), 60.0))

    def decide(self, observed: SlotState, now: datetime) -> Decision:
        slot = observed.slot
        if not slot.spec.powered or slot.status.power == "on":
            return DONE
        if slot.status.started is None:
            return self._start(slot, now)
        # An attempt has begun and its outcome was not stored: only a query shows whether it happened.
        need = Need(PowerState(slot.key, slot.metadata.uid), 60.0, parse_rfc3339(slot.status.started))
        if observed.power is None or not observed.power.fresh(now, need.max_age_s, need.newer_than):
            return wait("OutcomeUnknown", f"attempt {slot.status.attempt} may have happened", needs=[need])
        if observed.power.value == "on":
            return do(*on(slot.key))
        return self._start(slot, now)

    def _start(self, slot: Slot, now: datetime) -> Decision:
        attempt = slot.status.attempt + 1
        intent = f"{slot.metadata.uid}-{attempt}"
        new = SlotStatus(attempt=attempt, started=rfc3339_micro(now))
        return do(
            status_change(SLOT, slot, slot.status, new, intent=intent),
            Effect(
                "power-on",
                PowerOn(slot.key, attempt),
                intent=intent,
                timeout_s=5.0,
                outdates=(PowerState(slot.key, slot.metadata.uid),),
            ),
            emit(SLOT, slot, reason="PoweredOn", message=f"powered on by attempt {attempt}"),
        )


def on(slot: Key) -> tuple[Action, ...]:
    """The actions that store a good outcome."""
    body = {"status": {"power": "on", "started": None}}
    return (MergePatch(SLOT, *slot, body, subresource="status"),)

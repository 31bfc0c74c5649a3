"""The controller of inventories: what a server's BMC tells of its parts goes into the status of its Hardware.

It is asked once a day, when the bmc Machine has the annotation `tinkerbell.org/refresh-inventory` (whatever is known
already), and when its connection changed; not while the BMC does not answer, and never for Hardware that has the
annotation `tinkerbell.org/disable-outofband-inventory`. Nothing is written when nothing but the time has changed,
except that the annotation is taken off again.

Source: tinkerbell/tinkerbell: rufio/internal/controller (out-of-band inventory), api/v1alpha1/tinkerbell/attributes.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from ironbell.api.bmc.machine import MACHINE, Machine
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.inventory import Attributes, Inventory
from ironbell.api.tinkerbell.names import (
    ANNOTATION_DISABLE_OUT_OF_BAND_INVENTORY,
    ANNOTATION_DISABLED,
    ANNOTATION_REFRESH_INVENTORY,
)
from ironbell.base.clock import parse_rfc3339, rfc3339, rfc3339_micro
from ironbell.controllers.rufio.limits import INVENTORY_TIMEOUT_S
from ironbell.controllers.rufio.machine import BY_SECRET, contactable, created
from ironbell.controllers.rufio.target import InventoryOf, Target, target_of
from ironbell.kube.decision import DONE, Action, Decision, Fact, Key, Need, do, emit, patch, wait
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.patches import status_change
from ironbell.kube.reconciler import Cache, Declaration, Index, Watch
from ironbell.provisioner.bmc_address import pin_of, to_record

INVENTORY_INTERVAL_S: Final = 86400.0
_REQUESTED: Final = "since "
"""Begins the annotation's value once the time of the request is recorded in it: what the BMC reported before then does
not count as the answer, in this process or a later one."""

BY_BMC: Final = Index(
    HARDWARE,
    "rufio-bmc",
    lambda hardware: [hardware.spec.bmc_ref.name] if hardware.spec.bmc_ref is not None else [],
)


@dataclass(frozen=True, slots=True)
class InventoryObserved:
    """A Hardware with a BMC, and what that told."""

    hardware: Hardware
    machine: Machine
    target: Target
    inventory: Fact[Inventory] | None = None
    others: tuple[Hardware, ...] = ()
    """Other Hardware behind the same BMC, for which a request for a new inventory counts as well."""


def _of_machine(machine: Machine, cache: Cache) -> Iterable[Key]:
    namespace, name = machine.key
    return [one.key for one in cache.indexed(BY_BMC, name) if one.metadata.namespace == namespace]


def _of_secret(secret: SecretMetadata, cache: Cache) -> Iterable[Key]:
    machines = cache.indexed(BY_SECRET, "/".join(secret.key))
    return [key for machine in machines for key in _of_machine(machine, cache)]


class InventoryReconciler:
    """Keeps `status.attributes.outOfBand` of Hardware."""

    name = "rufio-inventory"
    declaration = Declaration(
        HARDWARE, watches=(Watch(MACHINE, _of_machine), Watch(SECRET_METADATA, _of_secret)), indexes=(BY_BMC, BY_SECRET)
    )

    def observe(self, cache: Cache, key: Key) -> InventoryObserved | None:
        hardware = cache.get(HARDWARE, *key)
        if hardware is None or is_deleting(hardware) or hardware.spec.bmc_ref is None:
            return None
        machine = cache.get(MACHINE, key[0], hardware.spec.bmc_ref.name)
        if machine is None or is_deleting(machine):
            return None
        target = target_of(machine.spec.connection, key[0], cache, pin_of(machine))
        inventory = cache.fact(InventoryOf(target, machine.metadata.uid), INVENTORY_INTERVAL_S)
        others = (cache.get(HARDWARE, *other) for other in _of_machine(machine, cache) if other != key)
        return InventoryObserved(hardware, machine, target, inventory, tuple(one for one in others if one is not None))

    def decide(self, observed: InventoryObserved, now: datetime) -> Decision:
        hardware, machine, fact = observed.hardware, observed.machine, observed.inventory
        if ANNOTATION_DISABLE_OUT_OF_BAND_INVENTORY in hardware.metadata.annotations:
            return DONE
        if ANNOTATION_DISABLED in machine.metadata.annotations:
            return wait("Disabled", f"annotation {ANNOTATION_DISABLED} is set on the bmc Machine")
        answers = contactable(machine)
        if answers is None:
            return wait("Asking", f"the BMC {machine.metadata.name} was not contacted yet")
        if answers.status != "True":
            return wait("NotContactable", f"the BMC {machine.metadata.name} does not answer")
        if to_record(machine):
            return wait("AddressNotRecorded", f"the address of the BMC {machine.metadata.name} is not recorded yet")
        refresh = ANNOTATION_REFRESH_INVENTORY in machine.metadata.annotations
        known = hardware.status.attributes.out_of_band if hardware.status.attributes is not None else None
        age_s = _age_s(known, now)
        requested = _requested_at(machine, now) if refresh else None
        if refresh and requested is None:
            stamp = f"{_REQUESTED}{rfc3339_micro(now)}"
            return do(_requests(machine, stamp))
        if known is not None and not refresh and age_s < INVENTORY_INTERVAL_S and fact is None:
            return do(requeue_after_s=INVENTORY_INTERVAL_S - age_s)
        # An answer from before the Hardware existed was about another server.
        since = max([moment for moment in (requested, created(hardware)) if moment is not None], default=None)
        need = Need(
            InventoryOf(observed.target, machine.metadata.uid),
            INVENTORY_INTERVAL_S,
            newer_than=since,
            timeout_s=INVENTORY_TIMEOUT_S,
        )
        is_old = since is not None and fact is not None and not fact.fresh(now, INVENTORY_INTERVAL_S, since)
        if fact is None or (is_old and fact.error is None):
            return wait("Asking", "the inventory is being asked", needs=[need])
        if fact.value is None or is_old:
            problem = fact.error.message if fact.error is not None else "no answer"
            return wait("NoInventory", f"the BMC {machine.metadata.name} told no inventory: {problem}", needs=[need])
        return _told(observed, fact.value, refresh=refresh, need=need, now=now)


def _told(
    observed: InventoryObserved, inventory: Inventory, *, refresh: bool, need: Need[Any], now: datetime
) -> Decision:
    hardware, machine = observed.hardware, observed.machine
    old = hardware.status.attributes or Attributes()
    timeless = msgspec.structs.replace(old.out_of_band or Inventory(), last_updated=None)
    changed = timeless != inventory or old.out_of_band is None
    new = msgspec.structs.replace(inventory, last_updated=rfc3339(now))
    status = msgspec.structs.replace(hardware.status, attributes=msgspec.structs.replace(old, out_of_band=new))
    # Something to find the parts by when they were changed: once, not at every look.
    event = emit(HARDWARE, hardware, reason="InventoryChanged", message="the BMC tells other parts than before")
    return do(
        status_change(HARDWARE, hardware, hardware.status, status) if changed else None,
        event if changed and old.out_of_band is not None else None,
        _requests(machine, None) if refresh and all(_has(other, inventory) for other in observed.others) else None,
        needs=[need],
    )


def _requests(machine: Machine, value: str | None) -> Action:
    """Record when the refresh was requested, or, with None, that it was done for all Hardware behind the BMC."""
    annotations = {ANNOTATION_REFRESH_INVENTORY: value}
    return patch(MACHINE, machine, {"metadata": {"annotations": annotations}}, locked=True)


def _has(hardware: Hardware, inventory: Inventory) -> bool:
    """Whether this inventory is stored on a Hardware, or never will be."""
    if is_deleting(hardware) or ANNOTATION_DISABLE_OUT_OF_BAND_INVENTORY in hardware.metadata.annotations:
        return True
    stored = hardware.status.attributes.out_of_band if hardware.status.attributes is not None else None
    return stored is not None and msgspec.structs.replace(stored, last_updated=None) == inventory


def _requested_at(machine: Machine, now: datetime) -> datetime | None:
    """When the refresh was requested, as this controller recorded it; None if it has not."""
    mark, _, time = machine.metadata.annotations[ANNOTATION_REFRESH_INVENTORY].partition(" ")
    if mark != _REQUESTED.strip():
        return None
    try:
        requested = parse_rfc3339(time)
    except ValueError:
        return None
    return requested if requested <= now else None


def _age_s(known: Inventory | None, now: datetime) -> float:
    if known is None or not known.last_updated:
        return INVENTORY_INTERVAL_S
    try:
        return (now - parse_rfc3339(known.last_updated)).total_seconds()
    except ValueError:
        return INVENTORY_INTERVAL_S

"""The controller of inventories: records the hardware that a server's BMC reports in the status of its Hardware.

A BMC is queried once a day, when the bmc Machine has the annotation `tinkerbell.org/refresh-inventory`, and when its
connection changed; not while the BMC does not respond, and never for Hardware with the annotation
`tinkerbell.org/disable-outofband-inventory`. If nothing but the time has changed, nothing is written, except that the
annotation of the request is removed.

Source: tinkerbell/tinkerbell: rufio/internal/controller (out-of-band inventory), api/v1alpha1/tinkerbell/attributes.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

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
from ironbell.controllers.rufio.machine import BY_SECRET, contactable, created
from ironbell.controllers.rufio.target import INVENTORY_TIMEOUT_S, InventoryOf, Target, target_of
from ironbell.kube.decision import DONE, Action, Decision, Fact, Key, Need, patch
from ironbell.kube.draft import Draft, replace
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration, Index, Watch
from ironbell.provisioner.bmc_address import pin_of, to_record

INVENTORY_INTERVAL_S: Final = 86400.0
_REQUESTED: Final = "since "
"""Prefix of the annotation's value once the time of the request is recorded in it. Older inventories do not serve the
request, in this process or a later one."""

BY_BMC: Final = Index(
    HARDWARE,
    "rufio-bmc",
    lambda hardware: [hardware.spec.bmc_ref.name] if hardware.spec.bmc_ref is not None else [],
)


@dataclass(frozen=True, slots=True)
class InventoryObserved:
    """A Hardware with a BMC, and the inventory that the BMC reported."""

    hardware: Hardware
    machine: Machine
    target: Target
    inventory: Fact[Inventory] | None = None
    others: tuple[Hardware, ...] = ()
    """Other Hardware behind the same BMC, to which a request for a new inventory applies as well."""


def _of_machine(machine: Machine, cache: Cache) -> Iterable[Key]:
    namespace, name = machine.key
    return [hardware.key for hardware in cache.indexed(BY_BMC, name) if hardware.metadata.namespace == namespace]


def _of_secret(secret: SecretMetadata, cache: Cache) -> Iterable[Key]:
    machines = cache.indexed(BY_SECRET, "/".join(secret.key))
    return [key for machine in machines for key in _of_machine(machine, cache)]


class InventoryReconciler:
    """Keeps `status.attributes.outOfBand` of Hardware up to date."""

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
        cached = (cache.get(HARDWARE, *other) for other in _of_machine(machine, cache) if other != key)
        others = tuple(other for other in cached if other is not None)
        return InventoryObserved(hardware, machine, target, inventory, others)

    def decide(self, observed: InventoryObserved, now: datetime) -> Decision:
        draft, machine = Draft(HARDWARE, observed.hardware, now), observed.machine
        contact = contactable(machine)
        if ANNOTATION_DISABLE_OUT_OF_BAND_INVENTORY in draft.metadata.annotations:
            return DONE
        if ANNOTATION_DISABLED in machine.metadata.annotations:
            draft.wait("Disabled", f"Annotation {ANNOTATION_DISABLED} is set on the bmc Machine.")
        elif contact is None:
            draft.wait("Asking", f"BMC {machine.metadata.name} was not contacted yet.")
        elif contact.status != "True":
            draft.wait("NotContactable", f"BMC {machine.metadata.name} does not respond.")
        elif to_record(machine):
            draft.wait("AddressNotRecorded", f"The address of BMC {machine.metadata.name} is not recorded yet.")
        else:
            _query(draft, observed)
        return draft.decision()


def _query(draft: Draft[Hardware], observed: InventoryObserved) -> None:
    machine, fact, now = observed.machine, observed.inventory, draft.now
    refresh = ANNOTATION_REFRESH_INVENTORY in machine.metadata.annotations
    known = draft.status.attributes.out_of_band if draft.status.attributes is not None else None
    age_s = _age_s(known, now)
    requested = _requested_at(machine, now) if refresh else None
    if refresh and requested is None:
        draft.owned.append(_requests(machine, f"{_REQUESTED}{rfc3339_micro(now)}"))
        return
    if known is not None and not refresh and age_s < INVENTORY_INTERVAL_S and fact is None:
        draft.requeue_after(INVENTORY_INTERVAL_S - age_s)
        return
    # An inventory that is older than the Hardware belongs to another server.
    since = max([moment for moment in (requested, created(draft.obj)) if moment is not None], default=None)
    query = InventoryOf(observed.target, machine.metadata.uid)
    draft.need(Need(query, INVENTORY_INTERVAL_S, newer_than=since, timeout_s=INVENTORY_TIMEOUT_S))
    is_old = since is not None and fact is not None and not fact.fresh(now, INVENTORY_INTERVAL_S, since)
    if fact is None or (is_old and fact.error is None):
        draft.wait("Asking", "Querying the inventory.")
    elif fact.value is None or is_old:
        problem = fact.error.message if fact.error is not None else "no response"
        draft.wait("NoInventory", f"BMC {machine.metadata.name} did not report its inventory: {problem}")
    else:
        _record(draft, fact.value)
        if refresh and all(_has(other, fact.value) for other in observed.others):
            draft.last.append(_requests(machine, None))


def _record(draft: Draft[Hardware], inventory: Inventory) -> None:
    old = draft.status.attributes or Attributes()
    if old.out_of_band is not None:
        if replace(old.out_of_band, last_updated=None) == inventory:
            return
        draft.emit("InventoryChanged", "The BMC reports different hardware than before.")
    new = replace(inventory, last_updated=rfc3339(draft.now))
    draft.status = replace(draft.status, attributes=replace(old, out_of_band=new))


def _requests(machine: Machine, value: str | None) -> Action:
    """Record the time of the request, or, with None, remove a request that all Hardware behind the BMC has served."""
    annotations = {ANNOTATION_REFRESH_INVENTORY: value}
    return patch(MACHINE, machine, {"metadata": {"annotations": annotations}}, locked=True)


def _has(hardware: Hardware, inventory: Inventory) -> bool:
    """Return whether this inventory is stored on a Hardware, or never will be."""
    if is_deleting(hardware) or ANNOTATION_DISABLE_OUT_OF_BAND_INVENTORY in hardware.metadata.annotations:
        return True
    stored = hardware.status.attributes.out_of_band if hardware.status.attributes is not None else None
    return stored is not None and replace(stored, last_updated=None) == inventory


def _requested_at(machine: Machine, now: datetime) -> datetime | None:
    """Time of the request, as this controller recorded it; None before that."""
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

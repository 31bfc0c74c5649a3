"""The controller of Hardware without an address: a Hardware that names a pool gets a claim, and the claim's address.

An address that a user set is never changed: the controller sets an address if there is none, and removes only the one
that it set. A claimed server keeps its address until it is released.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ironbell.api.cluster.common import ContractVersionedObjectReference
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.clusteripam.ipaddress import IpAddress
from ironbell.api.clusteripam.ipaddressclaim import IpAddressClaim
from ironbell.api.inclusteripam.pool import GROUP
from ironbell.api.meta import Resource, to_builtin
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.interface import Ip
from ironbell.contract.owners import controller_of, is_controlled_by, owner_reference
from ironbell.contract.servers.claim import claim_of
from ironbell.controllers.ipam.observed import ADDRESS_FROM_POOL, ADDRESS_POOL
from ironbell.controllers.ipam.ranges import AddressError, number_of
from ironbell.kube.decision import (
    DONE,
    Action,
    Decision,
    Fields,
    JsonPatch,
    Key,
    create,
    delete,
    do,
    emit,
    patch,
    wait,
)
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration, Watch

_IP: Final = "/spec/interfaces/0/dhcp/ip"
_RECORD: Final = f"/metadata/annotations/{ADDRESS_FROM_POOL.replace('/', '~1')}"
_DEFAULT_KIND: Final = "InClusterIPPool"


@dataclass(frozen=True, slots=True)
class Observed:
    """A Hardware, its claim, and the claim's address."""

    hardware: Hardware
    claim: IpAddressClaim | None = None
    address: IpAddress | None = None

    @property
    def ip(self) -> Ip | None:
        """IP configuration of the first interface."""
        interfaces = self.hardware.spec.interfaces
        return interfaces[0].dhcp.ip if interfaces and interfaces[0].dhcp is not None else None

    @property
    def current_address(self) -> str:
        """Address of the first interface, or empty."""
        return self.ip.address if self.ip is not None else ""

    @property
    def pool_address(self) -> str:
        """The address from a pool, if the interface still has it; otherwise empty."""
        record = self.hardware.metadata.annotations.get(ADDRESS_FROM_POOL, "")
        return record if record and _are_equal(record, self.current_address) else ""


def claim_name(hardware: str) -> str:
    """Return the name of a Hardware's claim."""
    return f"{hardware}-interface-0"


def pool_reference(text: str) -> ContractVersionedObjectReference | None:
    """Return the pool that an annotation names; None if its value is not valid."""
    qualified_kind, slash, name = text.strip().rpartition("/")
    kind, _, group = qualified_kind.partition(".")
    if not name or (slash and not kind):
        return None
    return ContractVersionedObjectReference(kind=kind or _DEFAULT_KIND, name=name, api_group=group or GROUP)


def _are_equal(address: str, other: str) -> bool:
    try:
        return number_of(address) == number_of(other)
    except AddressError:
        return False


def _hardware_of_claim(claim: Resource, _cache: Cache) -> Iterable[Key]:
    owner = controller_of(claim)
    if owner is not None and owner.kind == HARDWARE.kind:
        yield claim.metadata.namespace, owner.name


def _hardware_of_address(address: IpAddress, cache: Cache) -> Iterable[Key]:
    claim = cache.get(IP_ADDRESS_CLAIM, *address.key)
    return _hardware_of_claim(claim, cache) if claim is not None else ()


class HardwareAddressReconciler:
    """Sets addresses from pools on Hardware."""

    name = "ipam-hardware"
    declaration = Declaration(
        HARDWARE, watches=(Watch(IP_ADDRESS_CLAIM, _hardware_of_claim), Watch(IP_ADDRESS, _hardware_of_address))
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        hardware = cache.get(HARDWARE, *key)
        if hardware is None or is_deleting(hardware):
            return None
        claim = cache.get(IP_ADDRESS_CLAIM, key[0], claim_name(key[1]))
        name = claim.status.address_ref.name if claim is not None else ""
        return Observed(hardware, claim, cache.get(IP_ADDRESS, key[0], name) if name else None)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        del now
        hardware, claim = observed.hardware, observed.claim
        text = hardware.metadata.annotations.get(ADDRESS_POOL)
        if text is not None and (pool := pool_reference(text)) is None:
            message = (
                f"Annotation {ADDRESS_POOL}: {text!r} is not a valid pool. Write NAME, KIND/NAME or KIND.GROUP/NAME."
            )
            event = emit(HARDWARE, hardware, reason="AddressPoolInvalid", message=message, warning=True)
            return wait("AddressPoolInvalid", message, event)
        if text is None or (observed.current_address and not observed.pool_address):
            return _release(observed)
        if claim is None:
            return do(_claim_creation(hardware, pool))
        if not is_controlled_by(claim, HARDWARE, hardware):
            return wait("ClaimTaken", f"IPAddressClaim {claim.metadata.name} belongs to another object.")
        if claim.spec.pool_ref != pool:
            return _release(observed)
        if is_deleting(claim) or observed.address is None:
            return wait("WaitingForAddress", f"IPAddressClaim {claim.metadata.name} has no address yet.")
        return _set_address(observed, observed.address)


def _claim_creation(hardware: Hardware, pool: ContractVersionedObjectReference | None) -> Action:
    metadata: Fields = {
        "namespace": hardware.metadata.namespace,
        "name": claim_name(hardware.metadata.name),
        "ownerReferences": [to_builtin(owner_reference(HARDWARE, hardware, controller=True))],
    }
    return create(IP_ADDRESS_CLAIM, {"metadata": metadata, "spec": {"poolRef": to_builtin(pool)}})


def _set_address(observed: Observed, allocated: IpAddress) -> Decision:
    hardware = observed.hardware
    if observed.pool_address and _are_equal(observed.pool_address, allocated.spec.address):
        return DONE
    if observed.pool_address and claim_of(hardware) is not None:
        return _keeps(observed)
    if not hardware.spec.interfaces or hardware.spec.interfaces[0].dhcp is None:
        return wait("NoInterface", "spec.interfaces[0].dhcp is not set. Add it to get an address.")
    current = observed.ip or Ip()
    version = number_of(allocated.spec.address)[0]
    prefix = allocated.spec.prefix
    netmask = str(ipaddress.ip_network(f"0.0.0.0/{prefix}").netmask) if version == 4 and prefix is not None else ""
    ip = {
        "address": allocated.spec.address,
        "netmask": netmask or current.netmask,
        "gateway": allocated.spec.gateway or current.gateway,
        "family": version,
    }
    operations: tuple[Fields, ...] = (
        {"op": "add", "path": _IP, "value": {name: value for name, value in ip.items() if value}},
        {"op": "add", "path": _RECORD, "value": allocated.spec.address},
    )
    pool = allocated.spec.pool_ref
    message = f"Set {allocated.spec.address} of {pool.kind} {pool.name} on spec.interfaces[0]."
    return do(
        JsonPatch(HARDWARE, *hardware.key, operations, resource_version=hardware.metadata.resource_version),
        emit(HARDWARE, hardware, reason="AddressGiven", message=message),
    )


def _release(observed: Observed) -> Decision:
    """Remove the address if it is from a pool, and then delete the claim, so that no other claim gets it too early."""
    hardware, claim = observed.hardware, observed.claim
    if observed.pool_address and claim_of(hardware) is not None:
        return _keeps(observed)
    removal: Action | None = None
    if observed.pool_address:
        operations: tuple[Fields, ...] = ({"op": "remove", "path": _IP}, {"op": "remove", "path": _RECORD})
        removal = JsonPatch(HARDWARE, *hardware.key, operations, resource_version=hardware.metadata.resource_version)
    elif ADDRESS_FROM_POOL in hardware.metadata.annotations:
        removal = patch(HARDWARE, hardware, {"metadata": {"annotations": {ADDRESS_FROM_POOL: None}}}, locked=True)
    deletes = claim is not None and is_controlled_by(claim, HARDWARE, hardware) and not is_deleting(claim)
    return do(removal, delete(IP_ADDRESS_CLAIM, claim) if deletes and claim is not None else None)


def _keeps(observed: Observed) -> Decision:
    message = f"The server keeps {observed.pool_address} until {claim_of(observed.hardware)} releases it."
    return wait("InUse", message)

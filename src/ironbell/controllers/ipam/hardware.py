"""The controller of Hardware without an address: one that names a pool gets a claim, and what that is given.

What a person wrote is never changed: an address is given where there is none, and taken away where it is the one that
was given. A server that somebody has keeps its address until it is given back.
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
from ironbell.controllers.ipam.names import ADDRESS_FROM_POOL, ADDRESS_POOL
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
    """A Hardware, its claim, and what that was given."""

    hardware: Hardware
    claim: IpAddressClaim | None = None
    address: IpAddress | None = None

    @property
    def has(self) -> Ip | None:
        """What the first interface has."""
        interfaces = self.hardware.spec.interfaces
        return interfaces[0].dhcp.ip if interfaces and interfaces[0].dhcp is not None else None

    @property
    def has_address(self) -> str:
        """Its address; empty for none."""
        return self.has.address if self.has is not None else ""

    @property
    def was_given(self) -> str:
        """The address that was given out of a pool, if the interface still has it."""
        record = self.hardware.metadata.annotations.get(ADDRESS_FROM_POOL, "")
        return record if record and _same(record, self.has_address) else ""


def claim_name(hardware: str) -> str:
    """The name of a Hardware's claim."""
    return f"{hardware}-interface-0"


def pool_reference(text: str) -> ContractVersionedObjectReference | None:
    """Which pool an annotation names; None if it names none."""
    what, slash, name = text.strip().rpartition("/")
    kind, _, group = what.partition(".")
    if not name or (slash and not kind):
        return None
    return ContractVersionedObjectReference(kind=kind or _DEFAULT_KIND, name=name, api_group=group or GROUP)


def _same(one: str, other: str) -> bool:
    try:
        return number_of(one) == number_of(other)
    except AddressError:
        return False


def _of_claim(claim: Resource, _cache: Cache) -> Iterable[Key]:
    owner = controller_of(claim)
    if owner is not None and owner.kind == HARDWARE.kind:
        yield claim.metadata.namespace, owner.name


def _of_address(address: IpAddress, cache: Cache) -> Iterable[Key]:
    claim = cache.get(IP_ADDRESS_CLAIM, *address.key)
    return _of_claim(claim, cache) if claim is not None else ()


class HardwareAddressReconciler:
    """Gives Hardware addresses out of pools."""

    name = "ipam-hardware"
    declaration = Declaration(HARDWARE, watches=(Watch(IP_ADDRESS_CLAIM, _of_claim), Watch(IP_ADDRESS, _of_address)))

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
        if text is not None and (wanted := pool_reference(text)) is None:
            message = f"annotation {ADDRESS_POOL} is {text!r}; write NAME, KIND/NAME or KIND.GROUP/NAME of a pool"
            told = emit(HARDWARE, hardware, reason="AddressPoolInvalid", message=message, warning=True)
            return wait("AddressPoolInvalid", message, told)
        if text is None or (observed.has_address and not observed.was_given):
            return _give_back(observed)
        if claim is None:
            return do(_ask(hardware, wanted))
        if not is_controlled_by(claim, HARDWARE, hardware):
            return wait("ClaimTaken", f"IPAddressClaim {claim.metadata.name} belongs to somebody else")
        if claim.spec.pool_ref != wanted:
            return _give_back(observed)
        if is_deleting(claim) or observed.address is None:
            return wait("WaitingForAddress", f"IPAddressClaim {claim.metadata.name} has no address yet")
        return _give(observed, observed.address)


def _ask(hardware: Hardware, pool: ContractVersionedObjectReference | None) -> Action:
    metadata: Fields = {
        "namespace": hardware.metadata.namespace,
        "name": claim_name(hardware.metadata.name),
        "ownerReferences": [to_builtin(owner_reference(HARDWARE, hardware, controller=True))],
    }
    return create(IP_ADDRESS_CLAIM, {"metadata": metadata, "spec": {"poolRef": to_builtin(pool)}})


def _give(observed: Observed, given: IpAddress) -> Decision:
    hardware = observed.hardware
    if observed.was_given and _same(observed.was_given, given.spec.address):
        return DONE
    if observed.was_given and claim_of(hardware) is not None:
        return _keeps(observed)
    if not hardware.spec.interfaces or hardware.spec.interfaces[0].dhcp is None:
        return wait("NoInterface", "spec.interfaces[0].dhcp is missing, so there is nothing to give an address to")
    has = observed.has or Ip()
    version = number_of(given.spec.address)[0]
    prefix = given.spec.prefix
    netmask = str(ipaddress.ip_network(f"0.0.0.0/{prefix}").netmask) if version == 4 and prefix is not None else ""
    ip = {
        "address": given.spec.address,
        "netmask": netmask or has.netmask,
        "gateway": given.spec.gateway or has.gateway,
        "family": version,
    }
    operations: tuple[Fields, ...] = (
        {"op": "add", "path": _IP, "value": {name: value for name, value in ip.items() if value}},
        {"op": "add", "path": _RECORD, "value": given.spec.address},
    )
    message = f"spec.interfaces[0] gets {given.spec.address} of {given.spec.pool_ref.kind} {given.spec.pool_ref.name}"
    return do(
        JsonPatch(HARDWARE, *hardware.key, operations, resource_version=hardware.metadata.resource_version),
        emit(HARDWARE, hardware, reason="AddressGiven", message=message),
    )


def _give_back(observed: Observed) -> Decision:
    """Take the address away if it was given, then give up the claim: in this order, so that nobody else has it yet."""
    hardware, claim = observed.hardware, observed.claim
    if observed.was_given and claim_of(hardware) is not None:
        return _keeps(observed)
    taken: Action | None = None
    if observed.was_given:
        gone: tuple[Fields, ...] = ({"op": "remove", "path": _IP}, {"op": "remove", "path": _RECORD})
        taken = JsonPatch(HARDWARE, *hardware.key, gone, resource_version=hardware.metadata.resource_version)
    elif ADDRESS_FROM_POOL in hardware.metadata.annotations:
        taken = patch(HARDWARE, hardware, {"metadata": {"annotations": {ADDRESS_FROM_POOL: None}}}, locked=True)
    ours = claim is not None and is_controlled_by(claim, HARDWARE, hardware) and not is_deleting(claim)
    return do(taken, delete(IP_ADDRESS_CLAIM, claim) if ours and claim is not None else None)


def _keeps(observed: Observed) -> Decision:
    return wait("InUse", f"{claim_of(observed.hardware)} has the server, which keeps {observed.was_given} until then")

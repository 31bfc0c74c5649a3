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
from ironbell.kube.decision import Action, Decision, Fields, JsonPatch, Key, create, delete, patch
from ironbell.kube.draft import Draft
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
        draft, claim = Draft(HARDWARE, observed.hardware, now), observed.claim
        text = draft.metadata.annotations.get(ADDRESS_POOL)
        pool = pool_reference(text) if text is not None else None
        if text is not None and pool is None:
            message = (
                f"Annotation {ADDRESS_POOL}: {text!r} is not a valid pool. Write NAME, KIND/NAME or KIND.GROUP/NAME."
            )
            draft.emit("AddressPoolInvalid", message, warning=True)
            draft.wait("AddressPoolInvalid", message)
        elif text is None or (observed.current_address and not observed.pool_address):
            _release(draft, observed)
        elif claim is None:
            draft.owned.append(_claim_creation(draft.obj, pool))
        elif not is_controlled_by(claim, HARDWARE, draft.obj):
            draft.wait("ClaimTaken", f"IPAddressClaim {claim.metadata.name} belongs to another object.")
        elif claim.spec.pool_ref != pool:
            _release(draft, observed)
        elif is_deleting(claim) or observed.address is None:
            draft.wait("WaitingForAddress", f"IPAddressClaim {claim.metadata.name} has no address yet.")
        else:
            _set_address(draft, observed, observed.address)
        return draft.decision()


def _claim_creation(hardware: Hardware, pool: ContractVersionedObjectReference | None) -> Action:
    metadata: Fields = {
        "namespace": hardware.metadata.namespace,
        "name": claim_name(hardware.metadata.name),
        "ownerReferences": [to_builtin(owner_reference(HARDWARE, hardware, controller=True))],
    }
    return create(IP_ADDRESS_CLAIM, {"metadata": metadata, "spec": {"poolRef": to_builtin(pool)}})


def _set_address(draft: Draft[Hardware], observed: Observed, allocated: IpAddress) -> None:
    if observed.pool_address and _are_equal(observed.pool_address, allocated.spec.address):
        return
    if observed.pool_address and claim_of(draft.obj) is not None:
        _keep(draft, observed)
        return
    if not draft.spec.interfaces or draft.spec.interfaces[0].dhcp is None:
        draft.wait("NoInterface", "spec.interfaces[0].dhcp is not set. Add it to get an address.")
        return
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
    draft.owned.append(
        _patch(
            draft.obj,
            {"op": "add", "path": _IP, "value": {name: value for name, value in ip.items() if value}},
            {"op": "add", "path": _RECORD, "value": allocated.spec.address},
        )
    )
    pool = allocated.spec.pool_ref
    draft.emit("AddressGiven", f"Set {allocated.spec.address} of {pool.kind} {pool.name} on spec.interfaces[0].")


def _release(draft: Draft[Hardware], observed: Observed) -> None:
    """Remove the address if it is from a pool, and then delete the claim, so that no other claim gets it too early."""
    hardware, claim = draft.obj, observed.claim
    if observed.pool_address and claim_of(hardware) is not None:
        _keep(draft, observed)
        return
    if observed.pool_address:
        draft.first.append(_patch(hardware, {"op": "remove", "path": _IP}, {"op": "remove", "path": _RECORD}))
    elif ADDRESS_FROM_POOL in hardware.metadata.annotations:
        removal = {"metadata": {"annotations": {ADDRESS_FROM_POOL: None}}}
        draft.first.append(patch(HARDWARE, hardware, removal, locked=True))
    if claim is not None and is_controlled_by(claim, HARDWARE, hardware) and not is_deleting(claim):
        draft.last.append(delete(IP_ADDRESS_CLAIM, claim))


def _patch(hardware: Hardware, *operations: Fields) -> JsonPatch:
    return JsonPatch(HARDWARE, *hardware.key, operations, resource_version=hardware.metadata.resource_version)


def _keep(draft: Draft[Hardware], observed: Observed) -> None:
    draft.wait("InUse", f"The server keeps {observed.pool_address} until {claim_of(draft.obj)} releases it.")

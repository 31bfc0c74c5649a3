"""Causes of a missing address: the IPAddressClaim that requests it, and its pool. Pure.

Source: kubernetes-sigs/cluster-api: docs/book/src/developer/providers/contracts/ipam.md.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ironbell.api.cluster.names import ANNOTATION_PAUSED, LABEL_CLUSTER_NAME
from ironbell.api.clusteripam import IP_ADDRESS_CLAIM
from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL
from ironbell.api.tinkerbell import HARDWARE
from ironbell.contract.causes import Weight
from ironbell.controllers.ipam.hardware import claim_name, pool_reference
from ironbell.controllers.ipam.observed import ADDRESS_POOL
from ironbell.operations.why.advice import Advice
from ironbell.operations.why.candidates import SELECTED_FROM, candidates, waits_for_server
from ironbell.operations.why.model import Finding, Object, Query, Ref
from ironbell.operations.why.world import World, annotation, condition, is_deleting, labels, owners, ref_of, since
from ironbell.provisioner.health import Obstacle
from ironbell.provisioner.lifecycle.selection import obstacles

_OF_CLAIM: Final[dict[str, Advice]] = {
    "PoolNotFound": Advice("the pool exists", "Create the pool, or correct spec.poolRef"),
    "PoolNotReady": Advice("the pool is ready", "Find out why the pool is paused or is being deleted"),
    "PoolInvalid": Advice("the pool is valid", "Correct spec of the pool"),
    "PoolExhausted": Advice("an address is free", "Add addresses to the pool, or delete IPAddressClaims"),
    "PoolNotConfirmed": Advice("a person confirms what a restore recorded", "Follow the message"),
    "AddressTaken": Advice("that IPAddress is deleted", "Delete the IPAddress if nothing uses the address"),
    "AddressInvalid": Advice("the claim is created again", "Delete the IPAddressClaim"),
}

_FOLLOWED: Final = 4


def queries(obj: Object) -> list[Query]:
    """Queries for the IPAddressClaims, or the servers, that an infrastructure machine may wait for."""
    if condition(obj, "Ready").get("status") == "True":
        return []
    namespace, name = obj["metadata"].get("namespace", ""), labels(obj).get(LABEL_CLUSTER_NAME, "")
    if waits_for_server(obj):
        return list(SELECTED_FROM)
    selector = f"{LABEL_CLUSTER_NAME}={name}"
    return [Query(IP_ADDRESS_CLAIM.group, IP_ADDRESS_CLAIM.kind, namespace, selector)] if name else []


def waited_for(obj: Object, world: World) -> list[Ref]:
    """Return IPAddressClaims without an address that the infrastructure machine owns; if it waits for a server, the
    servers that wait for an address."""
    if waits_for_server(obj):
        return _servers_without_address(obj, world)[:_FOLLOWED]
    open_claims = [claim for query in queries(obj) for claim in world.listed(query) if not _has_address(claim)]
    uid = obj["metadata"].get("uid")
    return [ref_of(claim) for claim in open_claims if uid in {owner.get("uid") for owner in owners(claim)}][:_FOLLOWED]


def _servers_without_address(obj: Object, world: World) -> list[Ref]:
    """Servers that the machine cannot claim because a pool has not given them an address; empty if others matter."""
    servers = candidates(obj, world)
    if Obstacle.NO_ADDRESS not in obstacles(servers):
        return []
    waiting = (candidate for candidate in servers if candidate.problems[0].obstacle is Obstacle.NO_ADDRESS)
    return [
        Ref(HARDWARE.group, HARDWARE.kind, *candidate.hardware.key)
        for candidate in waiting
        if pool_reference(candidate.hardware.metadata.annotations.get(ADDRESS_POOL, "")) is not None
    ]


def claim_of_hardware(obj: Object) -> Ref | None:
    """The IPAddressClaim of a server that needs an address from a pool."""
    if pool_reference(annotation(obj, ADDRESS_POOL)) is None or _has_static_address(obj):
        return None
    meta = obj["metadata"]
    return Ref(IP_ADDRESS_CLAIM.group, IP_ADDRESS_CLAIM.kind, meta["namespace"], claim_name(meta["name"]))


def pool_of(obj: Object) -> Ref | None:
    """The pool of an IPAddressClaim that has no address."""
    reference = obj.get("spec", {}).get("poolRef") or {}
    if _has_address(obj) or not reference.get("name"):
        return None
    group = str(reference.get("apiGroup") or "")
    is_global = (group, reference.get("kind")) == (GLOBAL_IN_CLUSTER_IP_POOL.group, GLOBAL_IN_CLUSTER_IP_POOL.kind)
    return Ref(
        group, str(reference.get("kind", "")), "" if is_global else obj["metadata"]["namespace"], reference["name"]
    )


def hardware(obj: Object) -> Finding | None:
    """Report a server that waits for an address from a pool."""
    text = annotation(obj, ADDRESS_POOL)
    if not text or _has_static_address(obj):
        return None
    if pool_reference(text) is None:
        message = f'has no address: annotation {ADDRESS_POOL} is "{text}", which does not name a pool'
        remedy = f"Set annotation {ADDRESS_POOL} to NAME, KIND/NAME or KIND.GROUP/NAME of a pool"
        return Finding(message, "AddressPoolInvalid", "", "the annotation names a pool", remedy, Weight.NEEDS_HELP)
    message = f'has no address yet; it is allocated from pool "{text}"'
    return Finding(message, "WaitingForAddress", "", "its IPAddressClaim has an address")


def claim(obj: Object, world: World, now: datetime) -> Finding | None:
    """Report what an IPAddressClaim waits for."""
    if is_deleting(obj):
        finalizers = ", ".join(obj["metadata"].get("finalizers") or []) or "the garbage collector"
        time = obj["metadata"]["deletionTimestamp"]
        return Finding(f"is being deleted and waits for {finalizers}", "Deleting", time, "its address is released")
    if _has_address(obj):
        return None
    ready = condition(obj, "Ready")
    reason, message = ready.get("reason", ""), ready.get("message", "")
    if not reason:
        created = obj["metadata"].get("creationTimestamp", "")
        message = "has no address, and no IPAM provider has reported why"
        return Finding(message, "NotReported", created, "an IPAM provider allocates an address")
    advice = _OF_CLAIM.get(reason)
    if advice is None:
        return Finding(message or reason, reason, since(ready), "it has an address")
    return Finding(message, reason, since(ready), advice.ends_when, advice.remedy, Weight.NEEDS_HELP)


def pool(obj: Object, world: World, now: datetime) -> Finding | None:
    """Report a pool that allocates no addresses."""
    meta = obj["metadata"]
    if is_deleting(obj):
        remedy = "Delete the IPAddressClaims that use it, and set another pool in those that wait"
        message, ends = "is being deleted and allocates no addresses", "it is deleted and created again"
        return Finding(message, "Deleting", meta["deletionTimestamp"], ends, remedy, Weight.NEEDS_HELP)
    if ANNOTATION_PAUSED in (meta.get("annotations") or {}):
        remedy = f"Remove annotation {ANNOTATION_PAUSED}"
        message = f"is paused by annotation {ANNOTATION_PAUSED} and allocates no addresses"
        return Finding(message, "Paused", "", "it is resumed", remedy, Weight.NEEDS_HELP)
    addresses = obj.get("status", {}).get("ipAddresses") or {}
    if addresses.get("total") and addresses.get("free") == 0:
        message = f"is exhausted: all {addresses['total']} addresses are allocated"
        remedy = "Add addresses to its spec.addresses, or delete IPAddressClaims that are not needed"
        return Finding(message, "PoolExhausted", "", "an address is free", remedy, Weight.NEEDS_HELP)
    return None


def _has_address(obj: Object) -> bool:
    return bool((obj.get("status", {}).get("addressRef") or {}).get("name"))


def _has_static_address(obj: Object) -> bool:
    interfaces = obj.get("spec", {}).get("interfaces") or [{}]
    return bool((((interfaces[0] or {}).get("dhcp") or {}).get("ip") or {}).get("address"))

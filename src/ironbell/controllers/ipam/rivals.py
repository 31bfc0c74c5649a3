"""Queries to the API before an address is reported or released, because the cache may be stale."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec

from ironbell.api.client import Api, ListOptions, NotFound, Selector
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.clusteripam.ipaddress import IpAddress
from ironbell.api.meta import Resource
from ironbell.controllers.ipam.observed import LABEL_POOL_ADDRESS, PoolKey, address_value, number_in
from ironbell.kube.decision import Query
from ironbell.kube.reconciler import Resolvers

_PAGE: Final = 500
_LABEL_LENGTH: Final = 32


@dataclass(frozen=True, slots=True)
class RivalsOf(Query[tuple[str, ...]]):
    """Query for other IPAddresses with the same pool and address. The UID identifies this one."""

    subject: ClassVar[str] = "the list of IPAddresses"

    namespace: str
    """Namespace to search; empty for all."""
    label: str
    key: tuple[str, str]
    uid: str


@dataclass(frozen=True, slots=True)
class Missing(Query[bool]):
    """Query for whether no object of this kind (by its plural) and key exists."""

    subject: ClassVar[str] = "the IPAddressClaim"

    plural: str
    key: tuple[str, str]
    requester: tuple[str, str]
    """UID and resourceVersion of the object that needs the fact: after a change of the object the query is repeated."""


def missing(plural: str, requester: Resource) -> Missing:
    """Return the query for whether an object of this kind with the name of `requester` is missing."""
    return Missing(plural, requester.key, (requester.metadata.uid, requester.metadata.resource_version))


def label_value(pool: PoolKey, number: tuple[int, int]) -> str:
    """Return the label of an address of a pool."""
    return hashlib.sha256(address_value(pool, number).encode()).hexdigest()[:_LABEL_LENGTH]


def rivals_of(pool: PoolKey, address: IpAddress) -> RivalsOf | None:
    """Return the query for the rivals of an IPAddress; None if its address is not valid."""
    number = number_in(address)
    if number is None:
        return None
    return RivalsOf(pool[1], label_value(pool, number), address.key, address.metadata.uid)


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""


class _Listed(msgspec.Struct, frozen=True):
    metadata: _Metadata


def resolvers(reader: Api) -> Resolvers:
    """Return the resolvers of the queries; `reader` may list IPAddresses."""
    return {RivalsOf: _rivals_resolver(reader), Missing: _missing_resolver(reader)}


def _missing_resolver(reader: Api) -> Callable[[Missing], Awaitable[bool]]:
    collections = {kind.plural: kind.collection for kind in (IP_ADDRESS, IP_ADDRESS_CLAIM)}

    async def resolve(query: Missing) -> bool:
        try:
            await reader.get(collections[query.plural], *query.key)
        except NotFound:
            return True
        return False

    return resolve


def _rivals_resolver(reader: Api) -> Callable[[RivalsOf], Awaitable[tuple[str, ...]]]:
    async def resolve(query: RivalsOf) -> tuple[str, ...]:
        keys: list[tuple[str, str]] = []
        selector = Selector(labels=f"{LABEL_POOL_ADDRESS}={query.label}")
        token = ""
        while True:
            page = await reader.list(IP_ADDRESS.collection, query.namespace, ListOptions(selector, _PAGE, token))
            listed = (msgspec.json.decode(body, type=_Listed).metadata for body in page.items)
            keys += [(metadata.namespace, metadata.name) for metadata in listed]
            token = page.continue_token
            if not token:
                return tuple("/".join(key) for key in sorted(keys) if key != query.key)

    return resolve

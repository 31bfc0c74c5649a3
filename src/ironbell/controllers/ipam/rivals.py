"""What must be sure before an address is told or taken: questions to the API, not to a cache that may be behind."""

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
from ironbell.controllers.ipam.names import LABEL_POOL_ADDRESS
from ironbell.controllers.ipam.observed import PoolKey, address_value, number_in
from ironbell.kube.decision import Query
from ironbell.kube.reconciler import Resolvers

_PAGE: Final = 500
_LABEL_LENGTH: Final = 32


@dataclass(frozen=True, slots=True)
class RivalsOf(Query[tuple[str, ...]]):
    """Which other IPAddresses have the pool and address of this one. The uid tells it from a former one."""

    subject: ClassVar[str] = "the list of IPAddresses"

    namespace: str
    """Where to look; empty for everywhere."""
    label: str
    key: tuple[str, str]
    uid: str


@dataclass(frozen=True, slots=True)
class Missing(Query[bool]):
    """Whether there is no object of this kind (by its plural) and key."""

    subject: ClassVar[str] = "the IPAddressClaim"

    plural: str
    key: tuple[str, str]
    resolver: tuple[str, str]
    """uid and resourceVersion of the object that asks: in another state, or for a successor, it is asked anew."""


def missing(plural: str, resolver: Resource) -> Missing:
    """The question whether the object of this kind with the name of `resolver` is gone."""
    return Missing(plural, resolver.key, (resolver.metadata.uid, resolver.metadata.resource_version))


def label_value(pool: PoolKey, number: tuple[int, int]) -> str:
    """The label of an address of a pool."""
    return hashlib.sha256(address_value(pool, number).encode()).hexdigest()[:_LABEL_LENGTH]


def rivals_of(pool: PoolKey, address: IpAddress) -> RivalsOf | None:
    """The question about an IPAddress; None if it says no address."""
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
    """Who answers; `reader` may list IPAddresses."""
    return {RivalsOf: _rivals_resolver(reader), Missing: _missing_resolver(reader)}


def _missing_resolver(reader: Api) -> Callable[[Missing], Awaitable[bool]]:
    collections = {kind.plural: kind.collection for kind in (IP_ADDRESS, IP_ADDRESS_CLAIM)}

    async def ask(query: Missing) -> bool:
        try:
            await reader.get(collections[query.plural], *query.key)
        except NotFound:
            return True
        return False

    return ask


def _rivals_resolver(reader: Api) -> Callable[[RivalsOf], Awaitable[tuple[str, ...]]]:
    async def ask(query: RivalsOf) -> tuple[str, ...]:
        found: list[tuple[str, str]] = []
        selector = Selector(labels=f"{LABEL_POOL_ADDRESS}={query.label}")
        token = ""
        while True:
            page = await reader.list(IP_ADDRESS.collection, query.namespace, ListOptions(selector, _PAGE, token))
            listed = (msgspec.json.decode(body, type=_Listed).metadata for body in page.items)
            found += [(one.namespace, one.name) for one in listed]
            token = page.continue_token
            if not token:
                return tuple("/".join(key) for key in sorted(found) if key != query.key)

    return ask

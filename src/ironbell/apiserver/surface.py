"""What the direct transport offers beyond `ironbell.api.client.Api`: the rest of what the HTTP face needs.

`ApiServer.client(identity)` gives this. Controllers use only the `Api` part of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from ironbell.api.client import (
    EVERYTHING,
    NO_OPTIONS,
    Api,
    ListOptions,
    Page,
    Preconditions,
    Propagation,
    Selector,
    WatchEvent,
    WriteOptions,
)
from ironbell.api.kind import Collection
from ironbell.apiserver.connect import ConnectRequest, ConnectResponse


class Stored(msgspec.Struct, frozen=True):
    """What a write answers that may create."""

    body: bytes
    created: bool


class ServerApi(Api, Protocol):
    """The whole API as one identity sees it, authorisation and admission applied."""

    def watch(
        self,
        where: Collection,
        namespace: str = "",
        *,
        resource_version: str,
        selector: Selector = EVERYTHING,
    ) -> AsyncIterator[WatchEvent]:
        """As `Api.watch`; with an empty version or `0` the current objects come first, as ADDED.

        A refusal is raised at the first step of the iteration. One object alone is watched by the field selector
        `metadata.name=NAME`, which is also the name that is authorised.
        """
        ...

    async def put(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Stored:
        """As `Api.replace`, reporting whether that created the object."""
        ...

    async def apply(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Stored:
        """As `Api.patch` with an apply configuration, telling whether that made the object."""
        ...

    async def delete(
        self,
        where: Collection,
        namespace: str,
        name: str,
        *,
        preconditions: Preconditions = ...,
        propagation: Propagation = Propagation.BACKGROUND,
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes: ...

    async def delete_collection(
        self,
        where: Collection,
        namespace: str,
        *,
        what: ListOptions = ...,
        preconditions: Preconditions = ...,
        propagation: Propagation = Propagation.BACKGROUND,
        options: WriteOptions = NO_OPTIONS,
    ) -> Page:
        """Delete what a list finds, and give the list: the objects as they were."""
        ...

    async def connect(self, where: Collection, request: ConnectRequest) -> ConnectResponse:
        """Call the handler of a connect subresource; `request.identity` must be this client's.

        Raises:
            NotFound: the resource has no such subresource.
        """
        ...

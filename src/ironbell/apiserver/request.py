"""Requests: an identity, a resource and the options of a write."""

from __future__ import annotations

import msgspec

from ironbell.api.client import NO_OPTIONS, WriteOptions
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.store.entry import Key


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request of an identity for a resource, with the options of a write."""

    identity: Identity
    info: ResourceInfo
    namespace: str
    name: str = ""
    subresource: str = ""
    options: WriteOptions = NO_OPTIONS

    @property
    def key(self) -> Key:
        return (self.namespace if self.info.namespaced else "", self.name)

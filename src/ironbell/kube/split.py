"""One API made of two: some kinds are on another server.

So a provider whose servers are kept by another cluster works as it does where all is on one: informers, preconditions
and writes go to where the kind is. An owner that is on the other side would not be found there, and what it owns would
be collected as garbage, so owner references are left out of what is created over there; labels say whose it is.

Resource versions of the two have nothing to do with each other; they are compared within a kind only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Set
from dataclasses import dataclass

import msgspec

from ironbell.api.client import Answer, Api, Call, Verb, WatchEvent
from ironbell.api.kind import Collection


@dataclass(frozen=True)
class SplitApi(Api):
    """`here` for all kinds but those of `other_kinds`, which are `other`."""

    here: Api
    other: Api
    other_kinds: Set[Collection]

    def _of(self, call: Call) -> Api:
        return self.other if call.collection in self.other_kinds else self.here

    async def call(self, call: Call) -> Answer:
        api = self._of(call)
        if call.verb is Verb.CREATE and not call.subresource and call.collection in self.other_kinds:
            call = msgspec.structs.replace(call, body=_without_owners(call.body))
        return await api.call(call)

    def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        return self._of(call).watch(call)


def _without_owners(body: bytes) -> bytes:
    document = msgspec.json.decode(body)
    document.get("metadata", {}).pop("ownerReferences", None)
    return msgspec.json.encode(document)

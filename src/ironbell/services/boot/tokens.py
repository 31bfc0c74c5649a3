"""Gives out the token of a boot: made, stored as digests on the Hardware, and only then put into the script.

Any number of replicas may be asked at once: the write names the version that was decided on, so one of them is first
and the others see that.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from ironbell.api.client import Api, ApiError, Conflict, PatchType, Unavailable, WriteOptions
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.randomness import Randomness
from ironbell.contract.servers import boot_token
from ironbell.contract.servers.boot_token import Reject
from ironbell.contract.servers.identity import address_objection

_CALL_S = 10.0
_TRIES = 10
_OPTIONS = WriteOptions(field_manager="ironbell-boot-service")


@dataclass(frozen=True, slots=True)
class Issued:
    """What the script of one boot carries: a token, or no token because of `refusal`, or neither where none is due."""

    token: str = ""
    refusal: str = ""
    stranger: str = ""
    """Why who asks is not the machine: nothing is given, and nothing was changed."""


@dataclass(frozen=True)
class BootTokens:
    """The issuer."""

    api: Api
    clock: Clock
    randomness: Randomness
    marked_only: bool = False
    """Whether only boots get a token that are marked so, as where a site knows some of its machines by token."""

    compares_addresses: bool = False
    """Whether a token is for the address alone that the Hardware has, as where we are who gives addresses: otherwise
    anybody takes a machine's token, or its boot, by asking for its script first."""

    async def issue(self, hardware: Hardware, *, peer: str) -> Issued:
        """A token for the first who asks in this boot.

        Raises:
            ApiError: what was decided could not be stored; nothing is given out.
        """
        key = hardware.key
        for _ in range(_TRIES):
            stored = await self._read(*key)
            now = rfc3339(self.clock.now())
            decision = boot_token.decide(stored, peer=peer, now=now, marked_only=self.marked_only)
            if decision is None:
                return Issued()
            if self.compares_addresses and (why := address_objection(stored, peer, ())) is not None:
                return Issued(stranger=why)
            token = ""
            if isinstance(decision, Reject):
                if decision.record is None:
                    return Issued(refusal=decision.reason)
                record = decision.record
            else:
                token = self.randomness.token_bytes(boot_token.TOKEN_BYTES).hex()
                record = boot_token.minted(decision, token, now=now)
            try:
                await self._write(stored, boot_token.annotation(record))
            except Conflict:
                continue
            return Issued(token, record.revoked)
        raise Conflict(f"Hardware {'/'.join(key)} is being changed by others all the time")

    async def _read(self, namespace: str, name: str) -> Hardware:
        try:
            async with asyncio.timeout(_CALL_S):
                return HARDWARE.decode(await self.api.get(HARDWARE.collection, namespace, name))
        except TimeoutError as error:
            raise Unavailable("the API server did not answer in time") from error
        except msgspec.ValidationError as error:
            raise ApiError(f"the stored Hardware cannot be read: {error}") from error

    async def _write(self, hardware: Hardware, annotations: dict[str, str]) -> None:
        metadata = {"resourceVersion": hardware.metadata.resource_version, "annotations": annotations}
        patch = msgspec.json.encode({"metadata": metadata})
        try:
            async with asyncio.timeout(_CALL_S):
                await self.api.patch(
                    HARDWARE.collection, *hardware.key, patch, patch_type=PatchType.MERGE, options=_OPTIONS
                )
        except TimeoutError as error:
            raise Unavailable("the API server did not answer in time") from error

"""Issues the token of a boot. Its digest is stored on the Hardware before the token is put into the script.

Any number of replicas may serve requests for the same boot: the write fails if the Hardware has changed since the
decision, so one replica issues the token and the others observe that.
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
    """The token for the script of one boot, or the reason for which there is none; all empty if the boot needs none."""

    token: str = ""
    rejection: str = ""
    """The reason for which this boot gets no token."""
    stranger: str = ""
    """The reason for which the client is not the machine; nothing was changed."""


@dataclass(frozen=True)
class BootTokens:
    """The issuer."""

    api: Api
    clock: Clock
    randomness: Randomness
    marked_only: bool = False
    """Whether only marked boots get a token, because the site identifies some of its machines by token."""
    compares_addresses: bool = False
    """Whether only the address of the Hardware gets a token, because this site's DHCP assigns the addresses. Otherwise
    another client gets a machine's token, or its boot, if it requests the script first."""

    async def issue(self, hardware: Hardware, *, peer: str) -> Issued:
        """Return a token for the first request in this boot.

        Raises:
            ApiError: the decision could not be stored; no token is issued.
        """
        key = hardware.key
        for _ in range(_TRIES):
            stored = await self._read(*key)
            now = rfc3339(self.clock.now())
            decision = boot_token.decide(stored, peer=peer, now=now, marked_only=self.marked_only)
            if decision is None:
                return Issued()
            if self.compares_addresses and (stranger := address_objection(stored, peer, ())) is not None:
                return Issued(stranger=stranger)
            token = ""
            if isinstance(decision, Reject):
                if decision.record is None:
                    return Issued(rejection=decision.reason)
                record = decision.record
            else:
                token = self.randomness.token_bytes(boot_token.TOKEN_BYTES).hex()
                record = boot_token.minted(decision, token, now=now)
            try:
                await self._write(stored, boot_token.annotation(record))
            except Conflict:
                continue
            return Issued(token, record.revoked)
        raise Conflict(f"Hardware {'/'.join(key)} was changed by others in each of {_TRIES} attempts")

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

"""Which machine is speaking: the token of one boot, and what follows from it where a site's identity is strict.

As upstream, a machine is known by its address, and so is whoever takes that address. With strict identity the boot
script carries a token. It is made once for each permission to netboot that a Workflow gives, and only the first who
asks for the script gets it. The agent shows it with each call; the installed system shows another that is made from it,
in the path of the metadata address. Hardware holds digests, so that every replica can check and none can tell.

Whoever asks for the script a second time shows that there are two, or that the machine has booted twice: nobody knows
which, so both lose the token, and the Workflow fails. So that somebody who is faster than the machine gains nothing by
it, a token can be made to open nothing before the machine itself must have asked (`ironbell.dev/boot-seconds`).

Pure: hashing is all that is done here. docs/guide/safety.md tells what this does not protect from.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import parse_rfc3339, rfc3339

BOOT_FOR: Final = "ironbell.dev/boot-for"
"""Annotation on Hardware: uid of the Workflow that lets it netboot now, since when, and `strict` where that boot gets a
token at a site that gives tokens to some boots only."""
MARKED: Final = "strict"
BOOT_SECONDS: Final = "ironbell.dev/boot-seconds"
"""Annotation on Hardware, yours: how long it takes at most from its permission to netboot until it asks for the boot
script. Its token opens nothing before."""
BOOT_TOKEN: Final = "ironbell.dev/boot-token"  # noqa: S105 - the name of an annotation
"""Annotation on Hardware: digests of the last boot's tokens, and which boot that was, as JSON."""
KERNEL_ARGUMENT: Final = "ironbell.boot_token"
CALL_METADATA: Final = "ironbell-boot-token"
"""Name of the gRPC metadata in which an agent shows its token."""
PLACEHOLDER: Final = "@IRONBELL_METADATA_TOKEN@"
"""Stands in a template's environment for the token of the metadata address; filled in when the action is handed out."""
BELOW: Final = f"/t/{PLACEHOLDER}"
TOKEN_BYTES: Final = 32
_LONGEST = 200


class Identity(StrEnum):
    """How a site knows its machines."""

    COMPAT = "compat"
    """By agent id and address, as upstream."""
    OWN = "own"
    """By the token of their boot where our agent is sure to ask, by address elsewhere; see `contract.servers.identity`.
    """
    STRICT = "strict"
    """By the token of their boot."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last boot that got a token."""

    boot: str = ""
    """uid of the Workflow that it was for."""
    agent: str = ""
    metadata: str = ""
    """Digests; empty once the token is revoked."""
    at: str = ""
    since: str = ""
    """When the Workflow gave the permission to netboot."""
    revoked: str = ""
    """Why nobody has it any more."""


@dataclass(frozen=True, slots=True)
class Mint:
    """Make a token for this boot."""

    boot: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class Reject:
    """Give nothing out; write `record` first if there is one."""

    reason: str
    record: Record | None = None


def boot_for(workflow_uid: str, now: datetime, mark: str = "") -> str:
    """The annotation's value for a Workflow that gives its permission now; `mark` is `MARKED` or empty."""
    return f"{workflow_uid} {rfc3339(now)} {mark}".rstrip()


def permitting_workflow_uid(hardware: Hardware) -> str:
    """uid of the Workflow that lets this Hardware netboot now; empty if none does."""
    return hardware.metadata.annotations.get(BOOT_FOR, "").partition(" ")[0]


def is_marked(hardware: Hardware) -> bool:
    """Whether the boot that is wanted now gets a token at a site that gives tokens to some boots only."""
    return MARKED in hardware.metadata.annotations.get(BOOT_FOR, "").split(" ")[2:]


def record_of(hardware: Hardware) -> Record:
    """The record; empty where there is none that can be read."""
    text = hardware.metadata.annotations.get(BOOT_TOKEN, "")
    try:
        return msgspec.json.decode(text, type=Record) if text else Record()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Record()


def annotation(record: Record) -> dict[str, str]:
    """The annotation that holds the record."""
    return {BOOT_TOKEN: msgspec.json.encode(record).decode()}


def decide(hardware: Hardware, *, peer: str, now: str, marked_only: bool = False) -> Mint | Reject | None:
    """What whoever asks for this Hardware's boot script gets; None: no Workflow wants this boot, or it is one that gets
    no token (`marked_only`: only those that are marked get one).

    `peer` is the address that asks, `now` is RFC 3339.
    """
    boot = permitting_workflow_uid(hardware)
    if not boot or (marked_only and not is_marked(hardware)):
        return None
    record = record_of(hardware)
    if record.boot != boot:
        return Mint(boot, hardware.metadata.annotations[BOOT_FOR].partition(" ")[2].partition(" ")[0])
    if record.revoked:
        return Reject(record.revoked)
    why = (
        f"the boot script was fetched at {record.at} and asked for again at {now} by {peer}: somebody else is on the "
        "network, or the machine booted twice; the boot's token is revoked"
    )
    return Reject(why, Record(boot=boot, at=record.at, revoked=why))


def minted(mint: Mint, token: str, *, now: str) -> Record:
    """The record of a token that is about to be given out."""
    return Record(boot=mint.boot, agent=digest(token), metadata=digest(metadata_token(token)), at=now, since=mint.since)


def revocation(hardware: Hardware, boot: str) -> str:
    """Why the token of this boot was revoked; empty if it was not."""
    record = record_of(hardware)
    return record.revoked if boot and record.boot == boot else ""


def agent_objection(hardware: Hardware, boot: str, token: str, now: datetime) -> str | None:
    """Why whoever shows this token (or none) is not the agent in the boot for this Workflow; None if it is."""
    record = record_of(hardware)
    name = hardware.metadata.name
    if not token:
        return f"strict identity: the agent of Hardware {name} must show the token of its boot"
    if record.boot != boot:
        return (
            f"strict identity: Hardware {name} was not booted for this Workflow; reboot it over the network. Only a "
            "Workflow with bootOptions.toggleAllowNetboot and a script of ours give a token"
        )
    if record.revoked:
        return f"strict identity: {record.revoked}"
    if not _is_known(token, record.agent):
        return f"strict identity: that is not the token of the last boot of Hardware {name}"
    if (until := _opens_at(hardware, record)) is not None and now < until:
        return f"strict identity: the token opens nothing before {rfc3339(until)} ({BOOT_SECONDS} of Hardware {name})"
    return None


def admits_metadata(hardware: Hardware, token: str, now: datetime) -> bool:
    """Whether this is the token of what was installed in the Hardware's last boot."""
    record = record_of(hardware)
    until = _opens_at(hardware, record)
    return _is_known(token, record.metadata) and (until is None or now >= until)


def _opens_at(hardware: Hardware, record: Record) -> datetime | None:
    """When the machine itself must have asked; None where nothing says how long that takes. A value that cannot be
    read is never over: who wrote it wanted to be safe."""
    text = hardware.metadata.annotations.get(BOOT_SECONDS)
    if text is None:
        return None
    try:
        return parse_rfc3339(record.since) + timedelta(seconds=int(text))
    except (ValueError, OverflowError):
        return datetime.max.replace(tzinfo=UTC)


def metadata_token(token: str) -> str:
    """The installed system's token. The boot's cannot be found from it."""
    return hmac.new(token.encode(), b"ironbell metadata", hashlib.sha256).hexdigest()


def filled(environment: Mapping[str, str], token: str) -> dict[str, str]:
    """An action's environment, for the agent that has shown this token."""
    if not token:
        return dict(environment)
    known = metadata_token(token)
    return {key: value.replace(PLACEHOLDER, known) for key, value in environment.items()}


def metadata_base(url: str, identity: Identity) -> str:
    """Where templates send the installed system for its metadata; empty if `url` is."""
    return f"{url}{BELOW}" if url and identity is not Identity.COMPAT else url


def without_token(base: str) -> str:
    """Where the metadata is for systems that have no token."""
    return base.removesuffix(BELOW)


def digest(token: str) -> str:
    """What is stored of a token. Tokens are long and random: they need no salt and no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def _is_known(token: str, stored: str) -> bool:
    return bool(token and stored) and len(token) <= _LONGEST and hmac.compare_digest(digest(token), stored)

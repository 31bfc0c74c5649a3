"""Identity of a machine by the token of one boot, where a site's identity is strict.

As upstream, a machine is identified by its address, and so is any other that uses that address. With strict identity
the boot script carries a token. It is created once for each permission to netboot that a Workflow gives, and only the
first request for the script gets it. The agent shows it with each call; the installed system shows another that is
derived from it, in the path of the metadata address. Hardware holds digests, so that every replica can check a token
and none can reveal it.

A second request for the script shows that there are two machines, or that the machine has booted twice. These cannot be
distinguished, so both lose the token, and the Workflow fails. So that a faster machine gains nothing, a token can
be invalid until the right machine must have sent its request (`ironbell.dev/boot-seconds`).

Pure: this module only computes hashes. docs/guide/safety.md lists the attacks that this does not prevent.
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
    """Method by which a site identifies its machines."""

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
    """Reason why the token was revoked."""


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
    """Return whether the pending boot gets a token at a site that gives tokens to some boots only."""
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
    """Decide on a request for this Hardware's boot script. None if no Workflow requests this boot, or if it gets no
    token (`marked_only`: only marked boots get one).

    `peer` is the address of the client, `now` is RFC 3339.
    """
    boot = permitting_workflow_uid(hardware)
    if not boot or (marked_only and not is_marked(hardware)):
        return None
    record = record_of(hardware)
    if record.boot != boot:
        return Mint(boot, hardware.metadata.annotations[BOOT_FOR].partition(" ")[2].partition(" ")[0])
    if record.revoked:
        return Reject(record.revoked)
    reason = (
        f"the boot script was fetched at {record.at} and requested again at {now} by {peer}: another machine on the "
        "network requested it, or the machine booted twice; the boot's token is revoked"
    )
    return Reject(reason, Record(boot=boot, at=record.at, revoked=reason))


def minted(mint: Mint, token: str, *, now: str) -> Record:
    """The record of a token that is about to be given out."""
    return Record(boot=mint.boot, agent=digest(token), metadata=digest(metadata_token(token)), at=now, since=mint.since)


def revocation(hardware: Hardware, boot: str) -> str:
    """Return the reason why the token of this boot was revoked; empty if it was not."""
    record = record_of(hardware)
    return record.revoked if boot and record.boot == boot else ""


def agent_objection(hardware: Hardware, boot: str, token: str, now: datetime) -> str | None:
    """Return why a client with this token (or none) is not the agent in the boot for this Workflow; None if it is."""
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
    """Return whether this is the token of the system that was installed in the Hardware's last boot."""
    record = record_of(hardware)
    until = _opens_at(hardware, record)
    return _is_known(token, record.metadata) and (until is None or now >= until)


def _opens_at(hardware: Hardware, record: Record) -> datetime | None:
    """Return when the machine itself must have sent its request; None if no annotation limits that. A value that cannot
    be read never passes, which is the safe reading."""
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
    """Return the address of the metadata for templates; empty if `url` is."""
    return f"{url}{BELOW}" if url and identity is not Identity.COMPAT else url


def without_token(base: str) -> str:
    """Return the address of the metadata for systems that have no token."""
    return base.removesuffix(BELOW)


def digest(token: str) -> str:
    """Return the stored digest of a token. Tokens are long and random: they need no salt and no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def _is_known(token: str, stored: str) -> bool:
    return bool(token and stored) and len(token) <= _LONGEST and hmac.compare_digest(digest(token), stored)

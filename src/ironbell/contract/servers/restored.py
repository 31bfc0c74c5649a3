"""Servers whose record was brought back from a backup: nothing is done to them before somebody knows that it is right.

A record that is older than what happened says that a server is free that runs somebody's node, or that it is to be
wiped for a machine that is long gone. So each is marked when a site is restored, and held, until its record is
confirmed: by the node that ran on it before the backup and still does, or by a person. Meanwhile it is not taken,
switched, installed or wiped, boots its disk, and is told no user data.

A pool of addresses that is older than what happened does not know who was given an address since. So it is marked as
well, and gives none, until a person has confirmed it.

Pure. docs/guide/backup.md tells what to do.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ironbell.api.meta import Resource
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.servers.claim import HELD

RESTORED: Final = "ironbell.dev/restored"
"""Annotation on Hardware and pools: of when the backup is, and when it was restored, as JSON."""
COMMAND: Final = "ironbell hardware confirm"
POOL_COMMAND: Final = "ironbell pool confirm"
_HOLD: Final = "restored from a backup of "


class Restored(msgspec.Struct, frozen=True):
    """Where a record is from."""

    backup: str
    """When the backup was made, as RFC 3339; empty if nobody can read it."""
    at: str = ""
    """When it was restored."""


def restored(obj: Resource) -> Restored | None:
    """Where the record of this server or pool is from, while it is not confirmed; None if it is."""
    text = obj.metadata.annotations.get(RESTORED)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Restored)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Restored("")


def _since(obj: Resource, found: Restored) -> Restored:
    """One that was not confirmed since an earlier restore is as old as that."""
    before = restored(obj)
    return found if before is None else Restored(min(before.backup, found.backup), found.at)


def mark_pool(pool: Resource, found: Restored) -> dict[str, str]:
    """The annotation that keeps a pool from giving addresses."""
    return {RESTORED: msgspec.json.encode(_since(pool, found)).decode()}


def mark(hardware: Hardware, found: Restored) -> dict[str, str]:
    """The annotations that hold this server."""
    found = _since(hardware, found)
    annotations = {RESTORED: msgspec.json.encode(found).decode()}
    if HELD not in hardware.metadata.annotations:
        annotations[HELD] = f"{_HOLD}{found.backup}; `{COMMAND} {hardware.metadata.name}` when its record is right"
    return annotations


def confirmation(hardware: Hardware) -> dict[str, Any]:
    """The annotations that let it go again; a person's own hold stays."""
    ours = hardware.metadata.annotations.get(HELD, "").startswith(_HOLD)
    return {RESTORED: None, **({HELD: None} if ours else {})}


def hold_reason(hardware: Hardware) -> str | None:
    """What is said where something is not done; None if the record is confirmed."""
    found = restored(hardware)
    if found is None:
        return None
    name = hardware.metadata.name
    return f"Hardware {name} was {_HOLD}{found.backup or 'unknown time'} and is not confirmed: {COMMAND} {name}"


def no_address_reason(pool: Resource, kind: str) -> str | None:
    """The same for a pool that gives no address."""
    found = restored(pool)
    if found is None:
        return None
    name = pool.metadata.name
    return (
        f"{kind} {name} was {_HOLD}{found.backup or 'unknown time'} and does not know what was given since: exclude "
        f"addresses that are in use, then {POOL_COMMAND} {name}{'' if pool.metadata.namespace else ' --global'}"
    )

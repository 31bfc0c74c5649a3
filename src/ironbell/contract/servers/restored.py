"""Servers whose record was restored from a backup: they are held until the record is confirmed.

A record that is older than the last change may show a server as available that runs a node, or request a wipe for a
machine that was deleted long ago. So each server is marked when a site is restored, and held, until its record is
confirmed: by the node that ran on it before the backup and still does, or by a person. Meanwhile it is not claimed,
powered, installed or wiped, boots its disk, and gets no user data.

A pool of addresses that is older than the last change lacks the addresses that were assigned since. So it is marked as
well, and assigns none, until a person has confirmed it.

Pure. docs/guide/backup.md has the steps.
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
    """Origin of a record."""

    backup: str
    """Time of the backup, as RFC 3339; empty if it cannot be read."""
    at: str = ""
    """Time of the restore."""


def restored(obj: Resource) -> Restored | None:
    """Return the backup that the record of this server or pool is from, while it is not confirmed; None if it is."""
    text = obj.metadata.annotations.get(RESTORED)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Restored)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Restored("")


def _oldest(obj: Resource, new: Restored) -> Restored:
    """Return the older of two restores: a record that was not confirmed since an earlier one is as old as that."""
    previous = restored(obj)
    return new if previous is None else Restored(min(previous.backup, new.backup), new.at)


def mark_pool(pool: Resource, restore: Restored) -> dict[str, str]:
    """The annotation that keeps a pool from giving addresses."""
    return {RESTORED: msgspec.json.encode(_oldest(pool, restore)).decode()}


def mark(hardware: Hardware, restore: Restored) -> dict[str, str]:
    """The annotations that hold this server."""
    restore = _oldest(hardware, restore)
    annotations = {RESTORED: msgspec.json.encode(restore).decode()}
    if HELD not in hardware.metadata.annotations:
        annotations[HELD] = (
            f"{_HOLD}{restore.backup}; run `{COMMAND} {hardware.metadata.name}` once its record is correct"
        )
    return annotations


def confirmation(hardware: Hardware) -> dict[str, Any]:
    """Return the annotations that end the hold; a person's own hold stays."""
    is_own_hold = hardware.metadata.annotations.get(HELD, "").startswith(_HOLD)
    return {RESTORED: None, **({HELD: None} if is_own_hold else {})}


def hold_reason(hardware: Hardware) -> str | None:
    """Return the reason why the server is held; None if the record is confirmed."""
    restore = restored(hardware)
    if restore is None:
        return None
    name = hardware.metadata.name
    since = restore.backup or "unknown time"
    return f"Hardware {name} was {_HOLD}{since} and is not confirmed; check its record, then run {COMMAND} {name}"


def no_address_reason(pool: Resource, kind: str) -> str | None:
    """Return the reason why a pool assigns no address; None if its record is confirmed."""
    restore = restored(pool)
    if restore is None:
        return None
    name = pool.metadata.name
    return (
        f"{kind} {name} was {_HOLD}{restore.backup or 'unknown time'} and lacks the addresses assigned since: exclude "
        f"addresses that are in use, then run {POOL_COMMAND} {name}{'' if pool.metadata.namespace else ' --global'}"
    )

"""Disks by serial number or World Wide Name, as annotations and the agent's variables list them. Sans-IO."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_WWN_PREFIX: Final = re.compile(r"^(wwn-|naa\.|eui\.|uuid\.|nvme\.|0x)+")


@dataclass(frozen=True, slots=True)
class DiskIdentity:
    """Identity of a disk, which distinguishes it from others."""

    serial: str = ""
    wwn: str = ""

    def is_any_of(self, names: Iterable[str]) -> bool:
        """Return whether one of the names is its serial number or its WWN, in any notation of the WWN."""
        own = {self.serial.strip().lower(), _plain_wwn(self.wwn)} - {""}
        return any(name.lower() in own or _plain_wwn(name) in own for name in names)


def names(text: str) -> list[str]:
    """The serial numbers and WWNs in a list that is separated by commas."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def unmatched(names: Sequence[str], disks: Sequence[DiskIdentity]) -> list[str]:
    """Return the names that match no disk."""
    return [name for name in names if not any(disk.is_any_of([name]) for disk in disks)]


def _plain_wwn(text: str) -> str:
    """A WWN without what says in which form it is written."""
    return _WWN_PREFIX.sub("", text.strip().lower())

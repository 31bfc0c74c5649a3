"""What an agent reports of the disks that it wiped, for worlds that have no agent."""

from __future__ import annotations

from typing import Any

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.codec.diskwipe import DiskReport

SIZE = 8_000_000_000


def wipe_report(hardware: Hardware, *, complete: bool = True) -> str:
    """The message of a wipe of the disks that the Hardware names."""
    method = "zeros everywhere" if complete else "zeros at the ends only"
    covered = SIZE if complete else 20 << 20
    disks = [disk.device for disk in hardware.spec.disks]
    return "; ".join(str(DiskReport(disk, "8.0 GB", "X1", method, covered, SIZE, complete)) for disk in disks)


def wipe_action(hardware: Hardware, *, complete: bool = True) -> dict[str, Any]:
    """The fields of an action that has wiped them."""
    return {"image": "wipe", "message": wipe_report(hardware, complete=complete)}

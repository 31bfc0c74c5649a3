"""Report of a wipe about one disk: the line that the agent sends and every other component reads. Sans-IO.

The workflow protocol carries one message per action, so the report is a sentence that people can read and programs can
parse. Reports of several disks are joined by `; `. How long a wipe may take is here too, for both sides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

BASE_TIMEOUT_S: Final = 7200
SLOWEST_BYTES_PER_SECOND: Final = 50_000_000
"""A disk that overwrites more slowly than this is broken."""
MAX_DISKS_PER_MESSAGE: Final = 16
"""So many reports surely fit into an action's message, which the workflow service cuts at 4096 characters."""

_TARGET: Final = r"(?P<device>[^;]+?) \((?P<size>[\d.]+ [kMGTP]?B)(?:, serial (?P<serial>[^;)]*))?\)"
_REPORT: Final = re.compile(
    rf"(?:^|; )(?:kept|wiped) {_TARGET}"
    r"(?: by (?P<method>[^;:]+): (?P<covered>\d+) of (?P<total>\d+) bytes, (?P<state>complete|incomplete))?(?=;|$)"
)


@dataclass(frozen=True, slots=True)
class DiskReport:
    """Method by which one disk was wiped; a disk without a method was kept."""

    device: str
    size: str
    """For people, such as 8.6 GB."""
    serial: str = ""
    method: str = ""
    covered: int = 0
    """How many bytes the method reached."""
    total: int = 0
    complete: bool = False
    """Whether nothing of what was on the disk can be read any more; the agent has checked it."""

    @property
    def kept(self) -> bool:
        return not self.method

    def __str__(self) -> str:
        serial = f", serial {_plain(self.serial)}" if self.serial else ""
        target = f"{_plain(self.device)} ({self.size}{serial})"
        if self.kept:
            return f"kept {target}"
        state = "complete" if self.complete else "incomplete"
        return f"wiped {target} by {_plain(self.method)}: {self.covered} of {self.total} bytes, {state}"


def _plain(text: str) -> str:
    """The text without what separates the parts of a report."""
    return re.sub(r"[;:)(\n]", "_", text).strip()


def parse(message: str) -> list[DiskReport]:
    """The reports in an action's message; an empty list if there are none."""
    return [
        DiskReport(
            device=match["device"],
            size=match["size"],
            serial=match["serial"] or "",
            method=match["method"] or "",
            covered=int(match["covered"] or 0),
            total=int(match["total"] or 0),
            complete=match["state"] == "complete",
        )
        for match in _REPORT.finditer(message)
    ]


def time_limit_s(total_bytes: int) -> int:
    """Return the longest time that wiping so many bytes may take if all of them have to be overwritten."""
    return BASE_TIMEOUT_S + total_bytes // SLOWEST_BYTES_PER_SECOND

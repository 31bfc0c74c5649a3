"""Names of the boot files: which architecture boots which iPXE binary, and where each comes from.

DHCP hands out the names and TFTP and HTTP serve them, so both read this one table.

Source: tinkerbell/tinkerbell: smee/internal/ipxe/binary (names, trace suffix), smee/internal/dhcp (architectures);
RFC 4578 and IANA's registry (client architectures); Debian package `ipxe` (file names).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.listing import first_of

NOT_ALLOWED: Final = "netboot-not-allowed"
"""The name that firmware is given to go on to its disk. It is never served."""
RASPBERRY_PI: Final = 41
"""Client architecture of Raspberry Pis, which announce that of a BIOS."""


@dataclass(frozen=True, slots=True)
class BootFile:
    """An iPXE binary by upstream's name."""

    name: str
    architectures: tuple[int, ...] = ()
    """Client architectures (DHCP option 93) that boot it unless their Hardware names another."""
    packaged: tuple[str, ...] = ()
    """Its names in Debian's package, best first."""
    target: str = ""
    """The make target that `ironbell ipxe build` builds it from; empty: it is not built."""


BOOT_FILES: Final = (
    BootFile("undionly.kpxe", (0, 1, 2, 3, 4, 5, 20), target="bin/undionly.kpxe"),
    BootFile("ipxe.efi", (6, 7, 8, 9, 15, 16), ("snponly.efi",), "bin-x86_64-efi/ipxe.efi"),
    BootFile("snp-arm64.efi", (10, 11, 18, 19, RASPBERRY_PI), ("snponly-arm64.efi", "ipxe-arm64.efi")),
    BootFile("snp-x86_64.efi", packaged=("snponly.efi", "ipxe.efi"), target="bin-x86_64-efi/snponly.efi"),
    BootFile("ipxe.iso"),
    BootFile("ipxe-efi.img"),
)
PACKAGED_NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {file.name: file.packaged for file in BOOT_FILES}
)
BY_ARCHITECTURE: Final[Mapping[int, str]] = MappingProxyType(
    {architecture: file.name for file in BOOT_FILES for architecture in file.architectures}
)

_LISTED, _SHOWN = 12, 100
"""Files in a message, and characters of a name that a stranger sent."""
_TRACE_ID = re.compile(r"(?<=.)-[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")


class NotServedError(IronbellError):
    """A request for a file that does not exist. The message lists the files that are served, unless they are None."""

    reason, retry = "NotServed", Retry.NEVER

    def __init__(self, name: str, served: Sequence[str] | None) -> None:
        known = "" if served is None else f"; served are {first_of(served, _LISTED) or 'no files'}"
        super().__init__(f"{name[:_SHOWN]} does not exist{known}")


def without_trace_id(path: str) -> str:
    """A path without the trace id that upstream's iPXE appends to the name."""
    return _TRACE_ID.sub("", path)

"""iPXE binaries by the names that firmware asks for.

They come from folders, searched in order: the user's asset folder (where `ironbell ipxe build` puts its own), then
the distribution's package. The distribution's file names differ from upstream's; the table maps them. Content is
read once and kept, keyed by the file's identity, so that an exchanged file is served at once.

Source: tinkerbell/tinkerbell: smee/internal/ipxe/binary (names, trace suffix); Debian package `ipxe` (file names).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

DISTRIBUTION_FOLDER = Path("/usr/lib/ipxe")

# upstream's name -> names in the distribution's package, best first
DISTRIBUTION_NAMES = {
    "undionly.kpxe": ("undionly.kpxe",),
    "ipxe.efi": ("ipxe.efi", "snponly.efi"),
    "snp-x86_64.efi": ("snponly.efi", "ipxe.efi"),
    "snp-arm64.efi": ("snponly-arm64.efi", "ipxe-arm64.efi"),
    "ipxe.iso": ("ipxe.iso",),
    "ipxe-efi.img": ("ipxe-efi.img",),
}

_TRACE_SUFFIX = re.compile(r"-[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")


def binary_name(path: str) -> str:
    """The binary that a TFTP or HTTP path names: its last element without a trace suffix; empty if it is none."""
    name = _TRACE_SUFFIX.sub("", path).rsplit("/", 1)[-1]
    return name if name in DISTRIBUTION_NAMES else ""


@dataclass
class IpxeBinaries:
    """Finds and keeps the binaries."""

    folders: tuple[Path, ...] = (DISTRIBUTION_FOLDER,)
    _kept: dict[tuple[str, int, int], bytes] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        """The binary that `path` names, or None. Reads files of at most a few MB; call it off the event loop."""
        name = binary_name(path)
        if not name:
            return None
        found = self.find(name)
        if found is None:
            return None
        status = found.stat()
        identity = (str(found), status.st_mtime_ns, status.st_size)
        if identity not in self._kept:
            self._kept = {key: value for key, value in self._kept.items() if key[0] != identity[0]}
            self._kept[identity] = found.read_bytes()
        return self._kept[identity]

    def has(self, path: str) -> bool:
        """Whether `read` finds the binary that `path` names."""
        name = binary_name(path)
        return bool(name) and self.find(name) is not None

    def find(self, name: str) -> Path | None:
        """Where a binary is, by upstream's name in every folder, then by the distribution's."""
        for folder in self.folders:
            for candidate in (name, *DISTRIBUTION_NAMES[name]):
                if (folder / candidate).is_file():
                    return folder / candidate
        return None

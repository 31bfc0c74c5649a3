"""iPXE binaries by the names that firmware asks for.

They come from folders, searched in order: the user's asset folder (where `ironbell ipxe build` puts its own), then
the distribution's package, whose file names differ from upstream's (`contract.servers.boot_files`). The user's folder
may also hold binaries of other names, which a Hardware can name. Content is read once and kept, keyed by the file's
identity, so that an exchanged file is served at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ironbell.contract.servers.boot_files import NOT_ALLOWED, PACKAGED_NAMES, NotServedError, without_trace_id

DISTRIBUTION_FOLDER = Path("/usr/lib/ipxe")


def binary_name(path: str) -> str:
    """The binary that a TFTP or HTTP path names: its last element without a trace id."""
    return without_trace_id(path).rsplit("/", 1)[-1]


@dataclass
class IpxeBinaries:
    """Finds and keeps the binaries."""

    folders: tuple[Path, ...] = (DISTRIBUTION_FOLDER,)
    _kept: dict[tuple[str, int, int], bytes] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        """The binary that `path` names. Reads files of at most a few MB; call it off the event loop.

        Raises:
            NotServedError: there is none of that name; the message lists those that there are.
        """
        name = binary_name(path)
        found = self.find(name)
        if found is None:
            raise NotServedError(name, None if name == NOT_ALLOWED else self.names())
        status = found.stat()
        identity = (str(found), status.st_mtime_ns, status.st_size)
        if identity not in self._kept:
            self._kept = {key: value for key, value in self._kept.items() if key[0] != identity[0]}
            self._kept[identity] = found.read_bytes()
        return self._kept[identity]

    def has(self, path: str) -> bool:
        """Whether `read` finds the binary that `path` names."""
        return self.find(binary_name(path)) is not None

    def names(self) -> list[str]:
        """The names that `read` finds a binary for."""
        found = {name for name in PACKAGED_NAMES if self.find(name) is not None}
        for folder in self.folders:
            if folder.is_dir():
                found |= {file.name for file in folder.iterdir() if file.is_file()}
        return sorted(found)

    def find(self, name: str) -> Path | None:
        """Where a binary is, by its own name in every folder, else by the distribution's."""
        if not name or "\0" in name:
            return None
        for folder in self.folders:
            for candidate in (name, *PACKAGED_NAMES.get(name, ())):
                if (folder / candidate).is_file():
                    return folder / candidate
        return None

"""iPXE binaries by the names that firmware requests.

Folders are searched in order: the user's asset folder, where `ironbell ipxe build` puts its binaries, then that of the
distribution's package, whose file names differ from upstream's (`contract.servers.boot_files`). The user's folder may
hold binaries of other names, which a Hardware can name. Contents are cached by the file's identity, so that a replaced
file is served at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ironbell.contract.servers.boot_files import NOT_ALLOWED, PACKAGED_NAMES, NotServedError, without_trace_id

DISTRIBUTION_FOLDER = Path("/usr/lib/ipxe")


def binary_name(path: str) -> str:
    """Return the binary's name: the last element of a TFTP or HTTP path, without a trace id."""
    return without_trace_id(path).rsplit("/", 1)[-1]


@dataclass
class IpxeBinaries:
    """Finds and caches binaries."""

    folders: tuple[Path, ...] = (DISTRIBUTION_FOLDER,)
    _cached: dict[tuple[str, int, int], bytes] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        """Return the binary that `path` names. Reads files of at most a few MB; call it off the event loop.

        Raises:
            NotServedError: no binary has that name; the message lists those that exist.
        """
        name = binary_name(path)
        file = self.find(name)
        if file is None:
            raise NotServedError(name, None if name == NOT_ALLOWED else self.names())
        status = file.stat()
        identity = (str(file), status.st_mtime_ns, status.st_size)
        if identity not in self._cached:
            self._cached = {key: value for key, value in self._cached.items() if key[0] != identity[0]}
            self._cached[identity] = file.read_bytes()
        return self._cached[identity]

    def has(self, path: str) -> bool:
        """Return whether `read` can return the binary that `path` names."""
        return self.find(binary_name(path)) is not None

    def names(self) -> list[str]:
        """Return the names of all binaries."""
        packaged = {name for name in PACKAGED_NAMES if self.find(name) is not None}
        folders = (folder for folder in self.folders if folder.is_dir())
        return sorted(packaged | {file.name for folder in folders for file in folder.iterdir() if file.is_file()})

    def find(self, name: str) -> Path | None:
        """Return the file of a binary, by its own name or the distribution's."""
        if not name or "\0" in name:
            return None
        for folder in self.folders:
            for candidate in (name, *PACKAGED_NAMES.get(name, ())):
                if (folder / candidate).is_file():
                    return folder / candidate
        return None

"""From the file name in a request to a path below whatever is served.

Firmware writes leading slashes, backslashes and doubled slashes; upstream's iPXE appends a trace id to the name.
A name that tries to leave the tree is refused here, before anybody opens anything.

Source: tinkerbell/tinkerbell: smee/internal/ipxe/binary/tftp.go.
"""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.servers.boot_files import without_trace_id

_LONGEST = 1024


class PathRefusedError(IronbellError):
    """A file name that cannot name anything that we serve."""

    reason, retry = "PathRefused", Retry.NEVER


def served_path(filename: str) -> str:
    """The relative path that a file name means, with single slashes, without a trace id.

    Raises:
        PathRefusedError: the name is empty, climbs with `..`, or holds control characters.
    """
    if len(filename) > _LONGEST or not filename.isprintable():
        raise PathRefusedError("the file name is too long or holds control characters")
    parts = [part for part in without_trace_id(filename).replace("\\", "/").split("/") if part not in {"", "."}]
    if not parts or ".." in parts:
        raise PathRefusedError(f"the file name {filename!r} does not name a file below the served tree")
    return "/".join(parts)

"""A machine's disk files as block devices, and the partition of an operating system on them.

A loop device is set to clear itself while this process holds it open, so that it is removed when the lab ends, in any
way, and not before its last unmount.

Source: losetup(8), partx(8); Linux: Documentation/ABI/stable/sysfs-block.
"""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry

_SYS_BLOCK = Path("/sys/class/block")
_EXT_MAGIC_AT, _EXT_MAGIC = 0x438, b"\x53\xef"
_COMMAND_TIMEOUT_S = 60
_RELEASE_S, _POLL_S = 20.0, 0.05


class DiskError(IronbellError):
    """A disk file cannot become a block device."""

    reason = "LabDiskFailed"
    retry = Retry.BACKOFF


@dataclass
class LoopDisk:
    """One disk file under a loop device."""

    device: Path
    _held: int

    @classmethod
    def open(cls, file: Path) -> LoopDisk:
        """Attach a file; its partitions become known.

        Raises:
            DiskError: no loop device is available.
        """
        device = Path(_run("losetup", "--find", "--show", "--partscan", str(file)).strip())
        held = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        _run("losetup", "--detach", str(device))
        disk = cls(device, held)
        disk.read_partitions()
        return disk

    def read_partitions(self) -> None:
        """Give the kernel the partitions: one that is built without the table's format cannot read them itself."""
        _quietly("partx", "--update", str(self.device))

    def partitions(self) -> list[Path]:
        """The partitions' devices."""
        folder = _SYS_BLOCK / self.device.name
        names = sorted(path.parent.name for path in folder.glob("*/partition"))
        return [self.device.with_name(name) for name in names]

    def close(self) -> None:
        """Release the device, and wait until the last mount of a machine that is ending has released it: its writes
        must be on the disk before it is read again.

        Raises:
            DiskError: the device is still in use.
        """
        backing = _SYS_BLOCK / self.device.name / "loop/backing_file"
        backing_file = _text(backing)
        _quietly("partx", "--delete", str(self.device))
        os.close(self._held)
        deadline = time.monotonic() + _RELEASE_S
        while _text(backing) == backing_file != "":
            if time.monotonic() > deadline:
                raise DiskError(f"{self.device} is still in use after {_RELEASE_S} s")
            time.sleep(_POLL_S)

    def root(self) -> Path | None:
        """The partition with an operating system that can be started, or None: the largest with Linux's file system."""
        systems = [path for path in self.partitions() if _is_linux(path)]
        return max(systems, key=_size) if systems else None


def grow(disk: LoopDisk, root: Path) -> None:
    """Let the last partition and its file system take what the disk has left.

    An installed system does this at its first boot; one that is started as a container leaves its disks alone.
    """
    number = (_SYS_BLOCK / root.name / "partition").read_text().strip()
    if disk.partitions()[-1:] == [root]:
        subprocess.run(
            ["sfdisk", "--quiet", "--no-reread", "--force", "-N", number, str(disk.device)],
            input=", +\n", text=True, capture_output=True, check=False, timeout=_COMMAND_TIMEOUT_S,
        )  # fmt: skip
        disk.read_partitions()
    _quietly("e2fsck", "-fp", str(root))
    _quietly("resize2fs", str(root))


def _is_linux(device: Path) -> bool:
    with device.open("rb") as stream:
        stream.seek(_EXT_MAGIC_AT)
        return stream.read(len(_EXT_MAGIC)) == _EXT_MAGIC


def _size(device: Path) -> int:
    return int((_SYS_BLOCK / device.name / "size").read_text())


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _quietly(*command: str) -> None:
    """Run a program whose failure shows later, if it matters."""
    subprocess.run(command, capture_output=True, check=False, timeout=_COMMAND_TIMEOUT_S)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_COMMAND_TIMEOUT_S)
    if done.returncode != 0:
        raise DiskError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout

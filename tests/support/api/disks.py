"""File systems of tests' own that become full or slow."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.skips import missing_permission

CGROUPS = Path("/sys/fs/cgroup")
CHUNK_BYTES = 8 << 20


@contextmanager
def mounted(place: Path, *arguments: str) -> Iterator[Path]:
    """A file system at a place that is made for it."""
    place.mkdir()
    subprocess.run(["mount", *arguments, str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@contextmanager
def ext4_disk(folder: Path, *, mib: int) -> Iterator[Path]:
    """ext4 on a block device of its own, without a reserve for root."""
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(mib << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
    with mounted(folder / "disk", "-o", "loop", str(image)) as place:
        yield place


def fill(disk: Path) -> Path:
    """A file that takes all the room there is."""
    filler = disk / "filler"
    descriptor = os.open(filler, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    while os.fstatvfs(descriptor).f_bavail * os.fstatvfs(descriptor).f_frsize > 2 * CHUNK_BYTES:
        os.posix_fallocate(descriptor, os.fstat(descriptor).st_size, CHUNK_BYTES)
    with contextlib.suppress(OSError):
        for size in (1 << 20, 4096):
            with contextlib.suppress(OSError):
                while True:
                    os.write(descriptor, b"\1" * size)
    os.close(descriptor)
    return filler


class SlowDisk:
    """Lets the kernel hold back what processes write to a disk's block device."""

    def __init__(self, group: Path) -> None:
        self._group = group

    def slow_down(self, pid: int) -> None:
        """Let this process feel it until it ends."""
        (self._group / "cgroup.procs").write_text(str(pid))


@contextmanager
def slow_disk(disk: Path, *, writes_per_second: int) -> Iterator[SlowDisk]:
    """A limit on the write requests that the block device of a mounted file system takes from chosen processes: each
    that waits for the disk waits as for one that is no faster. Skips where the kernel or the container has no such
    limit."""
    number = disk.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    name = f"ironbell-slow-disk-{os.getpid()}"
    if (CGROUPS / "blkio" / "blkio.throttle.write_iops_device").exists():
        group, rule, limit = CGROUPS / "blkio" / name, "blkio.throttle.write_iops_device", f"{device} "
    else:
        group, rule, limit = CGROUPS / name, "io.max", f"{device} wiops="
    try:
        if rule == "io.max":
            (CGROUPS / "cgroup.subtree_control").write_text("+io")
        group.mkdir()
    except OSError as error:
        missing_permission(f"a cgroup that limits writes to a block device: {error}")
    try:
        (group / rule).write_text(f"{limit}{writes_per_second}")
        yield SlowDisk(group)
    finally:
        group.rmdir()

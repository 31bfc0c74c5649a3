"""Mount the file system of a disk for the time of an action, and name files in it safely.

The mount table is this process's own, so that nothing stays mounted when the action is killed. Paths are resolved
inside the mounted tree, as a chroot would: an absolute symbolic link, or one with `..`, cannot lead out of it.

Source: symlink(7), path_resolution(7).
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ironbell.agent.actions.context import ActionError
from ironbell.agent.actions.disks import kernel
from ironbell.agent.actions.disks.devices import Device

_MAX_LINKS = 40


@contextlib.contextmanager
def mounted(device: Device, fs_type: str, *, read_only: bool = False) -> Iterator[Path]:
    """Mount the device's file system while the context lasts; yields its root. Afterwards the data is on the disk.

    Raises:
        ActionError: the device has no such file system.
    """
    kernel.own_mounts()
    point = tempfile.mkdtemp(prefix="ironbell-mount-")
    try:
        mount(device, fs_type, point, read_only=read_only)
        try:
            yield Path(point)
        finally:
            release(point)
    finally:
        with contextlib.suppress(OSError):
            Path(point).rmdir()


def mount(device: Device, fs_type: str, point: str, *, read_only: bool = False) -> None:
    """Mount a device at an existing folder.

    Raises:
        ActionError: it cannot be mounted as this type.
    """
    if not fs_type:
        raise ActionError(f"FS_TYPE is not set: name the file system of {device}, such as ext4", exit_status=20)
    try:
        kernel.mount(device.path, point, fs_type=fs_type, flags=kernel.MS_RDONLY if read_only else 0)
    except OSError as error:
        raise ActionError(_mount_failure(error, device, fs_type)) from error


def _mount_failure(error: OSError, device: Device, fs_type: str) -> str:
    if error.errno == errno.ENODEV:
        return f"this system cannot mount {fs_type} file systems; check FS_TYPE"
    if error.errno == errno.EINVAL:
        return f"{device} has no {fs_type} file system; check DEST_DISK (or BLOCK_DEVICE) and FS_TYPE"
    if error.errno == errno.EBUSY:
        return f"{device} is in use by another program or mount"
    if error.errno == errno.ENOTBLK:
        return f"{device} is not a block device"
    return f"cannot mount {device} as {fs_type}: {error.strerror}"


def release(point: str) -> None:
    """Write everything back and unmount; a file system that a remaining process uses is detached."""
    descriptor = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        kernel.unmount(point)
    except OSError:
        os.sync()
        kernel.unmount(point, detach=True)


def inside(root: Path, path: str) -> Path:
    """Path of a file of the mounted system, with all symbolic links followed within `root`; it need not exist.

    Raises:
        ActionError: the links form a loop, or a part of the path is not a folder.
    """
    pending = list(reversed(_parts(path)))
    done: list[str] = []
    links = 0
    while pending:
        part = pending.pop()
        if part == "..":
            done = done[:-1]
            continue
        candidate = root.joinpath(*done, part)
        if not candidate.is_symlink():
            done.append(part)
            continue
        links += 1
        if links > _MAX_LINKS:
            raise ActionError(f"{path}: too many symbolic links")
        target = candidate.readlink()
        if target.is_absolute():
            done = []
        pending += reversed(_parts(str(target)))
    return root.joinpath(*done)


def _parts(path: str) -> list[str]:
    return [part for part in PurePosixPath(path).parts if part not in {"/", "//", "."}]


def create_folders(root: Path, folder: str, *, mode: int, owner: tuple[int, int]) -> Path:
    """A folder of the mounted system, created with its missing parents; existing ones keep mode and owner."""
    place = inside(root, folder)
    missing: list[Path] = []
    current = place
    while not current.exists():
        missing.append(current)
        current = current.parent
    if not current.is_dir():
        raise ActionError(f"/{current.relative_to(root)} exists and is not a folder")
    for path in reversed(missing):
        path.mkdir()
        os.chown(path, *owner)
        path.chmod(mode)
    return place


def write_file(
    root: Path, path: str, contents: bytes, *, mode: int, folder_mode: int, owner: tuple[int, int] = (0, 0)
) -> None:
    """Put one file into the mounted system; it appears whole or not at all.

    Raises:
        ActionError: the path is a folder, or leads through something that is not a folder.
    """
    # A link at the end of the path is followed too; its target's folder may be missing as well.
    target = inside(root, path)
    if target.is_dir():
        raise ActionError(f"{path} is a folder on the disk")
    create_folders(root, "/" + str(target.parent.relative_to(root)), mode=folder_mode, owner=owner)
    temporary = target.with_name(f".{target.name[:200]}.ironbell")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchown(descriptor, *owner)
        os.fchmod(descriptor, mode)
        file.write(contents)
        file.flush()
        os.fsync(descriptor)
    temporary.replace(target)

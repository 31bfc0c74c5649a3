"""Folders that a privileged process can write in without being led elsewhere.

A service account that may write in a folder can put a symbolic link where root creates, changes or deletes files next.
Here every folder is opened by its descriptor, without following links, and must belong to this process; each operation
names one entry of an open folder. Where something else is in the way, it is removed, never followed. What a service
must write itself lies in a folder that is given to it, and in which its giver writes nothing afterwards.

Source: openat(2), path_resolution(7), symlink(7).
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from ironbell.base.errors import IronbellError, Retry

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_THIS = {errno.ENOTDIR, errno.ELOOP}
"""Errors of opening a folder whose name is a file or a link."""
_BY_OTHERS = 0o022
_COPY_BYTES = 1 << 30
_DEEPEST = 8
"""Deepest level below a folder whose content is handed over; services of ours write nothing deeper."""


class FolderNotOwnError(IronbellError):
    """A folder belongs to another account, which could change its files."""

    reason = "FolderNotOwn"
    retry = Retry.NEVER


class OwnFolder:
    """An open folder that belongs to this process. Use it as a context manager, or `close` it."""

    def __init__(self, descriptor: int, path: Path) -> None:
        """Take over an open descriptor; `path` is for messages."""
        self._descriptor = descriptor
        self.path = path

    @classmethod
    def open(cls, path: Path) -> OwnFolder:
        """Open a folder by its path; the caller vouches for the folders above it.

        Raises:
            FolderNotOwnError: it belongs to another account.
            OSError: it does not exist, or is not a folder but a link, for example.
        """
        folder = cls.open_foreign(path)
        status = folder.status()
        if _is_privileged() and status.st_uid != os.geteuid():
            folder.close()
            raise FolderNotOwnError(
                f'Folder "{path}" belongs to user id {status.st_uid}, which could redirect what is written there. '
                f"Run `chown {os.geteuid()} {path}`, or give another folder."
            )
        return folder

    @classmethod
    def open_foreign(cls, path: Path) -> OwnFolder:
        """Open a folder of any owner, only for taking it over.

        Raises:
            OSError: it does not exist, or is not a folder but a link, for example.
        """
        return cls(os.open(path, _FOLDER), path)

    def __enter__(self) -> OwnFolder:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def status(self) -> os.stat_result:
        """Owner, group and mode of the folder itself."""
        return os.fstat(self._descriptor)

    def names(self) -> list[str]:
        """The names of all entries, sorted."""
        return sorted(os.listdir(self._descriptor))  # noqa: PTH208 - by descriptor

    def entry(self, name: str) -> os.stat_result | None:
        """Return the status of the entry with this name, a link as the link itself; None if there is no entry."""
        try:
            return os.stat(_checked(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def allow(self, mode: int, *, group: int = -1) -> None:
        """Set the mode of the folder itself, and its group.

        Raises:
            OSError: this process may not.
        """
        status = self.status()
        if group not in {-1, status.st_gid}:
            os.fchown(self._descriptor, -1, group)
        if stat.S_IMODE(status.st_mode) != mode:
            os.fchmod(self._descriptor, mode)

    def claim(self) -> None:
        """Take the folder itself from the account that it belongs to; what is in it keeps its owner.

        Raises:
            OSError: this process may not.
        """
        os.fchown(self._descriptor, os.geteuid(), os.getegid())

    def sub(self, name: str, *, mode: int = 0o755) -> OwnFolder:
        """A folder in this one, created if need be.

        An entry that is not a folder, belongs to another account or may be written by others is removed: it was
        not made here, and what is in it cannot be trusted.

        Raises:
            OSError: it cannot be created.
        """
        descriptor = self._folder(name, mode)
        status = os.fstat(descriptor)
        if _is_privileged() and (status.st_uid != os.geteuid() or status.st_mode & _BY_OTHERS):
            os.close(descriptor)
            self.remove(name)
            descriptor = self._folder(name, mode)
        folder = OwnFolder(descriptor, self.path / name)
        folder.allow(mode)
        return folder

    def find(self, name: str) -> OwnFolder | None:
        """Return a folder in this one, of any owner; None if the entry is not a folder. Only for taking it over."""
        try:
            return OwnFolder(os.open(_checked(name), _FOLDER, dir_fd=self._descriptor), self.path / name)
        except OSError as error:
            if error.errno in {errno.ENOENT, *_NOT_THIS}:
                return None
            raise

    def _folder(self, name: str, mode: int) -> int:
        """Open a folder; a file or link that has the name is removed."""
        while True:
            with contextlib.suppress(FileExistsError):
                os.mkdir(_checked(name), mode, dir_fd=self._descriptor)
            try:
                return os.open(name, _FOLDER, dir_fd=self._descriptor)
            except OSError as error:
                if error.errno not in _NOT_THIS:
                    raise
                self.remove(name)

    def read(self, name: str, *, limit: int) -> tuple[bytes, os.stat_result] | None:
        """The beginning of a regular file, and its status; None if there is none of that name.

        Raises:
            OSError: it cannot be read.
        """
        descriptor = _open_entry(self._descriptor, _checked(name))
        if descriptor is None:
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit), os.fstat(file.fileno())

    def write(self, name: str, content: bytes, *, mode: int) -> None:
        """Replace a file at once.

        Raises:
            OSError: it cannot be written.
        """
        with self._replacing(name, mode) as descriptor, os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)

    def place(self, source: Path, name: str) -> None:
        """Make `name` the same file as `source`, at once: a link to it where everybody may read that, else a copy.

        Nothing is done if it already is the same file.

        Raises:
            OSError: one of them cannot be read or written.
        """
        status = source.stat()
        existing = self.entry(name)
        if existing is not None and stat.S_ISREG(existing.st_mode):
            is_same_version = (existing.st_size, existing.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
            if is_same_version or os.path.samestat(existing, status):
                return
        if status.st_mode & 0o004 and not source.is_symlink() and self._linked(source, name):
            return
        # a link would show the original's mode, which keeps others out
        with source.open("rb") as file, self._replacing(name, 0o644) as descriptor:
            while os.sendfile(descriptor, file.fileno(), None, _COPY_BYTES):
                pass
            os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _linked(self, source: Path, name: str) -> bool:
        partial = self._partial(name)
        try:
            os.link(source, partial, dst_dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:  # another file system, or not allowed: a copy does as well
            return False
        self._rename(partial, name)
        return True

    @contextmanager
    def _replacing(self, name: str, mode: int) -> Iterator[int]:
        """A new file, which takes the name at the end."""
        partial = self._partial(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(partial, flags, 0o600, dir_fd=self._descriptor)
        try:
            os.fchmod(descriptor, mode)
            yield descriptor
        except BaseException:
            os.unlink(partial, dir_fd=self._descriptor)
            raise
        finally:
            os.close(descriptor)
        self._rename(partial, name)

    def _partial(self, name: str) -> str:
        partial = f".{_checked(name)}.partial"
        self.remove(partial)
        return partial

    def _rename(self, partial: str, name: str) -> None:
        existing = self.entry(name)
        if existing is not None and stat.S_ISDIR(existing.st_mode):
            self.remove(name)
        os.rename(partial, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove whatever has the name, a folder with all that is in it; links are removed, not followed.

        Raises:
            OSError: it cannot be removed.
        """
        try:
            os.unlink(_checked(name), dir_fd=self._descriptor)
        except FileNotFoundError:
            return
        except IsADirectoryError:
            self._remove_folder(name)

    def _remove_folder(self, name: str) -> None:
        """Remove a folder without going down into it: folders in it are moved up here first, however deep they are."""
        pending, number = [name], 1
        while pending:
            current = pending.pop()
            folder = self.find(current)
            if folder is None:
                continue
            with folder:
                if folder.status().st_uid != os.geteuid():
                    folder.claim()
                folder.allow(0o700)  # its former owner adds nothing any more
                for entry in folder.names():
                    try:
                        os.unlink(entry, dir_fd=folder._descriptor)
                    except IsADirectoryError:
                        while self.entry(f".removed-{number}") is not None:
                            number += 1
                        pending.append(f".removed-{number}")
                        os.rename(entry, pending[-1], src_dir_fd=folder._descriptor, dst_dir_fd=self._descriptor)
            os.rmdir(current, dir_fd=self._descriptor)

    def listen(self, name: str) -> socket.socket:
        """A socket bound to this name; who may connect follows from the process's umask.

        Raises:
            OSError: it cannot be bound.
        """
        self.remove(name)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        try:
            sock.bind(f"/proc/self/fd/{self._descriptor}/{name}")
        except BaseException:
            sock.close()
            raise
        return sock

    def take(self, name: str) -> OwnFolder:
        """Take a folder in this one from an account that wrote in it; only files of this process stay in it.

        Raises:
            OSError: it cannot be created or taken.
        """
        folder = self.find(name)
        if folder is None or not _is_privileged():
            return self.sub(name)
        with contextlib.ExitStack() as stack:
            stack.callback(folder.close)
            folder.claim()
            folder.allow(0o755)
            for entry in folder.names():
                status = folder.entry(entry)
                if status is not None and (status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode)):
                    folder.remove(entry)
            stack.pop_all()
        return folder

    def give_folder(self, *, user: int, group: int) -> None:
        """Let an account write in the folder itself; what is in it keeps its owner. See `give`.

        Raises:
            OSError: this process may not.
        """
        _give(self._descriptor, user, group)

    def give(self, name: str, *, user: int, group: int) -> None:
        """Have a folder in this one that belongs to an account, with all that its former owner had in it.

        Nothing else is ever handed over: neither what a link points to, nor files that belong to somebody else or are
        known by another name as well. May be repeated after it was interrupted. Where this process may not give
        anything away, as in a pod without CAP_CHOWN, the account gets in by its group.

        Raises:
            OSError: neither is possible.
        """
        descriptor = self._folder(name, 0o700)
        try:
            status = os.fstat(descriptor)
            if status.st_uid == user or (status.st_gid == group and status.st_mode & 0o070 == 0o070):
                return
            with contextlib.suppress(PermissionError):
                _hand_over(descriptor, status.st_uid, user, group)
            _give(descriptor, user, group, mode=0o700)
        finally:
            os.close(descriptor)


def _is_privileged() -> bool:
    """Return whether this process has rights that the owner of a folder lacks; else a wrong folder does no harm."""
    return os.geteuid() == 0


def _checked(name: str) -> str:
    """The same name.

    Raises:
        ValueError: it is not the name of one entry, which is a defect of the caller.
    """
    if not name or "/" in name or name in {".", ".."}:
        raise ValueError(f"{name!r} is not the name of an entry")
    return name


def _give(descriptor: int, user: int, group: int, *, mode: int = 0o755) -> None:
    """Give a folder to an account, or where that is not allowed, let the account in by its group."""
    try:
        os.fchown(descriptor, user, group)
        os.fchmod(descriptor, mode)
    except PermissionError:
        os.fchown(descriptor, -1, group)
        os.fchmod(descriptor, 0o2770 | mode)


def _open_entry(folder: int, name: str) -> int | None:
    """Open an entry of a folder without following links; None if it does not exist, or is a link or a socket."""
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP, errno.ENXIO}:
            return None
        raise


def _hand_over(folder: int, former: int, user: int, group: int, *, depth: int = 0) -> None:
    """Give what is in a folder to an account; the folder itself comes last, so that an interruption can be repaired."""
    for name in os.listdir(folder) if depth < _DEEPEST else []:
        descriptor = _open_entry(folder, name)
        if descriptor is None:
            continue
        try:
            status = os.fstat(descriptor)
            if status.st_uid not in {former, user}:
                continue
            if stat.S_ISDIR(status.st_mode):
                _hand_over(descriptor, former, user, group, depth=depth + 1)
                os.fchown(descriptor, user, group)
                os.fchmod(descriptor, 0o700)
            elif stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                os.fchown(descriptor, user, group)
                os.fchmod(descriptor, 0o640)
        finally:
            os.close(descriptor)

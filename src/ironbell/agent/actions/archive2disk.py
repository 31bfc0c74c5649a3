"""archive2disk: unpack a tar archive from HTTP(S) onto a file system.

`ARCHIVE_URL`, `ARCHIVE_TYPE` (`tar`, `targz`; compression is recognised by the content), `DEST_DISK`, `FS_TYPE`,
`DEST_PATH`; `TARFILE_CHECKSUM` (`sha256:…` or `sha512:…` of the decompressed tar) or `ARCHIVE_CHECKSUM` (of the file as
it is stored on the server; ours) is required unless `INSECURE_NO_TARFILE_CHECKSUM_VERIFICATION=true`;
`HTTP_CLIENT_TIMEOUT_MINUTES` (5) limits the time without data.

Ownership by number, modes, times, extended attributes, hard links and device nodes are restored. A folder that
exists, or a link to one, is kept and filled; another file is replaced. All work is done in a process whose root is
the file system, so that no name and no link in the archive leads out of it.

Source: tinkerbell/actions: archive2disk; POSIX pax interchange format; tar(5).
"""

from __future__ import annotations

import contextlib
import os
import stat
import tarfile
import traceback
from collections.abc import Iterator
from pathlib import Path

from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, mounts
from ironbell.agent.actions.streams import checksum, decompress
from ironbell.agent.actions.streams.download import Download, Patience
from ironbell.agent.actions.streams.meter import Meter
from ironbell.agent.actions.streams.relay import relayed

_TYPES = {"tar", "targz"}
_XATTR_PREFIX = "SCHILY.xattr."


def run(context: Context) -> None:
    """Unpack the archive."""
    if (kind := context.required("ARCHIVE_TYPE").lower()) not in _TYPES:
        raise ActionError(f"ARCHIVE_TYPE is {kind!r}; write tar or targz", exit_status=10)
    expected, served = checksum.expected(context, "TARFILE_CHECKSUM"), checksum.expected(context, "ARCHIVE_CHECKSUM")
    if expected is None and served is None and not context.flag("INSECURE_NO_TARFILE_CHECKSUM_VERIFICATION"):
        raise ActionError(
            "TARFILE_CHECKSUM is not set; set it to sha256:… of the decompressed tar, set ARCHIVE_CHECKSUM, or "
            "set INSECURE_NO_TARFILE_CHECKSUM_VERIFICATION=true",
            exit_status=20,
        )
    device = devices.resolve(context, context.required("DEST_DISK"))
    target = context.required("DEST_PATH")
    silent_s = 60 * context.number("HTTP_CLIENT_TIMEOUT_MINUTES", default=5)
    download = Download(context.required("ARCHIVE_URL"), log=context.log, patience=Patience(total_s=silent_s))
    download.open()
    with contextlib.closing(download), mounts.mounted(device, context.required("FS_TYPE")) as root:
        chunks = download.chunks()
        tar = _tar(served.over(chunks) if served else chunks)
        count = _unpack(context, download, expected.over(tar) if expected else tar, root=root, target=target)
        if expected:
            expected.verify("the archive")
        if served:
            served.verify("the downloaded file")
    context.log(f"unpacked {devices.size_text(count)} into {target} on {device}")


def _tar(chunks: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= tarfile.BLOCKSIZE:
            break

    def all_chunks() -> Iterator[bytes]:
        yield head
        yield from chunks

    if (kind := decompress.sniff(head)) is not None:
        return decompress.expand(all_chunks(), kind)
    return all_chunks()


def _unpack(context: Context, download: Download, tar: Iterator[bytes], *, root: Path, target: str) -> int:
    """Send the tar to a child process that lives inside the mounted system; return the number of bytes sent."""
    reading, writing = os.pipe()
    error_reading, error_writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.close(error_reading)
        os._exit(_child(reading, error_writing, root=root, target=target))
    os.close(reading)
    os.close(error_writing)
    meter = Meter(context, operation="archive2disk")
    count = 0
    # The thread starts only after the fork.
    with relayed(tar) as chunks, os.fdopen(error_reading, "rb") as errors:
        try:
            with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb", buffering=0) as pipe:
                for chunk in chunks:
                    _write_all(pipe.fileno(), chunk)
                    count += len(chunk)
                    meter.update(count, share=download.offset / download.total if download.total else None)
        finally:
            message = errors.read().decode("utf-8", "replace")
            _, status = os.waitpid(child, 0)
        if status:
            raise ActionError(message or "the archive could not be unpacked")
    meter.finish(count)
    return count


def _write_all(descriptor: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _unfiltered(member: tarfile.TarInfo, _path: str) -> tarfile.TarInfo:
    """Extract the member unchanged: the process sees only the disk's file system."""
    return member


def _child(reading: int, error_writing: int, *, root: Path, target: str) -> int:
    """Unpack standard tar from a pipe below `target`; return the exit status. Never raises."""
    try:
        os.chroot(root)
        os.chdir("/")
        Path(target).mkdir(parents=True, exist_ok=True)
        with os.fdopen(reading, "rb") as pipe:
            with tarfile.open(fileobj=pipe, mode="r|") as archive:
                # As an attribute: the in-memory OS's Python does not know it as an argument yet.
                archive.extraction_filter = _unfiltered
                for member in archive:
                    _extract(archive, member, Path(target))
            while pipe.read(1 << 20):
                pass
    except (tarfile.TarError, EOFError) as error:
        message = f"the archive is not a complete tar file: {error}"
    except OSError as error:
        message = f"unpacking failed: {error.strerror}{f': {error.filename}' if error.filename else ''}"
    except BaseException:  # noqa: BLE001 - the boundary of the child process
        message = f"unpacking failed: {traceback.format_exc(limit=-1).strip().splitlines()[-1]}"
    else:
        return 0
    os.write(error_writing, message.encode("utf-8", "replace"))
    return 1


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    member.name = "/".join(part for part in member.name.split("/") if part not in {"", ".", ".."})
    if not member.name:
        return
    if member.islnk():
        member.linkname = "/".join(part for part in member.linkname.split("/") if part not in {"", ".", ".."})
    path = target / member.name
    if member.isdir() and path.is_dir():
        if not path.is_symlink():
            os.chown(path, member.uid, member.gid)
            path.chmod(member.mode & 0o7777)
        return
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
    # A hard link has the attributes of its file already.
    archive.extract(member, target, set_attrs=not member.islnk(), numeric_owner=True)
    for key, value in member.pax_headers.items():
        if key.startswith(_XATTR_PREFIX):
            os.setxattr(
                path, key[len(_XATTR_PREFIX) :], value.encode("utf-8", "surrogateescape"), follow_symlinks=False
            )

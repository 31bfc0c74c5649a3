"""The format of a backup: a tar file with a manifest, the database, and keys if they were requested.

The manifest is the first member and names the others with size and checksum; nothing else is ever extracted from the
file.

Failure modes: `ArchiveError` for a file that is not a backup, is incomplete or was changed.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from ironbell.apiserver.store.copying import Progress
from ironbell.base.errors import IronbellError, Retry

FORMAT = 1
MANIFEST = "manifest.json"
_BLOCK = 1 << 20
_MANIFEST_LIMIT = 4 << 20


class ArchiveError(IronbellError):
    """A file is not a backup, or was changed."""

    reason = "BackupUnusable"
    retry = Retry.NEVER


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a backup."""

    name: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The description of a backup."""

    format: int = FORMAT
    ironbell: str
    """The release that created it."""
    created: str
    schema: int
    revision: int
    objects: int
    encryption_keys: tuple[str, ...]
    """Ids of the keys that encrypt the Secrets in it."""
    includes_key: bool
    includes_credentials: bool
    items: tuple[Item, ...]


def describe(name: str, file: Path, progress: Progress) -> Item:
    """A file's entry for the manifest."""
    digest, done, size = hashlib.sha256(), 0, file.stat().st_size
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            digest.update(block)
            done += len(block)
            progress(done, size)
    return Item(name=name, size=done, sha256=digest.hexdigest())


def write_archive(target: Path, manifest: Manifest, files: Sequence[tuple[Item, Path]]) -> None:
    """Write a backup, readable by its owner only, completely or not at all."""
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw:
            with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
                text = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
                archive.addfile(_member(MANIFEST, len(text)), io.BytesIO(text))
                for item, file in files:
                    with file.open("rb") as opened:
                        archive.addfile(_member(item.name, item.size), opened)
            raw.flush()
            os.fsync(raw.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


@contextmanager
def reading(path: Path) -> Iterator[tuple[Manifest, tarfile.TarFile]]:
    """Open a backup, and yield it with its manifest.

    Raises:
        ArchiveError: it is not a backup, or has a newer format.
    """
    try:
        with _opened(path) as archive:
            yield _manifest(path, archive), archive
    except (tarfile.TarError, EOFError) as error:
        raise ArchiveError(f"{path} is not a backup of `ironbell backup`, or it is incomplete: {error}") from error


def _opened(path: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(path, mode="r:")
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise ArchiveError(f"{path} cannot be read: {problem}; use a file that `ironbell backup` wrote") from error


def _manifest(path: Path, archive: tarfile.TarFile) -> Manifest:
    first = archive.next()
    file = archive.extractfile(first) if first is not None and first.name == MANIFEST and first.isreg() else None
    if file is None:
        raise ArchiveError(f"{path} is not a backup of `ironbell backup`: it does not begin with a {MANIFEST}")
    try:
        manifest = msgspec.json.decode(file.read(_MANIFEST_LIMIT), type=Manifest)
    except msgspec.MsgspecError as error:
        raise ArchiveError(f"{path}: its {MANIFEST} is not readable: {error}") from error
    if manifest.format != FORMAT:
        raise ArchiveError(f"{path} has format {manifest.format}, this program knows {FORMAT}: use a newer release")
    for item in manifest.items:
        place = PurePosixPath(item.name)
        if place.is_absolute() or ".." in place.parts or not place.parts:
            raise ArchiveError(f"{path}: the name {item.name!r} in its {MANIFEST} leads out of the folder")
    return manifest


def extract(path: Path, manifest: Manifest, archive: tarfile.TarFile, folder: Path, progress: Progress) -> None:
    """Extract the files into a folder, and check each against the manifest.

    Raises:
        ArchiveError: a file is missing or was changed.
    """
    total, extracted = sum(item.size for item in manifest.items), 0
    for item in manifest.items:
        try:
            member = archive.getmember(item.name)
        except KeyError as error:
            raise ArchiveError(f"{path}: {item.name} is missing; take another backup") from error
        source = archive.extractfile(member) if member.isreg() and member.size == item.size else None
        if source is None:
            raise ArchiveError(f"{path}: {item.name} does not have the size that was written; take another backup")
        target = folder / item.name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _copy(source, target, extracted, total, progress) != item.sha256:
            raise ArchiveError(f"{path}: the checksum of {item.name} is wrong; take another backup")
        extracted += item.size


def _copy(source: IO[bytes], target: Path, extracted: int, total: int, progress: Progress) -> str:
    digest, done = hashlib.sha256(), 0
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        while block := source.read(_BLOCK):
            digest.update(block)
            file.write(block)
            done += len(block)
            progress(extracted + done, total)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()

"""Restore a site from a backup.

Everything is extracted and checked beside the site before any file of the site is touched; then files are replaced by
rename, the database last. The previous files are kept in a separate folder. A crash in between leaves a folder that
does not start as if it were empty (see `apiserver.store.guards`), and another restore continues.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ironbell.apiserver.store import guards
from ironbell.apiserver.store.copying import check_database, move_revision_on
from ironbell.apiserver.store.keys import KeyFile, Keyring
from ironbell.app.site.data_folder import CREDENTIALS, DATABASE, KEY_FILE, locked
from ironbell.app.site.restored import MARKER, write_marker
from ironbell.app.storage.archive import Manifest, extract, reading
from ironbell.app.storage.backup import Stage
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError, Retry

REVISION_STEP = 1_000_000_000
"""More revisions than a site creates between a backup and its restore."""
_WORK = ".restore."


class RestoreError(IronbellError):
    """A site cannot be restored from a backup; nothing of it was changed."""

    reason = "RestoreFailed"
    retry = Retry.NEVER


@dataclass(frozen=True, kw_only=True)
class RestoreOptions:
    """The backup to restore, and the folder of the site."""

    source: Path
    folder: Path
    key_file: Path | None = None
    """File with the site's keys, if it is not in the data folder."""
    overwrite: bool = False
    revision_step: int = REVISION_STEP
    trusts_records: bool = False
    """Whether nothing was claimed, installed or released since the backup, so that no server is held."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore."""

    manifest: Manifest
    revision: int
    """The revision at which the site continues."""
    kept: Path | None
    """Folder of the previous files."""


def restore_backup(options: RestoreOptions, *, clock: Clock, stage: Stage) -> Restored:
    """Restore a site; blocks.

    Raises:
        RestoreError: there is a site already, or a key is missing.
        DataFolderError: a site runs there.
        ArchiveError: the backup is damaged.
        StorageError: its database is, or files of the site cannot be used.
        OSError: a file cannot be written.
    """
    folder, database = options.folder, options.folder / DATABASE
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(folder):
        lock = guards.hold(database)
        try:
            if guards.size_of(database) and not options.overwrite:
                raise RestoreError(
                    f"{folder} already has a site: choose another --data-dir, or use --force to replace it (its files "
                    "are moved to another folder)"
                )
            for stale in folder.glob(_WORK + "*"):  # of one that was killed
                shutil.rmtree(stale)
            with tempfile.TemporaryDirectory(dir=folder, prefix=_WORK) as work:
                return _restore(options, Path(work), lock, clock=clock, stage=stage)
        finally:
            os.close(lock)


def _restore(options: RestoreOptions, work: Path, lock: int, *, clock: Clock, stage: Stage) -> Restored:
    folder = options.folder
    with reading(options.source) as (manifest, archive):
        extract(options.source, manifest, archive, work, stage("extracting"))
    key_file = KeyFile(options.key_file or folder / KEY_FILE)
    present = key_file.read()
    ring = _keys(options, manifest, key_file, present, work)
    finding = check_database(work / DATABASE, ring, stage("checking"))
    if finding.problems or finding.locked:
        raise RestoreError(f"the database in {options.source} is damaged: {(*finding.problems, 'unreadable rows')[0]}")
    revision = move_revision_on(work / DATABASE, options.revision_step)
    kept = _put_aside(folder, work, clock)
    if ring is not None and ring != present:
        key_file.write(ring)
    for name in CREDENTIALS:
        if (work / name).exists():
            (work / name).rename(folder / name)
    if options.trusts_records:
        (folder / MARKER).unlink(missing_ok=True)
    else:
        write_marker(folder, manifest.created, clock)
    guards.mark_created(lock)
    (work / DATABASE).rename(folder / DATABASE)
    _sync(folder)
    return Restored(manifest, revision, kept)


def _keys(
    options: RestoreOptions, manifest: Manifest, key_file: KeyFile, present: Keyring | None, work: Path
) -> Keyring | None:
    """The keys of the restored site: its own, and after them those in the backup."""
    packed = KeyFile(work / KEY_FILE).read()
    ring = present.with_more(packed.keys) if present and packed else present or packed
    known = {key.id.hex() for key in ring.keys} if ring is not None else set()
    if missing := [name for name in manifest.encryption_keys if name not in known]:
        raise RestoreError(
            f"the Secrets in {options.source} are encrypted with the key {', '.join(missing)}, which is neither in it "
            f"nor in {key_file.path}: copy the key file there, or name its place with --encryption-key-file"
        )
    return ring


def _put_aside(folder: Path, work: Path, clock: Clock) -> Path | None:
    """Move the files that will be replaced into a new folder; the database is first, so that no other database is ever
    beside its write-ahead log."""
    database = folder / DATABASE
    names = [DATABASE, guards.wal_of(database).name, f"{DATABASE}-shm"]
    names += [name for name in CREDENTIALS if (work / name).exists()]
    existing = [name for name in names if (folder / name).exists()]
    if not existing:
        return None
    kept = _new_folder(folder, clock)
    for name in existing:
        (folder / name).rename(kept / name)
    _sync(folder)
    return kept


def _new_folder(folder: Path, clock: Clock) -> Path:
    stem = f"replaced-{clock.now():%Y%m%dT%H%M%SZ}"
    number = 1
    while True:
        kept = folder / (stem if number == 1 else f"{stem}-{number}")
        try:
            kept.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
        else:
            return kept


def _sync(folder: Path) -> None:
    """Flush a folder, so that its renames survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

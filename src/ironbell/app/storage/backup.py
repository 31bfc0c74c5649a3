"""Take a backup of a site, running or not.

By default the backup has only the database. Keys are left out, because an account with the key of the Secrets, or that
of the certificate authority, controls the site: they belong in another place than the backups.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ironbell.apiserver.store.copying import Progress, check_database, copy_database
from ironbell.apiserver.store.keys import KeyFile
from ironbell.app.site.data_folder import CREDENTIALS, DATABASE, KEY_FILE
from ironbell.app.storage.archive import Item, Manifest, describe, write_archive
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.errors import IronbellError, Retry

Stage = Callable[[str], Progress]
"""Called at the beginning of each part of the work; returns the function that gets the progress of that part."""


class BackupError(IronbellError):
    """A backup cannot be taken."""

    reason = "BackupFailed"
    retry = Retry.NEVER


@dataclass(frozen=True, kw_only=True)
class BackupOptions:
    """The content of a backup, and its file."""

    folder: Path
    target: Path
    key_file: Path | None = None
    """File with the site's keys, if it is not in the data folder."""
    include_key: bool = False
    include_credentials: bool = False
    overwrite: bool = False


def create_backup(options: BackupOptions, *, release: str, clock: Clock, stage: Stage) -> Manifest:
    """Take a backup; blocks.

    Raises:
        BackupError: the target exists already, or something to include is missing.
        StorageError: there is no database, or it is damaged.
        OSError: a file cannot be read or written.
    """
    target = options.target
    if target.exists() and not options.overwrite:
        raise BackupError(f"{target} already exists: choose another name, or use --force to replace it")
    if not target.parent.is_dir():
        raise BackupError(f"folder {target.parent} does not exist: create it first")
    keys = KeyFile(options.key_file or options.folder / KEY_FILE)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as work:
        copy = Path(work) / DATABASE
        facts = copy_database(options.folder / DATABASE, copy, stage("copying"))
        finding = check_database(copy, None, stage("checking"))
        if finding.problems:
            raise BackupError(
                f"the database is damaged, and a backup of it would be too: {finding.problems[0]}; run "
                f"`ironbell storage check --data-dir {options.folder}` for details"
            )
        files = [(describe(DATABASE, copy, stage("checksum")), copy)]
        files += _further(options, keys.path)
        manifest = Manifest(
            ironbell=release,
            created=rfc3339(clock.now()),
            schema=facts.schema,
            revision=facts.revision,
            objects=facts.objects,
            encryption_keys=facts.keys,
            includes_key=options.include_key,
            includes_credentials=options.include_credentials,
            items=tuple(item for item, _ in files),
        )
        write_archive(target, manifest, files)
    return manifest


def _further(options: BackupOptions, key_file: Path) -> list[tuple[Item, Path]]:
    sources: list[tuple[str, Path]] = []
    if options.include_key:
        if not key_file.is_file():
            raise BackupError(f"key file {key_file} does not exist: name it with --encryption-key-file")
        sources.append((KEY_FILE, key_file))
    if options.include_credentials:
        for name in CREDENTIALS:
            place = options.folder / name
            files = sorted(place.rglob("*")) if place.is_dir() else [place]
            sources += [(str(file.relative_to(options.folder)), file) for file in files if file.is_file()]
    return [(describe(name, file, lambda done, total: None), file) for name, file in sources]

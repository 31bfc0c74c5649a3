"""`ironbell backup`, `restore` and `storage`: the database of a site, its copies and its encryption key."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from ironbell.base.terminal import drawable
from ironbell.base.wording import counted

_KEY_FILE = click.option(
    "--encryption-key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the site's encryption keys.  [default: storage.key in the data folder]",
)
_OUTPUT = click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
_DATA_DIR = click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), required=True, help="The site's data folder."
)


@contextmanager
def _stages() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """Show a progress bar on a terminal for each stage: the function takes a stage's name and returns its progress
    callback."""
    with ExitStack() as stack:

        def begin(label: str) -> Callable[[int, int], None]:
            stack.close()
            bar: Any = None

            def progress(done: int, total: int) -> None:
                nonlocal bar
                if bar is None:
                    bar = stack.enter_context(click.progressbar(length=total, label=label, file=drawable(sys.stderr)))
                bar.length = total
                bar.update(done - bar.pos)

            return progress if sys.stderr.isatty() else lambda done, total: None

        yield begin


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_DATA_DIR
@click.option(
    "--include-key", is_flag=True, help="Include the encryption keys: everybody with the file can read all Secrets."
)
@click.option(
    "--include-credentials",
    is_flag=True,
    help="Include the API's certificate authority and tokens: everybody with the file can become administrator.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@_KEY_FILE
@_OUTPUT
def backup(
    file: Path,
    *,
    data_dir: Path,
    include_key: bool,
    include_credentials: bool,
    force: bool,
    encryption_key_file: Path | None,
    output: str,
) -> None:
    """Write all objects of a site to FILE. The site may be running.

    Secrets stay encrypted in the file, and the key is not in it without --include-key: keep storage.key in another
    place.
    """
    from ironbell.app.storage.backup import BackupOptions, create_backup
    from ironbell.base.clock import SystemClock
    from ironbell.cli.version import ironbell_version

    options = BackupOptions(
        folder=data_dir,
        target=file.absolute(),
        key_file=encryption_key_file,
        include_key=include_key,
        include_credentials=include_credentials,
        overwrite=force,
    )
    with _stages() as stage:
        manifest = create_backup(options, release=ironbell_version(), clock=SystemClock(), stage=stage)
    if output == "json":
        click.echo(msgspec.json.encode({"file": str(file), **msgspec.to_builtins(manifest)}).decode())
        return
    size = sum(item.size for item in manifest.items)
    click.echo(f"{file}: {counted(manifest.objects, 'object')} at revision {manifest.revision}, {size / 1e6:.1f} MB")
    if manifest.encryption_keys and not include_key:
        click.echo(
            f"Its Secrets need the key {', '.join(manifest.encryption_keys)}, which is not in the file: keep a copy of "
            f"{encryption_key_file or data_dir / 'storage.key'} in another place."
        )
    if not include_credentials:
        click.echo(
            "It has no certificate authority: after a restore to an empty folder, clients need the new kubeconfig."
        )


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_DATA_DIR
@click.option("--force", is_flag=True, help="Replace an existing site; its files are moved to another folder.")
@click.option(
    "--bump-revision",
    type=click.IntRange(min=0),
    default=1_000_000_000,
    show_default=True,
    help="Distance to the restored resourceVersions, so that clients list again.",
)
@click.option(
    "--trust-records",
    is_flag=True,
    help="Hold no server: since the backup, no server was claimed, installed or released.",
)
@_KEY_FILE
@_OUTPUT
def restore(
    file: Path,
    *,
    data_dir: Path,
    force: bool,
    bump_revision: int,
    trust_records: bool,
    encryption_key_file: Path | None,
    output: str,
) -> None:
    """Restore a site from FILE. The site must not run.

    FILE is checked before anything is changed. Afterwards every server is held until its record is confirmed, by its
    Node or by `ironbell hardware confirm`.
    """
    from ironbell.app.storage.restore import RestoreOptions, restore_backup
    from ironbell.base.clock import SystemClock

    options = RestoreOptions(
        source=file,
        folder=data_dir,
        key_file=encryption_key_file,
        overwrite=force,
        revision_step=bump_revision,
        trusts_records=trust_records,
    )
    with _stages() as stage:
        done = restore_backup(options, clock=SystemClock(), stage=stage)
    if output == "json":
        facts = {"dataDir": str(data_dir), "objects": done.manifest.objects, "revision": done.revision}
        facts["serversHeld"] = not trust_records
        click.echo(msgspec.json.encode({**facts, "kept": str(done.kept) if done.kept else None}).decode())
        return
    restored = counted(done.manifest.objects, "object")
    click.echo(f"{data_dir}: restored {restored} of {done.manifest.created}; continues at revision {done.revision}")
    if not trust_records:
        click.echo(
            "All servers are held: none is powered, installed or wiped until its record is confirmed, by its Node or "
            f"by you. Start the site with `ironbell up --data-dir {data_dir}`, check `ironbell get hardware -A`, and "
            "confirm with `ironbell hardware confirm NAME`, or with --free for all unclaimed servers."
        )
    if done.kept is not None:
        click.echo(f"The previous files are in {done.kept}; remove that folder when you no longer need it.")


@click.group()
def storage() -> None:
    """The database of a site."""


@storage.command()
@_DATA_DIR
@_KEY_FILE
@_OUTPUT
def check(*, data_dir: Path, encryption_key_file: Path | None, output: str) -> None:
    """Check the whole database with every object. The site may run.

    The exit status is 1 if anything is damaged.
    """
    from ironbell.apiserver.store.copying import check_database
    from ironbell.apiserver.store.keys import KeyFile
    from ironbell.app.site.data_folder import DATABASE, KEY_FILE

    keys = KeyFile(encryption_key_file or data_dir / KEY_FILE).read()
    with _stages() as stage:
        result = check_database(data_dir / DATABASE, keys, stage("checking"))
    if output == "json":
        click.echo(msgspec.json.encode({**msgspec.to_builtins(result.facts), "rows": result.rows,
                                        "locked": result.locked, "problems": result.problems}).decode())  # fmt: skip
    else:
        totals = f"{counted(result.facts.objects, 'object')}, {counted(result.rows, 'revision')}"
        click.echo(f"{totals} up to {result.facts.revision}")
        if result.locked:
            click.echo(f"{result.locked} of them are encrypted with keys that are not available, and were not read")
        for problem in result.problems:
            click.echo(f"damaged: {problem}")
    if result.problems:
        sys.exit(1)


@storage.command()
@_DATA_DIR
@_KEY_FILE
@click.option(
    "--forget-old", is_flag=True, help="Remove the old keys from the file; old backups then need a copy of it."
)
@_OUTPUT
def rotate_key(*, data_dir: Path, encryption_key_file: Path | None, forget_old: bool, output: str) -> None:
    """Encrypt all Secrets with a new key. The site must not run."""
    from ironbell.app.storage.rotation import rotate_key as rotate

    done = rotate(data_dir, encryption_key_file, forget_old=forget_old)
    if output == "json":
        click.echo(msgspec.json.encode({"keys": done.keys}).decode())
        return
    click.echo(
        f"Secrets are now encrypted with the key {done.keys[0]}; keep a copy of the key file apart from backups."
    )
    if done.keys[1:]:
        click.echo(f"The file keeps older keys for older backups: {', '.join(done.keys[1:])}")

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
    help="The site's encryption keys.  [default: storage.key in the data folder]",
)
_OUTPUT = click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Form of the answer."
)
_DATA_DIR = click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), required=True, help="The site's data folder."
)


@contextmanager
def _stages() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """A bar on a terminal for each part of the work: called with its name, gives what shows how much is done."""
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
@click.option("--include-key", is_flag=True, help="Put the encryption keys in. Whoever has the file has all Secrets.")
@click.option(
    "--include-credentials",
    is_flag=True,
    help="Put the API's authority and tokens in. Whoever has the file can become administrator.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
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
    """Write all objects of a site, which may be running, to FILE.

    Secrets in it stay encrypted, and the key is not in it unless asked for: keep storage.key in another place.
    """
    from ironbell.app.storage.backup import BackupOptions, make_backup
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
        manifest = make_backup(options, release=ironbell_version(), clock=SystemClock(), stage=stage)
    if output == "json":
        click.echo(msgspec.json.encode({"file": str(file), **msgspec.to_builtins(manifest)}).decode())
        return
    size = sum(item.size for item in manifest.items)
    click.echo(f"{file}: {counted(manifest.objects, 'object')} at revision {manifest.revision}, {size / 1e6:.1f} MB")
    if manifest.encryption_keys and not include_key:
        click.echo(
            f"Secrets in it need the key {', '.join(manifest.encryption_keys)}, which is not in it: keep a copy of "
            f"{encryption_key_file or data_dir / 'storage.key'} in another place."
        )
    if not include_credentials:
        click.echo("The API's authority is not in it: restored into an empty folder, clients need the new kubeconfig.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_DATA_DIR
@click.option("--force", is_flag=True, help="Replace the site that is there; its files are kept aside.")
@click.option(
    "--bump-revision",
    type=click.IntRange(min=0),
    default=1_000_000_000,
    show_default=True,
    help="How much later resourceVersions go on, so that clients list anew.",
)
@click.option(
    "--trust-records",
    is_flag=True,
    help="Hold no server: nothing was claimed, installed or given back since FILE was made.",
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
    """Bring a site back from FILE. The site must not run.

    FILE is checked before anything is changed. Every server is held afterwards until its record is confirmed, by its
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
    click.echo(f"{data_dir}: {restored} of {done.manifest.created}, goes on at revision {done.revision}")
    if not trust_records:
        click.echo(
            "Every server is held now: none is powered, installed or wiped until its record is confirmed, by its Node "
            f"or by you. Start the site with `ironbell up --data-dir {data_dir}`, look at `ironbell get hardware -A`, "
            "and confirm with `ironbell hardware confirm NAME`, or --free for all that nobody has claimed."
        )
    if done.kept is not None:
        click.echo(f"What was there before is in {done.kept}; remove it when it is not needed any more.")


@click.group()
def storage() -> None:
    """The database of a site."""


@storage.command()
@_DATA_DIR
@_KEY_FILE
@_OUTPUT
def check(*, data_dir: Path, encryption_key_file: Path | None, output: str) -> None:
    """Look through the whole database, every object included. The site may run.

    Ends with 1 if anything is damaged.
    """
    from ironbell.apiserver.store.copying import check_database
    from ironbell.apiserver.store.keys import KeyFile
    from ironbell.app.site.data_folder import DATABASE, KEY_FILE

    keys = KeyFile(encryption_key_file or data_dir / KEY_FILE).read()
    with _stages() as stage:
        found = check_database(data_dir / DATABASE, keys, stage("checking"))
    if output == "json":
        click.echo(msgspec.json.encode({**msgspec.to_builtins(found.facts), "rows": found.rows,
                                        "locked": found.locked, "problems": found.problems}).decode())  # fmt: skip
    else:
        totals = f"{counted(found.facts.objects, 'object')}, {counted(found.rows, 'revision')}"
        click.echo(f"{totals} up to {found.facts.revision}")
        if found.locked:
            click.echo(f"{found.locked} of them are encrypted with keys that are not here, and were not read")
        for problem in found.problems:
            click.echo(f"damaged: {problem}")
    if found.problems:
        sys.exit(1)


@storage.command()
@_DATA_DIR
@_KEY_FILE
@click.option(
    "--forget-old", is_flag=True, help="Take the old keys out of the file; old backups then need a copy of it."
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
        f"Secrets are encrypted with the key {done.keys[0]} now; keep a copy of the key file apart from backups."
    )
    if done.keys[1:]:
        click.echo(f"Older keys stay in the file for older backups: {', '.join(done.keys[1:])}")

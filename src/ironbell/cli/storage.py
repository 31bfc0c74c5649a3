"""`ironbell storage`: looking through a site's database, and changing its encryption key."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from ironbell.base.wording import counted

_OUTPUT = click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Form of the answer."
)
_DATA_DIR = click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), required=True, help="The site's data folder."
)
_KEY_FILE = click.option(
    "--encryption-key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The site's encryption keys.  [default: storage.key in the data folder]",
)


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
    from ironbell.app.data_folder import DATABASE, KEY_FILE
    from ironbell.cli.progress import stages

    keys = KeyFile(encryption_key_file or data_dir / KEY_FILE).read()
    with stages() as stage:
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
    from ironbell.app.rotation import rotate_key as rotate

    done = rotate(data_dir, encryption_key_file, forget_old=forget_old)
    if output == "json":
        click.echo(msgspec.json.encode({"keys": done.keys}).decode())
        return
    click.echo(
        f"Secrets are encrypted with the key {done.keys[0]} now; keep a copy of the key file apart from backups."
    )
    if done.keys[1:]:
        click.echo(f"Older keys stay in the file for older backups: {', '.join(done.keys[1:])}")

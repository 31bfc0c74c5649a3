"""Change the key that encrypts Secrets on disk.

The new key is in the file before anything is encrypted with it, and the old one stays there until nothing is encrypted
with it any more: after a kill at any moment, the file can decrypt the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import apsw

from ironbell.apiserver.store import faults
from ironbell.apiserver.store.keys import KeyFile, Keyring, new_key
from ironbell.apiserver.store.schema import encrypt_again
from ironbell.app.site.data_folder import DATABASE, KEY_FILE, locked
from ironbell.base.errors import IronbellError, Retry


class RotationError(IronbellError):
    """The key cannot be changed; nothing was."""

    reason = "RotationFailed"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Rotated:
    """The ids of the keys in the file; the first encrypts."""

    keys: tuple[str, ...]


def rotate_key(folder: Path, key_file: Path | None, *, forget_old: bool) -> Rotated:
    """Encrypt everything with a new key; blocks. With `forget_old` the file has only the new key afterwards.

    Raises:
        DataFolderError: a site runs there.
        RotationError: there is no database.
        StorageError: the database or the key file cannot be used.
    """
    database = folder / DATABASE
    file = KeyFile(key_file or folder / KEY_FILE)
    if not database.is_file():
        raise RotationError(f"database {database} does not exist: name the data folder of a site")
    with locked(folder):
        try:
            encrypt_again(database, file)  # the existing keys must fit before another one is put first
            ring = file.load(needed=()).with_first(new_key())
            file.write(ring)
            encrypt_again(database, file)
        except apsw.Error as error:
            raise faults.cannot_open(database, error) from error
        if forget_old:
            ring = Keyring(ring.keys[:1])
            file.write(ring)
    return Rotated(tuple(key.id.hex() for key in ring.keys))

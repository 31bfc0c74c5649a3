"""The keys that secrets are encrypted with on disk, and the file that holds them.

One line for each key: 32 bytes in base64. The first encrypts, all decrypt. A key's id is derived from the key, so that
the two cannot be mixed up; lines with `#` are comments. The file is created at the first start and replaced only on
request: without its keys the secrets in the database are lost.

Failure modes: `KeyFileError` when the file is missing although it is needed, readable by others, or holds something
else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ironbell.apiserver.access.pki import PkiError, write_private
from ironbell.apiserver.store.log import StorageError
from ironbell.base.ownership import account_name, other_owner

KEY_BYTES = 32
ID_BYTES = 8
_HEAD = """\
# Keys of Ironbell's storage encryption: 32 bytes in base64, one for each line. The first encrypts, all decrypt.
# Keep a copy of this file away from the backups of the database: without it the Secrets in them are lost.
"""


class KeyFileError(StorageError):
    """The key file cannot be used; the message names it and the remedy."""

    reason = "EncryptionKeyUnusable"


@dataclass(frozen=True)
class Key:
    """One key."""

    secret: bytes

    @cached_property
    def id(self) -> bytes:
        """Public name of the key; it reveals nothing about it."""
        return hashlib.sha256(b"ironbell storage key\0" + self.secret).digest()[:ID_BYTES]

    @cached_property
    def cipher(self) -> AESGCM:
        return AESGCM(self.secret)

    def __repr__(self) -> str:
        return f"Key({self.id.hex()})"


@dataclass(frozen=True)
class Keyring:
    """Keys in order; the first encrypts."""

    keys: tuple[Key, ...]

    @property
    def primary(self) -> Key:
        return self.keys[0]

    def find(self, key_id: bytes) -> Key | None:
        """The key with this id."""
        return next((key for key in self.keys if key.id == key_id), None)

    def with_first(self, key: Key) -> Keyring:
        """The same with another key in front."""
        return Keyring((key, *(old for old in self.keys if old.id != key.id)))

    def with_more(self, keys: Iterable[Key]) -> Keyring:
        """The same keyring with further keys appended, except those that it has already."""
        known = {key.id for key in self.keys}
        return Keyring((*self.keys, *(key for key in keys if key.id not in known)))


def new_key() -> Key:
    """Create a key from the system's randomness."""
    return Key(os.urandom(KEY_BYTES))


class KeyFile:
    """The file of the keys."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, *, needed: Sequence[str]) -> Keyring:
        """The keys. If the file is missing and not needed, it is created. `needed` are the ids (in hexadecimal) of
        keys that the database was written with.

        Raises:
            KeyFileError: the file or a needed key is missing, or the file is unusable.
        """
        text = self._read()
        if text is None:
            if needed:
                raise KeyFileError(
                    f"the key file {self.path} is missing, and the Secrets in the database are encrypted with its key "
                    f"{', '.join(needed)}: put the file back, or name its place with --encryption-key-file. Nothing "
                    "was changed; without that key only a backup whose key you have can help"
                )
            ring = Keyring((new_key(),))
            self.write(ring)
            return ring
        ring = self._parse(text)
        known = {key.id.hex() for key in ring.keys}
        if missing := [name for name in needed if name not in known]:
            raise KeyFileError(
                f"the key file {self.path} holds {', '.join(sorted(known))}, but the Secrets in the database are "
                f"encrypted with the key {', '.join(missing)}: add a line with that key, or put the right file in "
                "its place. Nothing was changed"
            )
        return ring

    def read(self) -> Keyring | None:
        """The keys, or None if the file does not exist.

        Raises:
            KeyFileError: the file is unusable.
        """
        text = self._read()
        return self._parse(text) if text is not None else None

    def write(self, ring: Keyring) -> None:
        """Replace the file at once.

        Raises:
            KeyFileError: the file cannot be written.
        """
        lines = "".join(base64.b64encode(key.secret).decode() + "\n" for key in ring.keys)
        try:
            write_private(self.path, (_HEAD + lines).encode())
        except PkiError as error:
            raise KeyFileError(str(error)) from error
        _sync_folder(self.path.parent)

    def _read(self) -> str | None:
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                raw = file.read(1 << 20)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeyFileError(f"the key file {self.path} cannot be read: {error.strerror}") from error
        if owner := other_owner(status):
            raise KeyFileError(
                f'the key file {self.path} belongs to account "{owner}", which may have replaced it: restore it and '
                f"run `chown {account_name(os.geteuid())} {self.path}`"
            )
        if (mode := stat.S_IMODE(status.st_mode)) & 0o077:
            raise KeyFileError(
                f"the key file {self.path} can be read by others (mode {mode:04o}): take that away with "
                f"`chmod 600 {self.path}`, and see who has read it"
            )
        return raw.decode("utf-8", "replace")

    def _parse(self, text: str) -> Keyring:
        keys: list[Key] = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            try:
                secret = base64.b64decode(line.strip(), validate=True)
            except (binascii.Error, ValueError):
                secret = b""
            if len(secret) != KEY_BYTES:
                raise KeyFileError(
                    f"the key file {self.path}, line {number}: is not a key: expected {KEY_BYTES} bytes in base64 (as "
                    f"`head -c {KEY_BYTES} /dev/urandom | base64` prints)"
                )
            keys.append(Key(secret))
        if not keys:
            raise KeyFileError(f"the key file {self.path} holds no key: put the right file in its place")
        return Keyring(tuple(keys))


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a loss of power: before anything is encrypted with a key that is in it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

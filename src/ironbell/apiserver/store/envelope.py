"""Encoding of a row's body on disk: with a checksum, or, for a Secret, encrypted.

    0x01  CRC-32 (4 bytes)  JSON
    0x02  key id (8 bytes)  nonce (12 bytes)  AES-256-GCM of the JSON

Both cover everything else in the row as well, so that a body that was exchanged for that of another row, or of another
revision, is detected when it is read. Objects are plain in memory; this module runs in the thread that writes or
reads.

Failure modes: `DamagedRow` when a body differs from the written one; `MissingKey` when it was encrypted with another
key.

Source: kubernetes/apiserver: pkg/storage/value/encrypt/aes (the key's name as a prefix, the path as associated data).
"""

from __future__ import annotations

import os
import zlib

import msgspec
from cryptography.exceptions import InvalidTag

from ironbell.apiserver.store.keys import ID_BYTES, Keyring
from ironbell.apiserver.store.log import Row, StorageError

ENCRYPTED = frozenset({"secrets"})
"""Resources of which bodies are encrypted."""
_PLAIN, _SEALED = b"\x01", b"\x02"
_CRC_BYTES, _NONCE_BYTES = 4, 12


class DamagedRow(StorageError):  # noqa: N818 - says what the row is
    """A stored body differs from the written one."""

    reason = "DatabaseDamaged"


class MissingKey(StorageError):  # noqa: N818 - says what there is not
    """A stored body was encrypted with a key that is not in the key file."""

    reason = "EncryptionKeyMissing"


class Envelope:
    """Wraps bodies for the disk and back. Without keys nothing is encrypted."""

    def __init__(self, keys: Keyring | None) -> None:
        self._keys = keys

    def wrap(self, row: Row) -> bytes:
        """The body as it is written."""
        if self._keys is None or row.resource not in ENCRYPTED:
            return _PLAIN + zlib.crc32(row.body, zlib.crc32(_facts(row))).to_bytes(_CRC_BYTES, "big") + row.body
        key = self._keys.primary
        # The system's randomness and never the injected one: a repeated nonce would reveal the key.
        nonce = os.urandom(_NONCE_BYTES)
        return _SEALED + key.id + nonce + key.cipher.encrypt(nonce, row.body, _facts(row))

    def unwrap(self, row: Row) -> Row:
        """The row with its plain body, from one with its encoded body.

        Raises:
            DamagedRow: the body differs from the written one.
            MissingKey: the body was encrypted with an unknown key.
        """
        kind = row.body[:1]
        if kind == _PLAIN:
            body = row.body[1 + _CRC_BYTES :]
            if zlib.crc32(body, zlib.crc32(_facts(row))) != int.from_bytes(row.body[1 : 1 + _CRC_BYTES], "big"):
                raise _damaged(row, "its checksum does not fit")
        elif kind == _SEALED:
            body = self._decrypt(row)
        else:
            raise _damaged(row, "it is in no known form")
        return msgspec.structs.replace(row, body=body)

    def _decrypt(self, row: Row) -> bytes:
        start = 1 + ID_BYTES
        end = start + _NONCE_BYTES
        key_id, nonce, sealed = row.body[1:start], row.body[start:end], row.body[end:]
        key = self._keys.find(key_id) if self._keys is not None else None
        if key is None:
            raise MissingKey(f"{_place(row)} is encrypted with the key {key_id.hex()}, which is missing")
        try:
            return key.cipher.decrypt(nonce, sealed, _facts(row))
        except (InvalidTag, ValueError) as error:
            raise _damaged(row, f"it does not decrypt with the key {key_id.hex()}") from error


def _facts(row: Row) -> bytes:
    """The row's other columns, which its body is bound to; none can hold a zero byte, so they are unique to the row."""
    return f"{row.revision}\0{row.resource}\0{row.namespace}\0{row.name}\0{row.previous}\0{int(row.deleted)}\0".encode()


def _place(row: Row) -> str:
    return f"revision {row.revision} ({row.resource} {'/'.join(filter(None, (row.namespace, row.name)))})"


def _damaged(row: Row, detail: str) -> DamagedRow:
    return DamagedRow(f"{_place(row)} is damaged: {detail}")

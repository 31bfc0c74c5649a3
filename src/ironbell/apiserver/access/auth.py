"""Authentication: the identity of a request's sender.

A client proves itself by a certificate of our own authority (common name = user, organisations = groups) or by a bearer
token. Tokens are random, given out once and kept only as SHA-256 digests; a digest of 256 random bits needs no salt.
A request with neither is anonymous, and may read only the version and the health of the server.

Failure modes: `Unauthorized` for an unknown token; `PkiError` when the token file is unusable.

Source: kubernetes/apiserver: pkg/authentication/request (x509, bearertoken, anonymous).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ironbell.api.client import Unauthorized
from ironbell.apiserver.access.identity import AUTHENTICATED, Identity
from ironbell.apiserver.access.pki import PkiError, write_private
from ironbell.apiserver.identities.bearer import Known
from ironbell.base.randomness import Randomness

ANONYMOUS = Identity("system:anonymous", ("system:unauthenticated",))
OPEN_PATHS = ("/version", "/healthz", "/livez", "/readyz")

_TOKEN_BYTES = 32


class _Record(msgspec.Struct, frozen=True):
    sha256: str
    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""


class _File(msgspec.Struct, frozen=True):
    tokens: list[_Record] = []


class Tokens:
    """The valid bearer tokens, kept as digests in a file, or in memory only without a file."""

    def __init__(self, path: Path | None, randomness: Randomness) -> None:
        """Read the file, if it exists.

        Raises:
            PkiError: the file exists, and is not a token file of ours.
        """
        self._path, self._randomness = path, randomness
        self._records = {record.sha256: record for record in _read(path)} if path is not None else {}

    def issue(self, user: str, groups: Sequence[str] = ()) -> str:
        """Create a token for `user` and revoke the user's earlier tokens; the token cannot be read again later."""
        token = base64.urlsafe_b64encode(self._randomness.token_bytes(_TOKEN_BYTES)).rstrip(b"=").decode()
        record = _Record(_digest(token), user, tuple(groups))
        kept = {digest: old for digest, old in self._records.items() if old.user != user}
        self._replace(kept | {record.sha256: record})
        return token

    def revoke(self, user: str) -> None:
        """Revoke the tokens of `user`."""
        self._replace({digest: old for digest, old in self._records.items() if old.user != user})

    def identify(self, token: str) -> Identity | None:
        """Return the identity that a token belongs to, or None."""
        record = self._records.get(_digest(token))
        return Identity(record.user, (*record.groups, AUTHENTICATED), record.uid) if record else None

    def _replace(self, records: dict[str, _Record]) -> None:
        if self._path is not None:
            write_private(self._path, msgspec.json.encode(_File(list(records.values()))))
        self._records = records


def authenticate(headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None, tokens: Known) -> Identity:
    """Return the sender of a request with these headers and this verified client certificate (`getpeercert()`).

    Raises:
        Unauthorized: the credentials are not valid.
    """
    if peer_certificate:
        identity = certificate_identity(peer_certificate)
        if identity is not None:
            return identity
    header = headers.get("Authorization", "")
    if not header:
        return ANONYMOUS
    scheme, _, token = header.partition(" ")
    identity = tokens.identify(token.strip()) if scheme.lower() == "bearer" else None
    if identity is None:
        raise Unauthorized("Unauthorized")
    return identity


def certificate_identity(peer_certificate: Mapping[str, Any]) -> Identity | None:
    """The identity that a verified certificate states; None without a common name."""
    attributes = [pair for relative_name in peer_certificate.get("subject", ()) for pair in relative_name]
    user = next((value for key, value in attributes if key == "commonName"), "")
    groups = tuple(value for key, value in attributes if key == "organizationName")
    return Identity(user, (*groups, AUTHENTICATED)) if user else None


def is_open(path: str) -> bool:
    """Return whether everyone may read a path."""
    return path in OPEN_PATHS or path.startswith(("/healthz/", "/livez/", "/readyz/"))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _read(path: Path) -> list[_Record]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File).tokens
    except FileNotFoundError:
        return []
    except OSError as error:
        raise PkiError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise PkiError(f"{path} holds no token list: restore it, or remove it to withdraw all tokens") from error

"""Bearer tokens: each source of tokens is tried in turn, among them a file of an administrator.

A line of the file is `token,user,uid,"group,group"`.

Source: kubernetes/apiserver: pkg/authentication/token/tokenfile/tokenfile.go.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ironbell.api.client import Unauthorized
from ironbell.apiserver.access.identity import AUTHENTICATED, Identity
from ironbell.apiserver.access.pki import PkiError
from ironbell.apiserver.identities.accounts import AccountTokens, Holder
from ironbell.base.ownership import account_name, other_owner


class Known(Protocol):
    """A source of tokens for this server."""

    def identify(self, token: str) -> Identity | None: ...


class BearerTokens:
    """All sources of tokens for this server."""

    def __init__(self, known: Sequence[Known], accounts: AccountTokens | None = None) -> None:
        self._known, self._accounts = known, accounts

    def identify(self, token: str) -> Identity | None:
        """Return the identity of a token for this server; None if no source knows it."""
        try:
            holder = self.review(token)
        except Unauthorized:
            return None
        return holder.identity if holder is not None else None

    def review(self, token: str, audiences: Sequence[str] = ()) -> Holder | None:
        """Return the holder of a token and those of `audiences` that it is for; None for an unknown token.

        Raises:
            Unauthorized: the token is known, and expired, revoked or for other audiences.
        """
        here = self._accounts.audiences if self._accounts is not None else ()
        requested = tuple(audiences) or here
        for tokens in self._known:
            identity = tokens.identify(token)
            if identity is not None:
                meant = tuple(audience for audience in requested if audience in here)
                return Holder(identity, meant) if meant or not requested else None
        return self._accounts.identify(token, requested) if self._accounts is not None else None


_OTHERS = 0o077


class StaticTokens:
    """The tokens of one file, read once and kept as digests."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            PkiError: the file cannot be read, is readable by others, or a line has too few columns.
        """
        self._identities = dict(_records(path))

    def identify(self, token: str) -> Identity | None:
        """Return the identity that a token belongs to, or None."""
        return self._identities.get(_digest(token))


def _records(path: Path) -> list[tuple[bytes, Identity]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            if owner := other_owner(status):
                raise PkiError(
                    f'token-auth-file: {path} belongs to account "{owner}", which can give itself any identity; run '
                    f"`chown {account_name(os.geteuid())} {path}`"
                )
            if status.st_mode & _OTHERS:
                raise PkiError(f"token-auth-file: others may read {path}; run chmod 600 {path}")
            lines = [line for line in csv.reader(file) if line]
    except OSError as error:
        raise PkiError(f"token-auth-file: cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise PkiError(f"token-auth-file: {path} is not valid CSV") from error
    return [_record(path, number, line) for number, line in enumerate(lines, 1)]


def _record(path: Path, number: int, line: list[str]) -> tuple[bytes, Identity]:
    if len(line) < 3 or not line[0].strip() or not line[1].strip():
        raise PkiError(f"token-auth-file: line {number} of {path} must have at least token, user name and user uid")
    token, user, uid, *more = (part.strip() for part in line)
    groups = tuple(group.strip() for group in more[0].split(",") if group.strip()) if more else ()
    return _digest(token), Identity(user, (*groups, AUTHENTICATED), uid)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()

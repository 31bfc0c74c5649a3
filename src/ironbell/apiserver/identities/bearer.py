"""Bearer tokens of every kind: each source of tokens is tried in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ironbell.api.client import Unauthorized
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.identities.accounts import AccountTokens, Holder


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

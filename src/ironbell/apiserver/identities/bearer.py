"""Bearer tokens of every kind, asked in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ironbell.api.client import Unauthorized
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.identities.accounts import AccountTokens, Holder


class Known(Protocol):
    """Knows tokens that are meant for this server."""

    def identify(self, token: str) -> Identity | None: ...


class BearerTokens:
    """The tokens that are good here."""

    def __init__(self, known: Sequence[Known], accounts: AccountTokens | None = None) -> None:
        self._known, self._accounts = known, accounts

    def identify(self, token: str) -> Identity | None:
        """Who holds a token that is meant for this server; None if nobody does."""
        try:
            holder = self.review(token)
        except Unauthorized:
            return None
        return holder.identity if holder is not None else None

    def review(self, token: str, audiences: Sequence[str] = ()) -> Holder | None:
        """Who holds a token, and for which of `audiences` it is meant; None if it is not known.

        Raises:
            Unauthorized: it is known, and no longer (or not there) good.
        """
        here = self._accounts.audiences if self._accounts is not None else ()
        wanted = tuple(audiences) or here
        for tokens in self._known:
            identity = tokens.identify(token)
            if identity is not None:
                meant = tuple(audience for audience in wanted if audience in here)
                return Holder(identity, meant) if meant or not wanted else None
        return self._accounts.identify(token, wanted) if self._accounts is not None else None

"""Bearer tokens: given once, or in a file that is replaced from time to time.

Failure modes: `ConnectionConfigError` names the file. A token never appears in a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from ironbell.base.clock import Clock, SystemClock
from ironbell.base.errors import IronbellError, Retry

TokenSource: TypeAlias = Callable[[], Awaitable[str]]
"""Source of the token to send now; empty for none. One with `forget(used)` can give another after a rejection."""

TOKEN_AGE_S = 60.0


class ConnectionConfigError(IronbellError):
    """A kubeconfig or the environment lacks the address or credentials of an API server."""

    reason = "InvalidConnection"
    retry = Retry.NEVER


def fixed_token(token: str) -> TokenSource:
    """A token that never changes."""

    async def source() -> str:
        return token

    return source


class GivenToken:
    """A token of a process that cannot get another one: its owner handles a rejection."""

    def __init__(self, token: str) -> None:
        self._token = token
        self.rejected = asyncio.Event()

    def forget(self, used: str = "") -> None:
        """Record that the server rejects it."""
        if not used or used == self._token:
            self.rejected.set()

    async def __call__(self) -> str:
        """The token."""
        return self._token


class FileToken:
    """A token in a file that is replaced from time to time, as those of pods are."""

    def __init__(self, path: Path, *, clock: Clock | None = None, instead: str = "") -> None:
        """`instead` is sent while the file cannot be read and never could."""
        self._path = path
        self._clock = clock or SystemClock()
        self._token = instead
        self._read_s = float("-inf")

    def forget(self, used: str = "") -> None:
        """Read the file again for the next request: the server rejects the token."""
        if not used or used == self._token:
            self._read_s = float("-inf")

    async def __call__(self) -> str:
        """The token, at most a minute old.

        Raises:
            ConnectionConfigError: the file cannot be read and never could.
        """
        if self._clock.monotonic() - self._read_s < TOKEN_AGE_S:
            return self._token
        try:
            self._token = (await asyncio.to_thread(self._path.read_text)).strip()
            self._read_s = self._clock.monotonic()
        except OSError as error:
            if not self._token:
                raise ConnectionConfigError(f"the token file {self._path} cannot be read: {error.strerror}") from error
        return self._token

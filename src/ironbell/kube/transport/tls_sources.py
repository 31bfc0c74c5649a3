"""TLS toward an API server: contexts made from certificates that may be replaced while we run.

A context is replaced when its files have changed, so that a rotated authority or client certificate is used for the
next connection. Files that cannot be used any more leave the last good context in place.

Failure modes: `ConnectionConfigError` names what is unusable; contents never appear in messages.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import structlog

from ironbell.base.clock import Clock, SystemClock
from ironbell.kube.transport.tokens import ConnectionConfigError

TlsSource: TypeAlias = Callable[[], Awaitable[ssl.SSLContext]]

CHECK_INTERVAL_S = 60.0

_log = structlog.get_logger()


def client_context(
    *, authority: bytes = b"", certificate: bytes = b"", key: bytes = b"", verify: bool = True, where: str
) -> ssl.SSLContext:
    """A client's context; without an authority the system's are trusted. `where` begins the error's message.

    Raises:
        ConnectionConfigError: a certificate or key is unusable.
    """
    try:
        tls = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
        if not verify:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        if certificate and key:
            _load_pair(tls, certificate, key)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ConnectionConfigError(f"{where}: a certificate or key is unusable: {error}") from error
    return tls


def _load_pair(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Give a context its client certificate: Python's ssl takes it from files only."""
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(certificate + b"\n" + key)
        pair.flush()
        tls.load_cert_chain(pair.name)


class FileTls:
    """A context that follows its files."""

    def __init__(
        self, build: Callable[[], ssl.SSLContext], files: Sequence[Path], *, clock: Clock | None = None
    ) -> None:
        """Create a context with `build`, which reads the files, so that problems are reported at once."""
        self._build, self._files = build, tuple(files)
        self._clock = clock or SystemClock()
        self._state = self._file_states()
        self._context = build()
        self._checked_s = self._clock.monotonic()

    async def __call__(self) -> ssl.SSLContext:
        """The context; its files, if there are any, were looked at no longer than a minute ago."""
        if self._files and self._clock.monotonic() - self._checked_s >= CHECK_INTERVAL_S:
            self._checked_s = self._clock.monotonic()
            await asyncio.to_thread(self._renew)
        return self._context

    def forget(self, _used: str = "") -> None:
        """Look at the files again for the next connection: the server does not know us any more."""
        self._checked_s = float("-inf")

    def _renew(self) -> None:
        state = self._file_states()
        if state == self._state:
            return
        try:
            self._context = self._build()
            self._state = state
        except (ConnectionConfigError, OSError) as error:
            _log.warning("certificates not taken up", files=[str(file) for file in self._files], why=str(error))

    def _file_states(self) -> list[tuple[int, int, int] | None]:
        return [_signature(file) for file in self._files]


def _signature(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size

"""Fetch a file over HTTP(S) as a stream that survives interruptions.

A connection that breaks or stalls is resumed with Range and If-Range where it stopped; a file that changed in
between is an error, never a mixture. The end of the data is the end that the server announced: a short response is
treated as an interruption. Client errors (404 and the like) fail at once; server errors and lost connections are
retried until nothing has arrived for `patience_s`.

Source: RFC 9110 sections 8.8, 13.1.5, 14, 15; RFC 9112 section 8.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import urllib3
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.response import BaseHTTPResponse

from ironbell.agent.actions.context import ActionError

_CHUNK = 1 << 19
_PAUSE_S = (0.5, 5.0)
_TRANSIENT = {408, 425, 429}


class SourceChangedError(ActionError):
    """The file on the server has changed since the download began."""


class _Interrupted(Exception):  # noqa: N818 - a signal inside this module
    """The transfer stopped for a reason that may pass."""


@dataclass(frozen=True)
class Patience:
    """Time limits of a download."""

    total_s: float = 120.0
    """Limit of the time without a single byte, after which the download fails."""
    connect_s: float = 10.0
    stall_s: float = 30.0
    """Limit of the time without data on a connection, after which a new one is opened."""


def without_secrets(url: str) -> str:
    """An address without parts that may be secret: user, password, query."""
    parts = urlsplit(url)
    host = parts.netloc.rsplit("@", 1)[-1]
    return urlunsplit((parts.scheme, host, parts.path, "…" if parts.query else "", ""))


class Download:
    """One file. `open` first, then iterate over `chunks` once."""

    def __init__(
        self,
        url: str,
        *,
        log: Callable[[str], None],
        patience: Patience | None = None,
        authorize: Callable[[], Mapping[str, str]] | None = None,
        skip_verify: bool = False,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ActionError(f"{without_secrets(url)!r} is not an address that starts with http:// or https://")
        self._url = url
        self._log = log
        self._patience = patience or Patience()
        self._pool = pool_for(url, skip_verify=skip_verify)
        self._authorize = authorize
        self._headers = {"accept-encoding": "identity", "user-agent": "ironbell-agent"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers |= urllib3.make_headers(basic_auth=login)
            self._url = urlunsplit(parts._replace(netloc=parts.netloc.rsplit("@", 1)[-1]))
        self._response: BaseHTTPResponse | None = None
        self._validator = ""
        self._alive_at = time.monotonic()
        self.offset = 0
        """Bytes that have arrived."""
        self.total: int | None = None
        """Bytes of the whole file; None if the server does not report it."""

    def open(self) -> None:
        """Get the response's head; nothing of the file is read yet.

        Raises:
            ActionError: the file does not exist, or the server cannot be reached.
        """
        while self._response is None:
            try:
                self._connect()
            except _Interrupted as interruption:
                self._pause(str(interruption))

    def chunks(self) -> Iterator[bytes]:
        """The file's bytes, in order, each once."""
        while True:
            try:
                if self._response is None:
                    self._connect()
                chunk = self._read()
            except _Interrupted as interruption:
                self.close()
                self._pause(str(interruption))
                continue
            if not chunk:
                self.close()
                return
            self.offset += len(chunk)
            self._alive_at = time.monotonic()
            yield chunk

    def seek(self, offset: int) -> None:
        """Continue at an offset: `chunks`, called again, begins with that byte."""
        self.close()
        self.offset = offset

    def close(self) -> None:
        """Drop the connection."""
        if self._response is not None:
            self._response.close()
            self._response = None

    def _pause(self, reason: str) -> None:
        silent_s = time.monotonic() - self._alive_at
        if silent_s >= self._patience.total_s:
            raise ActionError(f"gave up on {without_secrets(self._url)} after {silent_s:.0f} s without data: {reason}")
        pause_s = min(_PAUSE_S[1], max(_PAUSE_S[0], silent_s / 2), self._patience.total_s / 4)
        self._log(f"download interrupted at byte {self.offset}: {reason}; trying again in {pause_s:.1f} s")
        time.sleep(pause_s)

    def _connect(self) -> None:
        headers = dict(self._headers)
        if self._authorize is not None:
            # Each time, since a token may have expired while much was downloaded with it.
            headers |= self._authorize()
        if self.offset:
            headers["range"] = f"bytes={self.offset}-"
            if self._validator:
                headers["if-range"] = self._validator
        try:
            response = self._pool.request(
                "GET",
                self._url,
                headers=headers,
                preload_content=False,
                decode_content=False,
                timeout=urllib3.Timeout(connect=self._patience.connect_s, read=self._patience.stall_s),
                retries=urllib3.Retry(total=10, connect=0, read=0, status=0, other=0, redirect=10),
            )
        except LocationParseError as error:
            raise ActionError(f"{without_secrets(self._url)!r} is not a valid address") from error
        except (HTTPError, OSError) as error:
            raise _Interrupted(_cause(error)) from error
        try:
            self._accept(response)
        except BaseException:
            response.close()
            raise
        self._response = response

    def _accept(self, response: BaseHTTPResponse) -> None:
        status = response.status
        if status >= 500 or status in _TRANSIENT:
            raise _Interrupted(f"the server answered {status}")
        if status == 206 and self.offset:
            self._check_range(response)
            return
        if status == 416 and self.offset:
            raise SourceChangedError(f"{without_secrets(self._url)} became shorter while it was being downloaded")
        if status != 200:
            hint = "; check IMG_URL" if status in {404, 410} else ""
            raise ActionError(f"{without_secrets(self._url)}: the server answered {status}{hint}")
        length = response.headers.get("content-length", "")
        total = int(length) if length.isdecimal() and "transfer-encoding" not in response.headers else None
        validator = _validator(response)
        if not self.offset:
            self.total, self._validator = total, validator
            return
        if not validator or validator != self._validator or total != self.total:
            raise SourceChangedError(f"{without_secrets(self._url)} changed while it was being downloaded")
        self._skip(response)

    def _check_range(self, response: BaseHTTPResponse) -> None:
        unit, _, rest = response.headers.get("content-range", "").partition(" ")
        span, _, total = rest.partition("/")
        if unit != "bytes" or span.split("-", 1)[0] != str(self.offset):
            raise ActionError(
                f"{without_secrets(self._url)}: the server sent another part of the file than was requested"
            )
        if self.total is not None and total.isdecimal() and int(total) != self.total:
            raise SourceChangedError(f"{without_secrets(self._url)} changed while it was being downloaded")

    def _skip(self, response: BaseHTTPResponse) -> None:
        """Read and drop the bytes that were received before: the same file from a server without Range."""
        left = self.offset
        try:
            while left:
                chunk = response.read(min(left, _CHUNK), decode_content=False)
                if not chunk:
                    raise _Interrupted("the connection ended early")
                self._alive_at = time.monotonic()
                left -= len(chunk)
        except (HTTPError, OSError) as error:
            raise _Interrupted(_cause(error)) from error

    def _read(self) -> bytes:
        if self._response is None:
            raise _Interrupted("not connected")
        try:
            chunk: bytes = self._response.read1(_CHUNK, decode_content=False)
        except (HTTPError, OSError) as error:
            raise _Interrupted(_cause(error)) from error
        if not chunk and self.total is not None and self.offset < self.total:
            raise _Interrupted(f"the connection ended at byte {self.offset} of {self.total}")
        return chunk


def pool_for(url: str, *, skip_verify: bool = False) -> urllib3.PoolManager:
    """Connections for an address, through the proxy that the environment names for it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxy = "" if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get(parts.scheme, "")
    options: dict[str, Any] = {"cert_reqs": "CERT_NONE", "assert_hostname": False} if skip_verify else {}
    return urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)


def _validator(response: BaseHTTPResponse) -> str:
    """The value for If-Range: a strong entity tag, else the date of the last change."""
    tag = response.headers.get("etag", "")
    return tag if tag and not tag.startswith("W/") else response.headers.get("last-modified", "")


def _cause(error: BaseException) -> str:
    """The innermost reason in plain words; urllib3's texts contain object addresses."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return _cause(reason)
    if isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.NameResolutionError):
        return str(error).rsplit(": ", 1)[-1]
    if isinstance(error, urllib3.exceptions.TimeoutError | TimeoutError):
        return "the server was silent for too long"
    if isinstance(error, urllib3.exceptions.IncompleteRead):
        return "the connection ended early"
    inner = error.args[-1] if error.args else error
    return _cause(inner) if isinstance(inner, BaseException) and inner is not error else str(inner)

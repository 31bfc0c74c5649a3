"""Requests and responses.

Source: RFC 9110, RFC 9112.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import httptools
from multidict import CIMultiDict, MultiDict

if TYPE_CHECKING:
    from ironbell.apiserver.http.fairness import Seat
    from ironbell.apiserver.http.server.connection import Connection

MAX_BODY_BYTES = 3 * 1024 * 1024
_NO_WARNINGS: Iterable[str] = ()


class BodyTooLarge(Exception):  # noqa: N818 - what happened
    """The body is longer than the limit."""


class BodyMalformed(Exception):  # noqa: N818 - what happened
    """The body's framing is broken."""


class Request:
    """One request. Its body may still be on its way."""

    __slots__ = (
        "_body", "_connection", "_expects_continue", "_fault", "_parts", "_query", "_size", "_waiter", "common",
        "discards", "has_arrived", "headers", "is_current", "keeps_alive", "method", "path", "raw_path", "seat",
        "warnings",
    )  # fmt: skip

    def __init__(
        self, connection: Connection, *, method: str, target: bytes, version: str, headers: CIMultiDict[str]
    ) -> None:
        """Parse a request's head.

        Raises:
            ValueError: the target is not a URL.
        """
        self._connection = connection
        self.method = method
        self.headers = headers
        self.is_current = version == "1.1"
        """Whether the client supports HTTP/1.1, and so accepts chunks."""
        self.raw_path = target.decode("utf-8", "replace")
        """The target as it was sent."""
        try:
            url = httptools.parse_url(target)
        except httptools.HttpParserInvalidURLError as error:
            raise ValueError("the request's target is malformed") from error
        self.path = (url.path or b"/").decode("utf-8", "replace")
        """The path, not decoded."""
        self._query: MultiDict[str] | None = None if url.query else MultiDict()
        self.keeps_alive = True
        self.common: Mapping[str, str] = {}
        """Headers of the response."""
        self.warnings: Iterable[str] = _NO_WARNINGS
        """Warnings for the client."""
        self.seat: Seat | None = None
        """The seat that the request holds while it is served."""
        self._parts: list[bytes] = []
        self._size = 0
        self._fault: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._expects_continue = headers.get("Expect", "").lower() == "100-continue"
        self.has_arrived = False
        self.discards = False
        """Whether the rest of the body is discarded."""

    @property
    def query(self) -> MultiDict[str]:
        """The query's parameters, decoded."""
        if self._query is None:
            text = self.raw_path.partition("?")[2].partition("#")[0]
            self._query = MultiDict(parse_qsl(text, keep_blank_values=True, errors="replace"))
        return self._query

    @property
    def connection(self) -> Connection:
        """The connection that it came from."""
        return self._connection

    @property
    def remote(self) -> str:
        """The client's address; empty on a local socket."""
        return self._connection.remote

    async def read(self) -> bytes:
        """The whole body.

        Raises:
            BodyTooLarge: it is longer than is taken.
            BodyMalformed: its framing is broken.
            ConnectionResetError: the client left before its end.
        """
        if not self.has_arrived and self._fault is None:
            if self._expects_continue and not self._size:
                self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._waiter = asyncio.get_running_loop().create_future()
            self._connection.want_body()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._fault is not None:
            raise self._fault
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0] if self._parts else b""

    @property
    def unread_bytes(self) -> int:
        """Bytes of the body that have arrived and were not read yet."""
        return self._size if self._waiter is None and not self.discards else 0

    def feed(self, part: bytes) -> None:
        """Append a part of the body."""
        self._size += len(part)
        if self.discards:
            return
        if self._size > MAX_BODY_BYTES:
            self.discard()
            self.fail(BodyTooLarge())
            return
        self._parts.append(part)

    def arrive(self) -> None:
        """Mark the body as complete."""
        self.has_arrived = True
        self._wake()

    def discard(self) -> None:
        """Discard the rest of the body."""
        self.discards = True
        self._parts.clear()

    def fail(self, fault: Exception) -> None:
        """Mark the body as failed."""
        self._fault = self._fault or fault
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Response:
    """A response: with its body, or (`is_sent`) one that was streamed."""

    __slots__ = ("body", "headers", "is_sent", "status")

    def __init__(
        self,
        *,
        status: int = 200,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        is_sent: bool = False,
    ) -> None:
        self.status = status
        self.body = body
        self.headers = list(headers.items()) if headers else []
        self.is_sent = is_sent


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """The head of a response.

    Raises:
        ValueError: a header contains a line break.
    """
    lines = [_STATUS_LINES.get(status) or f"HTTP/1.1 {status} "]
    lines += [f"{name}: {value}" for name, value in headers]
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or "\0" in text:
        raise ValueError("a header of the answer would end its line")
    return text.encode("utf-8", "replace") + b"\r\n\r\n"


_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus}

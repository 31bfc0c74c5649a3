"""Read a file over HTTP in any order. What is read in the file's own order is one download.

A jump is a new request from there on; a server without Range is read over, which costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from ironbell.agent.actions.streams.download import Download

_READ_OVER = 1 << 20
"""A jump ahead by no more than this is cheaper than a new request."""


class Ranged:
    """Random access to an opened download."""

    def __init__(self, download: Download) -> None:
        self._download = download
        self._chunks: Iterator[bytes] = download.chunks()
        self._buffer = bytearray()
        self._start = 0
        """Where in the file the buffer begins."""

    def read(self, offset: int, size: int) -> bytes:
        """These bytes; fewer where the file ends.

        Raises:
            ActionError: the server cannot be reached any more.
            SourceChangedError: the file is another one by now.
        """
        total = self._download.total
        if total is not None and offset >= total:
            return b""
        if not self._start <= offset <= self._start + len(self._buffer) + _READ_OVER:
            self._download.seek(offset)
            self._chunks, self._start = self._download.chunks(), offset
            self._buffer.clear()
        while self._start + len(self._buffer) < offset + size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            self._buffer += chunk
            self._forget(offset)
        self._forget(offset)
        return bytes(self._buffer[:size]) if self._start == offset else b""

    def _forget(self, offset: int) -> None:
        gone = min(len(self._buffer), max(0, offset - self._start))
        del self._buffer[:gone]
        self._start += gone

"""The body of a watch: JSON objects, each on its line, cut out of chunks as they come. Sans-IO.

aiohttp's `readline` rejects lines over its buffer, and one large object would end a watch; so chunks are split here,
with a cap of our own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.client import ApiError, EventType, Unavailable, WatchEvent, api_error

MAX_FRAME = 4 * 1024 * 1024
"""The API server's own limit for an object is 3 MiB of JSON, plus the frame around it."""


class _Frame(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class StatusBody(msgspec.Struct):
    """`metav1.Status`, as far as errors need it."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: dict[str, Any] | None = None


_frames = msgspec.json.Decoder(_Frame)
_objects = msgspec.json.Decoder(_Object)
_statuses = msgspec.json.Decoder(StatusBody)


class FrameSplitter:
    """Collects chunks and returns whole lines."""

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without empty ones.

        Raises:
            Unavailable: a line is longer than the cap; the watch cannot be read on.
        """
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._parts, lines[0]])
            self._parts, self._size = [], 0
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > self._max_frame or any(len(line) > self._max_frame for line in lines):
            raise Unavailable(f"the server sent a watch event over {self._max_frame} bytes")
        return [line for line in lines if line.strip()]


def read_frame(line: bytes) -> WatchEvent:
    """One line of a watch to its event.

    Raises:
        ApiError: the line carries an error, such as `Expired`, or is not a watch event (`Unavailable`).
    """
    try:
        frame = _frames.decode(line)
        body = bytes(frame.object)
        if frame.type == "ERROR":
            raise read_status(body, 500)
        version = _objects.decode(body).metadata.resource_version
        event_type = EventType(frame.type)
    except (msgspec.DecodeError, ValueError) as error:
        raise Unavailable(f"the server sent no watch event: {error}") from error
    return WatchEvent(event_type, b"" if event_type is EventType.BOOKMARK else body, version)


def read_status(body: bytes, code: int) -> ApiError:
    """The error that a `Status` object means, or a plain one if the body is something else."""
    try:
        status = _statuses.decode(body)
    except (msgspec.DecodeError, ValueError):
        text = body[:200].decode("utf-8", "replace").strip()
        return api_error(code=code, reason="", message=text or f"the server answered {code}")
    return api_error(
        code=status.code or code,
        reason=status.reason,
        message=status.message or f"the server answered {code}",
        details=status.details,
    )

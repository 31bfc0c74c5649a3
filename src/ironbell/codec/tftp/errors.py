"""The TFTP codec's error: decoding raises nothing else, whatever the bytes are."""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry


class TftpDecodeError(IronbellError):
    """The bytes are no TFTP message."""

    reason, retry = "MalformedTftpMessage", Retry.NEVER

"""Errors of the DHCP codec: the peer's (`DecodeError`, `OptionError`) and the caller's (`EncodeError`).

Decoding raises nothing else, whatever the bytes are.
"""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry


class DhcpError(IronbellError):
    """Base of the codec's errors."""

    reason, retry = "DhcpError", Retry.NEVER


class DecodeError(DhcpError):
    """The bytes are no DHCP message."""

    reason = "MalformedDhcpMessage"


class OptionError(DecodeError):
    """One option's value does not have the form that its definition demands."""

    reason = "MalformedDhcpOption"

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"DHCP option {code}: {message}")
        self.code = code


class EncodeError(DhcpError):
    """The message cannot be put into bytes: a value is too long for its field. Nothing is ever cut silently."""

    reason = "DhcpFieldTooLong"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"DHCP {field}: {message}")
        self.field = field

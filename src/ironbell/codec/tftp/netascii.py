"""Netascii: line feed as CR LF, carriage return as CR NUL.

Source: RFC 764, "The NVT printer and keyboard"; RFC 1350, section 1.
"""

from __future__ import annotations


def to_netascii(content: bytes | bytearray | memoryview) -> bytes:
    """Text of this host as it goes over the wire."""
    return bytes(content).replace(b"\r", b"\r\0").replace(b"\n", b"\r\n")


def from_netascii(content: bytes) -> bytes:
    """The wire's text as this host keeps it."""
    return content.replace(b"\r\n", b"\n").replace(b"\r\0", b"\r")

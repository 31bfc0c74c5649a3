"""Option 77, user class, in both forms that are found: raw text, and length-prefixed pieces.

iPXE sends its class raw; other clients follow RFC 3004.
"""

from __future__ import annotations

from ironbell.codec.dhcp.numbers import Option
from ironbell.codec.dhcp.packet import Packet


def user_classes(packet: Packet) -> frozenset[bytes]:
    """Every class that the option can be read to name: the raw value, and RFC 3004's pieces if it splits evenly."""
    value = packet.options.get(Option.USER_CLASS)
    if not value:
        return frozenset()
    return frozenset({value.rstrip(b"\0"), *_pieces(value)})


def _pieces(value: bytes) -> list[bytes]:
    pieces = []
    position = 0
    while position < len(value):
        end = position + 1 + value[position]
        if end > len(value) or end == position + 1:
            return []
        pieces.append(value[position + 1 : end])
        position = end
    return pieces


def user_class_bytes(*classes: bytes) -> bytes:
    """RFC 3004's form."""
    return b"".join(bytes((len(name),)) + name for name in classes)

"""Options that hold one number: lease time (51), maximum message size (57), interface MTU (26).

Source: RFC 2132, sections 5.1, 9.2 and 9.10.
"""

from __future__ import annotations

from ironbell.codec.dhcp.errors import OptionError
from ironbell.codec.dhcp.numbers import Option
from ironbell.codec.dhcp.packet import Packet

MAX_LEASE_S = 2**32 - 1
"""A lease that never ends."""


def number(packet: Packet, code: int, *, size: int) -> int | None:
    """An unsigned number of `size` bytes; None when the option is absent.

    Raises:
        OptionError: the length is another one.
    """
    value = packet.options.get(code)
    if value is None:
        return None
    if len(value) != size:
        raise OptionError(code, f"{len(value)} bytes, expected {size}")
    return int.from_bytes(value, "big")


def maximum_size(packet: Packet) -> int | None:
    """The longest message, with IP and UDP headers, that the client takes (option 57)."""
    return number(packet, Option.MAXIMUM_SIZE, size=2)

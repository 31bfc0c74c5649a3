"""Options that hold IPv4 addresses: 1, 3, 6, 7, 28, 42, 50, 54.

Source: RFC 2132, sections 3.3 to 3.20, 5.3, 8.3, 9.1 and 9.7.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address

from ironbell.codec.dhcp.errors import OptionError
from ironbell.codec.dhcp.numbers import Option
from ironbell.codec.dhcp.packet import Packet


def address_bytes(addresses: Iterable[IPv4Address]) -> bytes:
    """Addresses one after the other."""
    return b"".join(address.packed for address in addresses)


def single_address(packet: Packet, code: int) -> IPv4Address | None:
    """The one address of an option; None when it is absent.

    Raises:
        OptionError: the length is not four.
    """
    value = packet.options.get(code)
    if value is None:
        return None
    if len(value) != 4:
        raise OptionError(code, f"{len(value)} bytes, an IPv4 address has four")
    return IPv4Address(value)


def requested_address(packet: Packet) -> IPv4Address | None:
    """Address that the client requests (option 50)."""
    return single_address(packet, Option.REQUESTED_ADDRESS)


def server_identifier(packet: Packet) -> IPv4Address | None:
    """Server that a request is for, or that replied (option 54)."""
    return single_address(packet, Option.SERVER_IDENTIFIER)

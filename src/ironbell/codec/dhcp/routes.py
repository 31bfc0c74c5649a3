"""Option 121, classless static routes: prefix length, significant octets of the destination, router.

Source: RFC 3442.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from ironbell.codec.dhcp.errors import OptionError
from ironbell.codec.dhcp.numbers import Option


class Route(NamedTuple):
    """One route; destination 0.0.0.0/0 is the default route."""

    destination: IPv4Network
    router: IPv4Address


def route_bytes(routes: Iterable[Route]) -> bytes:
    """The option's value."""
    out = bytearray()
    for destination, router in routes:
        octets = (destination.prefixlen + 7) // 8
        out.append(destination.prefixlen)
        out += destination.network_address.packed[:octets]
        out += router.packed
    return bytes(out)


def parse_routes(value: bytes) -> tuple[Route, ...]:
    """The routes of an option's value. Host bits below the prefix are cleared (RFC 3442: they must be zero).

    Raises:
        OptionError: a prefix over 32, or a route that is cut.
    """
    routes = []
    position = 0
    while position < len(value):
        prefix = value[position]
        octets = (prefix + 7) // 8
        end = position + 1 + octets + 4
        if prefix > 32 or end > len(value):
            raise OptionError(Option.CLASSLESS_ROUTES, f"the route at byte {position} is cut or has prefix {prefix}")
        network = value[position + 1 : end - 4] + bytes(4 - octets)
        destination = IPv4Network((int.from_bytes(network, "big"), prefix), strict=False)
        routes.append(Route(destination, IPv4Address(value[end - 4 : end])))
        position = end
    return tuple(routes)

"""Where a reply goes.

Source: RFC 2131, section 4.1. One difference: a client without an address always gets a broadcast, also when it did
not ask for one, since a frame to an address that nobody answers ARP for needs a raw socket; RFC 2131 allows it.
"""

from __future__ import annotations

from ironbell.base.ports import DHCP_CLIENT_PORT, DHCP_PORT
from ironbell.codec.dhcp import MessageType, Packet
from ironbell.codec.dhcp.packet import ZERO

BROADCAST = "255.255.255.255"
_UNSPECIFIED = "0.0.0.0"  # noqa: S104 - compared, never bound


def destination(request: Packet, kind: MessageType, *, source: str, source_port: int) -> tuple[str, int]:
    """(address, port) for a reply of this kind; `source` and `source_port` are the request's."""
    if request.giaddr != ZERO:
        return str(request.giaddr), DHCP_PORT
    port = source_port or DHCP_CLIENT_PORT
    # The address that a refused client believes to have is not its own: only a broadcast is sure to reach it.
    if kind is MessageType.NAK:
        return BROADCAST, port
    if source != _UNSPECIFIED:
        return source, port
    if request.ciaddr != ZERO:
        return str(request.ciaddr), port
    return BROADCAST, port

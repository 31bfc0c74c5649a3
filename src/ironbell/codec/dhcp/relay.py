"""Option 82, relay agent information.

Source: RFC 3046 (circuit and remote id); RFC 5107 (server identifier override).
"""

from __future__ import annotations

from ipaddress import IPv4Address

from ironbell.codec.dhcp.errors import OptionError
from ironbell.codec.dhcp.numbers import Option
from ironbell.codec.dhcp.packet import Packet
from ironbell.codec.dhcp.tlv import parse_suboptions

CIRCUIT_ID = 1
REMOTE_ID = 2
SERVER_IDENTIFIER_OVERRIDE = 11


def relay_suboptions(packet: Packet) -> dict[int, bytes]:
    """Sub-options by code; empty without option 82.

    Raises:
        OptionError: a sub-option runs over the end.
    """
    value = packet.options.get(Option.RELAY_AGENT)
    return parse_suboptions(Option.RELAY_AGENT, value) if value is not None else {}


def server_override(packet: Packet) -> IPv4Address | None:
    """The address that the relay wants clients to see as the server's, so that renewals pass through the relay.

    Raises:
        OptionError: option 82 is malformed.
    """
    value = relay_suboptions(packet).get(SERVER_IDENTIFIER_OVERRIDE)
    if value is None:
        return None
    if len(value) != 4:
        raise OptionError(Option.RELAY_AGENT, "sub-option 11 must be one IPv4 address")
    return IPv4Address(value)

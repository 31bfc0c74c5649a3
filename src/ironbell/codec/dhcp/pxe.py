"""Options of PXE and UEFI HTTP boot clients: 43, 93, 94 and 97.

Source: RFC 4578; PXE specification 2.1, section 2.2; tinkerbell/tinkerbell: smee/internal/dhcp/dhcp.go (option 43).
"""

from __future__ import annotations

from collections.abc import Mapping

from ironbell.codec.dhcp.errors import OptionError
from ironbell.codec.dhcp.numbers import Option
from ironbell.codec.dhcp.packet import Packet
from ironbell.codec.dhcp.tlv import parse_suboptions, write_suboptions

DISCOVERY_CONTROL = 6
BOOT_SERVERS = 9
BOOT_MENU = 10
TRACE_PARENT = 69
VLAN = 116
NO_DISCOVERY = b"\x08"
"""Discovery control: no boot server discovery, load the boot file named in the reply."""

_MACHINE_IDENTIFIER_SIZE = 17


def architectures(packet: Packet) -> tuple[int, ...]:
    """Client architectures in the client's order of preference (option 93); empty when it is absent.

    Raises:
        OptionError: the length is zero or odd.
    """
    value = packet.options.get(Option.CLIENT_ARCHITECTURE)
    if value is None:
        return ()
    if not value or len(value) % 2:
        raise OptionError(Option.CLIENT_ARCHITECTURE, f"{len(value)} bytes, architectures have two each")
    return tuple(int.from_bytes(value[start : start + 2], "big") for start in range(0, len(value), 2))


def has_usable_machine_identifier(packet: Packet) -> bool:
    """Return whether option 97 is absent, empty, or a UUID of type 0 (RFC 4578, section 2.3)."""
    value = packet.options.get(Option.MACHINE_IDENTIFIER)
    return not value or (len(value) == _MACHINE_IDENTIFIER_SIZE and value[0] == 0)


def vendor_bytes(suboptions: Mapping[int, bytes]) -> bytes:
    """Option 43's value.

    Raises:
        EncodeError: a value over 255 bytes.
    """
    return write_suboptions(Option.VENDOR_SPECIFIC, suboptions)


def vendor_suboptions(packet: Packet) -> dict[int, bytes]:
    """Option 43's content; empty when it is absent.

    Raises:
        OptionError: a sub-option runs over the end.
    """
    value = packet.options.get(Option.VENDOR_SPECIFIC)
    return parse_suboptions(Option.VENDOR_SPECIFIC, value) if value is not None else {}

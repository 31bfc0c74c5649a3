"""Who is asking to boot: firmware, architecture, and which stage of the boot it is in.

Source: tinkerbell/tinkerbell: smee/internal/dhcp/dhcp.go; RFC 4578;
ipxe/ipxe: src/net/udp/dhcp.c (option 175 in every request).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ironbell.codec.dhcp import MessageType, Option, Packet
from ironbell.codec.dhcp.pxe import architectures, has_usable_machine_identifier
from ironbell.codec.dhcp.user_class import user_classes
from ironbell.contract.servers.boot_files import RASPBERRY_PI
from ironbell.services.dhcp.settings import UNKNOWN_ARCHITECTURE, DhcpSettings

PXE_CLIENT = b"PXEClient"
HTTP_CLIENT = b"HTTPClient"
PLAIN_IPXE_CLASS = b"iPXE"
_BOOTING = frozenset({MessageType.DISCOVER, MessageType.REQUEST})
_LAST_KNOWN_ARCHITECTURE = 36


class Firmware(Enum):
    """What runs on the machine now."""

    ROM = "rom"
    PLAIN_IPXE = "plain ipxe"
    OWN_IPXE = "own ipxe"


@dataclass(frozen=True, slots=True)
class BootClient:
    """A client that wants to boot over the network."""

    mac: str
    architecture: int
    firmware: Firmware
    is_http: bool
    is_raspberry_pi: bool


def boot_client(request: Packet, settings: DhcpSettings) -> BootClient | None:
    """The boot client behind a request; None for one that only wants an address.

    Raises:
        OptionError: option 93 is malformed.
    """
    vendor_class = request.options.get(Option.VENDOR_CLASS, b"")
    is_http = vendor_class.startswith(HTTP_CLIENT)
    if (
        not (is_http or vendor_class.startswith(PXE_CLIENT))
        or request.message_type not in _BOOTING
        or Option.CLIENT_ARCHITECTURE not in request.options
        or Option.NETWORK_INTERFACE not in request.options
        or not has_usable_machine_identifier(request)
    ):
        return None
    is_raspberry_pi = request.mac.startswith(settings.raspberry_pi_ouis)
    return BootClient(
        mac=request.mac,
        # Raspberry Pis report architectures that are not theirs (the fifth model says 0), so their maker decides.
        architecture=RASPBERRY_PI if is_raspberry_pi else _architecture(request),
        firmware=_firmware(request, settings),
        is_http=is_http,
        is_raspberry_pi=is_raspberry_pi,
    )


def _architecture(request: Packet) -> int:
    for code in architectures(request):
        if code <= _LAST_KNOWN_ARCHITECTURE:
            return code
    return UNKNOWN_ARCHITECTURE


def _firmware(request: Packet, settings: DhcpSettings) -> Firmware:
    classes = user_classes(request)
    if settings.own_user_class.encode() in classes:
        return Firmware.OWN_IPXE
    # An iPXE with a user class of its own still says that it is one (option 175); taking it for a ROM would hand it
    # a binary again and again.
    if PLAIN_IPXE_CLASS in classes or Option.IPXE in request.options:
        return Firmware.PLAIN_IPXE
    return Firmware.ROM

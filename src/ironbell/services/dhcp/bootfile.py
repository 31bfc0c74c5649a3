"""Boot clients, and for each its boot file, the server of that file, and option 43.

A firmware ROM gets a binary, and the binary gets a script, as any iPXE does: this cannot loop. For a machine that may
not netboot, the ROM gets the name of a missing file, so that it continues with the disk. Its iPXE gets the script,
because that boots from disk, whereas some firmware hangs after a failed download.

Source: tinkerbell/tinkerbell: smee/internal/dhcp/dhcp.go, smee/internal/ipxe/binary/file/binary.go; RFC 4578;
ipxe/ipxe: src/net/udp/dhcp.c (option 175 in every request).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address

from ironbell.codec.dhcp import MessageType, Option, Packet, pxe
from ironbell.codec.dhcp.packet import ZERO
from ironbell.codec.dhcp.pxe import architectures, has_usable_machine_identifier
from ironbell.codec.dhcp.user_class import user_classes
from ironbell.contract.servers.boot_files import NOT_ALLOWED, RASPBERRY_PI
from ironbell.contract.servers.netboot import ChainTo, NetbootPlan
from ironbell.services.dhcp.answers import Problem
from ironbell.services.dhcp.settings import UNKNOWN_ARCHITECTURE, DhcpSettings, Endpoints, Mode, PlainIpxe

PXE_CLIENT = b"PXEClient"
HTTP_CLIENT = b"HTTPClient"
PLAIN_IPXE_CLASS = b"iPXE"
_BOOTING = frozenset({MessageType.DISCOVER, MessageType.REQUEST})
_LAST_KNOWN_ARCHITECTURE = 36

_TRACE_PARENT_SIZE = 26
_RASPBERRY_PI_SERVERS = bytes.fromhex("00001152617370626572727920506920426f6f74")
_RASPBERRY_PI_MENU = bytes.fromhex("00505845")


class Firmware(Enum):
    """The program that sends the request."""

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
    """Return the boot client that sent a request; None for a client that only requests an address.

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
        # Raspberry Pis report wrong architectures (the fifth model reports 0), so the OUI decides.
        architecture=RASPBERRY_PI if is_raspberry_pi else _architecture(request),
        firmware=_firmware(request, settings),
        is_http=is_http,
        is_raspberry_pi=is_raspberry_pi,
    )


def _architecture(request: Packet) -> int:
    known = (code for code in architectures(request) if code <= _LAST_KNOWN_ARCHITECTURE)
    return next(known, UNKNOWN_ARCHITECTURE)


def _firmware(request: Packet, settings: DhcpSettings) -> Firmware:
    classes = user_classes(request)
    if settings.own_user_class.encode() in classes:
        return Firmware.OWN_IPXE
    # An iPXE with another user class is recognized by option 175; as a ROM it would get a binary again and again.
    if PLAIN_IPXE_CLASS in classes or Option.IPXE in request.options:
        return Firmware.PLAIN_IPXE
    return Firmware.ROM


@dataclass(frozen=True, slots=True)
class BootAnswer:
    """The boot file and its server."""

    file: str
    next_server: IPv4Address
    rejection: str = ""
    """The reason for which the machine boots its disk; empty if it netboots."""
    vendor: bytes = b""
    """Option 43; empty if it is not sent."""
    is_missing: bool = False
    """Whether the rejection is due to a missing file on this server, which a user can add."""


def rejected(reason: str, *, is_missing: bool = False) -> BootAnswer:
    """Return the answer for a machine that boots its disk."""
    return BootAnswer(f"/{NOT_ALLOWED}", ZERO, reason, is_missing=is_missing)


def missing(answer: BootAnswer, *, mac: str, hardware: str) -> tuple[Problem, ...]:
    """Return the problem of a boot file that is missing on this server."""
    hardware_names = (hardware,) if hardware else ()
    return (Problem("BootFileMissing", answer.rejection, mac, hardware_names),) if answer.is_missing else ()


def boot_answer(
    client: BootClient, plan: NetbootPlan | None, *, vlan_id: str, settings: DhcpSettings, own: Endpoints
) -> BootAnswer:
    """Return the boot file of a client; without a plan (no Hardware, in auto-proxy mode), that of the defaults."""
    binary = (plan.binary if plan else "") or settings.binaries.get(client.architecture, "")
    gets_script = client.firmware is Firmware.OWN_IPXE or (
        client.firmware is Firmware.PLAIN_IPXE and settings.plain_ipxe is PlainIpxe.SCRIPT
    )
    rejection = plan.reason if plan else ""
    if rejection and not gets_script:
        return rejected(rejection)
    if not binary:
        return rejected(
            f"There is no iPXE binary for client architecture {client.architecture}: name one in netboot.ipxe.binary.",
            is_missing=True,
        )
    if not gets_script and not settings.is_served(binary):
        return rejected(_missing_reason(client, plan, binary), is_missing=True)
    file = _script(client, plan, own) if gets_script else _binary_path(client, binary, settings=settings, own=own)
    server = own.http_address if client.is_http else own.tftp_address
    has_trace = settings.mode is Mode.RESERVATION
    return BootAnswer(file, server, rejection, vendor_options(client, vlan_id=vlan_id, has_trace=has_trace))


def _missing_reason(client: BootClient, plan: NetbootPlan | None, binary: str) -> str:
    is_named = plan is not None and plan.binary == binary
    origin = ", which netboot.ipxe.binary names," if is_named else f" for client architecture {client.architecture}"
    return f'The iPXE binary "{binary}"{origin} is missing: put it into the folder of --ipxe-dir and restart.'


def _script(client: BootClient, plan: NetbootPlan | None, own: Endpoints) -> str:
    if plan is not None and isinstance(plan.target, ChainTo):
        return plan.target.url
    return own.script_for(client.mac)


def _binary_path(client: BootClient, binary: str, *, settings: DhcpSettings, own: Endpoints) -> str:
    mac = settings.mac_format.write(client.mac)
    path = f"{mac}/{binary}" if mac else binary
    if client.is_http:
        return f"{own.binary_url}/{path}"
    if client.firmware is Firmware.PLAIN_IPXE:
        return f"tftp://{own.tftp_address}:{own.tftp_port}/{path}"
    return binary


def vendor_options(client: BootClient, *, vlan_id: str, has_trace: bool) -> bytes:
    """Return option 43, with `has_trace` with room for a trace id, which upstream's iPXE reads in reservation mode."""
    suboptions = {pxe.DISCOVERY_CONTROL: pxe.NO_DISCOVERY}
    if client.is_raspberry_pi:
        suboptions[pxe.BOOT_SERVERS] = _RASPBERRY_PI_SERVERS
        suboptions[pxe.BOOT_MENU] = _RASPBERRY_PI_MENU
    if has_trace:
        suboptions[pxe.TRACE_PARENT] = bytes(_TRACE_PARENT_SIZE)
    if vlan_id:
        suboptions[pxe.VLAN] = vlan_id.encode()
    return pxe.vendor_bytes(suboptions)

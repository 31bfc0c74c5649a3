"""Which file a boot client gets, from where, and what option 43 says to it.

The ladder ends at a script for whatever runs iPXE, so it cannot loop: a ROM gets a binary, the binary gets the
script. A machine that may not netboot gets a name that leads nowhere while its ROM asks, so that the ROM goes on to
the disk; its iPXE gets the script as well, since the script route then answers with "boot from disk", which firmware
obeys where a failed download hangs some of it.

Source: tinkerbell/tinkerbell: smee/internal/dhcp/dhcp.go, smee/internal/ipxe/binary/file/binary.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from ironbell.codec.dhcp import pxe
from ironbell.codec.dhcp.packet import ZERO
from ironbell.contract.servers.boot_files import NOT_ALLOWED
from ironbell.contract.servers.netboot import ChainTo, NetbootPlan
from ironbell.services.dhcp.client import BootClient, Firmware
from ironbell.services.dhcp.problems import Problem
from ironbell.services.dhcp.settings import DhcpSettings, Endpoints, Mode, PlainIpxe

_TRACE_PARENT_SIZE = 26
_RASPBERRY_PI_SERVERS = bytes.fromhex("00001152617370626572727920506920426f6f74")
_RASPBERRY_PI_MENU = bytes.fromhex("00505845")


@dataclass(frozen=True, slots=True)
class BootAnswer:
    """The boot file and its server; `refusal` says why the machine is sent to its disk."""

    file: str
    next_server: IPv4Address
    refusal: str = ""
    vendor: bytes = b""
    """Option 43; empty: not sent."""
    is_missing: bool = False
    """Whether it is refused since its file is missing here, which somebody can change."""


def refused(why: str, *, is_missing: bool = False) -> BootAnswer:
    """The answer that sends a machine to its disk."""
    return BootAnswer(f"/{NOT_ALLOWED}", ZERO, why, is_missing=is_missing)


def missing(answer: BootAnswer, *, mac: str, hardware: str) -> tuple[Problem, ...]:
    """What is reported about a boot file that is missing here."""
    hardware_names = (hardware,) if hardware else ()
    return (Problem("BootFileMissing", answer.refusal, mac, hardware_names),) if answer.is_missing else ()


def binary_for(client: BootClient, plan: NetbootPlan | None, settings: DhcpSettings) -> str:
    """The iPXE binary: what the Hardware names, else by architecture; empty when there is none."""
    return (plan.binary if plan else "") or settings.binaries.get(client.architecture, "")


def boot_answer(
    client: BootClient, plan: NetbootPlan | None, *, vlan_id: str, settings: DhcpSettings, own: Endpoints
) -> BootAnswer:
    """What the client boots. Without a plan (a machine without Hardware in auto-proxy mode) it gets the defaults."""
    binary = binary_for(client, plan, settings)
    takes_script = _takes_script(client, settings)
    refusal = plan.reason if plan else ""
    if refusal and not takes_script:
        return refused(refusal)
    if not binary:
        return refused(
            f"There is no iPXE binary for client architecture {client.architecture}: name one in netboot.ipxe.binary.",
            is_missing=True,
        )
    if not takes_script and not settings.is_served(binary):
        return refused(_why_missing(client, plan, binary), is_missing=True)
    file = _script(client, plan, own) if takes_script else _binary_path(client, binary, settings=settings, own=own)
    server = own.http_address if client.is_http else own.tftp_address
    has_trace = settings.mode is Mode.RESERVATION
    return BootAnswer(file, server, refusal, vendor_options(client, vlan_id=vlan_id, has_trace=has_trace))


def _why_missing(client: BootClient, plan: NetbootPlan | None, binary: str) -> str:
    is_named = plan is not None and plan.binary == binary
    what = ", which netboot.ipxe.binary names," if is_named else f" for client architecture {client.architecture}"
    return f'The iPXE binary "{binary}"{what} is missing: put it into the folder of --ipxe-dir and restart.'


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


def _takes_script(client: BootClient, settings: DhcpSettings) -> bool:
    if client.firmware is Firmware.OWN_IPXE:
        return True
    return client.firmware is Firmware.PLAIN_IPXE and settings.plain_ipxe is PlainIpxe.SCRIPT


def vendor_options(client: BootClient, *, vlan_id: str, has_trace: bool) -> bytes:
    """Option 43. `has_trace`: with the place for a trace id, which upstream's iPXE reads in reservation mode."""
    suboptions = {pxe.DISCOVERY_CONTROL: pxe.NO_DISCOVERY}
    if client.is_raspberry_pi:
        suboptions[pxe.BOOT_SERVERS] = _RASPBERRY_PI_SERVERS
        suboptions[pxe.BOOT_MENU] = _RASPBERRY_PI_MENU
    if has_trace:
        suboptions[pxe.TRACE_PARENT] = bytes(_TRACE_PARENT_SIZE)
    if vlan_id:
        suboptions[pxe.VLAN] = vlan_id.encode()
    return pxe.vendor_bytes(suboptions)

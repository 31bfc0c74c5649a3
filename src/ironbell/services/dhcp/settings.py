"""How DHCP is served on a network: mode, what is advertised, which binary goes to which architecture.

Source: tinkerbell/tinkerbell: smee flags, smee/internal/dhcp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address
from urllib.parse import urlsplit

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ports import DHCP_PORT, HTTP_PORT, PROXY_DHCP_PORT, TFTP_PORT
from ironbell.codec.dhcp.packet import ZERO
from ironbell.contract.servers.boot_files import BY_ARCHITECTURE


class DhcpSettingsError(IronbellError):
    """A setting has a value that means nothing."""

    reason, retry = "InvalidDhcpSettings", Retry.NEVER


class Mode(Enum):
    """Who hands out addresses."""

    RESERVATION = "reservation"
    """We do: each machine gets the address that its Hardware names."""
    PROXY = "proxy"
    """Another server does; we add the netboot part for machines with Hardware."""
    AUTO_PROXY = "auto-proxy"
    """As PROXY, and machines without Hardware get the defaults."""

    @classmethod
    def parse(cls, text: str) -> Mode:
        """A mode by its name in any case.

        Raises:
            DhcpSettingsError: there is no such mode.
        """
        try:
            return cls(text.strip().lower())
        except ValueError:
            known = ", ".join(mode.value for mode in cls)
            raise DhcpSettingsError(f"DHCP mode {text!r} is unknown; use one of {known}") from None


class MacFormat(Enum):
    """How a MAC is written in the path of a binary."""

    COLON = "colon"
    DOT = "dot"
    DASH = "dash"
    NO_DELIMITER = "no-delimiter"
    EMPTY = "empty"

    def write(self, mac: str) -> str:
        """`mac` (lower case, colons) in this form; empty for EMPTY."""
        digits = mac.replace(":", "")
        match self:
            case MacFormat.COLON:
                return mac
            case MacFormat.DOT:
                return ".".join(digits[start : start + 4] for start in range(0, len(digits), 4))
            case MacFormat.DASH:
                return mac.replace(":", "-")
            case MacFormat.NO_DELIMITER:
                return digits
            case MacFormat.EMPTY:
                return ""


class PlainIpxe(Enum):
    """What an iPXE of somebody else's (user class `iPXE`) gets."""

    SCRIPT = "script"
    """The boot script: any iPXE can run it, and no binary is ever loaded twice."""
    BINARY = "binary"
    """Our binary first, as upstream does. Loops where the binary that we serve is itself a plain iPXE."""


BIOS, EFI_X86_64, EFI_ARM64, UNKNOWN_ARCHITECTURE = 0, 7, 11, 255

# The first five are those that upstream knows; the sixth is a later block of the same maker.
RASPBERRY_PI_OUIS = ("b8:27:eb", "dc:a6:32", "e4:5f:01", "28:cd:c1", "d8:3a:dd", "2c:cf:67")

WEEK_S = 604800


def _anything(_name: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class DhcpSettings:
    """One server's settings. In texts, `{address}` stands for our address as the asking machine reaches it."""

    mode: Mode = Mode.RESERVATION
    netboot_options: bool = True
    """False: addresses only, nothing about netboot."""
    advertise: IPv4Address | None = None
    """Our address for everybody, instead of the one that each subnet reaches (behind NAT, or a virtual address)."""
    tftp_address: IPv4Address | None = None
    """None: the same address as DHCP's."""
    tftp_port: int = TFTP_PORT
    binary_url: str = f"http://{{address}}:{HTTP_PORT}/ipxe/binary"
    """For UEFI HTTP boot; MAC and binary name are appended."""
    script_url: str = f"http://{{address}}:{HTTP_PORT}/ipxe/script/{{mac}}/auto.ipxe"
    mac_format: MacFormat = MacFormat.COLON
    binaries: Mapping[int, str] = field(default_factory=lambda: BY_ARCHITECTURE)
    """Client architecture to the iPXE binary for it."""
    is_served: Callable[[str], bool] = _anything
    """Whether we serve a binary of this name now; one that we do not serve is not handed out."""
    own_user_class: str = "Tinkerbell"
    """User class of our own and of upstream's binaries."""
    plain_ipxe: PlainIpxe = PlainIpxe.SCRIPT
    log_server: str = ""
    """Option 7; empty: not sent."""
    raspberry_pi_ouis: tuple[str, ...] = RASPBERRY_PI_OUIS
    default_lease_s: int = WEEK_S

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports to serve: proxies also answer where PXE clients ask a proxy alone."""
        return (DHCP_PORT,) if self.mode is Mode.RESERVATION else (DHCP_PORT, PROXY_DHCP_PORT)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a machine finds us: the settings with our address filled in."""

    address: IPv4Address
    tftp_address: IPv4Address
    tftp_port: int
    http_address: IPv4Address
    """The host of `binary_url` where it is an address, else `address`."""
    binary_url: str
    script_url: str
    log_server: IPv4Address | None
    identities: frozenset[IPv4Address]
    """Server identifiers (option 54) by which clients mean us."""

    def script_for(self, mac: str) -> str:
        return self.script_url.replace("{mac}", mac)


def endpoints(settings: DhcpSettings, address: IPv4Address, *, also: IPv4Address = ZERO) -> Endpoints:
    """Fill in `address`; `also` is a second address of ours by which the client may know us."""
    address = settings.advertise or address
    tftp_address = settings.tftp_address or address
    binary_url = settings.binary_url.replace("{address}", str(address)).rstrip("/")
    log_server = settings.log_server.replace("{address}", str(address))
    return Endpoints(
        address=address,
        tftp_address=tftp_address,
        tftp_port=settings.tftp_port,
        http_address=_address_or_none(urlsplit(binary_url).hostname or "") or address,
        binary_url=binary_url,
        script_url=settings.script_url.replace("{address}", str(address)),
        log_server=_address_or_none(log_server),
        identities=frozenset({address, tftp_address, also}) - {ZERO},
    )


def _address_or_none(text: str) -> IPv4Address | None:
    try:
        return IPv4Address(text)
    except ValueError:
        return None

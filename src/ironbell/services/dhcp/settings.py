"""Settings of the DHCP server of a network: mode, addresses to advertise, binaries by architecture.

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
    """A setting has an invalid value."""

    reason, retry = "InvalidDhcpSettings", Retry.NEVER


class Mode(Enum):
    """The server that assigns addresses."""

    RESERVATION = "reservation"
    """This server: each machine gets the address that its Hardware names."""
    PROXY = "proxy"
    """Another server; this one adds netboot options for machines with Hardware."""
    AUTO_PROXY = "auto-proxy"
    """Like PROXY, and machines without Hardware get the defaults."""

    @classmethod
    def parse(cls, text: str) -> Mode:
        """Return a mode by its name, in any case.

        Raises:
            DhcpSettingsError: the mode does not exist.
        """
        try:
            return cls(text.strip().lower())
        except ValueError:
            known = ", ".join(mode.value for mode in cls)
            raise DhcpSettingsError(f"DHCP mode {text!r} is not valid; use one of {known}") from None


class MacFormat(Enum):
    """The form of a MAC in the path of a binary."""

    COLON = "colon"
    DOT = "dot"
    DASH = "dash"
    NO_DELIMITER = "no-delimiter"
    EMPTY = "empty"

    def write(self, mac: str) -> str:
        """Return `mac` (lower case, with colons) in this form; empty for EMPTY."""
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
    """The boot file of an iPXE that is not ours (user class `iPXE`)."""

    SCRIPT = "script"
    """The boot script: any iPXE can run it, and no binary is loaded twice."""
    BINARY = "binary"
    """Our binary first, as upstream. It loops if that binary is a plain iPXE itself."""


BIOS, EFI_X86_64, EFI_ARM64, UNKNOWN_ARCHITECTURE = 0, 7, 11, 255

# Upstream has the first five; the sixth is a later block of the same vendor.
RASPBERRY_PI_OUIS = ("b8:27:eb", "dc:a6:32", "e4:5f:01", "28:cd:c1", "d8:3a:dd", "2c:cf:67")

WEEK_S = 604800


@dataclass(frozen=True, slots=True)
class DhcpSettings:
    """The settings of a server. `{address}` in texts is the placeholder of our address as the machine reaches it."""

    mode: Mode = Mode.RESERVATION
    netboot_options: bool = True
    """Whether replies have netboot options, and not only addresses."""
    advertise: IPv4Address | None = None
    """Our address for all subnets (behind NAT, or a virtual address); None for the one that each subnet reaches."""
    tftp_address: IPv4Address | None = None
    """None for the address of the DHCP server."""
    tftp_port: int = TFTP_PORT
    binary_url: str = f"http://{{address}}:{HTTP_PORT}/ipxe/binary"
    """For UEFI HTTP boot; MAC and name of the binary are appended."""
    script_url: str = f"http://{{address}}:{HTTP_PORT}/ipxe/script/{{mac}}/auto.ipxe"
    mac_format: MacFormat = MacFormat.COLON
    binaries: Mapping[int, str] = field(default_factory=lambda: BY_ARCHITECTURE)
    """iPXE binaries by client architecture."""
    is_served: Callable[[str], bool] = lambda _name: True
    """Whether this server serves a binary of this name now; other binaries are not offered."""
    own_user_class: str = "Tinkerbell"
    """User class of our binaries and of upstream's."""
    plain_ipxe: PlainIpxe = PlainIpxe.SCRIPT
    log_server: str = ""
    """Option 7; empty if it is not sent."""
    raspberry_pi_ouis: tuple[str, ...] = RASPBERRY_PI_OUIS
    default_lease_s: int = WEEK_S

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports to serve; proxies also serve the port for requests to a proxy."""
        return (DHCP_PORT,) if self.mode is Mode.RESERVATION else (DHCP_PORT, PROXY_DHCP_PORT)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Addresses and URLs by which a machine reaches this server: the settings with our address filled in."""

    address: IPv4Address
    tftp_address: IPv4Address
    tftp_port: int
    http_address: IPv4Address
    """The host of `binary_url` if it is an address, else `address`."""
    binary_url: str
    script_url: str
    log_server: IPv4Address | None
    identities: frozenset[IPv4Address]
    """Server identifiers (option 54) that select this server."""

    def script_for(self, mac: str) -> str:
        return self.script_url.replace("{mac}", mac)


def endpoints(settings: DhcpSettings, address: IPv4Address, *, also: IPv4Address = ZERO) -> Endpoints:
    """Fill in `address`; `also` is a second address by which the client may select this server."""
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

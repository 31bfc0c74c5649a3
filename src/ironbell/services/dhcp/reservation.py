"""A Hardware interface as DHCP serves it: address, lease, and encoded options.

It is compiled once per change of the Hardware, so that a message needs no parsing. An invalid mask, address, gateway or
route makes the whole lease wrong: the interface is not served. Other invalid values, such as that of a name server, are
omitted with a warning.

Source: tinkerbell/tinkerbell: smee/internal/dhcp/conv.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address

from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ip
from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.dhcp import EncodeError, Option
from ironbell.codec.dhcp.addresses import address_bytes
from ironbell.codec.dhcp.integers import MAX_LEASE_S
from ironbell.codec.dhcp.routes import Route, route_bytes
from ironbell.codec.dhcp.search import search_bytes
from ironbell.contract.servers.directory import normal_mac
from ironbell.services.dhcp.settings import WEEK_S


class InvalidDhcpDataError(IronbellError):
    """A field under `spec.interfaces[].dhcp` makes it impossible to serve the interface."""

    reason, retry = "InvalidDhcpData", Retry.NEVER


@dataclass(frozen=True, slots=True)
class Reservation:
    """The lease of one interface."""

    mac: str
    address: IPv4Address | None
    """None if the Hardware has no IPv4 address to offer."""
    lease_s: int
    options: Mapping[int, bytes]
    boot_file: str = ""
    """The user's own boot file; it replaces all of our netboot options."""
    vlan_id: str = ""
    is_disabled: bool = False
    warnings: tuple[str, ...] = ()


def reservation_of(interface: Interface, *, default_lease_s: int = WEEK_S) -> Reservation:
    """Compile one interface.

    Raises:
        InvalidDhcpDataError: the interface cannot be served; the message names the field.
    """
    dhcp = interface.dhcp or Dhcp()
    warnings: list[str] = []
    options: dict[int, bytes] = {}
    address = _add_address(dhcp.ip or Ip(), options, warnings)
    _add_addresses(Option.NAME_SERVERS, "name_servers", dhcp.name_servers, options, warnings)
    _add_addresses(Option.TIME_SERVERS, "time_servers", dhcp.time_servers, options, warnings)
    _add_names(dhcp, options, warnings)
    if dhcp.classless_static_routes:
        options[Option.CLASSLESS_ROUTES] = route_bytes(_routes(dhcp))
    if dhcp.boot_file_name and dhcp.tftp_server_name:
        options[Option.TFTP_SERVER_NAME] = dhcp.tftp_server_name.encode()
    if dhcp.boot_file_name:
        options[Option.BOOT_FILE_NAME] = dhcp.boot_file_name.encode()
    lease_s = dhcp.lease_time or 0
    return Reservation(
        mac=normal_mac(dhcp.mac),
        address=address,
        # Unset, zero and invalid values mean the documented week: with a lease of zero seconds, clients would request
        # without end.
        lease_s=lease_s if 0 < lease_s <= MAX_LEASE_S else default_lease_s,
        options={int(code): value for code, value in options.items()},
        boot_file=dhcp.boot_file_name,
        # Firmware can use one VLAN; a list is for the in-memory OS alone.
        vlan_id=dhcp.vlan_id if dhcp.vlan_id.isdigit() else "",
        is_disabled=interface.disable_dhcp,
        warnings=tuple(warnings),
    )


def _add_address(ip: Ip, options: dict[int, bytes], warnings: list[str]) -> IPv4Address | None:
    """Return the address, and add mask, broadcast address and gateway to the options."""
    if not ip.address:
        return None
    try:
        address = ip_address(ip.address)
    except ValueError:
        raise InvalidDhcpDataError(f"dhcp.ip.address {ip.address!r} is not a valid IP address") from None
    if isinstance(address, IPv6Address):
        warnings.append(f"dhcp.ip.address {ip.address} is IPv6 and is ignored: DHCPv4 assigns IPv4 addresses only")
        return None
    network = _network(address, ip.netmask)
    options[Option.SUBNET_MASK] = network.netmask.packed
    options[Option.BROADCAST_ADDRESS] = network.broadcast_address.packed
    if ip.gateway:
        options[Option.ROUTERS] = _ipv4("dhcp.ip.gateway", ip.gateway).packed
    return address


def _network(address: IPv4Address, netmask: str) -> IPv4Network:
    if not netmask:
        raise InvalidDhcpDataError(f"dhcp.ip.netmask is missing for {address}; set it in dotted form")
    mask = _ipv4("dhcp.ip.netmask", netmask)
    inverted = ~int(mask) & 0xFFFFFFFF
    if inverted & (inverted + 1):
        raise InvalidDhcpDataError(f"dhcp.ip.netmask {netmask} is not a valid netmask: its one bits are not contiguous")
    return IPv4Network((int(address), 32 - inverted.bit_length()), strict=False)


def _ipv4(field: str, text: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except ValueError:
        raise InvalidDhcpDataError(f"{field} {text!r} is not a valid IPv4 address") from None


def _add_addresses(
    code: Option, field: str, entries: list[str], options: dict[int, bytes], warnings: list[str]
) -> None:
    """Add the entries that are IPv4 addresses; the others are omitted with a warning."""
    addresses = []
    for entry in entries:
        try:
            addresses.append(IPv4Address(entry))
        except ValueError:
            warnings.append(f"dhcp.{field}: {entry!r} is not a valid IPv4 address and is omitted")
    if addresses:
        options[code] = address_bytes(addresses)


def _add_names(dhcp: Dhcp, options: dict[int, bytes], warnings: list[str]) -> None:
    """Add host name, domain name and search list."""
    if dhcp.hostname:
        options[Option.HOST_NAME] = dhcp.hostname.encode()
    if not dhcp.domain_name:
        return
    options[Option.DOMAIN_NAME] = dhcp.domain_name.encode()
    try:
        options[Option.DOMAIN_SEARCH] = search_bytes([dhcp.domain_name])
    except EncodeError as error:
        warnings.append(f"dhcp.domain_name cannot be a search domain: {error}")


def _routes(dhcp: Dhcp) -> list[Route]:
    routes = []
    for route in dhcp.classless_static_routes:
        try:
            destination = IPv4Network(route.destination_descriptor, strict=False)
        except ValueError:
            raise InvalidDhcpDataError(
                f"dhcp.classless_static_routes: {route.destination_descriptor!r} is not a valid IPv4 network"
            ) from None
        routes.append(Route(destination, _ipv4("dhcp.classless_static_routes: router", route.router)))
    return routes

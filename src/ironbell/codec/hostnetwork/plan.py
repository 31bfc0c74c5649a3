"""A machine's network from its Hardware's interfaces: cards, bonds and VLANs with what is on each. Pure.

Interfaces are those of `spec.interfaces`, found by MAC. Several entries of one MAC are several addresses of one card. A
`vlan_id` puts an entry's address on that VLAN. Bonds take cards by their MACs; the addresses of their members, and
their VLANs, are the bond's.

This is the one rule for every way in which an installed system gets its network: the action `network`, and the
metadata service's network-config.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/hardware.go; Linux: Documentation/networking/bonding.rst (modes
by number).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.quantities import decimal

MODES: Final = ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")
BONDS: Final = "ironbell.dev/bonds"
"""Annotation of Hardware in which templates keep bonds, as JSON; ours do."""
_METRIC: Final = 100
"""Metric of the first default route; each further one is as much higher, so that the first gateway is preferred."""
_DEFAULT_ROUTES: Final = {"0.0.0.0/0", "::/0"}


class HostNetworkError(IronbellError):
    """The interfaces or bonds of a Hardware do not describe a network."""

    reason, retry = "InvalidNetwork", Retry.NEVER


class Ip(msgspec.Struct, frozen=True):
    """An address of the Hardware."""

    address: str = ""
    netmask: str = ""
    gateway: str = ""


class StaticRoute(msgspec.Struct, frozen=True):
    """A further route."""

    destination_descriptor: str = ""
    router: str = ""


class Dhcp(msgspec.Struct, frozen=True):
    """Settings of an interface in the Hardware."""

    mac: str = ""
    ip: Ip | None = None
    vlan_id: str = ""
    domain_name: str = ""
    name_servers: tuple[str, ...] = ()
    time_servers: tuple[str, ...] = ()
    classless_static_routes: tuple[StaticRoute, ...] = ()


class Interface(msgspec.Struct, frozen=True):
    """One entry of `spec.interfaces`."""

    dhcp: Dhcp | None = None


class BondRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cards that work as one. Without members all cards do."""

    name: str = "bond0"
    mode: str = "802.3ad"
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """Destination and gateway of packets; `destination` is empty for the default route."""

    gateway: str
    destination: str = ""
    metric: int = 0
    on_link: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A card, a bond or a VLAN, and what is on it."""

    name: str
    mac: str
    addresses: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    name_servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    time_servers: tuple[str, ...] = ()
    bond: str = ""
    """The bond that it is a member of."""
    mode: str = ""
    """Mode of a bond."""
    vlan: int = 0
    """Number of a VLAN."""
    over: str = ""
    """The link that a VLAN is on."""


@dataclass(frozen=True)
class Network:
    """The whole of it; cards in the order of the Hardware."""

    cards: tuple[Link, ...]
    bonds: tuple[Link, ...] = ()
    vlans: tuple[Link, ...] = ()
    name_servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()

    @property
    def links(self) -> tuple[Link, ...]:
        return (*self.cards, *self.bonds, *self.vlans)

    @property
    def has_address(self) -> bool:
        """Return whether any link has a static address."""
        return any(link.addresses for link in self.links)


def read_interfaces(text: str) -> list[Interface]:
    """`spec.interfaces` from JSON.

    Raises:
        HostNetworkError: the text is not such a list.
    """
    try:
        return msgspec.json.decode(text, type=list[Interface])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HostNetworkError(f"The interfaces cannot be read: {error}.") from error


def read_bonds(text: str, bonding_mode: str) -> list[BondRequest]:
    """The bonds of annotation `ironbell.dev/bonds`; where it is empty, a `bonding_mode` that is set and not 0 makes one
    bond of all cards.

    Raises:
        HostNetworkError: the annotation is not a JSON list of bonds.
    """
    try:
        requests = msgspec.json.decode(text, type=list[BondRequest]) if text.strip() else []
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HostNetworkError(f"The bonds (annotation {BONDS}) cannot be read: {error}.") from error
    mode = bonding_mode.strip()
    return [BondRequest(mode=mode)] if mode and mode != "0" and not requests else requests


def plan(interfaces: Sequence[Interface], requests: Sequence[BondRequest]) -> Network:
    """The network of these interfaces; empty where none has a MAC.

    Raises:
        HostNetworkError: an address, MAC or VLAN is not valid, or a member of a bond is not an interface.
    """
    entries = [interface.dhcp for interface in interfaces if interface.dhcp is not None and interface.dhcp.mac]
    macs = list(dict.fromkeys(_mac(entry.mac) for entry in entries))
    names = {mac: f"nic{number}" for number, mac in enumerate(macs)}
    bonds, member_of = _bonds(requests, macs) if macs else ([], {})
    links = {
        **{names[mac]: Link(names[mac], mac, bond=member_of.get(mac, "")) for mac in macs},
        **{bond.name: bond for bond in bonds},
    }
    metric = _METRIC
    for entry in entries:
        mac = _mac(entry.mac)
        carrier = member_of.get(mac) or names[mac]
        if entry.vlan_id:
            # The first VLAN of several has the address; the others exist for whatever is put on them.
            carrier, *_ = [_vlan(links, carrier, number) for number in entry.vlan_id.split(",")]
        changed = _with(links[carrier], entry, metric)
        metric += _METRIC if changed.routes != links[carrier].routes else 0
        links[carrier] = changed
    all_links = list(links.values())
    return Network(
        cards=tuple(link for link in all_links if link.name in names.values()),
        bonds=tuple(link for link in all_links if link.mode),
        vlans=tuple(link for link in all_links if link.vlan),
        name_servers=_distinct(server for link in all_links for server in link.name_servers),
        search=_distinct(domain for link in all_links for domain in link.search),
    )


def _bonds(requests: Sequence[BondRequest], macs: list[str]) -> tuple[list[Link], dict[str, str]]:
    bonds: list[Link] = []
    member_of: dict[str, str] = {}
    for request in requests:
        number = decimal(request.mode)
        mode = MODES[number] if number is not None and number < len(MODES) else request.mode
        if mode not in MODES:
            raise HostNetworkError(f'Bond "{request.name}": mode "{request.mode}" is not one of {", ".join(MODES)}.')
        if not _is_name(request.name):
            raise HostNetworkError(f'Bond "{request.name}": a name has at most 15 letters, digits, dots and dashes.')
        members = [_mac(mac) for mac in request.members] or macs
        for mac in members:
            if mac not in macs or mac in member_of:
                problem = "is in another bond already" if mac in member_of else "is not an interface of the Hardware"
                raise HostNetworkError(f'Bond "{request.name}": {mac} {problem}.')
            member_of[mac] = request.name
        bonds.append(Link(request.name, members[0], mode=mode))
    return bonds, member_of


def _vlan(links: dict[str, Link], carrier: str, text: str) -> str:
    number = decimal(text)
    if number is None or not 1 <= number <= 4094:
        raise HostNetworkError(f'vlan_id "{text}" is not a number from 1 to 4094.')
    known = next((link.name for link in links.values() if (link.over, link.vlan) == (carrier, number)), "")
    if known:
        return known
    name = f"vlan{text}" if f"vlan{text}" not in links else f"{carrier[:10]}.{text}"
    links[name] = Link(name, "", vlan=number, over=carrier)
    return name


def _with(link: Link, entry: Dhcp, metric: int) -> Link:
    """The link with what an entry adds to it."""
    link = replace(
        link,
        name_servers=_distinct((*link.name_servers, *(_address(server) for server in entry.name_servers))),
        search=_distinct((*link.search, *((entry.domain_name,) if _is_domain(entry.domain_name) else ()))),
        time_servers=_distinct((*link.time_servers, *(server for server in entry.time_servers if _is_domain(server)))),
    )
    if entry.ip is None or not entry.ip.address:
        return link
    own = _interface(entry.ip)
    routes = [_route("", entry.ip.gateway, own, metric)] if entry.ip.gateway else []
    for route in entry.classless_static_routes:
        default = route.destination_descriptor in _DEFAULT_ROUTES
        destination = "" if default else _destination(route.destination_descriptor)
        routes.append(_route(destination, route.router, own, metric if default else 0))
    return replace(
        link, addresses=_distinct((*link.addresses, str(own))), routes=tuple(dict.fromkeys((*link.routes, *routes)))
    )


def _route(destination: str, gateway: str, own: Any, metric: int) -> Route:
    address = _address(gateway)
    return Route(address, destination, metric, on_link=ipaddress.ip_address(address) not in own.network)


def _interface(ip: Ip) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    address = ipaddress.ip_address(_address(ip.address))
    mask = ip.netmask.strip().removeprefix("/")
    if isinstance(address, ipaddress.IPv6Address) and ":" in mask:
        mask = str(int(ipaddress.IPv6Address(_address(mask))).bit_count())
    mask = mask or str(address.max_prefixlen)
    try:
        return ipaddress.ip_interface(f"{address}/{mask}")
    except ValueError as error:
        raise HostNetworkError(f'"{ip.netmask}" is not a valid netmask (of {ip.address}).') from error


def _destination(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError as error:
        raise HostNetworkError(f'"{text}" is not a valid network to route to.') from error


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError as error:
        raise HostNetworkError(f'"{text}" is not a valid IP address.') from error


def _mac(text: str) -> str:
    digits = "".join(character for character in text.lower() if character not in ":-.")
    if len(digits) != 12 or any(digit not in "0123456789abcdef" for digit in digits):
        raise HostNetworkError(f'"{text}" is not a valid MAC address.')
    return ":".join(digits[start : start + 2] for start in range(0, 12, 2))


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 15 and all(
        character.isascii() and (character.isalnum() or character in ".-_") for character in text
    )


def _is_domain(text: str) -> bool:
    return bool(text) and all(
        character.isascii() and (character.isalnum() or character in ".-_:") for character in text
    )


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))

"""A machine's network from its Hardware's interfaces, and the files that make it so. Pure: nothing is written here.

Interfaces are those of `spec.interfaces`, found by MAC. Several entries of one MAC are several addresses of one card. A
`vlan_id` puts an entry's address on that VLAN. Bonds take cards by their MACs; the addresses of their members, and
their VLANs, are the bond's. Nothing asks for an address afterwards: no DHCP, no router advertisements.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/hardware.go; systemd.network(5), systemd.netdev(5); netplan.yaml,
version 2; Linux: Documentation/networking/bonding.rst (modes by number).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from ironbell.agent.actions.context import ActionError

MODES: Final = ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")
BONDS: Final = "ironbell.dev/bonds"
"""Annotation of Hardware in which templates keep bonds, as JSON; ours do."""
_METRIC: Final = 100
_DEFAULT_ROUTES: Final = {"0.0.0.0/0", "::/0"}


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
    """What the Hardware says of an interface."""

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
    """Where packets go; `destination` is empty for the default route."""

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
    """Of a bond."""
    vlan: int = 0
    """Of a VLAN."""
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


def parse(interfaces: str, bonds: str, bonding_mode: str) -> Network:
    """The network that the action's variables describe.

    Raises:
        ActionError: they cannot be read, or contradict each other.
    """
    try:
        given = msgspec.json.decode(interfaces, type=list[Interface])
        requests = msgspec.json.decode(bonds, type=list[BondRequest]) if bonds.strip() else []
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        what = f"INTERFACES, or BONDS (annotation {BONDS}),"
        raise ActionError(f"{what} cannot be read: {error}", exit_status=10) from error
    mode = bonding_mode.strip()
    if mode and mode != "0" and not requests:
        requests = [BondRequest(mode=mode)]
    return plan([entry.dhcp for entry in given if entry.dhcp is not None and entry.dhcp.mac], requests)


def plan(entries: list[Dhcp], requests: list[BondRequest]) -> Network:
    """The network of these entries.

    Raises:
        ActionError: an address is none, a bond's member is no card, or nothing has an address.
    """
    macs = list(dict.fromkeys(_mac(entry.mac) for entry in entries))
    if not macs:
        raise ActionError("INTERFACES names no interface with a MAC", exit_status=10)
    names = {mac: f"nic{number}" for number, mac in enumerate(macs)}
    bonds, member_of = _bonds(requests, macs)
    links = {
        **{names[mac]: Link(names[mac], mac, bond=member_of.get(mac, "")) for mac in macs},
        **{bond.name: bond for bond in bonds},
    }
    metric = _METRIC
    for entry in entries:
        mac = _mac(entry.mac)
        carrier = member_of.get(mac) or names[mac]
        if entry.vlan_id:
            # The first of several has the address; the others are there for whatever is put on them.
            carrier, *_ = [_vlan(links, carrier, one) for one in entry.vlan_id.split(",")]
        changed = _with(links[carrier], entry, metric)
        metric += _METRIC if changed.routes != links[carrier].routes else 0
        links[carrier] = changed
    found = list(links.values())
    if not any(link.addresses for link in found):
        raise ActionError("no interface of the Hardware has an address: spec.interfaces[].dhcp.ip is empty")
    return Network(
        cards=tuple(link for link in found if link.name in names.values()),
        bonds=tuple(link for link in found if link.mode),
        vlans=tuple(link for link in found if link.vlan),
        name_servers=_each(server for link in found for server in link.name_servers),
        search=_each(domain for link in found for domain in link.search),
    )


def _bonds(requests: list[BondRequest], macs: list[str]) -> tuple[list[Link], dict[str, str]]:
    bonds: list[Link] = []
    member_of: dict[str, str] = {}
    for request in requests:
        mode = MODES[int(request.mode)] if request.mode.isdecimal() and int(request.mode) < len(MODES) else request.mode
        if mode not in MODES:
            raise ActionError(f"bond {request.name}: mode {request.mode!r} is none of {', '.join(MODES)}")
        if not _is_name(request.name):
            raise ActionError(f"bond {request.name!r}: a name has at most 15 letters, digits, dots and dashes")
        members = [_mac(mac) for mac in request.members] or macs
        for mac in members:
            if mac not in macs or mac in member_of:
                why = "is in another bond already" if mac in member_of else "is no interface of the Hardware"
                raise ActionError(f"bond {request.name}: {mac} {why}")
            member_of[mac] = request.name
        bonds.append(Link(request.name, members[0], mode=mode))
    return bonds, member_of


def _vlan(links: dict[str, Link], carrier: str, text: str) -> str:
    if not text.isdecimal() or not 1 <= int(text) <= 4094:
        raise ActionError(f"vlan_id {text!r} is no number from 1 to 4094")
    known = next((link.name for link in links.values() if (link.over, link.vlan) == (carrier, int(text))), "")
    if known:
        return known
    name = f"vlan{text}" if f"vlan{text}" not in links else f"{carrier[:10]}.{text}"
    links[name] = Link(name, "", vlan=int(text), over=carrier)
    return name


def _with(link: Link, entry: Dhcp, metric: int) -> Link:
    """The link with what an entry adds to it."""
    link = replace(
        link,
        name_servers=_each((*link.name_servers, *(_address(one) for one in entry.name_servers))),
        search=_each((*link.search, *((entry.domain_name,) if _is_domain(entry.domain_name) else ()))),
        time_servers=_each((*link.time_servers, *(one for one in entry.time_servers if _is_domain(one)))),
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
        link, addresses=_each((*link.addresses, str(own))), routes=tuple(dict.fromkeys((*link.routes, *routes)))
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
        raise ActionError(f"netmask {ip.netmask!r} of {ip.address} is none") from error


def _destination(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError as error:
        raise ActionError(f"route {text!r} is no network") from error


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError as error:
        raise ActionError(f"{text!r} is no IP address") from error


def _mac(text: str) -> str:
    digits = "".join(character for character in text.lower() if character not in ":-.")
    if len(digits) != 12 or any(digit not in "0123456789abcdef" for digit in digits):
        raise ActionError(f"{text!r} is no MAC address")
    return ":".join(digits[start : start + 2] for start in range(0, 12, 2))


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 15 and all(one.isascii() and (one.isalnum() or one in ".-_") for one in text)


def _is_domain(text: str) -> bool:
    return bool(text) and all(one.isascii() and (one.isalnum() or one in ".-_:") for one in text)


def _each(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


@dataclass
class _Unit:
    """A file of systemd's form, section by section."""

    lines: list[str] = field(default_factory=list)

    def section(self, name: str, *pairs: tuple[str, str | Iterable[str]]) -> None:
        self.lines += ["", f"[{name}]"] if self.lines else [f"[{name}]"]
        for key, value in pairs:
            self.lines += [f"{key}={one}" for one in ([value] if isinstance(value, str) else value) if one]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def networkd(network: Network) -> Mapping[str, str]:
    """File name in `/etc/systemd/network` to contents. They sort before what else is there, so that they count."""
    files: dict[str, str] = {}
    for bond in network.bonds:
        unit = _Unit()
        unit.section("NetDev", ("Name", bond.name), ("Kind", "bond"), ("MACAddress", bond.mac))
        lacp = (("LACPTransmitRate", "fast"),) if bond.mode == "802.3ad" else ()
        unit.section("Bond", ("Mode", bond.mode), ("MIIMonitorSec", "100ms"), *lacp)
        files[f"05-ironbell-{bond.name}.netdev"] = unit.text
    for vlan in network.vlans:
        unit = _Unit()
        unit.section("NetDev", ("Name", vlan.name), ("Kind", "vlan"))
        unit.section("VLAN", ("Id", str(vlan.vlan)))
        files[f"05-ironbell-{vlan.name}.netdev"] = unit.text
    for link in network.links:
        files[f"05-ironbell-{link.name}.network"] = _networkd_link(network, link)
    return files


def _networkd_link(network: Network, link: Link) -> str:
    unit = _Unit()
    if link in network.cards:
        # Bonds and VLANs have a card's MAC as well.
        unit.section("Match", ("MACAddress", link.mac), ("Type", "!bond vlan"))
    else:
        unit.section("Match", ("Name", link.name))
    unit.section("Link", ("RequiredForOnline", "yes" if any(not one.destination for one in link.routes) else "no"))
    if link.bond:
        unit.section("Network", ("Bond", link.bond))
        return unit.text
    unit.section(
        "Network",
        ("DHCP", "no"),
        ("IPv6AcceptRA", "no"),
        ("Address", link.addresses),
        ("DNS", link.name_servers),
        ("Domains", " ".join(link.search)),
        ("NTP", " ".join(link.time_servers)),
        ("VLAN", [vlan.name for vlan in network.vlans if vlan.over == link.name]),
    )
    for route in link.routes:
        unit.section(
            "Route",
            ("Gateway", route.gateway),
            ("Destination", route.destination),
            ("Metric", str(route.metric) if route.metric else ""),
            ("GatewayOnLink", "yes" if route.on_link else ""),
        )
    return unit.text


def netplan(network: Network) -> Mapping[str, Any]:
    """The document of netplan."""
    document: dict[str, Any] = {"version": 2, "renderer": "networkd", "ethernets": {}}
    for card in network.cards:
        own = {} if card.bond else _netplan_link(card)
        document["ethernets"][card.name] = {"match": {"macaddress": card.mac}, "optional": not _leads_out(card)} | (
            own or {"dhcp4": False, "dhcp6": False}
        )
    for bond in network.bonds:
        parameters: dict[str, Any] = {"mode": bond.mode, "mii-monitor-interval": 100}
        if bond.mode == "802.3ad":
            parameters["lacp-rate"] = "fast"
        members = [card.name for card in network.cards if card.bond == bond.name]
        known = {"interfaces": members, "macaddress": bond.mac, "parameters": parameters}
        document.setdefault("bonds", {})[bond.name] = known | _netplan_link(bond)
    for vlan in network.vlans:
        document.setdefault("vlans", {})[vlan.name] = {"id": vlan.vlan, "link": vlan.over} | _netplan_link(vlan)
    return {"network": document}


def _leads_out(link: Link) -> bool:
    return any(not route.destination for route in link.routes)


def _netplan_link(link: Link) -> dict[str, Any]:
    found: dict[str, Any] = {"dhcp4": False, "dhcp6": False, "accept-ra": False}
    if link.addresses:
        found["addresses"] = list(link.addresses)
    if link.routes:
        found["routes"] = [_netplan_route(route) for route in link.routes]
    if link.name_servers or link.search:
        found["nameservers"] = {"addresses": list(link.name_servers), "search": list(link.search)}
    return found


def _netplan_route(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {"to": route.destination or ("::/0" if ":" in route.gateway else "0.0.0.0/0")}
    found["via"] = route.gateway
    if route.metric:
        found["metric"] = route.metric
    if route.on_link:
        found["on-link"] = True
    return found

"""Decides how this machine connects to its network, from the command line and the NICs that are present.

Pure. Precedence: a static `ipam=`, else DHCP on the NIC with `hw_addr`, else on `interface=`, else on every NIC; in a
VLAN where one is named.

Source: tinkerbell/hook: files/ (init scripts 002 and 003, DHCP script); tinkerbell/tinkerbell: smee/internal/iso.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from ironbell.osie.machine.cmdline import Arguments

_IPAM_FIELDS = 9


@dataclass(frozen=True, order=True)
class Nic:
    """One Ethernet interface of this machine."""

    name: str
    mac: str


@dataclass(frozen=True)
class StaticAddress:
    """A network configured by the boot server in full."""

    address: str
    prefix_length: int
    gateway: str = ""


@dataclass(frozen=True)
class NetworkPlan:
    """Interfaces to bring up, and their settings. `static` None means DHCP; `missing` is the NIC to wait for."""

    interfaces: tuple[str, ...] = ()
    vlan_id: str = ""
    static: StaticAddress | None = None
    hostname: str = ""
    name_servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    time_servers: tuple[str, ...] = ()
    missing: str = ""


@dataclass(frozen=True)
class Ipam:
    """The fields of `ipam=`, checked."""

    mac: str
    vlan_id: str
    static: StaticAddress
    hostname: str
    name_servers: tuple[str, ...]
    search: tuple[str, ...]
    time_servers: tuple[str, ...]


def parse_ipam(text: str) -> Ipam:
    """Read the value of `ipam=`: nine fields between colons, of which MAC, address and netmask must be set.

    Raises:
        ValueError: the message names the wrong field.
    """
    fields = text.split(":") + [""] * (_IPAM_FIELDS - 1 - text.count(":"))
    if len(fields) != _IPAM_FIELDS:
        raise ValueError(f"ipam has {len(fields)} fields, not {_IPAM_FIELDS}")
    mac, vlan_id, address, netmask, gateway, hostname, name_servers, search, time_servers = fields
    if not mac:
        raise ValueError("ipam: the MAC address (field 1) is empty")
    try:
        network = ipaddress.IPv4Interface(f"{address}/{netmask}")
    except ValueError as error:
        raise ValueError(f"ipam: address or netmask (fields 3 and 4): {error}") from error
    if gateway:
        try:
            ipaddress.IPv4Address(gateway)
        except ValueError as error:
            raise ValueError(f"ipam: gateway (field 5): {error}") from error
    return Ipam(
        mac=mac.lower().replace("-", ":"),
        vlan_id=vlan_id if vlan_id not in {"", "0"} else "",
        static=StaticAddress(str(network.ip), network.network.prefixlen, gateway),
        hostname=hostname,
        name_servers=_listed(name_servers),
        search=_listed(search),
        time_servers=_listed(time_servers),
    )


def plan(arguments: Arguments, nics: Iterable[Nic]) -> NetworkPlan:
    """The plan for the interfaces that are present; `missing` names a requested NIC that is not present (yet).

    Raises:
        ValueError: `ipam=` cannot be read.
    """
    present = sorted(nics)
    if arguments.ipam:
        return _static(parse_ipam(arguments.ipam), present)
    chosen, missing = _choose(arguments, present)
    return NetworkPlan(interfaces=chosen, vlan_id=arguments.vlan_id, missing=missing)


def _static(ipam: Ipam, present: list[Nic]) -> NetworkPlan:
    chosen = tuple(nic.name for nic in present if nic.mac == ipam.mac)
    return NetworkPlan(
        interfaces=chosen[:1],
        vlan_id=ipam.vlan_id,
        static=ipam.static,
        hostname=ipam.hostname,
        name_servers=ipam.name_servers,
        search=ipam.search,
        time_servers=ipam.time_servers,
        missing="" if chosen else f"a network interface with MAC {ipam.mac}",
    )


def _choose(arguments: Arguments, present: list[Nic]) -> tuple[tuple[str, ...], str]:
    if arguments.hw_addr:
        chosen = tuple(nic.name for nic in present if nic.mac == arguments.hw_addr)
        return chosen[:1], "" if chosen else f"a network interface with MAC {arguments.hw_addr}"
    if arguments.interface:
        chosen = tuple(nic.name for nic in present if nic.name == arguments.interface)
        return chosen, "" if chosen else f"the network interface {arguments.interface}"
    return tuple(nic.name for nic in present), "" if present else "any network interface"


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)

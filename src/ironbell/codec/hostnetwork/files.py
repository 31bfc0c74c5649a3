"""The files that give an installed system its network: systemd-networkd's, netplan's, cloud-init's. Pure.

Nothing asks for an address once these are in place: no DHCP, no router advertisements.

Source: systemd.network(5), systemd.netdev(5); netplan.yaml, version 2; cloud-init: network-config-format-v2,
net/network_state.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ironbell.codec.hostnetwork.plan import Link, Network, Route


@dataclass
class _Unit:
    """A file of systemd's form, section by section."""

    lines: list[str] = field(default_factory=list)

    def section(self, name: str, *pairs: tuple[str, str | Iterable[str]]) -> None:
        self.lines += ["", f"[{name}]"] if self.lines else [f"[{name}]"]
        for key, value in pairs:
            self.lines += [f"{key}={item}" for item in ([value] if isinstance(value, str) else value) if item]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def networkd(network: Network) -> Mapping[str, str]:
    """File name in `/etc/systemd/network` to contents. They sort before other files there, and so take precedence."""
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
    unit.section("Link", ("RequiredForOnline", "yes" if any(not route.destination for route in link.routes) else "no"))
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
    return {"network": {"version": 2, "renderer": "networkd", **_version_2(network)}}


def cloud_init(network: Network) -> Mapping[str, Any]:
    """cloud-init's network configuration, version 2.

    cloud-init's renderers other than netplan's refer to a card of a bond or under a VLAN by its key, while they call
    the card by its name in the running system; so such a card gets its key as its name.
    """
    document = _version_2(network)
    carriers = {vlan.over for vlan in network.vlans}
    for card in network.cards:
        if card.bond or card.name in carriers:
            document["ethernets"][card.name]["set-name"] = card.name
    return {"version": 2, **document}


def _version_2(network: Network) -> dict[str, Any]:
    document: dict[str, Any] = {"ethernets": {}}
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
    return document


def _leads_out(link: Link) -> bool:
    return any(not route.destination for route in link.routes)


def _netplan_link(link: Link) -> dict[str, Any]:
    document: dict[str, Any] = {"dhcp4": False, "dhcp6": False, "accept-ra": False}
    if link.addresses:
        document["addresses"] = list(link.addresses)
    if link.routes:
        document["routes"] = [_netplan_route(route) for route in link.routes]
    if link.name_servers or link.search:
        document["nameservers"] = {"addresses": list(link.name_servers), "search": list(link.search)}
    return document


def _netplan_route(route: Route) -> dict[str, Any]:
    entry: dict[str, Any] = {"to": route.destination or ("::/0" if ":" in route.gateway else "0.0.0.0/0")}
    entry["via"] = route.gateway
    if route.metric:
        entry["metric"] = route.metric
    if route.on_link:
        entry["on-link"] = True
    return entry

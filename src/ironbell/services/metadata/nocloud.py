"""NoCloud metadata: what cloud-init fetches from a `seedfrom` address.

Pure. The network configuration (version 2) describes every interface of the Hardware that has an address, matched by
MAC, so that the installed system needs no DHCP; a Hardware without static addresses gets none, and cloud-init falls
back to DHCP by itself.

Source: cloud-init: sources/DataSourceNoCloud.py, doc/rtd/reference/network-config-format-v2.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.interface import Dhcp
from ironbell.codec import goyaml
from ironbell.contract.directory import normal_mac
from ironbell.services.metadata.ec2 import instance_of

FILES = ("meta-data", "user-data", "vendor-data", "network-config")


def document(hardware: Hardware, name: str) -> str | None:
    """The text of one of `FILES`, or None for any other name."""
    match name:
        case "meta-data":
            return goyaml.dump(meta_data(hardware))
        case "user-data":
            return hardware.spec.user_data or ""
        case "vendor-data":
            return hardware.spec.vendor_data or ""
        case "network-config":
            network = network_config(hardware)
            return goyaml.dump(network) if network else ""
        case _:
            return None


def meta_data(hardware: Hardware) -> dict[str, Any]:
    """`instance-id` is always there: cloud-init runs its per-instance steps again when it changes."""
    instance = instance_of(hardware)
    data: dict[str, Any] = {"instance-id": instance.id or hardware.metadata.uid or hardware.metadata.name}
    hostname = instance.hostname or next((i.dhcp.hostname for i in hardware.spec.interfaces if i.dhcp), "")
    if hostname:
        data["local-hostname"] = hostname
    if instance.ssh_keys:
        data["public-keys"] = list(instance.ssh_keys)
    return data


def network_config(hardware: Hardware) -> dict[str, Any]:
    """Network configuration version 2, empty when no interface has a usable address."""
    ethernets: dict[str, Any] = {}
    for number, interface in enumerate(hardware.spec.interfaces):
        entry = _ethernet(interface.dhcp) if interface.dhcp else None
        if entry:
            ethernets[f"nic{number}"] = entry
    return {"version": 2, "ethernets": ethernets} if ethernets else {}


def _ethernet(dhcp: Dhcp) -> dict[str, Any] | None:
    mac = normal_mac(dhcp.mac)
    if not mac or dhcp.ip is None or not dhcp.ip.address:
        return None
    try:
        address = ipaddress.ip_interface(f"{dhcp.ip.address}/{dhcp.ip.netmask}" if dhcp.ip.netmask else dhcp.ip.address)
    except ValueError:
        return None
    entry: dict[str, Any] = {"match": {"macaddress": mac}, "addresses": [str(address)]}
    routes = [{"to": route.destination_descriptor, "via": route.router} for route in dhcp.classless_static_routes]
    if dhcp.ip.gateway:
        routes.insert(0, {"to": "0.0.0.0/0" if address.version == 4 else "::/0", "via": dhcp.ip.gateway})
    if routes:
        entry["routes"] = routes
    if dhcp.name_servers:
        entry["nameservers"] = {"addresses": list(dhcp.name_servers)}
        if dhcp.domain_name:
            entry["nameservers"]["search"] = [dhcp.domain_name]
    return entry

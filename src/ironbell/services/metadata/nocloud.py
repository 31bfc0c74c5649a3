"""NoCloud metadata: the documents that cloud-init fetches from a `seedfrom` address. Pure.

The network configuration (version 2) describes interfaces by their MACs, bonds and VLANs, so that the installed system
needs no DHCP. A Hardware without static addresses has none; cloud-init then uses DHCP.

Source: cloud-init: sources/DataSourceNoCloud.py, doc/rtd/reference/network-config-format-v2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.codec import goyaml
from ironbell.codec.hostnetwork import BONDS, Interface, cloud_init, plan, read_bonds
from ironbell.services.metadata.ec2 import instance_of

FILES = ("meta-data", "user-data", "vendor-data", "network-config")


def document(hardware: Hardware, name: str) -> str | None:
    """Return the text of one of `FILES`, or None for any other name.

    Raises:
        HostNetworkError: the Hardware does not describe a network (network-config only).
    """
    match name:
        case "meta-data":
            return goyaml.dump(meta_data(hardware))
        case "user-data":
            return hardware.spec.user_data or ""
        case "vendor-data":
            return hardware.spec.vendor_data or ""
        case "network-config":
            network = network_config(hardware)
            return goyaml.dump(dict(network)) if network else ""
        case _:
            return None


def meta_data(hardware: Hardware) -> dict[str, Any]:
    """Return meta-data. `instance-id` is always set: cloud-init runs its per-instance steps again when it changes."""
    instance = instance_of(hardware)
    data: dict[str, Any] = {"instance-id": instance.id or hardware.metadata.uid or hardware.metadata.name}
    hostname = instance.hostname or next((i.dhcp.hostname for i in hardware.spec.interfaces if i.dhcp), "")
    if hostname:
        data["local-hostname"] = hostname
    if instance.ssh_keys:
        data["public-keys"] = list(instance.ssh_keys)
    return data


def network_config(hardware: Hardware) -> Mapping[str, Any]:
    """Return network configuration version 2, for the network that the action `network` writes to a disk; empty if no
    interface has an address.

    Raises:
        HostNetworkError: the Hardware does not describe a network.
    """
    interfaces = msgspec.convert(msgspec.to_builtins(hardware.spec.interfaces), list[Interface])
    mode = hardware.spec.metadata.bonding_mode if hardware.spec.metadata else 0
    bonds = read_bonds(hardware.metadata.annotations.get(BONDS, ""), str(mode))
    network = plan(interfaces, bonds)
    return cloud_init(network) if network.has_address else {}

"""The network of an installed system, from what its Hardware says. No I/O."""

from ironbell.codec.hostnetwork.files import cloud_init, netplan, networkd
from ironbell.codec.hostnetwork.plan import (
    BONDS,
    BondRequest,
    HostNetworkError,
    Interface,
    Link,
    Network,
    plan,
    read_bonds,
    read_interfaces,
)

__all__ = [
    "BONDS",
    "BondRequest",
    "HostNetworkError",
    "Interface",
    "Link",
    "Network",
    "cloud_init",
    "netplan",
    "networkd",
    "plan",
    "read_bonds",
    "read_interfaces",
]

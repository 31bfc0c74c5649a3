"""network: give the system on a disk the static network that its Hardware describes.

`INTERFACES` is the Hardware's `spec.interfaces` as JSON (`{{ .hardware.spec.interfaces | toJson | quote }}`),
`DEST_DISK` the disk; the file system on it that holds an operating system is found, unless `FS_TYPE` is set, which
means that DEST_DISK is that partition. `BONDING_MODE` (a number or a name; empty or 0 for single cards) makes one bond
of all cards; `BONDS` (`[{"name": "bond0", "mode": "802.3ad", "members": [MAC, ...]}]`; templates keep it in the
Hardware's annotation `ironbell.dev/bonds`) sets it card by card. `FORMAT` is `netplan`, `networkd` or `auto`, which
selects the one that the system has.

Other configuration that would request an address is removed: other files of netplan, ifupdown's interfaces,
cloud-init's network. Where no other service resolves names, /etc/resolv.conf lists every name server.

Source: systemd.network(5); netplan(5); interfaces(5); resolv.conf(5); cloud-init: network configuration.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import msgspec

from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import mounts
from ironbell.agent.actions.disks.rootfs import chosen
from ironbell.base.wording import counted
from ironbell.codec.hostnetwork import (
    HostNetworkError,
    Network,
    netplan,
    networkd,
    plan,
    read_bonds,
    read_interfaces,
)

_NETWORKD: Final = ("usr/lib/systemd/systemd-networkd", "lib/systemd/systemd-networkd")
_RESOLVED: Final = ("usr/lib/systemd/systemd-resolved", "lib/systemd/systemd-resolved")
_NETPLAN: Final = ("usr/sbin/netplan", "usr/bin/netplan")
_UNITS: Final = "/etc/systemd/system"
_UNIT_LINKS: Final = (
    ("dbus-org.freedesktop.network1.service", "systemd-networkd.service"),
    ("multi-user.target.wants/systemd-networkd.service", "systemd-networkd.service"),
    ("sockets.target.wants/systemd-networkd.socket", "systemd-networkd.socket"),
    ("network-online.target.wants/systemd-networkd-wait-online.service", "systemd-networkd-wait-online.service"),
)
_LOOPBACK: Final = "# the network is systemd-networkd's\nauto lo\niface lo inet loopback\n"
_MOST_NAME_SERVERS: Final = 3
"""Limit of the C library."""


def run(context: Context) -> None:
    """Write the files."""
    network = parse(context.required("INTERFACES"), context.text("BONDS"), context.text("BONDING_MODE"))
    device, fs_type = chosen(context, default="root")
    with mounts.mounted(device, fs_type) as root:
        form = _form(context, root)
        (_write_netplan if form == "netplan" else _write_networkd)(context, root, network)
        _remove_others(context, root)
        if not _has(root, _RESOLVED):
            _write_resolver(context, root, network)
    addresses = ", ".join(address for link in network.links for address in link.addresses)
    context.log(f"{device} has a static network by {form}: {addresses}")


def parse(interfaces: str, bonds: str, bonding_mode: str) -> Network:
    """The network that the action's variables describe.

    Raises:
        ActionError: they do not describe a network, or no interface has an address.
    """
    try:
        network = plan(read_interfaces(interfaces), read_bonds(bonds, bonding_mode))
    except HostNetworkError as error:
        raise ActionError(f"INTERFACES, BONDS or BONDING_MODE: {error}", exit_status=10) from error
    if not network.has_address:
        raise ActionError("No interface in INTERFACES has an address: set spec.interfaces[].dhcp.ip of the Hardware.")
    return network


def _form(context: Context, root: Path) -> str:
    form = context.text("FORMAT", "auto").lower()
    if form not in {"auto", "netplan", "networkd"}:
        raise ActionError(f"FORMAT is {form!r}; write auto, netplan or networkd", exit_status=10)
    if form != "auto":
        return form
    if _has(root, _NETPLAN):
        return "netplan"
    if _has(root, _NETWORKD):
        return "networkd"
    raise ActionError("the system on the disk has neither netplan nor systemd-networkd; add one, or set FORMAT")


def _has(root: Path, names: tuple[str, ...]) -> bool:
    return any(mounts.inside(root, name).exists() for name in names)


def _write_netplan(context: Context, root: Path, network: Network) -> None:
    for other in sorted(mounts.inside(root, "/etc/netplan").glob("*.yaml")):
        context.log(f"removed /etc/netplan/{other.name}")
        other.unlink()
    # JSON is YAML, and the in-memory OS has no writer of the latter
    text = msgspec.json.format(msgspec.json.encode(netplan(network)), indent=2).decode()
    _put(root, "/etc/netplan/60-ironbell.yaml", text + "\n", mode=0o600)


def _write_networkd(context: Context, root: Path, network: Network) -> None:
    folder = mounts.inside(root, "/etc/systemd/network")
    for earlier in folder.glob("05-ironbell-*"):
        earlier.unlink()
    for name, text in networkd(network).items():
        _put(root, f"/etc/systemd/network/{name}", text)
    for link, unit in _UNIT_LINKS:
        place = mounts.inside(root, f"{_UNITS}/{Path(link).parent}") / Path(link).name
        mounts.create_folders(root, f"{_UNITS}/{Path(link).parent}", mode=0o755, owner=(0, 0))
        with contextlib.suppress(FileExistsError):
            place.symlink_to(f"/lib/systemd/system/{unit}")
    context.log(
        f"systemd-networkd has {counted(len(network.cards), 'card')}, {counted(len(network.bonds), 'bond')}, "
        f"{counted(len(network.vlans), 'VLAN')}"
    )


def _remove_others(context: Context, root: Path) -> None:
    """Remove other configuration of a card."""
    if mounts.inside(root, "/etc/network/interfaces").is_file():
        context.log("/etc/network/interfaces now configures the loopback only")
        _put(root, "/etc/network/interfaces", _LOOPBACK)
    if mounts.inside(root, "/etc/cloud").is_dir():
        _put(root, "/etc/cloud/cloud.cfg.d/99-ironbell-network.cfg", "network: {config: disabled}\n")


def _write_resolver(context: Context, root: Path, network: Network) -> None:
    if not network.name_servers:
        return
    if len(network.name_servers) > _MOST_NAME_SERVERS:
        context.log(f"programs use the first {_MOST_NAME_SERVERS} of {len(network.name_servers)} name servers only")
    lines = [f"nameserver {server}" for server in network.name_servers]
    lines += [f"search {' '.join(network.search)}"] if network.search else []
    place = mounts.inside(root, "/etc") / "resolv.conf"
    if place.is_symlink():
        place.unlink()
    _put(root, "/etc/resolv.conf", "\n".join(lines) + "\n")


def _put(root: Path, path: str, text: str, *, mode: int = 0o644) -> None:
    mounts.write_file(root, path, text.encode(), mode=mode, folder_mode=0o755)

"""What cloud-init makes of NoCloud's network-config: the same network as the action `network`, by each renderer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml

from ironbell.agent.actions.network import parse
from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ip
from ironbell.api.tinkerbell.metadata import HardwareMetadata
from ironbell.codec import goyaml
from ironbell.codec.hostnetwork import BONDS, networkd
from ironbell.services.metadata import nocloud
from support.kubeadm.cloudinitrenderers import NoCloudInit, cloud_init_folders, render
from support.skips import missing_program

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
NAMES = {A: "enp1s0", B: "enp2s0", C: "enp3s0"}
"""The running system's names of these cards."""
Written = dict[str, dict[str, str]]
Unit = frozenset[tuple[str, str, str]]


def interface(
    mac: str, address: str = "", *, gateway: str = "", vlan: str = "", servers: tuple[str, ...] = ()
) -> Interface:
    ip = Ip(address=address, netmask="255.255.255.0", gateway=gateway) if address else None
    return Interface(dhcp=Dhcp(mac=mac, ip=ip, vlan_id=vlan, name_servers=list(servers)))


FLAT = Hardware(
    metadata=ObjectMeta(name="flat"),
    spec=HardwareSpec(interfaces=[interface(A, "192.0.2.10", gateway="192.0.2.1", servers=("192.0.2.2",))]),
)
VLAN = Hardware(
    metadata=ObjectMeta(name="vlan"),
    spec=HardwareSpec(interfaces=[interface(A, "192.0.2.10", gateway="192.0.2.1", vlan="42", servers=("192.0.2.2",))]),
)
BOND = Hardware(
    metadata=ObjectMeta(
        name="bond",
        annotations={BONDS: json.dumps([{"name": "bond9", "mode": "active-backup", "members": [A, B]}])},
    ),
    spec=HardwareSpec(
        interfaces=[
            interface(A, "192.0.2.10", gateway="192.0.2.1"),
            interface(B),
            interface(A, "198.51.100.10", vlan="42", gateway="198.51.100.1"),
            interface(C, "203.0.113.9", vlan="7"),
        ]
    ),
)
BONDING_MODE = Hardware(
    metadata=ObjectMeta(name="mode"),
    spec=HardwareSpec(
        interfaces=[interface(A, "192.0.2.10", gateway="192.0.2.1"), interface(B)],
        metadata=HardwareMetadata(bonding_mode=4),
    ),
)


@pytest.fixture(scope="module", autouse=True)
def cloud_init() -> None:
    try:
        cloud_init_folders()
    except NoCloudInit as error:
        missing_program(error)


def rendered(hardware: Hardware) -> Written:
    return render(goyaml.load(nocloud.document(hardware, "network-config") or ""), NAMES)


def by_action(hardware: Hardware) -> dict[str, str]:
    mode = hardware.spec.metadata.bonding_mode if hardware.spec.metadata else 0
    text = msgspec.json.encode(hardware.spec.interfaces).decode()
    return dict(networkd(parse(text, hardware.metadata.annotations.get(BONDS, ""), str(mode))))


def settings(text: str) -> Iterator[tuple[str, str, str]]:
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif "=" in line:
            key, _, value = line.partition("=")
            yield section, key, value


NOT_COMPARED = {
    # How a card is found, and what follows from a default of either program.
    "Match", "Link", ("Network", "DHCP"), ("Network", "IPv6AcceptRA"), ("Route", "Destination"),
}  # fmt: skip


def units(files: dict[str, str], prefix: str) -> dict[str, Unit]:
    """What each file of networkd sets, by the file's name without its prefix."""
    return {
        name.rpartition("/")[2].removeprefix(prefix): frozenset(
            ("Network" if section == "Address" else section, key, value)
            for section, key, value in settings(text)
            if section not in NOT_COMPARED and (section, key) not in NOT_COMPARED
        )
        for name, text in files.items()
    }


@pytest.mark.parametrize("hardware", [VLAN, BOND, BONDING_MODE], ids=lambda hardware: hardware.metadata.name)
def test_networkd_gets_what_the_action_writes(hardware: Hardware) -> None:
    files = rendered(hardware)["networkd"]
    assert units(files, "10-cloud-init-") == units(by_action(hardware), "05-ironbell-")


def test_a_card_without_vlan_or_bond_keeps_the_name_that_it_has() -> None:
    (unit,) = units(rendered(FLAT)["networkd"], "10-cloud-init-").items()
    assert unit[0] == "enp1s0.network"
    assert unit[1] == units(by_action(FLAT), "05-ironbell-")["nic0.network"]
    assert "iface enp1s0 inet static" in rendered(FLAT)["eni"]["etc/network/interfaces"]


def stanzas(text: str) -> dict[str, dict[str, str]]:
    """ifupdown's options of each interface."""
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "iface":
            current = found.setdefault(rest.split()[0], {"method": rest.split()[-1]})
        elif word and word != "auto":
            current[word] = rest
    return found


def test_eni_has_the_address_on_the_tagged_interface() -> None:
    files = rendered(VLAN)["eni"]
    found = stanzas(files["etc/network/interfaces"])
    assert "address" not in found["nic0"]
    assert (found["vlan42"]["vlan-raw-device"], found["vlan42"]["address"]) == ("nic0", "192.0.2.10/24")
    assert "42" in (found["vlan42"].get("vlan-id"), found["vlan42"].get("vlan_id"))
    assert f'ATTR{{address}}=="{A}", NAME="nic0"' in files["etc/udev/rules.d/70-persistent-net.rules"]


def test_eni_has_bonds_with_their_members() -> None:
    found = stanzas(rendered(BOND)["eni"]["etc/network/interfaces"])
    assert found["bond9"]["address"] == "192.0.2.10/24"
    assert found["bond9"]["bond-mode"] == "active-backup"
    assert {name for name, options in found.items() if options.get("bond-master") == "bond9"} == {"nic0", "nic1"}
    assert found["vlan42"]["vlan-raw-device"] == "bond9"
    assert found["vlan7"]["vlan-raw-device"] == "nic2"


def test_netplan_gets_the_vlans_and_bonds_that_the_action_writes() -> None:
    (text,) = rendered(BOND)["netplan"].values()
    found: dict[str, Any] = yaml.safe_load(text)["network"]
    assert found["bonds"]["bond9"]["interfaces"] == ["nic0", "nic1"]
    assert found["bonds"]["bond9"]["addresses"] == ["192.0.2.10/24"]
    assert {name: (vlan["id"], vlan["link"]) for name, vlan in found["vlans"].items()} == {
        "vlan42": (42, "bond9"),
        "vlan7": (7, "nic2"),
    }
    assert found["vlans"]["vlan42"]["addresses"] == ["198.51.100.10/24"]
    assert not any("addresses" in card for card in found["ethernets"].values())

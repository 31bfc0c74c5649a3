"""A Hardware's interfaces as an installed system's network: cards, bonds, VLANs, every name server, nothing by DHCP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ironbell.agent.actions.context import ActionError
from ironbell.agent.actions.network import parse
from ironbell.codec.hostnetwork import Network, netplan, networkd

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


def dhcp(mac: str, address: str = "", **more: Any) -> dict[str, Any]:
    gateway = more.pop("gateway", "")
    ip = {"address": address, "netmask": more.pop("netmask", "255.255.255.0"), "gateway": gateway}
    return {"dhcp": {"mac": mac, **({"ip": ip} if address else {}), **more}, "netboot": {"allowPXE": True}}


def network(*interfaces: dict[str, Any], bonds: list[dict[str, Any]] | None = None, mode: str = "") -> Network:
    return parse(json.dumps(interfaces), json.dumps(bonds) if bonds else "", mode)


def test_one_card_with_every_name_server() -> None:
    found = network(
        dhcp(
            A.upper().replace(":", "-"),
            "192.0.2.10",
            gateway="192.0.2.1",
            name_servers=["192.0.2.1", "192.0.2.2", "2001:db8::53"],
            time_servers=["192.0.2.3"],
            domain_name="site.example",
            lease_time=86400.0,
        )
    )
    assert networkd(found) == {
        "05-ironbell-nic0.network": (
            f"[Match]\nMACAddress={A}\nType=!bond vlan\n\n[Link]\nRequiredForOnline=yes\n\n"
            "[Network]\nDHCP=no\nIPv6AcceptRA=no\nAddress=192.0.2.10/24\nDNS=192.0.2.1\nDNS=192.0.2.2\n"
            "DNS=2001:db8::53\nDomains=site.example\nNTP=192.0.2.3\n\n[Route]\nGateway=192.0.2.1\nMetric=100\n"
        )
    }
    assert netplan(found) == {
        "network": {
            "version": 2,
            "renderer": "networkd",
            "ethernets": {
                "nic0": {
                    "match": {"macaddress": A},
                    "optional": False,
                    "dhcp4": False,
                    "dhcp6": False,
                    "accept-ra": False,
                    "addresses": ["192.0.2.10/24"],
                    "routes": [{"to": "0.0.0.0/0", "via": "192.0.2.1", "metric": 100}],
                    "nameservers": {
                        "addresses": ["192.0.2.1", "192.0.2.2", "2001:db8::53"],
                        "search": ["site.example"],
                    },
                }
            },
        }
    }


def test_a_bond_of_all_cards_carries_their_addresses_and_vlans() -> None:
    found = network(
        dhcp(A, "192.0.2.10", gateway="192.0.2.1"),
        dhcp(B),
        dhcp(A, "198.51.100.10", vlan_id="42", gateway="198.51.100.1"),
        mode="4",
    )
    files = networkd(found)
    assert files["05-ironbell-nic1.network"].endswith("[Network]\nBond=bond0\n")
    assert "Bond=bond0" in files["05-ironbell-nic0.network"]
    assert "Address" not in files["05-ironbell-nic0.network"].replace("MACAddress", "")
    assert files["05-ironbell-bond0.netdev"] == (
        f"[NetDev]\nName=bond0\nKind=bond\nMACAddress={A}\n\n"
        "[Bond]\nMode=802.3ad\nMIIMonitorSec=100ms\nLACPTransmitRate=fast\n"
    )
    assert "Address=192.0.2.10/24" in files["05-ironbell-bond0.network"]
    assert "VLAN=vlan42" in files["05-ironbell-bond0.network"]
    assert files["05-ironbell-vlan42.netdev"] == "[NetDev]\nName=vlan42\nKind=vlan\n\n[VLAN]\nId=42\n"
    assert "Address=198.51.100.10/24" in files["05-ironbell-vlan42.network"]
    assert "Metric=200" in files["05-ironbell-vlan42.network"], "the first gateway comes first"
    document = netplan(found)["network"]
    assert document["bonds"]["bond0"]["interfaces"] == ["nic0", "nic1"]
    assert document["bonds"]["bond0"]["parameters"] == {
        "mode": "802.3ad",
        "mii-monitor-interval": 100,
        "lacp-rate": "fast",
    }
    assert document["vlans"]["vlan42"]["link"] == "bond0"
    assert document["ethernets"]["nic1"] == {
        "match": {"macaddress": B},
        "optional": True,
        "dhcp4": False,
        "dhcp6": False,
    }


def test_bonds_card_by_card_and_one_vlan_on_two_links() -> None:
    found = network(
        dhcp(A, "192.0.2.10"),
        dhcp(B),
        dhcp(C, "203.0.113.10", vlan_id="7"),
        dhcp(A, "192.0.2.130", vlan_id="7,8", netmask="255.255.255.128"),
        bonds=[{"name": "bond9", "mode": "active-backup", "members": [B, A]}],
    )
    files = networkd(found)
    assert "Bond=bond9" in files["05-ironbell-nic0.network"]
    assert "VLAN=vlan7" in files["05-ironbell-nic2.network"]
    assert "VLAN=bond9.7" in files["05-ironbell-bond9.network"]
    assert "Address=192.0.2.130/25" in files["05-ironbell-bond9.7.network"]
    assert "Id=8" in files["05-ironbell-vlan8.netdev"]
    assert f"MACAddress={B}" in files["05-ironbell-bond9.netdev"]
    assert "LACP" not in files["05-ironbell-bond9.netdev"]


def test_several_addresses_routes_and_both_families_of_one_card() -> None:
    routes = [
        {"destination_descriptor": "10.0.0.0/8", "router": "192.0.2.9"},
        {"destination_descriptor": "0.0.0.0/0", "router": "192.0.2.1"},
    ]
    found = network(
        dhcp(A, "192.0.2.10", gateway="192.0.2.1", classless_static_routes=routes),
        dhcp(A, "2001:db8::10", netmask="ffff:ffff:ffff:ffff::", gateway="fe80::1"),
        dhcp(B, "203.0.113.7", netmask="255.255.255.255", gateway="203.0.113.1"),
    )
    text = networkd(found)["05-ironbell-nic0.network"]
    assert "Address=192.0.2.10/24\nAddress=2001:db8::10/64\n" in text
    assert text.count("[Route]") == 3
    assert "Gateway=192.0.2.9\nDestination=10.0.0.0/8\n" in text
    assert "Gateway=fe80::1\nMetric=200\nGatewayOnLink=yes" in text
    assert "Address=203.0.113.7/32" in networkd(found)["05-ironbell-nic1.network"]
    routes = netplan(found)["network"]["ethernets"]["nic0"]["routes"]
    assert {"to": "::/0", "via": "fe80::1", "metric": 200, "on-link": True} in routes


@pytest.mark.parametrize(
    ("interfaces", "more", "says"),
    [
        ([], {}, "No interface in INTERFACES has an address"),
        ([dhcp(A)], {}, "has an address"),
        ([dhcp("nonsense", "192.0.2.1")], {}, '"nonsense" is not a valid MAC'),
        ([dhcp(A, "192.0.2")], {}, '"192.0.2" is not a valid IP address'),
        ([dhcp(A, "192.0.2.1", netmask="255.0.255.0")], {}, '"255.0.255.0" is not a valid netmask'),
        ([dhcp(A, "192.0.2.1", name_servers=["x\nDNS=y"])], {}, "is not a valid IP address"),
        ([dhcp(A, "192.0.2.1", vlan_id="4095")], {}, 'vlan_id "4095"'),
        ([dhcp(A, "192.0.2.1")], {"mode": "fast"}, 'mode "fast" is not one of balance-rr'),
        ([dhcp(A, "192.0.2.1")], {"bonds": [{"members": [B]}]}, f"{B} is not an interface of the Hardware"),
        ([dhcp(A, "192.0.2.1")], {"bonds": [{}, {"name": "bond1"}]}, "is in another bond already"),
        ([dhcp(A, "192.0.2.1")], {"bonds": [{"name": "../x"}]}, "letters, digits"),
        ([dhcp(A, "192.0.2.1")], {"bonds": [{"member": []}]}, "cannot be read"),
    ],
)
def test_what_is_wrong_is_named(interfaces: list[dict[str, Any]], more: dict[str, Any], says: str) -> None:
    with pytest.raises(ActionError) as caught:
        network(*interfaces, **more)
    assert says in str(caught.value)

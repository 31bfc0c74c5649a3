"""From a Hardware interface to what DHCP hands out."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest

from ironbell.api.tinkerbell.interface import ClasslessStaticRoute, Dhcp, Interface, Ip
from ironbell.services.dhcp.reservation import InvalidDhcpDataError, Reservation, reservation_of

IP = Ip(address="192.168.2.50", netmask="255.255.255.0")


def compiled(**dhcp: Any) -> Reservation:
    return reservation_of(Interface(dhcp=Dhcp(mac="AA-BB-CC-00-11-22", **{"ip": IP, **dhcp})))


def test_the_mac_is_normal_and_the_network_follows_from_the_mask() -> None:
    reservation = compiled()
    assert reservation.mac == "aa:bb:cc:00:11:22"
    assert reservation.address == IPv4Address("192.168.2.50")
    assert reservation.options == {1: bytes((255, 255, 255, 0)), 28: bytes((192, 168, 2, 255))}


@pytest.mark.parametrize("netmask", ["255.255.255.255", "255.255.255.254", "0.0.0.0", "255.128.0.0"])
def test_every_contiguous_mask_is_taken(netmask: str) -> None:
    mask = IPv4Address(netmask)
    reservation = compiled(ip=Ip(address="10.20.30.40", netmask=netmask))
    assert reservation.options[1] == mask.packed
    assert reservation.options[28] == IPv4Address(int(IPv4Address("10.20.30.40")) | (~int(mask) & 0xFFFFFFFF)).packed


def test_an_ipv6_address_is_ignored_with_a_warning() -> None:
    reservation = compiled(ip=Ip(address="fd00::5"))
    assert reservation.address is None
    assert "dhcp.ip.address fd00::5" in reservation.warnings[0]


def test_servers_that_are_no_ipv4_address_are_left_out_with_a_warning() -> None:
    reservation = compiled(name_servers=["dns.example", "1.1.1.1", "fd00::1"], time_servers=["pool.ntp.org"])
    assert reservation.options[6] == bytes((1, 1, 1, 1))
    assert 42 not in reservation.options
    assert len(reservation.warnings) == 3


def test_routes() -> None:
    route = ClasslessStaticRoute(destination_descriptor="10.0.0.0/8", router="192.168.4.10")
    assert compiled(classless_static_routes=[route]).options[121] == bytes((8, 10, 192, 168, 4, 10))


def test_a_domain_name_that_is_no_domain_is_sent_as_option_15_alone() -> None:
    reservation = compiled(domain_name="a..b")
    assert reservation.options[15] == b"a..b"
    assert 119 not in reservation.options
    assert reservation.warnings


@pytest.mark.parametrize(
    ("dhcp", "names"),
    [
        ({"ip": Ip(address="192.168.2.500", netmask="255.255.255.0")}, "dhcp.ip.address"),
        ({"ip": Ip(address="192.168.2.50")}, "dhcp.ip.netmask is missing"),
        ({"ip": Ip(address="192.168.2.50", netmask="255.0.255.0")}, "contiguous"),
        ({"ip": Ip(address="192.168.2.50", netmask="24")}, "dhcp.ip.netmask"),
        ({"ip": Ip(address="192.168.2.50", netmask="255.255.255.0", gateway="gw")}, "dhcp.ip.gateway"),
        (
            {"classless_static_routes": [ClasslessStaticRoute(destination_descriptor="10.0.0.0/40", router="1.1.1.1")]},
            "dhcp.classless_static_routes",
        ),
        (
            {"classless_static_routes": [ClasslessStaticRoute(destination_descriptor="10.0.0.0/8", router="r")]},
            "dhcp.classless_static_routes",
        ),
    ],
)
def test_what_makes_a_lease_wrong_refuses_the_interface_by_field(dhcp: dict[str, Any], names: str) -> None:
    with pytest.raises(InvalidDhcpDataError, match=names):
        compiled(**dhcp)


@pytest.mark.parametrize(("vlan_id", "handed_over"), [("", ""), ("400", "400"), ("400,401", "")])
def test_only_a_single_vlan_is_for_firmware(vlan_id: str, handed_over: str) -> None:
    assert compiled(vlan_id=vlan_id).vlan_id == handed_over

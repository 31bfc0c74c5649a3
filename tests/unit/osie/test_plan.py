"""Which interfaces the in-memory OS brings up, and how."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.osie.machine.cmdline import Arguments, parse
from ironbell.osie.machine.plan import Nic, StaticAddress, parse_ipam, plan

NICS = [Nic("eth1", "02:00:00:00:00:02"), Nic("eth0", "02:00:00:00:00:01")]
IPAM = "02-00-00-00-00-02:30:192.168.2.193:255.255.255.0:192.168.2.1:myhost:1.1.1.1,8.8.8.8:example.org:132.163.97.2"


def test_takes_the_interface_of_the_boot_script_alone() -> None:
    assert plan(parse("hw_addr=02:00:00:00:00:02 vlan_id=12"), NICS).interfaces == ("eth1",)
    assert plan(parse("hw_addr=02:00:00:00:00:02 vlan_id=12"), NICS).vlan_id == "12"


def test_takes_every_interface_where_none_is_named() -> None:
    assert plan(Arguments(), NICS).interfaces == ("eth0", "eth1")


def test_takes_the_named_interface() -> None:
    assert plan(parse("interface=eth1"), NICS).interfaces == ("eth1",)


def test_says_which_interface_is_missing() -> None:
    assert "02:00:00:00:00:09" in plan(parse("hw_addr=02:00:00:00:00:09"), NICS).missing
    assert "eth7" in plan(parse("interface=eth7"), NICS).missing
    assert plan(Arguments(), []).missing


def test_static_network_wins_over_dhcp() -> None:
    wanted = plan(parse(f"ipam={IPAM} hw_addr=02:00:00:00:00:01"), NICS)
    assert wanted.interfaces == ("eth1",)
    assert wanted.static == StaticAddress("192.168.2.193", 24, "192.168.2.1")
    assert wanted.vlan_id == "30"
    assert wanted.hostname == "myhost"
    assert wanted.name_servers == ("1.1.1.1", "8.8.8.8")
    assert wanted.time_servers == ("132.163.97.2",)


def test_empty_fields_of_ipam_stay_empty() -> None:
    read = parse_ipam("02-00-00-00-00-02::10.0.0.5:255.255.0.0:::::")
    assert read.static == StaticAddress("10.0.0.5", 16, "")
    assert read.name_servers == ()
    assert read.vlan_id == ""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("::1.2.3.4:255.0.0.0:::::", "MAC"),
        ("m::1.2.3:255.0.0.0:::::", "fields 3 and 4"),
        ("m::1.2.3.4:255.0.255.0:::::", "fields 3 and 4"),
        ("m::1.2.3.4:255.0.0.0:x::::", "gateway"),
        ("a:b:c:d:e:f:g:h:i:j", "fields"),
    ],
)
def test_a_wrong_ipam_names_the_field(text: str, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        parse_ipam(text)


@given(st.text(alphabet="0123456789abcdef.:,-", max_size=120))
def test_any_ipam_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_ipam(text)

"""Addresses of pools as ranges, held against sets of single addresses."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.inclusteripam.pool import IpPoolSpec
from ironbell.controllers.ipam.ranges import AddressError, Ranges, parse, ranges_of, text_of

BASE = int(ipaddress.ip_address("192.0.2.0"))


def some(*addresses: str, prefix: int = 24, **more: object) -> list[str]:
    found = ranges_of(IpPoolSpec(addresses=list(addresses), prefix=prefix, **more))
    return [text_of(found.version, number) for first, last in found.parts for number in range(first, last + 1)]


def test_single_addresses_ranges_and_networks():
    assert some("192.0.2.9", "192.0.2.3-192.0.2.5", "192.0.2.16/30", "192.0.2.4") == [
        f"192.0.2.{last}" for last in (3, 4, 5, 9, 16, 17, 18, 19)
    ]


def test_reserved_addresses_excluded_ones_and_the_gateway_are_not_given():
    network = IpPoolSpec(addresses=["192.0.2.0/29"], prefix=29, gateway="192.0.2.1", excluded_addresses=["192.0.2.3"])
    assert [text_of(4, one) for one in range(BASE, BASE + 8) if one in ranges_of(network)] == [
        f"192.0.2.{last}" for last in (2, 4, 5, 6)
    ]
    assert some("192.0.2.0/30", prefix=30, allocate_reserved_ip_addresses=True) == [f"192.0.2.{n}" for n in range(4)]
    assert some("2001:db8::/126", prefix=126) == ["2001:db8::1", "2001:db8::2", "2001:db8::3"]


def test_a_network_of_many_addresses_takes_no_room():
    found = ranges_of(IpPoolSpec(addresses=["2001:db8::/64"], prefix=64, gateway="2001:db8::1"))
    assert found.count == 2**64 - 2
    used = {int(ipaddress.ip_address("2001:db8::2")), int(ipaddress.ip_address("2001:db8::4"))}
    assert [text_of(6, found.nth_free(used, place) or 0) for place in (0, 1, 10**18)] == [
        "2001:db8::3",
        "2001:db8::5",
        text_of(6, int(ipaddress.ip_address("2001:db8::")) + 10**18 + 4),
    ]


@pytest.mark.parametrize(
    "text", ["", "x", "192.0.2.1-", "192.0.2.9-192.0.2.1", "192.0.2.1-2001:db8::1", "192.0.2.0/33", "fe80::1%eth0"]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(AddressError, match="not a valid IP, range, nor CIDR"):
        parse(text)


def test_families_are_not_mixed():
    with pytest.raises(AddressError, match="both IP families"):
        some("192.0.2.1", "2001:db8::1")


small = st.integers(0, 63)
pairs = st.tuples(small, small).map(sorted)


@given(st.lists(pairs, min_size=1, max_size=5), st.lists(pairs, max_size=4), st.sets(small), st.integers(0, 70))
def test_free_addresses_are_those_of_a_set(parts, excluded, used, place):
    def written(ranges: list[list[int]]) -> list[str]:
        return [f"{text_of(4, BASE + first)}-{text_of(4, BASE + last)}" for first, last in ranges]

    def numbers(ranges: list[list[int]]) -> set[int]:
        return {number for first, last in ranges for number in range(first, last + 1)}

    spec = IpPoolSpec(addresses=written(parts), excluded_addresses=written(excluded), prefix=26)
    wanted = numbers(parts) - numbers(excluded) - {0, 63}
    found = ranges_of(spec)
    assert found.count == len(wanted)
    assert {number - BASE for number in range(BASE, BASE + 64) if number in found} == wanted
    free = sorted(wanted - used)
    expected = BASE + free[place] if place < len(free) else None
    assert found.nth_free({BASE + one for one in used}, place) == expected


def test_nothing_is_free_in_nothing():
    assert Ranges().nth_free((), 0) is None

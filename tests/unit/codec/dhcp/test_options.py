"""Typed views of options, one family after the other."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.codec.dhcp import EncodeError, Op, Option, OptionError, Packet
from ironbell.codec.dhcp.addresses import requested_address, server_identifier
from ironbell.codec.dhcp.integers import maximum_size
from ironbell.codec.dhcp.pxe import (
    architectures,
    has_usable_machine_identifier,
    vendor_bytes,
    vendor_suboptions,
)
from ironbell.codec.dhcp.relay import relay_suboptions, server_override
from ironbell.codec.dhcp.routes import Route, parse_routes, route_bytes
from ironbell.codec.dhcp.search import parse_search, search_bytes
from ironbell.codec.dhcp.text import boot_file, text
from ironbell.codec.dhcp.user_class import user_class_bytes, user_classes


def packet(code: int | None = None, value: bytes = b"", **fields: Any) -> Packet:
    return Packet(op=Op.REQUEST, xid=1, chaddr=b"\x02\0\0\0\0\1", options={code: value} if code else {}, **fields)


VIEWS: list[tuple[int, Callable[[Packet], object]]] = [
    (50, requested_address),
    (54, server_identifier),
    (57, maximum_size),
    (93, architectures),
    (97, has_usable_machine_identifier),
    (43, vendor_suboptions),
    (82, relay_suboptions),
    (82, server_override),
    (77, user_classes),
    (66, lambda message: text(message, 66)),
    (67, boot_file),
    (121, lambda message: parse_routes(message.options[121])),
    (119, lambda message: parse_search(message.options[119])),
]


@pytest.mark.parametrize(("code", "view"), VIEWS)
@given(value=st.binary(max_size=300))
def test_any_value_gives_a_view_or_an_option_error(code: int, view: Callable[[Packet], object], value: bytes) -> None:
    blamed = code
    try:
        view(packet(code, value))
    except OptionError as error:
        blamed = error.code
    assert blamed == code


def test_absent_options_are_none_or_empty() -> None:
    empty = packet()
    assert requested_address(empty) is None
    assert architectures(empty) == ()
    assert user_classes(empty) == frozenset()
    assert relay_suboptions(empty) == vendor_suboptions(empty) == {}
    assert server_override(empty) is None
    assert text(empty, Option.HOST_NAME) == ""


def test_addresses() -> None:
    with pytest.raises(OptionError, match="option 50"):
        requested_address(packet(50, b"\x0a\0\0\1\1"))


def test_classless_routes_have_upstreams_bytes() -> None:
    routes = (
        Route(IPv4Network("10.0.0.0/8"), IPv4Address("192.168.4.10")),
        Route(IPv4Network("172.16.0.0/12"), IPv4Address("192.168.4.20")),
    )
    value = bytes((8, 10, 192, 168, 4, 10, 12, 172, 16, 192, 168, 4, 20))
    assert route_bytes(routes) == value
    assert parse_routes(value) == routes
    assert parse_routes(b"\0\x0a\0\0\1") == (Route(IPv4Network("0.0.0.0/0"), IPv4Address("10.0.0.1")),)


@given(
    st.lists(
        st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32), st.integers(0, 2**32 - 1)),
        max_size=5,
    )
)
def test_routes_round_trip(entries: list[tuple[int, int, int]]) -> None:
    routes = tuple(
        Route(IPv4Network((address, prefix), strict=False), IPv4Address(router)) for address, prefix, router in entries
    )
    assert parse_routes(route_bytes(routes)) == routes


@pytest.mark.parametrize("value", [b"\x21\x0a\0\0\0\0\0\0\0\1", b"\x08\x0a\0\0\0"])
def test_refuses_impossible_routes(value: bytes) -> None:
    with pytest.raises(OptionError, match="option 121"):
        parse_routes(value)


def test_search_list() -> None:
    assert search_bytes(["eng.example.com"]) == b"\x03eng\x07example\x03com\0"
    assert parse_search(b"\x03eng\x07example\x03com\0\x09marketing\xc0\x04") == (
        "eng.example.com",
        "marketing.example.com",
    )


@pytest.mark.parametrize("value", [b"\x03en", b"\xc0\x00", b"\x01a\xc0\x05\0\0", b"\x40", b"\xc0", b"\x01a\xc0"])
def test_refuses_search_lists_that_lead_nowhere(value: bytes) -> None:
    with pytest.raises(OptionError, match="option 119"):
        parse_search(value)


@pytest.mark.parametrize("domain", ["", "a..b", "x" * 64, "bücher.example", ".".join(["label"] * 60)])
def test_refuses_to_write_what_is_no_domain(domain: str) -> None:
    with pytest.raises(EncodeError):
        search_bytes([domain])


def test_user_class_is_read_raw_and_in_rfc_3004_form() -> None:
    assert b"iPXE" in user_classes(packet(77, b"iPXE"))
    assert b"iPXE" in user_classes(packet(77, user_class_bytes(b"other", b"iPXE")))
    assert b"Tinkerbell" in user_classes(packet(77, b"Tinkerbell\0"))
    assert b"iPXE" not in user_classes(packet(77, b"iPXE-like"))


def test_relay_agent_information() -> None:
    message = packet(82, b"\x01\x03eth\x02\x02id\x0b\x04\x0a\0\0\1")
    assert relay_suboptions(message) == {1: b"eth", 2: b"id", 11: b"\x0a\0\0\1"}
    assert server_override(message) == IPv4Address("10.0.0.1")
    with pytest.raises(OptionError, match="sub-option 11"):
        server_override(packet(82, b"\x0b\x01\x0a"))


def test_vendor_options_are_written_without_end_and_read_with_or_without() -> None:
    assert vendor_bytes({69: b"t", 6: b"\x08"}) == b"\x06\x01\x08\x45\x01t"
    assert vendor_suboptions(packet(43, b"\x06\x01\x08\x00\xff\x01")) == {6: b"\x08"}
    with pytest.raises(EncodeError, match="sub-option 9"):
        vendor_bytes({9: b"x" * 256})


@pytest.mark.parametrize(
    ("value", "usable"), [(b"", True), (b"\0" + b"u" * 16, True), (b"\1" + b"u" * 16, False), (b"\0" * 16, False)]
)
def test_machine_identifier(value: bytes, *, usable: bool) -> None:
    assert has_usable_machine_identifier(packet(97, value)) is usable


def test_boot_file_prefers_option_67() -> None:
    assert boot_file(packet(67, b"long\0", file=b"short")) == "long"
    assert boot_file(packet(file=b"short")) == "short"


def test_numbers() -> None:
    assert maximum_size(packet(57, b"\x05\xdc")) == 1500
    with pytest.raises(OptionError, match="expected 2"):
        maximum_size(packet(57, b"\0"))

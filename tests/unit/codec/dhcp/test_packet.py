"""Messages: bytes to values and back."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.codec.dhcp import (
    DecodeError,
    EncodeError,
    MessageType,
    Op,
    Option,
    Packet,
    decode,
    encode,
    reply_to,
    summary,
)
from ironbell.codec.dhcp.packet import MINIMUM_SIZE

COOKIE = b"\x63\x82\x53\x63"
MAC = bytes.fromhex("010203040506")


def header(*, op: int = 1, hlen: int = 6, sname: bytes = b"", file: bytes = b"") -> bytes:
    addresses = b"\0" * 16
    return (
        struct.pack("!BBBBIHH", op, 1, hlen, 0, 0xCAFE, 7, 0x8000)
        + addresses
        + struct.pack("!16s64s128s", MAC, sname, file)
    )


addresses = st.integers(0, 2**32 - 1).map(IPv4Address)
text_fields = st.binary(max_size=63).map(lambda raw: raw.replace(b"\0", b"x"))
codes = st.integers(1, 254).filter(lambda code: code != Option.OVERLOAD)
packets = st.builds(
    Packet,
    op=st.sampled_from([1, 2]),
    htype=st.integers(0, 255),
    hops=st.integers(0, 255),
    xid=st.integers(0, 2**32 - 1),
    secs=st.integers(0, 65535),
    flags=st.integers(0, 65535),
    ciaddr=addresses,
    yiaddr=addresses,
    siaddr=addresses,
    giaddr=addresses,
    chaddr=st.binary(max_size=16),
    sname=text_fields,
    file=text_fields,
    options=st.dictionaries(codes, st.binary(max_size=700), max_size=12),
)


@given(packets)
def test_every_message_survives_the_round_trip(packet: Packet) -> None:
    assert decode(encode(packet)) == packet


@given(st.binary(max_size=600))
def test_any_bytes_give_a_message_or_the_codecs_error(data: bytes) -> None:
    try:
        packet = decode(data)
    except DecodeError:
        return
    assert summary(packet)


@given(st.binary(max_size=400), st.binary(max_size=64), st.binary(max_size=128))
def test_any_options_give_a_message_or_the_codecs_error(options: bytes, sname: bytes, file: bytes) -> None:
    try:
        packet = decode(header(sname=sname, file=file) + COOKIE + options)
    except DecodeError:
        return
    assert summary(packet)
    assert decode(encode(packet)) == packet


def test_reads_the_fixed_header() -> None:
    packet = decode(header(sname=b"server\0rest", file=b"boot\0rest") + COOKIE + b"\x35\x01\x01\xff")
    assert (packet.xid, packet.secs, packet.mac) == (0xCAFE, 7, "01:02:03:04:05:06")
    assert (packet.sname, packet.file) == (b"server", b"boot")
    assert packet.needs_broadcast
    assert packet.message_type == MessageType.DISCOVER


def test_pads_to_300_bytes() -> None:
    data = encode(Packet(op=Op.REQUEST, xid=1, chaddr=MAC, options={53: b"\x01"}))
    assert len(data) == MINIMUM_SIZE
    assert data[240:244] == b"\x35\x01\x01\xff"


def test_options_are_ascending_and_the_relay_agents_is_last() -> None:
    options = {82: b"\x01\x01a", 255 - 1: b"z", 53: b"\x02", 1: b"\xff\xff\xff\0"}
    data = encode(Packet(op=Op.REPLY, xid=1, chaddr=MAC, options=options))
    assert data[240:].rstrip(b"\0") == b"\x01\x04\xff\xff\xff\0\x35\x01\x02\xfe\x01z\x52\x03\x01\x01a\xff"


def test_a_long_option_is_split_and_joined_again() -> None:
    value = bytes(range(256)) * 2
    data = encode(Packet(op=Op.REPLY, xid=1, chaddr=MAC, options={43: value}))
    assert data[240:242] == bytes((43, 255))
    assert data[240 + 257 : 240 + 259] == bytes((43, 255))
    assert data[240 + 514 : 240 + 516] == bytes((43, 2))
    assert decode(data).options[43] == value


def test_pieces_of_one_option_are_joined_over_other_options() -> None:
    packet = decode(header() + COOKIE + b"\x0c\x02ab\x35\x01\x01\x0c\x01c\xff")
    assert packet.options[12] == b"abc"


def test_options_in_file_and_sname_are_read_in_this_order() -> None:
    data = header(sname=b"\x0c\x01c\xff", file=b"\x0c\x01b\xff") + COOKIE + b"\x34\x01\x03\x0c\x01a\xff"
    packet = decode(data)
    assert packet.options == {12: b"abc"}
    assert (packet.file, packet.sname) == (b"", b"")


def test_a_missing_end_option_is_tolerated() -> None:
    assert decode(header() + COOKIE + b"\x35\x01\x01").message_type == MessageType.DISCOVER


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "at least 240"),
        (header() + b"\x63\x82\x53\x64" + b"\xff", "magic cookie"),
        (header(op=3) + COOKIE + b"\xff", "operation 3"),
        (header(hlen=17) + COOKIE + b"\xff", "17 bytes"),
        (header() + COOKIE + b"\x35", "no length"),
        (header() + COOKIE + b"\x35\x05\x01", "over the end"),
        (header() + COOKIE + b"\x34\x01\x04\xff", "overload"),
        (header(file=b"\x0c\xff") + COOKIE + b"\x34\x01\x01\xff", "over the end"),
    ],
)
def test_refuses_malformed_messages(data: bytes, says: str) -> None:
    with pytest.raises(DecodeError, match=says):
        decode(data)


@pytest.mark.parametrize(
    ("packet", "field"),
    [
        (Packet(op=2, xid=1, chaddr=MAC, file=b"x" * 128), "file"),
        (Packet(op=2, xid=1, chaddr=MAC, sname=b"x" * 64), "sname"),
        (Packet(op=2, xid=1, chaddr=b"x" * 17), "chaddr"),
        (Packet(op=2, xid=1, chaddr=MAC, options={0: b""}), "option 0"),
        (Packet(op=2, xid=1, chaddr=MAC, options={255: b""}), "option 255"),
        (Packet(op=2, xid=1, chaddr=MAC, options={52: b"\x01"}), "option 52"),
    ],
)
def test_nothing_is_cut_silently(packet: Packet, field: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode(packet)
    assert caught.value.field == field


def test_the_longest_file_and_sname_fit() -> None:
    packet = Packet(op=2, xid=1, chaddr=MAC, file=b"f" * 127, sname=b"s" * 63)
    assert decode(encode(packet)) == packet


def test_a_reply_hands_back_what_identifies_the_client_and_its_relay() -> None:
    request = Packet(
        op=1, xid=9, chaddr=MAC, flags=0x8000, giaddr=IPv4Address("10.0.0.1"), hops=3, secs=4,
        ciaddr=IPv4Address("10.0.0.9"), options={53: b"\x01", 61: b"\x01id", 82: b"\x01\x01c", 55: b"\x01"},
    )  # fmt: skip
    reply = reply_to(request, MessageType.OFFER, {1: b"\xff\xff\xff\0"}, yiaddr=IPv4Address("10.0.0.5"))
    assert reply == Packet(
        op=2, xid=9, chaddr=MAC, flags=0x8000, giaddr=IPv4Address("10.0.0.1"), yiaddr=IPv4Address("10.0.0.5"),
        options={1: b"\xff\xff\xff\0", 53: b"\x02", 61: b"\x01id", 82: b"\x01\x01c"},
    )  # fmt: skip


def test_summary_shows_control_characters_of_names_written_out() -> None:
    packet = Packet(op=1, xid=1, chaddr=MAC, options={53: b"\x01", 119: b"\x05a\x1b[2J\0"})
    assert summary(packet) == "DHCPDISCOVER xid=0x00000001 mac=01:02:03:04:05:06 domain_search='a\\x1b[2J'"


def test_summary_of_names_that_point_at_each_other_is_short() -> None:
    name = b"".join(b"\x3f" + b"a" * 63 for _ in range(3)) + b"\0"
    packet = Packet(op=1, xid=1, chaddr=MAC, options={53: b"\x01", 119: name + b"\xc0\0" * 500})
    assert len(summary(packet)) < 1200


def test_summary_names_what_it_knows() -> None:
    packet = Packet(
        op=1, xid=1, chaddr=MAC, yiaddr=IPv4Address("10.0.0.5"), file=b"ipxe.efi",
        options={53: b"\x02", 3: b"\x0a\0\0\x01", 12: b"node", 51: b"\0\0\x0e\x10", 55: b"\x01\x03", 200: b"\xab",
                 121: b"\x08\x0a\xc0\xa8\x04\x0a", 119: b"\x03lab\0", 1: b"\xff"},
    )  # fmt: skip
    assert summary(packet) == (
        "DHCPOFFER xid=0x00000001 mac=01:02:03:04:05:06 yiaddr=10.0.0.5 file='ipxe.efi' subnet_mask=ff "
        "routers=10.0.0.1 host_name='node' lease_time=3600 parameter_list=1,3 domain_search=lab "
        "classless_routes=10.0.0.0/8>192.168.4.10 200=ab"
    )

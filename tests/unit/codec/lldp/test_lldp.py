"""LLDP data units: recorded ones, whatever can be said and read back, and damage of any kind."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.codec.lldp import LldpError, Neighbour, decode, encode, payload_of, to_frame

# As a Linux bridge's lldpd sends it: MAC as chassis, interface name as port, description, capabilities, IPv4 address.
LLDPD = bytes.fromhex(
    "0207040242ac110002 040505 65746830 06020078 0a05 7265642d31 0c06 44656269616e 0e04001c0010"
    "100c0501c0000201020000000200 0806 75706c696e6b fe060080c201000a 0000"
)


def a_text(maximum: int = 60) -> st.SearchStrategy[str]:
    letters = st.characters(min_codepoint=33, max_codepoint=126)
    return st.text(letters, max_size=maximum)


macs = st.binary(min_size=6, max_size=6).map(lambda octets: octets.hex(":"))
ids = st.one_of(macs, a_text().filter(bool))
neighbours = st.builds(
    Neighbour,
    chassis_id=ids,
    port_id=ids,
    ttl_s=st.integers(0, 65535),
    port_description=a_text(),
    system_name=a_text(),
    management_address=st.one_of(st.just(""), st.ip_addresses().map(str)),
    vlan_id=st.integers(0, 4095),
)


def test_what_a_switch_sends_is_read():
    assert decode(LLDPD) == Neighbour(
        chassis_id="02:42:ac:11:00:02",
        port_id="eth0",
        ttl_s=120,
        port_description="uplink",
        system_name="red-1",
        management_address="192.0.2.1",
        vlan_id=10,
    )


@given(neighbours)
def test_what_is_said_is_heard(neighbour):
    assert decode(encode(neighbour)) == neighbour
    padded = to_frame(encode(neighbour) + b"\xff" * 46, source=b"\x02\0\0\0\0\x01")
    assert decode(payload_of(padded) or b"") == neighbour, "the padding of short frames means nothing"


def test_a_text_that_is_cut_ends_with_no_space():
    long = decode(encode(Neighbour("c", "p", port_description="a" * 254 + " " * 9 + "b")))
    assert long.port_description == "a" * 254


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(payload):
    payload_of(payload)
    try:
        found = decode(payload)
    except LldpError:
        return
    assert found.chassis_id.isprintable()
    assert found.system_name.isprintable()


@given(neighbours, st.data())
def test_a_damaged_unit_is_read_or_refused(neighbour, data):
    payload = bytearray(encode(neighbour))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = payload[: data.draw(st.integers(0, len(payload)))]
    with contextlib.suppress(LldpError):
        decode(bytes(cut))


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "begins with"),
        (encode(Neighbour("a", "b"))[4:], "begins with"),
        (encode(Neighbour("a", "b"))[:-2] + encode(Neighbour("a", "b")), "once"),
        (bytes.fromhex("0201040402076106020078"), "empty"),
        (bytes.fromhex("0202076104020761060100"), "two bytes"),
        (bytes.fromhex("02ff0761"), "has a length of 255 bytes"),
    ],
)
def test_what_is_no_data_unit_is_refused_with_a_reason(payload, why):
    with pytest.raises(LldpError, match=why):
        decode(payload)


def test_text_from_the_cable_is_printable_and_other_frames_are_left_alone():
    wild = encode(Neighbour("a\x1b[31m", "p", system_name="x\0y\n"))
    assert (decode(wild).chassis_id, decode(wild).system_name) == ("a", "x y")
    assert payload_of(b"\xff" * 12 + b"\x08\x00" + b"ip") is None
    assert payload_of(b"short") is None


def test_ids_that_cannot_be_sent_are_refused():
    with pytest.raises(LldpError, match="1 to 255 bytes"):
        encode(Neighbour("", "b"))
    with pytest.raises(LldpError, match="at most 511"):
        encode(Neighbour("a", "b", system_name="x" * 600))

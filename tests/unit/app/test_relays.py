"""Whose addresses may take more transfers at a time: relays of machines that we know."""

from __future__ import annotations

from ipaddress import IPv4Address

from ironbell.app.wire.boot_servers import MAX_RELAYS, Relays
from ironbell.codec.dhcp import MessageType, Packet
from ironbell.services.dhcp.answers import Reply


def reply(relay: str, hardware: str) -> Reply:
    packet = Packet(op=2, xid=1, chaddr=b"", giaddr=IPv4Address(relay))
    return Reply(packet=packet, kind=MessageType.ACK, hardware=hardware)


def test_a_relay_is_known_once_a_known_machine_was_answered_through_it() -> None:
    relays = Relays()
    relays.record(reply("192.0.2.1", ""))
    relays.record(reply("0.0.0.0", "default/one"))
    assert "192.0.2.1" not in relays
    assert "0.0.0.0" not in relays
    relays.record(reply("192.0.2.1", "default/one"))
    assert "192.0.2.1" in relays


def test_there_are_so_many_relays_and_no_more() -> None:
    relays = Relays()
    for number in range(MAX_RELAYS + 10):
        relays.record(reply(str(IPv4Address("10.0.0.0") + number + 1), "default/one"))
    assert sum(str(IPv4Address("10.0.0.0") + number + 1) in relays for number in range(MAX_RELAYS + 10)) == MAX_RELAYS

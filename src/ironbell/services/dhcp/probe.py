"""Is there another DHCP server? Asked before we hand out addresses on a network that we did not make.

A DISCOVER from an invented MAC is broadcast on the one interface that the user named. Servers that hand out addresses
from a pool answer it; a server that only knows listed machines stays silent and is not found. The offer is never
taken up.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address

from ironbell.base.ports import DHCP_CLIENT_PORT, DHCP_PORT
from ironbell.base.randomness import Randomness, SystemRandomness
from ironbell.codec.dhcp import (
    DecodeError,
    MessageType,
    Op,
    Option,
    Packet,
    decode,
    encode,
)
from ironbell.codec.dhcp.addresses import server_identifier
from ironbell.codec.dhcp.numbers import BROADCAST_FLAG
from ironbell.services.dhcp.destination import BROADCAST
from ironbell.services.dhcp.sockets import MAX_DATAGRAM, SocketError, open_dhcp_socket

# Servers that ping an address before they offer it (dnsmasq) take three seconds.
DEFAULT_TIMEOUT_S = 5.0
_TRIES = 3
_WANTED = bytes((Option.SUBNET_MASK, Option.ROUTERS, Option.SERVER_IDENTIFIER))


async def probe_for_servers(
    interface: str, *, timeout_s: float = DEFAULT_TIMEOUT_S, randomness: Randomness | None = None
) -> list[IPv4Address]:
    """Addresses of the DHCP servers that answer on an interface, in the order of their answers.

    Waits the whole time: a second server may be slower than the first.

    Raises:
        SocketError: the interface does not exist, the privilege is missing, port 68 is taken, or the interface is down.
    """
    discover = _discover(randomness or SystemRandomness())
    sock = open_dhcp_socket(interface, DHCP_CLIENT_PORT)
    loop = asyncio.get_running_loop()
    found: dict[IPv4Address, None] = {}
    try:
        loop.add_reader(sock, _collect, sock, discover.xid, found)
        for _ in range(_TRIES):
            _ask(sock, encode(discover), interface)
            await asyncio.sleep(timeout_s / _TRIES)
    finally:
        loop.remove_reader(sock)
        sock.close()
    return list(found)


def _ask(sock: socket.socket, data: bytes, interface: str) -> None:
    try:
        sock.sendto(data, (BROADCAST, DHCP_PORT))
    except OSError as error:
        raise SocketError(f"cannot look for DHCP servers on interface {interface}: {error.strerror}") from error


def _discover(randomness: Randomness) -> Packet:
    raw = bytearray(randomness.token_bytes(10))
    # Locally administered, unicast: no maker's card has such an address.
    raw[0] = (raw[0] & 0xFC) | 0x02
    return Packet(
        op=Op.REQUEST,
        xid=int.from_bytes(raw[6:], "big"),
        chaddr=bytes(raw[:6]),
        flags=BROADCAST_FLAG,
        options={
            int(Option.MESSAGE_TYPE): bytes((MessageType.DISCOVER,)),
            int(Option.PARAMETER_LIST): _WANTED,
        },
    )


def _collect(sock: socket.socket, xid: int, found: dict[IPv4Address, None]) -> None:
    """Take in what has arrived; whatever is no offer to our question is somebody else's."""
    while True:
        try:
            data, (source, _) = sock.recvfrom(MAX_DATAGRAM)
        except OSError:
            return
        try:
            packet = decode(data)
            server = server_identifier(packet) or IPv4Address(source)
        except DecodeError:
            continue
        if packet.op == Op.REPLY and packet.xid == xid and packet.message_type == MessageType.OFFER:
            found[server] = None

"""The probe for other DHCP servers, before addresses are assigned on a network that is not ours.

A DISCOVER from an invented MAC is broadcast on the interface that the user named. Servers with a pool of addresses
reply; a server that only serves listed machines does not, and is not found. The offer is never accepted.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address

from ironbell.base.ports import DHCP_CLIENT_PORT, DHCP_PORT
from ironbell.base.randomness import Randomness, SystemRandomness
from ironbell.codec.dhcp import DecodeError, MessageType, Op, Option, Packet, decode, encode
from ironbell.codec.dhcp.addresses import server_identifier
from ironbell.codec.dhcp.numbers import BROADCAST_FLAG
from ironbell.services.dhcp.sockets import BROADCAST, MAX_DATAGRAM, SocketError, open_dhcp_socket

# Servers that ping an address before they offer it (dnsmasq) take three seconds.
DEFAULT_TIMEOUT_S = 5.0
_TRIES = 3
_REQUESTED = bytes((Option.SUBNET_MASK, Option.ROUTERS, Option.SERVER_IDENTIFIER))


async def probe_for_servers(
    interface: str, *, timeout_s: float = DEFAULT_TIMEOUT_S, randomness: Randomness | None = None
) -> list[IPv4Address]:
    """Return the addresses of the DHCP servers that reply on an interface, in the order of their replies.

    Always waits for the whole timeout: a second server may be slower than the first.

    Raises:
        SocketError: the interface is missing or down, the privilege is missing, or port 68 is in use.
    """
    discover = _discover(randomness or SystemRandomness())
    sock = open_dhcp_socket(interface, DHCP_CLIENT_PORT)
    loop = asyncio.get_running_loop()
    servers: dict[IPv4Address, None] = {}
    try:
        loop.add_reader(sock, _collect, sock, discover.xid, servers)
        for _ in range(_TRIES):
            _broadcast(sock, encode(discover), interface)
            await asyncio.sleep(timeout_s / _TRIES)
    finally:
        loop.remove_reader(sock)
        sock.close()
    return list(servers)


def _broadcast(sock: socket.socket, data: bytes, interface: str) -> None:
    try:
        sock.sendto(data, (BROADCAST, DHCP_PORT))
    except OSError as error:
        raise SocketError(f"cannot look for DHCP servers on interface {interface}: {error.strerror}") from error


def _discover(randomness: Randomness) -> Packet:
    raw = bytearray(randomness.token_bytes(10))
    # Locally administered, unicast: no vendor assigns such an address.
    raw[0] = (raw[0] & 0xFC) | 0x02
    return Packet(
        op=Op.REQUEST,
        xid=int.from_bytes(raw[6:], "big"),
        chaddr=bytes(raw[:6]),
        flags=BROADCAST_FLAG,
        options={int(Option.MESSAGE_TYPE): bytes((MessageType.DISCOVER,)), int(Option.PARAMETER_LIST): _REQUESTED},
    )


def _collect(sock: socket.socket, xid: int, servers: dict[IPv4Address, None]) -> None:
    """Read the datagrams that have arrived; those that are not offers to our DISCOVER are ignored."""
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
            servers[server] = None

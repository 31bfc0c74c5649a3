"""DHCP: a datagram through the server's decoder, its decision and the encoder."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address

from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ip, Netboot
from ironbell.base.clock import ManualClock
from ironbell.codec.dhcp import DecodeError, EncodeError, MessageType, Op, Option, Packet, decode, encode, summary
from ironbell.codec.dhcp.numbers import BROADCAST_FLAG
from ironbell.codec.dhcp.packet import ZERO
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.netboot import NetbootPlan, NetbootSettings, netboot_plan
from ironbell.services.dhcp import DhcpServer, DhcpSettings, MacFormat, Mode, PlainIpxe, Problem
from ironbell.services.dhcp.sockets import BROADCAST, Datagram

from ..checks import check_line

INSTRUMENTED = ("ironbell.codec.dhcp", "ironbell.services.dhcp")
LONGEST = 1500
WORDS = (
    b"\x63\x82\x53\x63", b"PXEClient:Arch:00007:UNDI:003016", b"HTTPClient:Arch:00016", b"Tinkerbell", b"iPXE",
    b"\x35\x01\x01", b"\x35\x01\x03", b"\x35\x01\x07", b"\x35\x01\x08", b"\x36\x04\x7f\x00\x00\x01",
    b"\x32\x04\x7f\x00\x00\x32", b"\x5d\x02\x00\x07", b"\x5d\x02\x00\x0b", b"\x5d\x02\x00\x10", b"\x5e\x03\x01\x03\x00",
    b"\x61\x11\x00", b"\x4d", b"\x2b\x06\x01\x04\x00\x00\x00\x00", b"\x52", b"\x0b\x04", b"\x37", b"\x39\x02\x05\xdc",
    b"\x34\x01\x03", b"\x3d\x07\x01", b"\xff",
)  # fmt: skip
_LOCAL = IPv4Address("127.0.0.1")
_MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03", "b8:27:eb:00:00:04", "02:00:00:00:00:99")
_NETBOOT = NetbootSettings(osie_url="http://{address}:7173", grpc_authority="{address}:42113")
_SETTINGS = (
    DhcpSettings(),
    DhcpSettings(mode=Mode.PROXY, mac_format=MacFormat.DASH),
    DhcpSettings(mode=Mode.AUTO_PROXY, plain_ipxe=PlainIpxe.BINARY, log_server="192.0.2.5"),
    DhcpSettings(netboot_options=False, advertise=IPv4Address("192.0.2.1")),
)
_ADDRESSES = {mac: IPv4Address(f"127.0.0.{50 + number}") for number, mac in enumerate(_MACS)}
_MAX_ADDED = 1200
"""Bytes that an answer may be longer than its question: what strangers can have us send in another's name."""


def _hardware(name: str, mac: str, *, allow: bool = True, disable: bool = False) -> Hardware:
    fields = Dhcp(
        mac=mac,
        hostname="node-1",
        ip=Ip(address=str(_ADDRESSES[mac]), netmask="255.255.255.0", gateway="127.0.0.254"),
        name_servers=["192.0.2.53"],
        lease_time=86400,
    )
    interface = Interface(dhcp=fields, netboot=Netboot(allow_pxe=allow), disable_dhcp=disable)
    return Hardware(metadata=ObjectMeta(name=name, namespace="lab"), spec=HardwareSpec(interfaces=[interface]))


def _directory() -> HardwareDirectory:
    directory = HardwareDirectory()
    directory.upsert(_hardware("a", _MACS[0]))
    directory.upsert(_hardware("b", _MACS[1], allow=False))
    directory.upsert(_hardware("c", _MACS[2], disable=True))
    directory.upsert(_hardware("d", _MACS[3]))
    return directory


def _plan(hardware: Hardware, interface: Interface, address: str) -> NetbootPlan:
    return netboot_plan(hardware, interface, _NETBOOT, address=address)


def _report(problem: Problem) -> None:
    check_line(problem.message, 2000, "the problem's message")


_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
_servers = [
    DhcpServer(
        _socket, interface="", settings=settings, directory=_directory(), plan=_plan, clock=ManualClock(),
        on_problem=_report,
    )
    for settings in _SETTINGS
]  # fmt: skip


def _head(how: int) -> bytes:
    """A header that is in order, for inputs that are options alone."""
    mac = _MACS[how % len(_MACS)]
    giaddr = IPv4Address("192.0.2.77") if how & 0x40 else ZERO
    packet = Packet(op=Op.REQUEST, xid=how, chaddr=bytes.fromhex(mac.replace(":", "")), giaddr=giaddr)
    return encode(packet)[:240]


_HEADS = [_head(how) for how in range(128)]


def one(data: bytes) -> None:
    """The first byte chooses the server and where the datagram comes from, the second the header, if it has its top
    bit; the rest is the datagram, or its options."""
    if len(data) < 2:
        return
    chosen, how, body = data[0], data[1], data[2:]
    payload = _HEADS[how & 0x7F] + body if how & 0x80 else body
    source = "0.0.0.0" if chosen & 4 else "192.0.2.9"
    datagram = Datagram(payload, source, 4011 if chosen & 8 else 68, 1, _LOCAL.packed, bool(chosen & 16))
    server = _servers[chosen & 3]
    outgoing = server.handle(datagram)
    assert server.handle(datagram) == outgoing, "the same datagram gets another answer"
    try:
        request = decode(payload)
    except DecodeError as error:
        assert outgoing is None, "what is no message was answered"
        check_line(error.message, 200, "the error's message")
        return
    _check_codec(request, payload)
    if outgoing is not None:
        _check_answer(request, decode(outgoing.data), outgoing.data, _SETTINGS[chosen & 3])
        assert len(outgoing.data) <= len(payload) + _MAX_ADDED, "the answer is far longer than what was asked"
        assert outgoing.to[0] in {source, str(request.giaddr), str(request.ciaddr), BROADCAST}


def _check_codec(request: Packet, payload: bytes) -> None:
    check_line(summary(request), 400 + 16 * len(payload), "the summary")
    try:
        again = encode(request)
    except EncodeError:
        assert len(request.file) == 128 or len(request.sname) == 64 or {0, 52, 255} & set(request.options)
        return
    assert decode(again) == request, "a message that was written reads otherwise"


def _check_answer(request: Packet, reply: Packet, raw: bytes, settings: DhcpSettings) -> None:
    assert encode(reply) == raw
    assert request.op == Op.REQUEST, "an answer was answered"
    assert reply.op == Op.REPLY
    assert (reply.xid, reply.chaddr, reply.htype) == (request.xid, request.chaddr, request.htype)
    assert reply.message_type in {MessageType.OFFER, MessageType.ACK, MessageType.NAK}
    # A relay must broadcast a refusal, whatever the client asked for.
    flags = request.flags | BROADCAST_FLAG if reply.message_type == MessageType.NAK else request.flags
    assert reply.giaddr == request.giaddr
    assert reply.flags in {request.flags, flags}
    for code in (Option.CLIENT_IDENTIFIER, Option.RELAY_AGENT):
        assert reply.options.get(code) == request.options.get(code), f"option {code} was not handed back"
    own = {ZERO, _ADDRESSES.get(request.mac, ZERO)} if settings.mode is Mode.RESERVATION else {ZERO}
    assert reply.yiaddr in own, f"{request.mac} was given {reply.yiaddr}"
    assert request.mac != _MACS[2], "a machine whose DHCP is off was answered"


_DISCOVER = b"\x35\x01\x01"
_PXE = b"\x3c\x20PXEClient:Arch:00007:UNDI:003016\x5d\x02\x00\x07\x5e\x03\x01\x03\x00\x61\x11\x00uuuuuuuuuuuuuuuu"
_REQUESTED = b"\x35\x01\x03\x32\x04\x7f\x00\x00\x32\x36\x04\x7f\x00\x00\x01"
SEEDS = (
    *(bytes((server, 0x80 | mac)) + _DISCOVER + _PXE + b"\xff" for server in range(4) for mac in range(5)),
    *(bytes((server, 0x80)) + _REQUESTED + _PXE + b"\x4d\x04iPXE\xff" for server in range(4)),
    *(bytes((server, 0x80)) + _DISCOVER + _PXE + b"\x4d\x0aTinkerbell\xff" for server in range(4)),
    *(bytes((4, 0xC0)) + kind + b"\x52\x08\x01\x02ab\x0b\x04\xc0\x00\x02\x01\xff" for kind in (_DISCOVER, _REQUESTED)),
    b"\0\0" + _HEADS[0] + _DISCOVER + _PXE + b"\x34\x01\x03\xff",
    b"\0\x80\x35\x01\x08\x37\x04\x01\x03\x06\x0f\x39\x02\x02\x40\x3d\x07\x01\x02\0\0\0\0\x01\xff",
    b"\0\x80\x35\x01\x04\xff", b"\0\x80\x35\x01\x07\xff",
)  # fmt: skip

"""One DHCP message: the fixed header as fields, options as raw bytes by code.

Options keep their bytes: what is unknown survives, and typed views (`addresses`, `text`, `routes`, ...) parse on
demand. Decoding is tolerant where real firmware is sloppy (no End option, short messages) and strict where a value
would be misread.

Source: RFC 2131, section 2 (format); RFC 2132, section 9.3 (overload); RFC 3396, section 5 (order of joined pieces);
RFC 951 and RFC 1542, section 2.1 (at least 300 bytes).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address
from typing import Any

import msgspec

from ironbell.codec.dhcp.errors import DecodeError, EncodeError
from ironbell.codec.dhcp.numbers import BROADCAST_FLAG, ETHERNET, MessageType, Op, Option
from ironbell.codec.dhcp.tlv import parse_options, write_options

ZERO = IPv4Address(0)
MINIMUM_SIZE = 300
MAX_FILE = 127
MAX_SNAME = 63
_HEADER = struct.Struct("!BBBBIHHIIII16s64s128s")
_MAGIC_COOKIE = b"\x63\x82\x53\x63"
HEADER_SIZE = _HEADER.size + len(_MAGIC_COOKIE)
"""Bytes before the options, with the magic cookie."""
_MAX_HLEN = 16
_OVERLOADS_FILE, _OVERLOADS_SNAME = 1, 2
_HANDED_BACK = (int(Option.CLIENT_IDENTIFIER), int(Option.RELAY_AGENT))
_TYPE_BYTES = {kind: bytes((kind,)) for kind in MessageType}


@lru_cache(maxsize=16_384)
def address_of(value: int | bytes) -> IPv4Address:
    """An address by number or by its four bytes; kept, since the same ones come in every message."""
    return IPv4Address(value)


class Packet(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message. `chaddr` holds exactly as many bytes as the header's hlen states."""

    op: int
    xid: int
    chaddr: bytes
    htype: int = ETHERNET
    hops: int = 0
    secs: int = 0
    flags: int = 0
    ciaddr: IPv4Address = ZERO
    yiaddr: IPv4Address = ZERO
    siaddr: IPv4Address = ZERO
    giaddr: IPv4Address = ZERO
    sname: bytes = b""
    file: bytes = b""
    options: dict[int, bytes] = {}

    @property
    def mac(self) -> str:
        """The Ethernet address in lower case with colons; empty when the hardware type is another one."""
        return self.chaddr.hex(":") if self.htype == ETHERNET and len(self.chaddr) == 6 else ""

    @property
    def message_type(self) -> int:
        """Option 53; 0 for a BOOTP message or a malformed option."""
        value = self.options.get(Option.MESSAGE_TYPE, b"")
        return value[0] if len(value) == 1 else 0

    @property
    def needs_broadcast(self) -> bool:
        return bool(self.flags & BROADCAST_FLAG)


def decode(data: bytes) -> Packet:
    """Read one message.

    Raises:
        DecodeError: the bytes are no DHCP message.
    """
    if len(data) < HEADER_SIZE:
        raise DecodeError(f"{len(data)} bytes, a DHCP message has at least {HEADER_SIZE}")
    if data[_HEADER.size : HEADER_SIZE] != _MAGIC_COOKIE:
        raise DecodeError("the magic cookie 99.130.83.99 is missing")
    op, htype, hlen, hops, xid, secs, flags, ciaddr, yiaddr, siaddr, giaddr, chaddr, sname, file = _HEADER.unpack_from(
        data
    )
    if not Op.REQUEST <= op <= Op.REPLY:
        raise DecodeError(f"operation {op} is neither a request nor a reply")
    if hlen > _MAX_HLEN:
        raise DecodeError(f"hardware address of {hlen} bytes, at most {_MAX_HLEN} fit")
    options: dict[int, bytes] = {}
    parse_options(data, HEADER_SIZE, options)
    if Option.OVERLOAD in options:
        sname, file = _take_overloaded(options, sname=sname, file=file)
    return Packet(
        op=op, htype=htype, hops=hops, xid=xid, secs=secs, flags=flags,
        ciaddr=address_of(ciaddr), yiaddr=address_of(yiaddr), siaddr=address_of(siaddr), giaddr=address_of(giaddr),
        chaddr=chaddr[:hlen], sname=sname.partition(b"\0")[0], file=file.partition(b"\0")[0], options=options,
    )  # fmt: skip


def _take_overloaded(options: dict[int, bytes], *, sname: bytes, file: bytes) -> tuple[bytes, bytes]:
    """Read options out of `file` and `sname`, in this order; the fields themselves are then empty."""
    overload = options.pop(Option.OVERLOAD)
    if len(overload) != 1 or not 1 <= overload[0] <= (_OVERLOADS_FILE | _OVERLOADS_SNAME):
        raise DecodeError("option 52 (overload) must be one byte of 1, 2 or 3")
    if overload[0] & _OVERLOADS_FILE:
        parse_options(file, 0, options)
        file = b""
    if overload[0] & _OVERLOADS_SNAME:
        parse_options(sname, 0, options)
        sname = b""
    # An overload option inside an overloaded field means nothing (RFC 3396, section 5).
    options.pop(Option.OVERLOAD, None)
    return sname, file


def encode(packet: Packet) -> bytes:
    """The message's bytes, padded to 300.

    Raises:
        EncodeError: a field or option does not fit.
    """
    if len(packet.file) > MAX_FILE:
        raise EncodeError("file", f"{len(packet.file)} bytes, at most {MAX_FILE} fit: {packet.file!r}")
    if len(packet.sname) > MAX_SNAME:
        raise EncodeError("sname", f"{len(packet.sname)} bytes, at most {MAX_SNAME} fit: {packet.sname!r}")
    if len(packet.chaddr) > _MAX_HLEN:
        raise EncodeError("chaddr", f"{len(packet.chaddr)} bytes, at most {_MAX_HLEN} fit")
    out = bytearray(
        _HEADER.pack(
            packet.op, packet.htype, len(packet.chaddr), packet.hops, packet.xid, packet.secs, packet.flags,
            int(packet.ciaddr), int(packet.yiaddr), int(packet.siaddr), int(packet.giaddr),
            packet.chaddr, packet.sname, packet.file,
        )
    )  # fmt: skip
    out += _MAGIC_COOKIE
    write_options(packet.options, out)
    if len(out) < MINIMUM_SIZE:
        out += bytes(MINIMUM_SIZE - len(out))
    return bytes(out)


def reply_to(request: Packet, message_type: MessageType, options: Mapping[int, bytes], **fields: Any) -> Packet:
    """A reply with the header fields and the two options that a server must hand back.

    Those are the relay agent's information (RFC 3046, section 2.2) and the client identifier (RFC 6842).
    `fields` are further fields of `Packet`.
    """
    answer = {**options, int(Option.MESSAGE_TYPE): _TYPE_BYTES[message_type]}
    for code in _HANDED_BACK:
        if code in request.options:
            answer[code] = request.options[code]
    return Packet(
        op=Op.REPLY, htype=request.htype, xid=request.xid, flags=request.flags, giaddr=request.giaddr,
        chaddr=request.chaddr, options=answer, **fields,
    )  # fmt: skip

"""One LLDP data unit, which names the neighbour at the other end of the cable, and its Ethernet frame.

Only what helps to find a cable is kept. Text is shortened to printable characters, since any device may send it.

Source: IEEE 802.1AB-2016 clauses 8.4, 8.5 and 9.2.7.7, annex D.2.1.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.printable import plain

ETHERTYPE: Final = 0x88CC
MULTICAST: Final = bytes.fromhex("0180c200000e")
"""The nearest bridge: such frames are never forwarded, so who is heard is at the other end of the cable."""
_HEADER: Final = struct.Struct("!6s6sH")


def payload_of(frame: bytes) -> bytes | None:
    """The data unit in an Ethernet frame; None if it is no LLDP frame."""
    if len(frame) < _HEADER.size or _HEADER.unpack_from(frame)[2] != ETHERTYPE:
        return None
    return frame[_HEADER.size :]


def to_frame(payload: bytes, *, source: bytes) -> bytes:
    """An Ethernet frame from this MAC address (6 bytes) to the nearest bridge."""
    return _HEADER.pack(MULTICAST, source, ETHERTYPE) + payload


MAX_TEXT: Final = 255
_8021: Final = bytes.fromhex("0080c2")
_PORT_VLAN: Final = 1
_MAC_SUBTYPES: Final = (4, 3)
"""Subtypes of a chassis id and of a port id that is a MAC address."""
_ADDRESS_SUBTYPES: Final = (5, 4)
_IPV4, _IPV6 = 1, 2
"""IANA address families."""


class Tlv(IntEnum):
    """Types that are read."""

    END = 0
    CHASSIS_ID = 1
    PORT_ID = 2
    TTL = 3
    PORT_DESCRIPTION = 4
    SYSTEM_NAME = 5
    MANAGEMENT_ADDRESS = 8
    ORGANIZATION = 127


class LldpError(IronbellError):
    """The bytes are no LLDP data unit."""

    reason = "BadLldp"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Announcement of a neighbour. Ids are text: a MAC or IP address where it is one."""

    chassis_id: str
    port_id: str
    ttl_s: int = 120
    """Validity of the announcement; 0 withdraws it."""
    port_description: str = ""
    system_name: str = ""
    management_address: str = ""
    vlan_id: int = 0
    """The port's untagged VLAN; 0 if the neighbour does not announce it."""


def decode(payload: bytes) -> Neighbour:
    """Read a data unit.

    Raises:
        LldpError: it does not begin with chassis, port and time to live, or a part is longer than the rest.
    """
    parts = list(_parts(payload))
    if [kind for kind, _ in parts[:3]] != [Tlv.CHASSIS_ID, Tlv.PORT_ID, Tlv.TTL]:
        raise LldpError("an LLDP data unit begins with chassis id, port id and time to live")
    (_, chassis), (_, port), (_, ttl) = parts[:3]
    if any(kind in (Tlv.CHASSIS_ID, Tlv.PORT_ID, Tlv.TTL) for kind, _ in parts[3:]):
        raise LldpError("an LLDP data unit has each of chassis id, port id and time to live once")
    if len(ttl) < 2:
        raise LldpError("the time to live is two bytes")
    rest: dict[int, bytes] = {}
    for kind, value in parts[3:]:
        rest.setdefault(kind, value)
    return Neighbour(
        chassis_id=_id(chassis, "chassis id", 0),
        port_id=_id(port, "port id", 1),
        ttl_s=int(struct.unpack_from("!H", ttl)[0]),
        port_description=_text(rest.get(Tlv.PORT_DESCRIPTION, b"")),
        system_name=_text(rest.get(Tlv.SYSTEM_NAME, b"")),
        management_address=_management(rest.get(Tlv.MANAGEMENT_ADDRESS, b"")),
        vlan_id=_vlan(value for kind, value in parts[3:] if kind == Tlv.ORGANIZATION),
    )


def encode(neighbour: Neighbour) -> bytes:
    """A data unit that says this; ids that are MAC addresses go out as such, others as locally assigned text.

    Raises:
        LldpError: a text is empty where one must be, or too long.
    """
    parts = [
        (Tlv.CHASSIS_ID, _id_bytes(neighbour.chassis_id, "chassis id", 0)),
        (Tlv.PORT_ID, _id_bytes(neighbour.port_id, "port id", 1)),
        (Tlv.TTL, struct.pack("!H", neighbour.ttl_s)),
    ]
    if neighbour.port_description:
        parts.append((Tlv.PORT_DESCRIPTION, neighbour.port_description.encode()))
    if neighbour.system_name:
        parts.append((Tlv.SYSTEM_NAME, neighbour.system_name.encode()))
    if neighbour.management_address:
        address = ipaddress.ip_address(neighbour.management_address)
        encoded = bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed
        # Interface numbering: by number (2), port 0; no object identifier.
        parts.append((Tlv.MANAGEMENT_ADDRESS, bytes([len(encoded)]) + encoded + struct.pack("!BIB", 2, 0, 0)))
    if neighbour.vlan_id:
        parts.append((Tlv.ORGANIZATION, _8021 + struct.pack("!BH", _PORT_VLAN, neighbour.vlan_id)))
    return b"".join(_encoded_part(kind, value) for kind, value in [*parts, (Tlv.END, b"")])


def _encoded_part(kind: Tlv, value: bytes) -> bytes:
    if len(value) > 511:
        raise LldpError(f"{kind.name} is {len(value)} bytes long; at most 511 fit")
    return struct.pack("!H", kind << 9 | len(value)) + value


def _parts(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """Types and values up to the end mark. Ethernet pads short frames, so what comes after it means nothing."""
    offset = 0
    while offset + 2 <= len(payload):
        head = struct.unpack_from("!H", payload, offset)[0]
        kind, length = head >> 9, head & 0x1FF
        offset += 2
        if kind == Tlv.END:
            return
        if offset + length > len(payload):
            raise LldpError(f"part {kind} has a length of {length} bytes, but {len(payload) - offset} remain")
        yield kind, payload[offset : offset + length]
        offset += length


def _id(value: bytes, name: str, place: int) -> str:
    if len(value) < 2:
        raise LldpError(f"the {name} is empty")
    kind, rest = value[0], value[1:]
    if kind == _MAC_SUBTYPES[place] and len(rest) == 6:
        return rest.hex(":")
    if kind == _ADDRESS_SUBTYPES[place] and (address := _address(rest)):
        return address
    return _text(rest) or rest.hex()[:MAX_TEXT]


def _id_bytes(text: str, name: str, place: int) -> bytes:
    if not text or len(text.encode()) > MAX_TEXT:
        raise LldpError(f"the {name} has 1 to {MAX_TEXT} bytes")
    octets = text.split(":")
    if len(octets) == 6 and all(len(octet) == 2 and set(octet) <= set("0123456789abcdef") for octet in octets):
        return bytes([_MAC_SUBTYPES[place]]) + bytes.fromhex("".join(octets))
    return bytes([7]) + text.encode()


def _address(value: bytes) -> str:
    """An address after its family's number; empty for other families."""
    if len(value) == 5 and value[0] == _IPV4:
        return str(ipaddress.IPv4Address(value[1:]))
    if len(value) == 17 and value[0] == _IPV6:
        return str(ipaddress.IPv6Address(value[1:]))
    return ""


def _management(value: bytes) -> str:
    return _address(value[1 : 1 + value[0]]) if value else ""


def _vlan(values: Iterator[bytes]) -> int:
    for value in values:
        if value[:3] == _8021 and len(value) >= 6 and value[3] == _PORT_VLAN:
            return int(struct.unpack_from("!H", value, 4)[0])
    return 0


def _text(value: bytes) -> str:
    return plain(value.decode("utf-8", "replace")).replace("\n", " ").strip()[:MAX_TEXT].rstrip()

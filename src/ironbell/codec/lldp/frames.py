"""The Ethernet frame around an LLDP data unit.

Source: IEEE 802.1AB-2016 clause 7.
"""

from __future__ import annotations

import struct
from typing import Final

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

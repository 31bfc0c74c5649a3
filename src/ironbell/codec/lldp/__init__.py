"""LLDP: what a switch says about itself, as a frame's payload and back. No I/O.

Source: IEEE 802.1AB-2016 clauses 8 and 9, annex D (organizationally specific TLVs of 802.1).
"""

from ironbell.codec.lldp.neighbour import (
    ETHERTYPE,
    MULTICAST,
    LldpError,
    Neighbour,
    decode,
    encode,
    payload_of,
    to_frame,
)

__all__ = ["ETHERTYPE", "MULTICAST", "LldpError", "Neighbour", "decode", "encode", "payload_of", "to_frame"]

"""What does not fit: boot files longer than the header's field, replies longer than the client takes.

Nothing is cut silently: a long boot file goes into option 67 instead and is reported, and options are left out of a
reply that is too long in an order that keeps the machine working.

Source: RFC 2132, sections 9.5 and 9.10; RFC 2131, section 2 (a client takes at least 576 bytes).
"""

from __future__ import annotations

from msgspec.structs import replace

from ironbell.codec.dhcp import Option, OptionError, Packet
from ironbell.codec.dhcp.integers import maximum_size
from ironbell.codec.dhcp.packet import HEADER_SIZE, MAX_FILE
from ironbell.codec.dhcp.tlv import encoded_size
from ironbell.services.dhcp.problems import Problem

_IP_AND_UDP_HEADERS = 28
_SMALLEST_LIMIT = 576
# From what a machine misses least. Mask, router, name servers, routes and everything about booting always stay.
_DISPENSABLE = (
    Option.DOMAIN_SEARCH, Option.LOG_SERVERS, Option.TIME_SERVERS, Option.BROADCAST_ADDRESS, Option.DOMAIN_NAME,
    Option.HOST_NAME,
)  # fmt: skip


def place_file(file: str, options: dict[int, bytes], *, mac: str, hardware: str) -> tuple[bytes, tuple[Problem, ...]]:
    """The header's boot file field for `file`; one that is too long for it goes into `options` instead."""
    raw = file.encode()
    if len(raw) <= MAX_FILE:
        return raw, ()
    options[int(Option.BOOT_FILE_NAME)] = raw
    message = (
        f"the boot file has {len(raw)} bytes, {MAX_FILE} fit into the DHCP header: it is sent as option 67 alone, "
        f"which old firmware does not read; use a shorter address ({file})"
    )
    return b"", (Problem("BootFileTooLong", message, mac, (hardware,) if hardware else ()),)


def fitted(reply: Packet, request: Packet) -> Packet:
    """The reply without those dispensable options that would make it longer than the client takes."""
    size = HEADER_SIZE + encoded_size(reply.options)
    if size <= _SMALLEST_LIMIT - _IP_AND_UDP_HEADERS:
        return reply
    limit = _limit(request)
    if size <= limit:
        return reply
    options = dict(reply.options)
    for code in _DISPENSABLE:
        options.pop(code, None)
        if HEADER_SIZE + encoded_size(options) <= limit:
            break
    return replace(reply, options=options)


def _limit(request: Packet) -> int:
    """Bytes of a DHCP message that the client takes."""
    try:
        asked = maximum_size(request) or 0
    except OptionError:
        asked = 0
    return max(asked, _SMALLEST_LIMIT) - _IP_AND_UDP_HEADERS

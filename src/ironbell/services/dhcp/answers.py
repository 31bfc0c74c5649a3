"""Decisions about one DHCP message, problems of machines, and the size limits of replies.

Nothing is cut silently: a boot file that is longer than the header's field is sent as option 67 and is reported, and
options are omitted from a reply that is longer than the client accepts, in an order that keeps the machine working.

Source: RFC 2132, sections 9.5 and 9.10; RFC 2131, section 2 (a client accepts at least 576 bytes).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from msgspec.structs import replace

from ironbell.codec.dhcp import MessageType, Option, OptionError, Packet
from ironbell.codec.dhcp.integers import maximum_size
from ironbell.codec.dhcp.packet import HEADER_SIZE, MAX_FILE
from ironbell.codec.dhcp.tlv import encoded_size
from ironbell.contract.servers.netboot import NetbootPlan
from ironbell.services.dhcp.reservation import Reservation

_IP_AND_UDP_HEADERS = 28
_SMALLEST_LIMIT = 576
# In the order of omission. Mask, router, name servers, routes and boot options are never omitted.
_DISPENSABLE = (
    Option.DOMAIN_SEARCH, Option.LOG_SERVERS, Option.TIME_SERVERS, Option.BROADCAST_ADDRESS, Option.DOMAIN_NAME,
    Option.HOST_NAME,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """A machine that is served incorrectly or not at all. Reason and message are those of an Event on each of
    `hardware` ("namespace/name")."""

    reason: str
    message: str
    mac: str = ""
    hardware: tuple[str, ...] = ()


class IgnoreReason(Enum):
    """Reasons for which a message gets no reply; values are metric labels."""

    NOT_A_REQUEST = "not_a_request"
    NO_ETHERNET_ADDRESS = "no_ethernet_address"
    BOOTP = "bootp"
    MESSAGE_TYPE = "message_type"
    MALFORMED_OPTION = "malformed_option"
    UNKNOWN_MACHINE = "unknown_machine"
    UNUSABLE_HARDWARE = "unusable_hardware"
    DISABLED = "disabled"
    NO_ADDRESS = "no_address"
    NO_OWN_ADDRESS = "no_own_address"
    OTHER_SERVER = "other_server"
    NOT_A_BOOT_CLIENT = "not_a_boot_client"
    NO_BINARY = "no_binary"
    NETBOOT_OFF = "netboot_off"
    DECLINED = "declined"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Known:
    """A machine with one Hardware."""

    name: str
    """namespace/name of the Hardware."""
    reservation: Reservation
    plan: NetbootPlan


@dataclass(frozen=True, slots=True)
class Unusable:
    """A machine that cannot be served: several Hardware have its MAC, or its data are invalid."""

    problem: Problem


Subject = Known | Unusable | None
"""The client of a message; None for a MAC that no Hardware names."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A message to send; one of type NAK rejects the address."""

    packet: Packet
    kind: MessageType
    hardware: str = ""
    boot_file: str = ""
    rejection: str = ""
    """The reason for which the machine boots its disk instead of the network."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Ignore:
    """No reply is sent."""

    reason: IgnoreReason
    detail: str = ""
    problem: Problem | None = None


Decision = Reply | Ignore


def place_file(file: str, options: dict[int, bytes], *, mac: str, hardware: str) -> tuple[bytes, tuple[Problem, ...]]:
    """Return the header's boot file field for `file`, or add it to `options` if it is too long for the field."""
    raw = file.encode()
    if len(raw) <= MAX_FILE:
        return raw, ()
    options[int(Option.BOOT_FILE_NAME)] = raw
    message = (
        f"The boot file {file} has {len(raw)} bytes, more than the {MAX_FILE} of the DHCP header. It is sent as option "
        "67, which old firmware does not read. Use a shorter URL."
    )
    return b"", (Problem("BootFileTooLong", message, mac, (hardware,) if hardware else ()),)


def fitted(reply: Packet, request: Packet) -> Packet:
    """Return the reply without the dispensable options that make it longer than the client accepts."""
    size = HEADER_SIZE + encoded_size(reply.options)
    if size <= _SMALLEST_LIMIT - _IP_AND_UDP_HEADERS:
        return reply
    try:
        requested = maximum_size(request) or 0
    except OptionError:
        requested = 0
    limit = max(requested, _SMALLEST_LIMIT) - _IP_AND_UDP_HEADERS
    if size <= limit:
        return reply
    options = dict(reply.options)
    for code in _DISPENSABLE:
        options.pop(code, None)
        if HEADER_SIZE + encoded_size(options) <= limit:
            break
    return replace(reply, options=options)

"""What a decision about one message can be, and about whom it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ironbell.codec.dhcp import MessageType, Packet
from ironbell.contract.servers.netboot import NetbootPlan
from ironbell.services.dhcp.problems import Problem
from ironbell.services.dhcp.reservation import Reservation


class IgnoreReason(Enum):
    """Why a message gets no answer; values are metric labels."""

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
    """A machine with exactly one Hardware."""

    name: str
    """namespace/name of the Hardware."""
    reservation: Reservation
    plan: NetbootPlan


@dataclass(frozen=True, slots=True)
class Unusable:
    """Hardware that cannot be served: several claim the MAC, or its data is wrong."""

    problem: Problem


Subject = Known | Unusable | None
"""About whom; None for a MAC that no Hardware names."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A message to send. A refusal of the address is a reply of type NAK."""

    packet: Packet
    kind: MessageType
    hardware: str = ""
    boot_file: str = ""
    refusal: str = ""
    """Why the machine is sent to its disk instead of a netboot."""
    problems: tuple[Problem, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Ignore:
    """No answer."""

    reason: IgnoreReason
    detail: str = ""
    problem: Problem | None = None


Decision = Reply | Ignore

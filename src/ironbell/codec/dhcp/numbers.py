"""Numbers of the protocol: operations, message types, option codes.

Source: RFC 2131, RFC 2132, RFC 3046, RFC 3397, RFC 3442, RFC 4578; IANA's BOOTP and DHCP parameters.
"""

from __future__ import annotations

from enum import IntEnum

BROADCAST_FLAG = 0x8000
ETHERNET = 1


class Op(IntEnum):
    """Direction of a message."""

    REQUEST = 1
    REPLY = 2


class MessageType(IntEnum):
    """Values of option 53."""

    DISCOVER = 1
    OFFER = 2
    REQUEST = 3
    DECLINE = 4
    ACK = 5
    NAK = 6
    RELEASE = 7
    INFORM = 8
    FORCERENEW = 9
    LEASEQUERY = 10


class Option(IntEnum):
    """Option codes that this project reads or writes; any other code passes through by number."""

    SUBNET_MASK = 1
    ROUTERS = 3
    NAME_SERVERS = 6
    LOG_SERVERS = 7
    HOST_NAME = 12
    DOMAIN_NAME = 15
    INTERFACE_MTU = 26
    BROADCAST_ADDRESS = 28
    TIME_SERVERS = 42
    VENDOR_SPECIFIC = 43
    REQUESTED_ADDRESS = 50
    LEASE_TIME = 51
    OVERLOAD = 52
    MESSAGE_TYPE = 53
    SERVER_IDENTIFIER = 54
    PARAMETER_LIST = 55
    MESSAGE = 56
    MAXIMUM_SIZE = 57
    VENDOR_CLASS = 60
    CLIENT_IDENTIFIER = 61
    TFTP_SERVER_NAME = 66
    BOOT_FILE_NAME = 67
    USER_CLASS = 77
    RELAY_AGENT = 82
    CLIENT_ARCHITECTURE = 93
    NETWORK_INTERFACE = 94
    MACHINE_IDENTIFIER = 97
    DOMAIN_SEARCH = 119
    CLASSLESS_ROUTES = 121
    IPXE = 175


PAD = 0
END = 255


def type_name(value: int) -> str:
    """A message type as metrics and logs name it, such as `DHCPDISCOVER`."""
    try:
        return f"DHCP{MessageType(value).name}"
    except ValueError:
        return "UNKNOWN"


def option_name(code: int) -> str:
    """A code as logs name it: lower-case words, or the number."""
    try:
        return Option(code).name.lower()
    except ValueError:
        return str(code)

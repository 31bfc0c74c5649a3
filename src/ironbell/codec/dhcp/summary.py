"""A message in one line for logs, every known option by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address

from ironbell.codec.dhcp.errors import OptionError
from ironbell.codec.dhcp.numbers import Option, option_name, type_name
from ironbell.codec.dhcp.packet import ZERO, Packet
from ironbell.codec.dhcp.routes import parse_routes
from ironbell.codec.dhcp.search import parse_search

_ADDRESS_OPTIONS = {
    Option.SUBNET_MASK, Option.ROUTERS, Option.NAME_SERVERS, Option.LOG_SERVERS, Option.BROADCAST_ADDRESS,
    Option.TIME_SERVERS, Option.REQUESTED_ADDRESS, Option.SERVER_IDENTIFIER,
}  # fmt: skip
_TEXT_OPTIONS = {
    Option.HOST_NAME, Option.DOMAIN_NAME, Option.MESSAGE, Option.VENDOR_CLASS, Option.TFTP_SERVER_NAME,
    Option.BOOT_FILE_NAME, Option.USER_CLASS,
}  # fmt: skip
_NUMBER_OPTIONS = {Option.LEASE_TIME, Option.MAXIMUM_SIZE, Option.INTERFACE_MTU}
_SHOWN = 1000
"""Characters of a list of names."""


def summary(packet: Packet) -> str:
    """Type, addresses, boot file and options; total for any packet."""
    kind = type_name(packet.message_type) if packet.message_type else "BOOTP"
    parts = [kind, f"xid={packet.xid:#010x}", f"mac={packet.mac or packet.chaddr.hex()}"]
    for name in ("ciaddr", "yiaddr", "siaddr", "giaddr"):
        address: IPv4Address = getattr(packet, name)
        if address != ZERO:
            parts.append(f"{name}={address}")
    parts += [f"{name}={_text(value)}" for name, value in (("sname", packet.sname), ("file", packet.file)) if value]
    parts += [
        f"{option_name(code)}={_option(code, packet.options[code])}"
        for code in sorted(packet.options)
        if code != Option.MESSAGE_TYPE
    ]
    return " ".join(parts)


def _option(code: int, value: bytes) -> str:
    if code in _ADDRESS_OPTIONS and value and len(value) % 4 == 0:
        return ",".join(str(IPv4Address(value[start : start + 4])) for start in range(0, len(value), 4))
    if code in _TEXT_OPTIONS:
        return _text(value)
    if code in _NUMBER_OPTIONS:
        return str(int.from_bytes(value, "big"))
    if code == Option.PARAMETER_LIST:
        return ",".join(str(byte) for byte in value)
    view = _VIEWS.get(code)
    if view is not None:
        try:
            return view(value)
        except OptionError:
            return value.hex()
    return value.hex()


def _text(value: bytes) -> str:
    return repr(value.decode("utf-8", "backslashreplace"))


def _names(names: Iterable[str]) -> str:
    """Return the name; characters that no name has, such as control characters, are escaped.

    Not all of them where they are many: two bytes in a packet can stand for a name of 255.
    """
    text = ",".join(names)
    shown = text if text.isprintable() else repr(text)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


_VIEWS: dict[int, Callable[[bytes], str]] = {
    Option.CLASSLESS_ROUTES: lambda value: ",".join(f"{to}>{router}" for to, router in parse_routes(value)),
    Option.DOMAIN_SEARCH: lambda value: _names(parse_search(value)),
}

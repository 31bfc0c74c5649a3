"""IP addresses and networks.

Source: kubernetes/apiserver: pkg/cel/library/ip.go, cidr.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ironbell.codec.cel.errors import CelError, NoOverloadError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Network:
    """A network as it was written: an address with a prefix length."""

    interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface


def ip(text: Any) -> Address:
    """An address.

    Raises:
        CelError: the text is not an address, or has a zone, or stands for an IPv4 address in IPv6.
    """
    if not isinstance(text, str):
        raise NoOverloadError("ip() takes a string")
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise CelError(f'IP Address "{text}" parse error during conversion from string: {error}') from error
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id or address.ipv4_mapped is not None):
        raise CelError(f'IP Address "{text}" with zone or IPv4-mapped IPv6 form is not allowed')
    return address


def cidr(text: Any) -> Network:
    """A network.

    Raises:
        CelError: the text is not a network.
    """
    if not isinstance(text, str) or "/" not in text or not text.rpartition("/")[2].isdigit():
        raise CelError(f"network address parse error during conversion from string: {text!r}")
    try:
        address = ipaddress.ip_interface(text)
    except ValueError as error:
        raise CelError(f"network address parse error during conversion from string: {error}") from error
    ip(str(address.ip))
    return Network(address)


def _can(parse: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def test(value: Any) -> bool:
        try:
            parse(value)
        except CelError:
            return False
        return True

    return test


is_ip, is_cidr = _can(ip), _can(cidr)


def is_canonical(text: Any) -> bool:
    return bool(str(ip(text)) == text)


def family(value: Any) -> int:
    return _address(value).version


def _address(value: Any) -> Address:
    if isinstance(value, ipaddress.IPv4Address | ipaddress.IPv6Address):
        return value
    raise NoOverloadError("not an IP address")


def _network(value: Any) -> Network:
    if isinstance(value, Network):
        return value
    raise NoOverloadError("not a CIDR")


def contains_ip(value: Any, other: Any) -> bool:
    inner, outer = ip(other) if isinstance(other, str) else _address(other), _network(value).interface.network
    return inner.version == outer.version and inner in outer


def contains_cidr(value: Any, other: Any) -> bool:
    inner = (cidr(other) if isinstance(other, str) else _network(other)).interface.network
    outer = _network(value).interface.network
    return inner.version == outer.version and inner.prefixlen >= outer.prefixlen and inner.network_address in outer


NETWORK_METHODS: dict[str, Callable[..., Any]] = {
    "family": family,
    "isUnspecified": lambda value: _address(value).is_unspecified,
    "isLoopback": lambda value: _address(value).is_loopback,
    "isLinkLocalMulticast": lambda value: _is_local_multicast(_address(value)),
    "isLinkLocalUnicast": lambda value: _address(value).is_link_local,
    "isGlobalUnicast": lambda value: _is_global(_address(value)),
    "containsIP": contains_ip,
    "containsCIDR": contains_cidr,
    "ip": lambda value: _network(value).interface.ip,
    "prefixLength": lambda value: _network(value).interface.network.prefixlen,
    "masked": lambda value: Network(ipaddress.ip_interface(str(_network(value).interface.network))),
}


def _is_local_multicast(address: Address) -> bool:
    local = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    return address in ipaddress.ip_network(local)


def _is_global(address: Address) -> bool:
    broadcast = address.version == 4 and str(address) == "255.255.255.255"
    return not (
        broadcast or address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    )

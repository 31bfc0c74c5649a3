"""The addresses of a pool as ranges of numbers: an IPv6 network needs no more memory than a single address.

Pure.

Source: kubernetes-sigs/cluster-api-ipam-provider-in-cluster: internal/poolutil/pool.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from ironbell.api.inclusteripam.pool import IpPoolSpec
from ironbell.base.errors import IronbellError, Retry

Range: TypeAlias = tuple[int, int]
"""First and last number of the addresses, inclusive."""
COUNT_LIMIT: Final = 2**63 - 1
"""Upper bound of reported numbers: an IPv6 network has more addresses than an integer in JSON can hold."""


class AddressError(IronbellError):
    """A text is not a valid address, range or network."""

    reason = "InvalidAddress"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Ranges:
    """Addresses of one family: disjoint ranges in ascending order; version 0 if there are none."""

    version: int = 0
    parts: tuple[Range, ...] = ()

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.parts)

    @property
    def count(self) -> int:
        """Number of addresses."""
        return sum(last - first + 1 for first, last in self.parts)

    def nth_free(self, used: Iterable[int], place: int) -> int | None:
        """Return the unused address at a position (0 is the lowest); None if there are too few."""
        taken = sorted(set(used))
        for first, last in self.parts:
            for start, end in _gaps(first, last, taken):
                if place <= end - start:
                    return start + place
                place -= end - start + 1
        return None


def number_of(text: str) -> tuple[int, int]:
    """Return version and number of an address.

    Raises:
        AddressError: the text is not a valid address.
    """
    try:
        if "%" in text:
            raise ValueError
        address = ipaddress.ip_address(text)
    except ValueError:
        raise AddressError(f"{text!r} is not a valid IP address") from None
    return address.version, int(address)


def text_of(version: int, number: int) -> str:
    """Return an address in its canonical form."""
    return str(ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number))


def parse(text: str) -> tuple[int, Range]:
    """Return version and range of an address, a range or a network.

    Raises:
        AddressError: the text is not valid.
    """
    problem = AddressError(f"{text!r} is not a valid IP, range, nor CIDR")
    try:
        if "-" in text:
            first, _, last = text.partition("-")
            (version, low), (other, high) = number_of(first.strip()), number_of(last.strip())
            if version != other or low > high:
                raise problem
            return version, (low, high)
        if "/" in text:
            network = ipaddress.ip_network(text, strict=False)
            return network.version, (int(network.network_address), int(network.broadcast_address))
        version, number = number_of(text)
    except (ValueError, AddressError):
        raise problem from None
    return version, (number, number)


def ranges_of(spec: IpPoolSpec) -> Ranges:
    """Return the addresses that a pool can allocate.

    Raises:
        AddressError: an address is not valid, or the addresses are of two families.
    """
    return _ranges_of(
        tuple(spec.addresses),
        tuple(spec.excluded_addresses),
        spec.prefix,
        spec.gateway,
        spec.allocate_reserved_ip_addresses,
    )


@lru_cache(maxsize=1024)
def _ranges_of(
    addresses: Sequence[str], excluded: Sequence[str], prefix: int, gateway: str, allocates_reserved: bool
) -> Ranges:
    parsed = [parse(text) for text in addresses]
    versions = {version for version, _ in parsed}
    if len(versions) > 1:
        raise AddressError("spec.addresses are of both IP families; create a pool for each")
    if not versions:
        return Ranges()
    (version,) = versions
    parts = _joined(part for _, part in parsed)
    without = [part for other, part in map(parse, excluded) if other == version]
    if not allocates_reserved:
        low, high = network_of(version, parts[0][0], prefix)
        without += [(low, low), *([(high, high)] if version == 4 else [])]
    if gateway:
        other, number = number_of(gateway)
        without += [(number, number)] if other == version else []
    for part in without:
        parts = list(_without(parts, part))
    return Ranges(version, tuple(parts))


def network_of(version: int, number: int, prefix: int) -> Range:
    """Return the network of an address.

    Raises:
        AddressError: the prefix is longer than an address.
    """
    bits = 32 if version == 4 else 128
    if not 0 <= prefix <= bits:
        raise AddressError(f"prefix {prefix} is not valid: an IPv{version} network has a prefix from 0 to {bits}")
    size = 1 << (bits - prefix)
    low = number // size * size
    return low, low + size - 1


def _joined(parts: Iterable[Range]) -> list[Range]:
    joined: list[Range] = []
    for first, last in sorted(parts):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _without(parts: Iterable[Range], excluded: Range) -> Iterator[Range]:
    for first, last in parts:
        if excluded[1] < first or excluded[0] > last:
            yield first, last
            continue
        if first < excluded[0]:
            yield first, excluded[0] - 1
        if excluded[1] < last:
            yield excluded[1] + 1, last


def _gaps(first: int, last: int, taken: Sequence[int]) -> Iterator[Range]:
    """Yield the unused parts of a range; `taken` is in ascending order."""
    start = first
    for number in taken:
        if number < start:
            continue
        if number > last:
            break
        if start < number:
            yield start, number - 1
        start = number + 1
    if start <= last:
        yield start, last

"""Which addresses a pool has, as ranges of numbers: a whole IPv6 network takes no more room than a single address.

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
"""First and last number of addresses, both in it."""
COUNT_LIMIT: Final = 2**63 - 1
"""What is more is told as this: an IPv6 network has more addresses than a number in JSON can say."""


class AddressError(IronbellError):
    """A text says no address, range or network."""

    reason = "InvalidAddress"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Ranges:
    """Addresses of one family: disjoint ranges in ascending order; version 0 for none."""

    version: int = 0
    parts: tuple[Range, ...] = ()

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.parts)

    @property
    def count(self) -> int:
        """How many addresses there are."""
        return sum(last - first + 1 for first, last in self.parts)

    def nth_free(self, used: Iterable[int], place: int) -> int | None:
        """The address at this place (0 is the lowest) among those that are not used; None if there are too few."""
        taken = sorted(set(used))
        for first, last in self.parts:
            for start, end in _gaps(first, last, taken):
                if place <= end - start:
                    return start + place
                place -= end - start + 1
        return None


def number_of(text: str) -> tuple[int, int]:
    """Version and number of an address.

    Raises:
        AddressError: it is none.
    """
    try:
        if "%" in text:
            raise ValueError
        found = ipaddress.ip_address(text)
    except ValueError:
        raise AddressError(f"{text!r} is not a valid IP address") from None
    return found.version, int(found)


def text_of(version: int, number: int) -> str:
    """An address in its usual form."""
    return str(ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number))


def parse(text: str) -> tuple[int, Range]:
    """Version and range of an address, a range or a network.

    Raises:
        AddressError: it is none of them.
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
    """What a pool may give.

    Raises:
        AddressError: one of its texts says no address, or they are of two families.
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
    addresses: Sequence[str], excluded: Sequence[str], prefix: int, gateway: str, gives_reserved: bool
) -> Ranges:
    found = [parse(text) for text in addresses]
    versions = {version for version, _ in found}
    if len(versions) > 1:
        raise AddressError("spec.addresses are of both IP families; make a pool for each")
    if not versions:
        return Ranges()
    (version,) = versions
    parts = _joined(part for _, part in found)
    without = [part for other, part in map(parse, excluded) if other == version]
    if not gives_reserved:
        low, high = network_of(version, parts[0][0], prefix)
        without += [(low, low), *([(high, high)] if version == 4 else [])]
    if gateway:
        other, number = number_of(gateway)
        without += [(number, number)] if other == version else []
    for part in without:
        parts = list(_without(parts, part))
    return Ranges(version, tuple(parts))


def network_of(version: int, number: int, prefix: int) -> Range:
    """The network of an address.

    Raises:
        AddressError: the prefix is longer than an address.
    """
    bits = 32 if version == 4 else 128
    if not 0 <= prefix <= bits:
        raise AddressError(f"prefix {prefix} is not between 0 and {bits}, as an IPv{version} network has it")
    size = 1 << (bits - prefix)
    low = number // size * size
    return low, low + size - 1


def _joined(parts: Iterable[Range]) -> list[Range]:
    found: list[Range] = []
    for first, last in sorted(parts):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def _without(parts: Iterable[Range], gone: Range) -> Iterator[Range]:
    for first, last in parts:
        if gone[1] < first or gone[0] > last:
            yield first, last
            continue
        if first < gone[0]:
            yield first, gone[0] - 1
        if gone[1] < last:
            yield gone[1] + 1, last


def _gaps(first: int, last: int, taken: Sequence[int]) -> Iterator[Range]:
    """What is left of a range; `taken` is in ascending order."""
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

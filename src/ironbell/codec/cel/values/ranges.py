"""Sizes between a least and a most, and costs: unsigned numbers of 64 bits that stop at the greatest instead of
overflowing.

Source: google/cel-go: checker/cost.go (SizeEstimate, CostEstimate).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MOST: Final = (1 << 64) - 1
_LIMIT: Final = 2.0**64


def plus(*numbers: int) -> int:
    return min(sum(numbers), MOST)


def times(one: int, other: int) -> int:
    return min(one * other, MOST)


def scaled(number: int, factor: float) -> int:
    """The product, rounded up."""
    as_float = float(number)
    if as_float > 0 and factor > 0 and as_float > _LIMIT / factor:
        return MOST
    found = math.ceil(as_float * factor)
    return MOST if found >= _LIMIT else found


def wrapped(number: int) -> int:
    """What 64 bits hold of a number: some sums are made without looking whether they overflow."""
    return number & MOST


class Size(NamedTuple):
    """How many characters, items or entries something has."""

    least: int
    most: int

    def plus(self, other: Size) -> Size:
        return Size(plus(self.least, other.least), plus(self.most, other.most))

    def times(self, other: Size) -> Size:
        return Size(times(self.least, other.least), times(self.most, other.most))

    def union(self, other: Size) -> Size:
        return Size(min(self.least, other.least), max(self.most, other.most))


UNKNOWN: Final = Size(0, MOST)


def fixed(size: int) -> Size:
    return Size(size, size)

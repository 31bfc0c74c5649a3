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


def times(left: int, right: int) -> int:
    return min(left * right, MOST)


def scaled(number: int, factor: float) -> int:
    """The product, rounded up."""
    as_float = float(number)
    if as_float > 0 and factor > 0 and as_float > _LIMIT / factor:
        return MOST
    product = math.ceil(as_float * factor)
    return MOST if product >= _LIMIT else product


def wrapped(number: int) -> int:
    """Return a number wrapped to 64 bits: some sums are computed without a check for overflow."""
    return number & MOST


class Size(NamedTuple):
    """Return the number of characters, items or entries of something."""

    least: int
    most: int

    def plus(self, right: Size) -> Size:
        return Size(plus(self.least, right.least), plus(self.most, right.most))

    def times(self, right: Size) -> Size:
        return Size(times(self.least, right.least), times(self.most, right.most))

    def union(self, right: Size) -> Size:
        return Size(min(self.least, right.least), max(self.most, right.most))


UNKNOWN: Final = Size(0, MOST)


def fixed(size: int) -> Size:
    return Size(size, size)

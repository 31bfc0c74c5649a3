"""The smallest corpus that reaches as much: inputs are taken, the shortest first, as long as they add something.

What is reached is a pair of lines that follow each other in the product's code; counted by Python itself, so that it
does not depend on the fuzzer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

Arc = tuple[str, int, int]


def arcs_of(one: Callable[[bytes], None], data: bytes, prefixes: tuple[str, ...]) -> frozenset[Arc]:
    """Pairs of lines that an input reaches, in files below these paths."""
    found: set[Arc] = set()

    def enter(frame: FrameType, _event: str, _: Any) -> Callable[..., Any] | None:
        name = frame.f_code.co_filename
        if not name.startswith(prefixes):
            return None
        before = frame.f_code.co_firstlineno

        def line(inner: FrameType, event: str, _: Any) -> Any:
            nonlocal before
            if event == "line":
                found.add((name, before, inner.f_lineno))
                before = inner.f_lineno
            return line

        return line

    sys.settrace(enter)
    try:
        one(data)
    finally:
        sys.settrace(None)
    return frozenset(found)


def smallest(
    one: Callable[[bytes], None], inputs: Iterable[bytes], prefixes: tuple[str, ...], *, budget: int
) -> tuple[list[bytes], int]:
    """Inputs of at most `budget` bytes in all that reach as much as possible, and how many pairs they do not reach."""
    unique = sorted(set(inputs), key=len)
    reached = {data: arcs_of(one, data, prefixes) for data in unique}
    missing: set[Arc] = set().union(*reached.values()) if reached else set()
    taken: list[bytes] = []
    left = budget
    while missing:
        fits = [data for data in unique if len(repr(data)) <= left and reached[data] & missing]
        if not fits:
            break
        best = max(fits, key=lambda data: len(reached[data] & missing) / (len(data) + 32))
        taken.append(best)
        left -= len(repr(best))
        missing -= reached[best]
    return taken, len(missing)

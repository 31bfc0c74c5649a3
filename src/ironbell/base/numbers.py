"""Whole numbers in text that others wrote. `int` alone takes signs, spaces and the digits of every script, and fails on
more than 4300 of them.
"""

from __future__ import annotations

MOST_DIGITS = 18
"""Digits that fit into 64 bits whatever they are."""


def decimal(text: str, *, digits: int = MOST_DIGITS) -> int | None:
    """The number that a text of ASCII digits is; None for any other text, or one that is longer than `digits`."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None

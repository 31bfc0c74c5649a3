"""Negotiation of options between client and server before the first block.

An option with a value that makes no sense is left out of the answer, which means "not taken"; the transfer goes on
without it.

Source: RFC 2347; RFC 2348 (blksize); RFC 2349 (timeout, tsize); RFC 7440 (windowsize).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_BLOCK_SIZE = 512
MIN_BLOCK_SIZE, MAX_BLOCK_SIZE = 8, 65464
MAX_WINDOW = 65535
MAX_TIMEOUT_S = 255


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a server."""

    block_size: int = 1468
    """Fits an Ethernet frame of 1500 bytes with IPv4, UDP and TFTP headers, so that nothing is fragmented."""
    window: int = 64


@dataclass(frozen=True, slots=True)
class Agreed:
    """Options of a transfer."""

    block_size: int = DEFAULT_BLOCK_SIZE
    window: int = 1
    timeout_s: int | None = None
    """None: the server's own."""


def negotiate(requested: Mapping[str, str], *, size: int, limits: Limits) -> tuple[Agreed, dict[str, str]]:
    """Return the agreed options, and those to acknowledge (empty: none, so no OACK is sent)."""
    taken: dict[str, str] = {}
    block_size, window, timeout_s = DEFAULT_BLOCK_SIZE, 1, None
    for name, text in requested.items():
        value = _number(text)
        if value is None:
            continue
        if name == "blksize" and value >= MIN_BLOCK_SIZE:
            block_size = min(value, limits.block_size, MAX_BLOCK_SIZE)
            taken[name] = str(block_size)
        elif name == "windowsize" and 1 <= value <= MAX_WINDOW:
            window = min(value, limits.window)
            taken[name] = str(window)
        elif name == "timeout" and 1 <= value <= MAX_TIMEOUT_S:
            timeout_s = value
            taken[name] = text
        elif name == "tsize":
            taken[name] = str(size)
    return Agreed(block_size, window, timeout_s), taken


def accept(answer: Mapping[str, str], *, requested: Mapping[str, str]) -> Agreed | None:
    """The client's side: what an OACK means; None if it takes what was not asked or not allowed."""
    values = {name: _number(text) for name, text in answer.items()}
    if not set(values) <= set(requested) or None in values.values():
        return None
    agreed = Agreed(values.get("blksize") or DEFAULT_BLOCK_SIZE, values.get("windowsize") or 1, values.get("timeout"))
    for name in ("blksize", "windowsize"):
        if name in values and not 0 < (values[name] or 0) <= int(requested[name]):
            return None
    return agreed


def _number(text: str) -> int | None:
    # int() alone would take signs, spaces, underscores and other scripts' digits.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None

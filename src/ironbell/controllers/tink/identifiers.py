"""Ids of rendered tasks and actions: ULIDs derived from the Workflow and the position.

Upstream draws them at random. Derived ones need no memory: who renders a Workflow again after a crash gives every
action the id it had, so that an agent that already knows an id is never told a second one.

Source: ulid/spec for the text form.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def derived_ulid(created: datetime, *path: str) -> str:
    """A ULID with the time of `created` whose 80 other bits are a digest of `path`."""
    milliseconds = int(created.timestamp() * 1000) & ((1 << 48) - 1)
    digest = hashlib.sha256("\0".join(path).encode()).digest()
    value = milliseconds << 80 | int.from_bytes(digest[:10], "big")
    return "".join(_CROCKFORD[(value >> shift) & 31] for shift in range(125, -5, -5))

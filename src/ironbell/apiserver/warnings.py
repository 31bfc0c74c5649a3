"""Warnings: what is said of a request that is carried out all the same.

Whoever notices something calls `warn`; the HTTP face collects what is said while it carries out a request, and sends it
with the answer. Outside of a request nobody listens.

Source: kubernetes/apiserver: pkg/warning/context.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_collected: ContextVar[dict[str, None] | None] = ContextVar("warnings", default=None)


@contextmanager
def collecting() -> Iterator[dict[str, None]]:
    """Collect what is said inside the block, each text once, in order."""
    found: dict[str, None] = {}
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def warn(text: str) -> None:
    """Say something to the client of the present request."""
    found = _collected.get()
    if found is not None:
        found[text] = None

"""What is to be kept of a request in the audit log beside the request itself.

Whoever works on a request adds to the notes of its task; the HTTP face begins them and takes them. Outside a request
nothing is kept. What is said to the client is in `warnings`.
"""

from __future__ import annotations

from contextvars import ContextVar

_NOTES: ContextVar[dict[str, str] | None] = ContextVar("notes", default=None)


def begin_notes() -> dict[str, str]:
    """New notes for the request that this task works on."""
    notes: dict[str, str] = {}
    _NOTES.set(notes)
    return notes


def annotate(key: str, value: str) -> None:
    """Add to the request's line in the audit log."""
    notes = _NOTES.get()
    if notes is not None:
        notes[key] = value

"""Numbers in annotations: what cannot be read counts as the default. Pure."""

from __future__ import annotations

from ironbell.api.meta import Resource


def number(obj: Resource, annotation: str, default: int) -> int:
    """The value of an annotation, 0 at least."""
    text = obj.metadata.annotations.get(annotation, "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else default

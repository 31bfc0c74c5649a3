"""Bounds of one rendering.

Upstream caps only the output; functions such as `until` and `repeat` and loops without output could otherwise take
any time and memory (Masterminds/sprig#473). Nothing that a server's template needs comes near these.
"""

from __future__ import annotations

from ironbell.codec.gotemplate.errors import CallError

OUTPUT_BYTES = 262_144
STEPS = 1_000_000
"""Evaluated nodes, and the work of functions; see `meter`."""
SECONDS = 8.0
"""Limit of processor time."""
BRIEF_STEPS, BRIEF_SECONDS = 40_000, 0.25
"""For templates that are rendered where other work waits for them, such as names and patches: plenty for what these do,
and no key and no password hash."""
KEY_BYTES, KEY_BITS = 16_384, 8_192
"""Limit for a private key or certificate in a template: operations on larger ones take minutes."""
ITEMS = 100_000
"""Elements of one list or map."""
TEXT_CHARS = 4 << 20
"""Characters of one string that a function returns."""
DEPTH = 60
"""Templates that call each other, and nested blocks and parentheses."""


def check_items(count: int) -> None:
    """Reject a list of more than ITEMS elements before it is created."""
    if count > ITEMS:
        raise CallError(f"more than {ITEMS} elements")


def check_chars(count: int) -> None:
    """Reject a string of more than TEXT_CHARS characters before it is created."""
    if count > TEXT_CHARS:
        raise CallError(f"a text of more than {TEXT_CHARS} characters")

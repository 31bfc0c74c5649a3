"""What tests ask upstream's conversion functions, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec


class Question(msgspec.Struct, frozen=True):
    """One object that is to be brought up to the stored version, or down to an older one."""

    up: bool
    kind: str
    version: str
    object: dict[str, Any]


class Answer(msgspec.Struct, frozen=True):
    """What upstream makes of it, or why it does not."""

    object: dict[str, Any] | None = None
    error: str = ""


Oracle = Callable[[Sequence[Question]], list[Answer]]

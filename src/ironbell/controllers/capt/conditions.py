"""Conditions of the provider's objects: types, reasons, and how they are put together. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ironbell.api.meta import Condition
from ironbell.kube.conditions import set_condition

READY: Final = "Ready"


def told(type_: str, status: bool | None, reason: str, message: str = "", *, generation: int = 0) -> Condition:
    """A condition; None is Unknown."""
    word = {True: "True", False: "False", None: "Unknown"}[status]
    return Condition(type=type_, status=word, reason=reason, message=message, observed_generation=generation)


def with_all(conditions: Sequence[Condition], wanted: Sequence[Condition], now: datetime) -> list[Condition]:
    """The conditions with these set."""
    found = list(conditions)
    for condition in wanted:
        found = set_condition(found, condition, now=now)
    return found

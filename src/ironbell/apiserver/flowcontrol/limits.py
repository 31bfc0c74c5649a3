"""Limits of the priority levels: the seats of each, and how many requests may wait.

A level has its share of the seats. Others use the seats that it lends while they are free; the rest are reserved. It
may borrow further seats, up to its limit. Seats are whole: a share is rounded up, so that every level has one, and a
reservation is rounded down, so that not all of few seats are reserved for levels without requests.

Source: kubernetes/apiserver: pkg/util/flowcontrol/apf_controller.go (finishQueueSetReconfigsLocked).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from ironbell.apiserver.flowcontrol.spec import Exempt, Limited, PriorityLevel


class Limits(msgspec.Struct, frozen=True):
    """A level's seats at one gate."""

    nominal: int
    """Its share."""
    kept: int
    """Seats that are reserved for the level, used or not."""
    own: int
    """Seats that it has at any time: the reserved ones, and one if it has any share."""
    most: int
    """Its seats with all that it may borrow."""


class Waiting(msgspec.Struct, frozen=True):
    """Limits of a level's waiting requests."""

    of_flow: int
    of_all: int
    is_one_flow: bool = False
    """Whether the level has a single queue for all flows."""


NOBODY_WAITS = Waiting(0, 0)


def limits_of(levels: Iterable[PriorityLevel], seats: int) -> dict[str, Limits]:
    """The limits of all levels that share a gate's seats; the exempt one has a share as well, which it may lend."""
    parts = {level.metadata.name: level.spec.limited or level.spec.exempt or Exempt() for level in levels}
    total = sum(part.nominal_concurrency_shares for part in parts.values())
    return {
        name: _limits(part, seats, seats * part.nominal_concurrency_shares / (total or 1))
        for name, part in parts.items()
    }


def _limits(part: Limited | Exempt, seats: int, share: float) -> Limits:
    nominal, kept = math.ceil(share), math.floor(share * (100 - part.lendable_percent) / 100)
    if isinstance(part, Exempt):
        return Limits(nominal, kept, seats, seats)
    percent = part.borrowing_limit_percent
    borrowed = seats if percent is None else math.floor(nominal * percent / 100 + 0.5)
    # a level without a queue admits one request at a time even without a share
    least = 1 if part.limit_response.type == "Reject" else min(1, nominal)
    return Limits(nominal, kept, max(kept, least), max(nominal + borrowed, least))


def waiting_of(level: PriorityLevel) -> Waiting:
    """The limits of waiting requests. A flow has as many places as the queues of its hand have together, and they are
    its own.
    """
    limited = level.spec.limited
    queuing = limited.limit_response.queuing if limited is not None else None
    if queuing is None:
        return NOBODY_WAITS
    return Waiting(
        queuing.hand_size * queuing.queue_length_limit,
        queuing.queues * queuing.queue_length_limit,
        is_one_flow=queuing.queues == 1,
    )

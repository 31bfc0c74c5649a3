"""Tables of flow control's kinds.

Source: kubernetes/kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ironbell.apiserver.tables.cells import (
    AGE,
    NAME,
    NONE,
    Printer,
    age_of,
    column,
    entries,
    name_of,
    named,
    nested,
    number,
)


def _schema(item: dict[str, Any], now: datetime) -> list[Any]:
    spec = nested(item, "spec")
    dangling = (
        condition.get("status")
        for condition in entries(nested(item, "status"), "conditions")
        if condition.get("type") == "Dangling"
    )
    return [
        name_of(item), nested(spec, "priorityLevelConfiguration").get("name", ""), number(spec, "matchingPrecedence"),
        nested(spec, "distinguisherMethod").get("type") or NONE, age_of(item, now), next(dangling, "?"),
    ]  # fmt: skip


def _order(item: dict[str, Any]) -> tuple[int, str]:
    """Sort key of schemas: by precedence."""
    return number(nested(item, "spec"), "matchingPrecedence"), name_of(item)


def _level(item: dict[str, Any]) -> list[Any]:
    spec = nested(item, "spec")
    limited, queuing = nested(spec, "limited"), nested(spec, "limited", "limitResponse", "queuing")
    queues = [number(queuing, key) if queuing else NONE for key in ("queues", "handSize", "queueLengthLimit")]
    return [spec.get("type", ""), number(limited, "nominalConcurrencyShares") if limited else NONE, *queues]


_GROUP = "flowcontrol.apiserver.k8s.io"
PRINTERS: dict[tuple[str, str], Printer] = {
    (_GROUP, "FlowSchema"): Printer(
        (
            NAME, column("PriorityLevel", "The level that its requests have."),
            column("MatchingPrecedence", "Schemas with lower numbers are tried first."),
            column("DistinguisherMethod", "Attribute by which its flows differ."), AGE,
            column("MissingPL", "Whether its level does not exist."),
        ),
        _schema, _order,
    ),
    (_GROUP, "PriorityLevelConfiguration"): named(
        column("Type", "Whether it is limited."), column("NominalConcurrencyShares", "Its part of all seats."),
        column("Queues", "How many queues there are."), column("HandSize", "How many queues a flow may use."),
        column("QueueLengthLimit", "How many may wait in a queue."), cells=_level,
    ),
}  # fmt: skip

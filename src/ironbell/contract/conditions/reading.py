"""Conditions out of objects, ours and those of providers.

Source: kubernetes-sigs/cluster-api: util/conditions/getter.go (UnstructuredGetAll).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ironbell.api.meta import Condition, Resource
from ironbell.api.unstructured import Unstructured
from ironbell.contract.fields import at, number_at, text_at

NO_REASON: Final = "NoReasonReported"
_STATUSES: Final = ("True", "False", "Unknown")


def conditions_of(obj: Resource) -> Sequence[Condition]:
    """The conditions of an object.

    A provider's may be of any age: `status.v1beta2.conditions` go before `status.conditions`, which may be of the old
    type; what has no type or status is left out.
    """
    if isinstance(obj, Unstructured):
        return plain_conditions(obj.body)
    conditions: Sequence[Condition] = getattr(getattr(obj, "status", None), "conditions", ())
    return conditions


def plain_conditions(body: Mapping[str, Any]) -> list[Condition]:
    """The conditions in plain data of an object."""
    newer = ("status", "v1beta2", "conditions")
    path = newer if isinstance(at(body, *newer), list) else ("status", "conditions")
    items = at(body, *path)
    return [_condition(item) for item in items if _is_condition(item)] if isinstance(items, list) else []


def _is_condition(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and isinstance(item.get("type"), str)
        and item["type"] != ""
        and item.get("status") in _STATUSES
    )


def _condition(item: dict[str, Any]) -> Condition:
    try:
        return msgspec.convert(item if item.get("reason") else {**item, "reason": NO_REASON}, Condition)
    except msgspec.ValidationError:  # a field has another type than agreed: that field counts as missing
        return Condition(
            type=item["type"],
            status=item["status"],
            reason=text_at(item, "reason") or NO_REASON,
            message=text_at(item, "message"),
            last_transition_time=text_at(item, "lastTransitionTime") or None,
            observed_generation=number_at(item, "observedGeneration") or 0,
        )

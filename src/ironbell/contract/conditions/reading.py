"""Conditions out of objects, ours and those of providers.

Source: kubernetes-sigs/cluster-api: util/conditions/getter.go (UnstructuredGetAll).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ironbell.api.meta import Condition, Resource
from ironbell.api.unstructured import Unstructured
from ironbell.contract.fields import at, maps_at, number_at, text_at

NO_REASON: Final = "NoReasonReported"
_STATUSES: Final = ("True", "False", "Unknown")


def conditions_of(obj: Resource) -> Sequence[Condition]:
    """The conditions of an object.

    A provider's may be of any age: `status.v1beta2.conditions` go before `status.conditions`, which may be of the old
    type; what has no type or status is left out.
    """
    if isinstance(obj, Unstructured):
        return plain_conditions(obj.body)
    found: Sequence[Condition] = getattr(getattr(obj, "status", None), "conditions", ())
    return found


def plain_conditions(body: Mapping[str, Any]) -> list[Condition]:
    """The conditions in plain data of an object."""
    newer = ("status", "v1beta2", "conditions")
    path = newer if isinstance(at(body, *newer), list) else ("status", "conditions")
    return [
        Condition(
            type=text_at(item, "type"),
            status=text_at(item, "status"),
            reason=text_at(item, "reason") or NO_REASON,
            message=text_at(item, "message"),
            last_transition_time=text_at(item, "lastTransitionTime") or None,
            observed_generation=number_at(item, "observedGeneration") or 0,
        )
        for item in maps_at(body, *path)
        if text_at(item, "type") and text_at(item, "status") in _STATUSES
    ]

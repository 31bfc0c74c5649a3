"""Events between their two groups: stored in the core form, shown as events.k8s.io/v1 as well.

Source: kubernetes/kubernetes: pkg/apis/events/v1/conversion.go.
"""

from __future__ import annotations

from typing import Any

_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_OMITTED = ("reportingController", "reportingInstance")
"""Fields that events.k8s.io leaves out if they are empty in the core API."""
_BACK = {new: old for old, new in _NAMES.items()}


def convert_event(value: dict[str, Any], api_version: str) -> dict[str, Any]:
    """An event in the form of `api_version`; fields that both have stay."""
    names = _BACK if api_version == "v1" else _NAMES
    converted = {names.get(field, field): part for field, part in value.items()}
    converted["apiVersion"] = api_version
    if api_version != "v1":
        for name in _OMITTED:
            if not converted.get(name):
                converted.pop(name, None)
    return converted

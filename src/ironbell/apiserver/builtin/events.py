"""Events: validation, and conversion between their two groups. They are stored in the core form.

Few fields are required in the core form, more in events.k8s.io/v1, whose Events have an `eventTime`.

Source: kubernetes/kubernetes: pkg/apis/core/validation/events.go, pkg/apis/events/v1/conversion.go.
"""

from __future__ import annotations

from typing import Any

from ironbell.apiserver.fielderrors import FieldError, invalid, required
from ironbell.apiserver.metadata import qualified_fault
from ironbell.apiserver.strategy import Plain

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


_MOST = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_KEPT = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime",
    "action", "related", "reportingInstance",
)  # fmt: skip
_OLD_ONLY = ("firstTimestamp", "lastTimestamp", "count", "source")


class EventRules(Plain):
    """Events name the object that they are about, and are stored in its namespace."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        is_new_form = new["apiVersion"] != "v1"
        event = convert_event(new, "v1")
        controller = "reportingController" if is_new_form else "reportingComponent"
        errors = _validate(event, controller)
        if is_new_form:
            errors += _validate_create(event) if old is None else _validate_update(event, convert_event(old, "v1"))
        return errors


def _validate(event: dict[str, Any], controller: str) -> list[FieldError]:
    about = (event.get("involvedObject") or {}).get("namespace", "")
    namespace = event["metadata"].get("namespace", "")
    has_time = bool(event.get("eventTime"))
    elsewhere = (
        namespace not in ("default", "kube-system") if has_time and not about else namespace != (about or "default")
    )
    errors: list[FieldError] = []
    if elsewhere and not (has_time and about):
        errors.append(invalid("involvedObject.namespace", about, "does not match event.namespace"))
    if not has_time:
        return errors
    if not event.get("reportingComponent"):
        errors.append(required(controller))
    if fault := qualified_fault(event.get("reportingComponent", "")):
        errors.append(invalid(controller, event.get("reportingComponent", ""), fault))
    errors += [required(name) for name in ("reportingInstance", "action", "reason") if not event.get(name)]
    return errors + [
        invalid(name, "", f"can have at most {most} characters")
        for name, most in _MOST.items()
        if len((event.get(name) or "").encode()) > most
    ]


def _validate_create(event: dict[str, Any]) -> list[FieldError]:
    errors = _validate_series(event)
    if not event.get("eventTime"):
        errors.append(required("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {event.get('type', '')}"))
    return errors + [invalid(name, "", "needs to be unset") for name in _OLD_ONLY if event.get(name)]


def _validate_update(event: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    errors = _validate_series(event) if event.get("series") != old.get("series") else []
    names = {**{name: name for name in _KEPT}, "reportingComponent": "reportingController"}
    return errors + [
        invalid(shown, event.get(name, ""), "field is immutable")
        for name, shown in names.items()
        if (event.get(name) or None) != (old.get(name) or None)
    ]


def _validate_series(event: dict[str, Any]) -> list[FieldError]:
    series = event.get("series")
    if not series:
        return []
    errors = [invalid("series.count", "", "should be at least 2")] if (series.get("count") or 0) < 2 else []
    return errors if series.get("lastObservedTime") else [*errors, required("series.lastObservedTime")]

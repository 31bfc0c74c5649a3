"""Required fields, by type.

A Go struct has every field, so an empty string or list is a missing one. Numbers and booleans are never missing. A
status has no required fields, because its controller writes it.

Source: kubernetes/kubernetes: pkg/apis/*/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, Path, render, required
from ironbell.apiserver.schema.validate import Check

_EMPTY_IS_FINE = {
    # rules of their own check these
    ("admissionregistration.v1.AuditAnnotation", "key"),
    ("admissionregistration.v1.AuditAnnotation", "valueExpression"),
    ("admissionregistration.v1.MatchCondition", "expression"),
    ("admissionregistration.v1.MatchCondition", "name"),
    ("admissionregistration.v1.Mutation", "patchType"),
    ("admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec", "policyName"),
    ("admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec", "validationActions"),
    ("admissionregistration.v1.Validation", "expression"),
    ("admissionregistration.v1.Variable", "expression"),
    ("admissionregistration.v1.Variable", "name"),
    ("admissionregistration.v1.MutatingWebhook", "admissionReviewVersions"),
    ("admissionregistration.v1.ValidatingWebhook", "admissionReviewVersions"),
    ("core.v1.HTTPHeader", "value"),
    ("core.v1.LimitRangeSpec", "limits"),
    ("core.v1.Sysctl", "value"),
    ("discovery.v1.EndpointSlice", "endpoints"),
    ("events.v1.Event", "eventTime"),
    ("storage.v1.CSINodeSpec", "drivers"),
}
_DETAILS = {
    ("networking.v1.HTTPIngressPath", "pathType"): "pathType must be specified",
}
_CHECKED_ELSEWHERE = ("flowcontrol.v1.", "rbac.v1.")
"""Types whose required fields are checked by rules of their own."""
_PREFIX = "io.k8s.api."


def compile_required(schema: Mapping[str, Any], known: dict[int, Check | None] | None = None) -> Check | None:
    """Return a closure that reports missing fields in values of a schema; None if no field is required."""
    known = {} if known is None else known
    if id(schema) not in known:
        known[id(schema)] = _compile(schema, known)
    return known[id(schema)]


def _compile(schema: Mapping[str, Any], known: dict[int, Check | None]) -> Check | None:
    items = schema.get("items")
    if isinstance(items, Mapping):
        return _items(compile_required(items, known))
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        return _values(compile_required(additional, known))
    return _struct(schema, known) if "properties" in schema else None


def _struct(schema: Mapping[str, Any], known: dict[int, Check | None]) -> Check | None:
    name = str(schema.get("goType", "")).removeprefix(_PREFIX)
    properties: Mapping[str, Any] = schema["properties"]
    needed = tuple(
        field
        for field in schema.get("required", ())
        if properties.get(field, {}).get("type") in ("string", "array", "object")
        and (name, field) not in _EMPTY_IS_FINE
        and not name.startswith(_CHECKED_ELSEWHERE)
    )
    lists = frozenset(field for field in needed if properties[field]["type"] != "object")
    children = {
        field: check
        for field, sub in properties.items()
        if field != "status" and (check := compile_required(sub, known)) is not None
    }
    if not needed and not children:
        return None

    def check_struct(value: Any, path: Path, errors: list[FieldError]) -> None:
        if not isinstance(value, dict):
            return
        for field in needed:
            content = value.get(field)
            if content is None or (field in lists and not content):
                errors.append(required(render((path, field)), _DETAILS.get((name, field), "")))
        for field, child in children.items():
            part = value.get(field)
            if part is not None:
                child(part, (path, field), errors)

    return check_struct


def _items(child: Check | None) -> Check | None:
    if child is None:
        return None

    def check_items(value: Any, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                child(item, (path, index), errors)

    return check_items


def _values(child: Check | None) -> Check | None:
    if child is None:
        return None

    def check_values(value: Any, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                child(item, (path, key), errors)

    return check_values

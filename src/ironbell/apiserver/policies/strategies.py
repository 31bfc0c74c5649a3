"""Defaults and validation of admission policies and their bindings.

Source: kubernetes/kubernetes: pkg/apis/admissionregistration/v1/defaults.go, validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, duplicate, invalid, not_supported, required
from ironbell.apiserver.metadata import qualified_fault
from ironbell.apiserver.policies.common_rules import (
    AnyBindingRules,
    AnyPolicyRules,
    Types,
    binding_faults,
    expression_faults,
    policy_faults,
    variable_faults,
)
from ironbell.apiserver.policies.mutations import APPLY, JSON_PATCH
from ironbell.codec.cel.types import DYN
from ironbell.codec.cel.values.messages import JSON_PATCHES, OBJECT, PATCH_TYPES

_ACTIONS = ("Audit", "Deny", "Warn")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MAX_ANNOTATIONS = 20
_MAX_ANNOTATION_BYTES = 5 * 1024
_NEITHER = "validations or auditAnnotations must contain at least one item"


class PolicyRules(AnyPolicyRules):
    """ValidatingAdmissionPolicy."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        return [*_policy_faults(new.get("spec") or {}, new["metadata"].get("name", ""))]


class BindingRules(AnyBindingRules):
    """ValidatingAdmissionPolicyBinding."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        spec = new.get("spec") or {}
        return [*binding_faults(spec), *_action_faults(spec.get("validationActions") or (), "spec.validationActions")]


def _policy_faults(spec: dict[str, Any], name: str) -> Iterator[FieldError]:
    types: Types = {}
    yield from policy_faults(spec, types)
    if spec.get("variables"):
        yield from variable_faults(spec["variables"], "spec.variables", types)
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        yield required("spec.validations", _NEITHER)
        yield required("spec.auditAnnotations", _NEITHER)
    for index, validation in enumerate(validations):
        yield from _validation_faults(validation, f"spec.validations[{index}]", types)
    yield from _annotation_faults(annotations, "spec.auditAnnotations", types, name=name)


def _validation_faults(validation: Mapping[str, Any], path: str, types: Types) -> Iterator[FieldError]:
    expression, absent = validation.get("expression") or "", "expression is not specified"
    yield from expression_faults(expression, f"{path}.expression", types, gives=("bool",), absent=absent)
    composed = validation.get("messageExpression") or ""
    if composed and not composed.strip():
        yield invalid(f"{path}.messageExpression", composed, "must be non-empty if specified")
    elif composed:
        yield from expression_faults(composed, f"{path}.messageExpression", types, gives=("string",), absent="")
    message = validation.get("message") or ""
    if message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif re.search(r"[\n\r]", message.strip()):
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    reason = validation.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)


def _annotation_faults(
    annotations: Sequence[Mapping[str, Any]], path: str, types: Types, *, name: str
) -> Iterator[FieldError]:
    if len(annotations) > _MAX_ANNOTATIONS:
        yield invalid(path, annotations, f"must not have more than {_MAX_ANNOTATIONS} auditAnnotations")
    keys: set[str] = set()
    for index, annotation in enumerate(annotations):
        where, key = f"{path}[{index}]", annotation.get("key", "")
        expression = (annotation.get("valueExpression") or "").strip()
        if not name:
            yield invalid(f"{where}.key", key, "requires metadata.name be non-empty")
        elif fault := qualified_fault(f"{name}/{key}"):
            yield invalid(f"{where}.key", f"{name}/{key}", fault)
        if len(expression) > _MAX_ANNOTATION_BYTES:
            yield required(f"{where}.valueExpression", f"must not exceed {_MAX_ANNOTATION_BYTES} bytes in length")
        else:
            absent = "valueExpression is not specified"
            gives = ("string", "null")
            yield from expression_faults(expression, f"{where}.valueExpression", types, gives=gives, absent=absent)
        if key in keys:
            yield duplicate(f"{where}.key", key)
        keys.add(key)


def _action_faults(actions: Sequence[str], path: str) -> Iterator[FieldError]:
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield not_supported(f"{path}[{index}]", action, _ACTIONS)
        if action in actions[:index]:
            yield duplicate(f"{path}[{index}]", action)
    if {"Deny", "Warn"} <= set(actions):
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        yield invalid(path, list(actions), detail)
    if not actions:
        yield required(path, "at least one validation action is required")


_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
"""Operations of mutating policies; a deletion has no object to change."""
_REINVOCATIONS = ("IfNeeded", "Never")
_FIELDS = {APPLY: "applyConfiguration", JSON_PATCH: "jsonPatch"}
_GIVES = {APPLY: str(OBJECT), JSON_PATCH: str(JSON_PATCHES)}


class MutatingPolicyRules(AnyPolicyRules):
    """MutatingAdmissionPolicy."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        return [*_mutating_policy_faults(new.get("spec") or {})]


class MutatingBindingRules(AnyBindingRules):
    """MutatingAdmissionPolicyBinding."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        return [*binding_faults(new.get("spec") or {}, _OPERATIONS)]


def _mutating_policy_faults(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    types: Types = {}
    yield from policy_faults(spec, types, _OPERATIONS)
    yield from variable_faults(spec.get("variables") or (), "spec.variables", types)
    types[PATCH_TYPES] = DYN
    mutations = spec.get("mutations") or ()
    if not mutations:
        yield required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(mutations):
        yield from _mutation_faults(mutation, f"spec.mutations[{index}]", types)
    again = spec.get("reinvocationPolicy") or ""
    if not again:
        yield required("spec.reinvocationPolicy")
    elif again not in _REINVOCATIONS:
        yield not_supported("spec.reinvocationPolicy", again, _REINVOCATIONS)


def _mutation_faults(mutation: Mapping[str, Any], path: str, types: Types) -> Iterator[FieldError]:
    kind = mutation.get("patchType") or ""
    if not kind:
        yield required(f"{path}.patchType")
        return
    if kind not in _FIELDS:
        yield not_supported(f"{path}.patchType", kind, sorted(_FIELDS))
        return
    field, other = _FIELDS[kind], _FIELDS[JSON_PATCH if kind == APPLY else APPLY]
    if mutation.get(field) is None:
        yield required(f"{path}.{field}", f"must be specified when patchType is {kind}")
    else:
        expression = (mutation[field].get("expression") or "").strip()
        where = f"{path}.{field}.expression"
        yield from expression_faults(expression, where, types, gives=(_GIVES[kind],), absent="")
    if mutation.get(other) is not None:
        yield invalid(f"{path}.{other}", f"{{{other}}}", f"must not be specified when patchType is {kind}")

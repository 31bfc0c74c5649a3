"""Defaults and validation of mutating policies and their bindings.

Source: kubernetes/kubernetes: pkg/apis/admissionregistration/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, invalid, not_supported, required
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

_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
"""Operations of mutating policies; a deletion has no object to change."""
_REINVOCATIONS = ("IfNeeded", "Never")
_FIELDS = {APPLY: "applyConfiguration", JSON_PATCH: "jsonPatch"}
_GIVES = {APPLY: str(OBJECT), JSON_PATCH: str(JSON_PATCHES)}


class MutatingPolicyRules(AnyPolicyRules):
    """MutatingAdmissionPolicy."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        return [*_policy_faults(new.get("spec") or {})]


class MutatingBindingRules(AnyBindingRules):
    """MutatingAdmissionPolicyBinding."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        return [*binding_faults(new.get("spec") or {}, _OPERATIONS)]


def _policy_faults(spec: Mapping[str, Any]) -> Iterator[FieldError]:
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

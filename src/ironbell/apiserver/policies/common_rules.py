"""Validation that validating and mutating policies and their bindings share.

Source: kubernetes/kubernetes: pkg/apis/admissionregistration/v1/defaults.go, validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from ironbell.apiserver.metadata import label_1035_fault, name_fault, path_segment_fault
from ironbell.apiserver.policies.spec import VARIABLES
from ironbell.apiserver.selectors.labels import selector_faults
from ironbell.apiserver.strategy import Plain
from ironbell.apiserver.webhooks.strategies import condition_faults, rule_faults
from ironbell.codec.cel import CelSyntaxError, expression_type
from ironbell.codec.cel.types import DYN, Type

_POLICIES = ("Fail", "Ignore")
_MATCHES = ("Equivalent", "Exact")
_PARAMETER_ACTIONS = ("Deny", "Allow")
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip

Types = dict[str, Type]


class AnyPolicyRules(Plain):
    """Validation of every kind of policy."""

    def prepare_create(self, new: dict[str, Any]) -> None:
        self._fill_in(new)

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        self._fill_in(new)

    def _fill_in(self, new: dict[str, Any]) -> None:
        spec = new.get("spec") or {}
        if new.get("spec") is not None:
            spec.setdefault("failurePolicy", "Fail")
        _fill_in_match(spec.get("matchConstraints"))


class AnyBindingRules(Plain):
    """Validation of every kind of binding."""

    def prepare_create(self, new: dict[str, Any]) -> None:
        _fill_in_match((new.get("spec") or {}).get("matchResources"))

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        _fill_in_match((new.get("spec") or {}).get("matchResources"))


def policy_faults(spec: Mapping[str, Any], types: Types, operations: Sequence[str] = ()) -> Iterator[FieldError]:
    """Errors in the fields of every policy, except its variables; `types` gets the types of the names in its
    expressions.

    `operations` are the permitted ones; all, if none are given.
    """
    if spec.get("failurePolicy") not in _POLICIES:
        yield not_supported("spec.failurePolicy", spec.get("failurePolicy", ""), _POLICIES)
    kind, match = spec.get("paramKind"), spec.get("matchConstraints")
    if kind is not None:
        yield from _param_kind_faults(kind, "spec.paramKind")
    if match is None:
        yield required("spec.matchConstraints")
    else:
        yield from _match_faults(match, "spec.matchConstraints")
        if not match.get("resourceRules"):
            yield required("spec.matchConstraints.resourceRules")
        yield from _operation_faults(match, "spec.matchConstraints", operations)
    types |= dict.fromkeys(VARIABLES, DYN) | ({"params": DYN} if kind is not None else {})
    boolean_faults = partial(expression_faults, types=types, gives=("bool",), absent="")
    yield from condition_faults(spec.get("matchConditions") or (), "spec.matchConditions", boolean_faults)


def _fill_in_match(match: dict[str, Any] | None) -> None:
    if match is None:
        return
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rule in (*(match.get("resourceRules") or ()), *(match.get("excludeResourceRules") or ())):
        rule.setdefault("scope", "*")


def _param_kind_faults(kind: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    api_version = kind.get("apiVersion", "")
    group, slash, version = api_version.partition("/")
    if not slash:
        group, version = "", api_version
    if not api_version:
        yield required(f"{path}.apiVersion")
    elif "/" in version:
        yield invalid(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    else:
        if group and (fault := name_fault(group)):
            yield invalid(f"{path}.apiVersion", group, fault)
        if not version:
            yield invalid(f"{path}.apiVersion", api_version, "version must be specified")
        elif fault := label_1035_fault(version):
            yield invalid(f"{path}.apiVersion", version, fault)
    name = kind.get("kind", "")
    if not name:
        yield required(f"{path}.kind")
    elif fault := label_1035_fault(name.lower()):
        yield invalid(f"{path}.kind", name, f"may have mixed case, but should otherwise match: {fault}")


def _match_faults(match: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if match.get("matchPolicy") not in _MATCHES:
        yield not_supported(f"{path}.matchPolicy", match.get("matchPolicy", ""), _MATCHES)
    for field in ("namespaceSelector", "objectSelector"):
        yield from selector_faults(match.get(field), f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            names = rule.get("resourceNames") or ()
            for place, name in enumerate(names):
                if fault := path_segment_fault(name):
                    yield invalid(f"{where}.resourceNames[{place}]", name, fault)
                if name in names[:place]:
                    yield duplicate(f"{where}.resourceNames[{place}]", name)
            yield from rule_faults(rule, where)


def variable_faults(variables: Sequence[Mapping[str, Any]], path: str, types: Types) -> Iterator[FieldError]:
    """Errors in variables, each of which may use the previous ones; `types` gets them all."""
    known: Types = {}
    types["variables"] = Type("object", fields=known, schema=id(known))
    for index, variable in enumerate(variables):
        where, name = f"{path}[{index}]", variable.get("name") or ""
        expression = variable.get("expression") or ""
        if not name.strip():
            yield required(f"{where}.name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
            yield invalid(f"{where}.name", name, "must be a valid CEL identifier")
        absent = "expression is not specified"
        yield from expression_faults(expression, f"{where}.expression", types, absent=absent)
        known[name] = _type_or_dyn(expression, types)


def _type_or_dyn(expression: str, types: Types) -> Type:
    try:
        return expression_type(expression, types)
    except CelSyntaxError:
        return DYN


def expression_faults(
    expression: str, path: str, types: Types, *, gives: tuple[str, ...] = (), absent: str
) -> Iterator[FieldError]:
    if not expression.strip():
        yield required(path, absent)
        return
    try:
        result_type = expression_type(expression, types)
    except CelSyntaxError as error:
        yield invalid(path, expression, f"compilation failed: {error.message}")
        return
    if gives and str(result_type) not in gives:
        expected = gives[0] if len(gives) == 1 else f"one of [{' '.join(gives)}]"
        yield invalid(path, expression, f"must evaluate to {expected} but got {result_type}")


def _param_ref_faults(ref: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    name, selector, both = ref.get("name") or "", ref.get("selector"), "name and selector are mutually exclusive"
    if name and (fault := path_segment_fault(name)):
        yield invalid(f"{path}.name", name, fault)
    if name and selector is not None:
        yield forbidden(f"{path}.name", both)
    if selector is not None:
        yield from selector_faults(selector, f"{path}.selector")
        if name:
            yield forbidden(f"{path}.selector", both)
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    action = ref.get("parameterNotFoundAction")
    if not action:
        yield required(f"{path}.parameterNotFoundAction")
    elif action not in _PARAMETER_ACTIONS:
        yield not_supported(f"{path}.parameterNotFoundAction", action, _PARAMETER_ACTIONS)


def binding_faults(spec: Mapping[str, Any], operations: Sequence[str] = ()) -> Iterator[FieldError]:
    """Errors in the fields of every binding."""
    name = spec.get("policyName") or ""
    if not name:
        yield required("spec.policyName")
    elif fault := name_fault(name):
        yield invalid("spec.policyName", name, fault)
    if spec.get("paramRef") is not None:
        yield from _param_ref_faults(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        yield from _match_faults(spec["matchResources"], "spec.matchResources")
        yield from _operation_faults(spec["matchResources"], "spec.matchResources", operations)


def _operation_faults(match: Mapping[str, Any], path: str, operations: Sequence[str]) -> Iterator[FieldError]:
    for rule in match.get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operations and operation not in operations:
                yield not_supported(f"{path}.resourceRules.operations", operation, operations)

"""Policies and their bindings as they are stored, with their expressions compiled, kept in step with the store.

Source: kubernetes/api: admissionregistration/v1/types.go; kubernetes/apiserver: pkg/admission/plugin/policy/validating
(plugin.go, compilation), pkg/admission/plugin/cel (variables).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog

from ironbell.apiserver.labelselector import LabelSelector
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.store.store import Store
from ironbell.apiserver.webhooks.configuration import GROUP, HookRule, MatchCondition
from ironbell.codec.cel import CelError, CelSyntaxError, compile_expression

POLICIES = f"validatingadmissionpolicies.{GROUP}"
BINDINGS = f"validatingadmissionpolicybindings.{GROUP}"
VARIABLES = ("object", "oldObject", "request", "authorizer", "namespaceObject")

_log = structlog.get_logger()

Expression = Callable[[Mapping[str, Any]], Any]


class NamedRule(HookRule, frozen=True, rename="camel"):
    """Which requests a policy wants to see, perhaps for some names only."""

    resource_names: tuple[str, ...] | None = None


class MatchResources(msgspec.Struct, frozen=True, rename="camel"):
    """Which requests a policy or a binding is for."""

    namespace_selector: LabelSelector = LabelSelector()
    object_selector: LabelSelector = LabelSelector()
    resource_rules: tuple[NamedRule, ...] | None = None
    exclude_resource_rules: tuple[NamedRule, ...] | None = None
    match_policy: str = "Equivalent"


class ParamKind(msgspec.Struct, frozen=True, rename="camel"):
    """The kind of a policy's parameters."""

    api_version: str = ""
    kind: str = ""


class Validation(msgspec.Struct, frozen=True, rename="camel"):
    """What must hold, and what is said if it does not."""

    expression: str
    message: str = ""
    message_expression: str = ""
    reason: str | None = None


class AuditAnnotation(msgspec.Struct, frozen=True, rename="camel"):
    """What is noted in the audit log."""

    key: str
    value_expression: str


class Variable(msgspec.Struct, frozen=True):
    """A name for an expression, which others can use."""

    name: str
    expression: str


class PolicySpec(msgspec.Struct, frozen=True, rename="camel"):
    """A policy's specification."""

    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    validations: tuple[Validation, ...] | None = None
    failure_policy: str = "Fail"
    audit_annotations: tuple[AuditAnnotation, ...] | None = None
    match_conditions: tuple[MatchCondition, ...] | None = None
    variables: tuple[Variable, ...] | None = None


class ParamRef(msgspec.Struct, frozen=True, rename="camel"):
    """Which parameters a binding uses."""

    name: str = ""
    namespace: str = ""
    selector: LabelSelector | None = None
    parameter_not_found_action: str | None = None


class BindingSpec(msgspec.Struct, frozen=True, rename="camel"):
    """A binding's specification."""

    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: tuple[str, ...] = ()


class _StoredPolicy(msgspec.Struct, frozen=True):
    spec: PolicySpec = PolicySpec()


class _StoredBinding(msgspec.Struct, frozen=True):
    spec: BindingSpec = BindingSpec()


class Check(msgspec.Struct, frozen=True):
    """A validation with its expressions compiled."""

    validation: Validation
    holds: Expression
    message: Expression | None


class Policy(msgspec.Struct, frozen=True, eq=False):
    """A policy, ready to be asked."""

    name: str
    spec: PolicySpec
    conditions: tuple[tuple[str, Expression], ...]
    variables: dict[str, Expression]
    checks: tuple[Check, ...]
    annotations: tuple[tuple[str, Expression], ...]

    @property
    def ignores_failures(self) -> bool:
        return self.spec.failure_policy == "Ignore"


class Binding(msgspec.Struct, frozen=True, eq=False):
    """What puts a policy into force."""

    name: str
    spec: BindingSpec


class Policies:
    """All policies that a binding puts into force, in the order of their names."""

    def __init__(self) -> None:
        self._policies: dict[str, Policy] = {}
        self._bindings: dict[str, Binding] = {}
        self.all: tuple[tuple[Policy, tuple[Binding, ...]], ...] = ()

    def follow(self, store: Store) -> None:
        """Read what is stored, and keep in step from now on."""
        for resource in (POLICIES, BINDINGS):
            for entry in store.objects(resource).entries():
                self._take(entry)
        self._order()
        store.listen(self.note)

    def note(self, change: Change) -> None:
        """Take in one change."""
        entry = change.entry
        if entry.resource not in (POLICIES, BINDINGS):
            return
        kept: dict[str, Any] = self._policies if entry.resource == POLICIES else self._bindings
        kept.pop(entry.name, None)
        if not change.deleted:
            self._take(entry)
        self._order()

    def _take(self, entry: Entry) -> None:
        try:
            if entry.resource == POLICIES:
                self._policies[entry.name] = read_policy(entry.name, entry.body)
            else:
                found = msgspec.json.decode(entry.body, type=_StoredBinding)
                self._bindings[entry.name] = Binding(entry.name, found.spec)
        except msgspec.MsgspecError as error:
            # stored by another release; writes are checked
            _log.warning("policy cannot be read and is not in force", resource=entry.resource, name=entry.name,
                         cause=str(error))  # fmt: skip

    def _order(self) -> None:
        by_policy: dict[str, list[Binding]] = {}
        for _, binding in sorted(self._bindings.items()):
            by_policy.setdefault(binding.spec.policy_name, []).append(binding)
        self.all = tuple(
            (policy, tuple(by_policy[name])) for name, policy in sorted(self._policies.items()) if name in by_policy
        )


def read_policy(name: str, body: bytes) -> Policy:
    """A stored policy, compiled; an expression that cannot be compiled fails when it is asked."""
    spec = msgspec.json.decode(body, type=_StoredPolicy).spec
    known = known_names(has_params=spec.param_kind is not None, has_variables=bool(spec.variables))
    return Policy(
        name,
        spec,
        tuple((one.name, _compiled(one.expression, known)) for one in spec.match_conditions or ()),
        {one.name: _compiled(one.expression, known) for one in spec.variables or ()},
        tuple(
            Check(
                one, _compiled(one.expression, known),
                _compiled(one.message_expression, known) if one.message_expression.strip() else None,
            )
            for one in spec.validations or ()
        ),
        tuple((one.key, _compiled(one.value_expression, known)) for one in spec.audit_annotations or ()),
    )  # fmt: skip


def known_names(*, has_params: bool, has_variables: bool) -> tuple[str, ...]:
    """The variables of a policy's expressions."""
    return (*VARIABLES, *(("params",) if has_params else ()), *(("variables",) if has_variables else ()))


def _compiled(expression: str, known: tuple[str, ...]) -> Expression:
    try:
        return compile_expression(expression, known)
    except CelSyntaxError as error:
        message = f"compilation error: {error.message}"

        def fail(_: Mapping[str, Any]) -> Any:
            raise CelError(message)

        return fail

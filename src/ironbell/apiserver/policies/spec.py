"""Policies and their bindings as they are stored, with their expressions compiled, kept in step with the store.

This module has the fields of all policies and of validating ones; `mutations` has those of mutating ones.

Source: kubernetes/api: admissionregistration/v1/types.go; kubernetes/apiserver: pkg/admission/plugin/policy/validating
(plugin.go, compilation), pkg/admission/plugin/cel (variables).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from ironbell.apiserver.selectors.labels import LabelSelector
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.store.store import Store
from ironbell.apiserver.webhooks.configuration import GROUP, HookRule, MatchCondition
from ironbell.codec.cel import CelError, CelSyntaxError, compile_expression

VARIABLES = ("object", "oldObject", "request", "authorizer", "namespaceObject")

_log = structlog.get_logger()

Expression = Callable[[Mapping[str, Any]], Any]


class NamedRule(HookRule, frozen=True, rename="camel"):
    """Requests that a policy matches, perhaps with some names only."""

    resource_names: tuple[str, ...] | None = None


class MatchResources(msgspec.Struct, frozen=True, rename="camel"):
    """Requests that a policy or a binding matches."""

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
    """An expression that must hold, and the message if it does not."""

    expression: str
    message: str = ""
    message_expression: str = ""
    reason: str | None = None


class AuditAnnotation(msgspec.Struct, frozen=True, rename="camel"):
    """An annotation for the audit log."""

    key: str
    value_expression: str


class Variable(msgspec.Struct, frozen=True):
    """A name for an expression, which others can use."""

    name: str
    expression: str


class AnyPolicySpec(msgspec.Struct, frozen=True, rename="camel"):
    """Fields of every policy's specification."""

    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    failure_policy: str = "Fail"
    match_conditions: tuple[MatchCondition, ...] | None = None
    variables: tuple[Variable, ...] | None = None


class PolicySpec(AnyPolicySpec, frozen=True, rename="camel"):
    """A validating policy's specification."""

    validations: tuple[Validation, ...] | None = None
    audit_annotations: tuple[AuditAnnotation, ...] | None = None


class ParamRef(msgspec.Struct, frozen=True, rename="camel"):
    """Parameters of a binding."""

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
    """Actions on a validating policy's failures."""


class _StoredPolicy(msgspec.Struct, frozen=True):
    spec: PolicySpec = PolicySpec()


class _StoredBinding(msgspec.Struct, frozen=True):
    spec: BindingSpec = BindingSpec()


class Check(msgspec.Struct, frozen=True):
    """A validation with its expressions compiled."""

    validation: Validation
    holds: Expression
    message: Expression | None


class AnyPolicy(msgspec.Struct, frozen=True, eq=False):
    """A policy of any kind, compiled."""

    name: str
    spec: AnyPolicySpec
    conditions: tuple[tuple[MatchCondition, Expression], ...]
    variables: dict[str, Expression]

    @property
    def ignores_failures(self) -> bool:
        return self.spec.failure_policy == "Ignore"


class Policy(AnyPolicy, frozen=True, eq=False):
    """A validating policy, compiled."""

    checks: tuple[Check, ...]
    annotations: tuple[tuple[str, Expression], ...]


class Binding(msgspec.Struct, frozen=True, eq=False):
    """An object that puts a policy into force."""

    name: str
    spec: BindingSpec


AnyPolicyT = TypeVar("AnyPolicyT", bound=AnyPolicy)


@dataclass(frozen=True, slots=True)
class PolicyKind(Generic[AnyPolicyT]):
    """One kind of policies."""

    policies: str
    """The resource."""
    bindings: str
    """The resource of their bindings."""
    read: Callable[[str, bytes], AnyPolicyT]
    """Reads a policy from its name and stored text; an expression that does not compile fails when it is evaluated."""


class Policies(Generic[AnyPolicyT]):
    """All policies of a kind that a binding puts into force, in the order of their names."""

    def __init__(self, kind: PolicyKind[AnyPolicyT]) -> None:
        self._kind = kind
        self._policies: dict[str, AnyPolicyT] = {}
        self._bindings: dict[str, Binding] = {}
        self.all: tuple[tuple[AnyPolicyT, tuple[Binding, ...]], ...] = ()

    def follow(self, store: Store) -> None:
        """Read the stored objects, and follow changes."""
        for resource in (self._kind.policies, self._kind.bindings):
            for entry in store.objects(resource).entries():
                self._take(entry)
        self._order()
        store.listen(self.apply)

    def apply(self, change: Change) -> None:
        """Apply one change."""
        entry = change.entry
        if entry.resource not in (self._kind.policies, self._kind.bindings):
            return
        kept: dict[str, Any] = self._policies if entry.resource == self._kind.policies else self._bindings
        kept.pop(entry.name, None)
        if not change.deleted:
            self._take(entry)
        self._order()

    def _take(self, entry: Entry) -> None:
        try:
            if entry.resource == self._kind.policies:
                self._policies[entry.name] = self._kind.read(entry.name, entry.body)
            else:
                binding = msgspec.json.decode(entry.body, type=_StoredBinding)
                self._bindings[entry.name] = Binding(entry.name, binding.spec)
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
    """A stored validating policy."""
    spec = msgspec.json.decode(body, type=_StoredPolicy).spec
    known = known_names(has_params=spec.param_kind is not None, has_variables=bool(spec.variables))
    return Policy(
        name,
        spec,
        compiled_conditions(spec, known),
        compiled_variables(spec, known),
        tuple(
            Check(
                annotation, compiled(annotation.expression, known),
                compiled(annotation.message_expression, known) if annotation.message_expression.strip() else None,
            )
            for annotation in spec.validations or ()
        ),
        tuple((added.key, compiled(added.value_expression, known)) for added in spec.audit_annotations or ()),
    )  # fmt: skip


VALIDATING = PolicyKind(
    f"validatingadmissionpolicies.{GROUP}", f"validatingadmissionpolicybindings.{GROUP}", read_policy
)


def known_names(*, has_params: bool, has_variables: bool) -> tuple[str, ...]:
    """The variables of a policy's expressions."""
    return (*VARIABLES, *(("params",) if has_params else ()), *(("variables",) if has_variables else ()))


def compiled_conditions(spec: AnyPolicySpec, known: tuple[str, ...]) -> tuple[tuple[MatchCondition, Expression], ...]:
    """A policy's match conditions."""
    return tuple((condition, compiled(condition.expression, known)) for condition in spec.match_conditions or ())


def compiled_variables(spec: AnyPolicySpec, known: tuple[str, ...]) -> dict[str, Expression]:
    """A policy's variables, by their names."""
    return {variable.name: compiled(variable.expression, known) for variable in spec.variables or ()}


def compiled(expression: str, known: tuple[str, ...]) -> Expression:
    """An expression; one that cannot be compiled fails when it is evaluated."""
    try:
        return compile_expression(expression, known)
    except CelSyntaxError as error:
        message = f"compilation error: {error.message}"

        def fail(_: Mapping[str, Any]) -> Any:
            raise CelError(message)

        return fail

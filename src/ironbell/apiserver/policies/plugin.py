"""Policies as an admission plugin: which are asked about a request, with which parameters, and what follows.

Source: kubernetes/apiserver: pkg/admission/plugin/policy/validating/dispatcher.go,
pkg/admission/plugin/policy/generic/policy_dispatcher.go (CollectParams), policy_matcher.go,
pkg/admission/plugin/policy/matching/matching.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ironbell.api.client import ApiError
from ironbell.apiserver import status
from ironbell.apiserver.admission import AdmissionRequest
from ironbell.apiserver.context import Context
from ironbell.apiserver.notes import annotate
from ironbell.apiserver.policies.evaluate import Failure, evaluate
from ironbell.apiserver.policies.spec import Binding, MatchResources, ParamKind, ParamRef, Policies, Policy
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.verbs.bodies import shown as shown_entry
from ironbell.apiserver.warnings import warn
from ironbell.apiserver.webhooks.matching import (
    is_exempt,
    names_version,
    namespace_matches,
    object_matches,
    rule_fits,
)
from ironbell.apiserver.webhooks.review import Shown, request_data, shown_as
from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import effort

ALLOWANCE_S = 1.0
"""Of processor time, for all expressions about one request."""
_FAILURES = "validation.policy.admission.k8s.io/validation_failure"
_CODES = {"Forbidden": 403, "RequestEntityTooLarge": 413}


class ConfigurationError(IronbellError):
    """A policy or a binding cannot be put into force for a request."""

    reason, retry = "PolicyMisconfigured", Retry.NEVER


class _Question(msgspec.Struct, frozen=True):
    policy: Policy
    binding: Binding
    values: dict[str, Any]


class _Denial(msgspec.Struct, frozen=True):
    policy: Policy
    binding: Binding | None
    failure: Failure

    @property
    def message(self) -> str:
        bound = f" with binding '{self.binding.name}'" if self.binding is not None else ""
        return f"ValidatingAdmissionPolicy '{self.policy.name}'{bound} denied request: {self.failure.message}"


class AdmissionPolicies:
    """The policies of a server."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._policies = Policies()

    def start(self) -> None:
        """Follow the policies, and take part in admission."""
        self._policies.follow(self._context.store)
        self._context.admission.validating(self._concerns, self.review)

    def _concerns(self, info: ResourceInfo) -> bool:
        if not self._policies.all or is_exempt(info):
            return False
        versions = self._versions(info)
        return any(
            names_version(rule, one)
            for policy, _ in self._policies.all
            if policy.spec.match_constraints is not None
            for rule in policy.spec.match_constraints.resource_rules or ()
            for one in versions
        )

    async def review(self, request: AdmissionRequest) -> None:
        """Ask all policies in force.

        Raises:
            ApiError: one denies the request, or cannot be asked and must be; of several the first.
        """
        denials: list[_Denial] = []
        questions: list[_Question] = []
        for policy, bindings in self._policies.all:
            await self._prepare(policy, bindings, request, questions, denials)
        failed: list[dict[str, Any]] = []
        with effort.limited(ALLOWANCE_S):
            for question in questions:
                denials += _denials(question, failed)
        if failed:
            annotate(_FAILURES, msgspec.json.encode(failed).decode())
        if denials:
            raise _refusal(request, denials[0])

    async def _prepare(
        self,
        policy: Policy,
        bindings: Sequence[Binding],
        request: AdmissionRequest,
        questions: list[_Question],
        denials: list[_Denial],
    ) -> None:
        """Add what a policy is to be asked about a request, and what speaks against that."""
        wanted = policy.spec.match_constraints
        if wanted is None or not wanted.resource_rules:
            return
        try:
            info = self._matching(wanted, request)
        except ApiError as error:
            denials += _misconfigured(policy, None, error.message)
            return
        if info is None:
            return
        shown = await shown_as(info, request)
        for binding in bindings:
            try:
                if binding.spec.match_resources and self._matching(binding.spec.match_resources, request) is None:
                    continue
                params = await self._params(policy.spec.param_kind, binding.spec.param_ref, request)
            except (ApiError, ConfigurationError) as error:
                denials += _misconfigured(policy, binding, error.message)
                continue
            questions += [_Question(policy, binding, self._values(request, shown, values)) for values in params]

    def _matching(self, wanted: MatchResources, request: AdmissionRequest) -> ResourceInfo | None:
        """The version in which a policy gets to see a request; None if it is not for it."""
        if not namespace_matches(wanted.namespace_selector, request, self._labels_of):
            return None
        if not object_matches(wanted.object_selector, request):
            return None
        for rule in wanted.exclude_resource_rules or ():
            if self._fitting(rule, wanted, request) is not None:
                return None
        if not wanted.resource_rules:
            # a policy has rules; a binding without any takes what its policy does
            return request.info
        found = (self._fitting(rule, wanted, request) for rule in wanted.resource_rules)
        return next((info for info in found if info is not None), None)

    def _fitting(self, rule: Any, wanted: MatchResources, request: AdmissionRequest) -> ResourceInfo | None:
        if rule.resource_names and request.name not in rule.resource_names:
            return None
        candidates = [request.info]
        if wanted.match_policy == "Equivalent":
            candidates += [one for one in self._versions(request.info) if one is not request.info]
        return next((one for one in candidates if names_version(rule, one) and rule_fits(rule, request, one)), None)

    async def _params(
        self, kind: ParamKind | None, ref: ParamRef | None, request: AdmissionRequest
    ) -> list[dict[str, Any] | None]:
        """The parameters, one evaluation for each; a single None where none are used.

        Raises:
            ConfigurationError: they cannot be found, and must be.
        """
        if kind is None or ref is None:
            return [None]
        group, _, version = kind.api_version.rpartition("/")
        info = self._context.resources.by_kind(group, version, kind.kind)
        if info is None:
            raise ConfigurationError(f"paramKind kind `{group}/{version}, Kind={kind.kind}` not known")
        namespace = self._namespace(info, ref, request)
        found = await self._found(info, ref, namespace)
        if not found and ref.parameter_not_found_action == "Deny":
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return list(found)

    def _namespace(self, info: ResourceInfo, ref: ParamRef, request: AdmissionRequest) -> str:
        if not info.namespaced:
            if ref.namespace:
                raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
            return ""
        namespace = ref.namespace or request.namespace
        if not namespace:
            why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise ConfigurationError(why)
        return namespace

    async def _found(self, info: ResourceInfo, ref: ParamRef, namespace: str) -> list[dict[str, Any]]:
        store = self._context.store
        if ref.name:
            entry = store.latest(info.store_key, (namespace, ref.name))
            entries = [entry] if entry is not None else []
        else:
            selector = ref.selector
            entries = [
                one
                for one in store.objects(info.store_key).entries()
                if one.namespace == namespace and (selector is None or selector.matches(one.labels or {}))
            ]
        return [await shown_entry(info, entry) for entry in entries]

    def _values(self, request: AdmissionRequest, shown: Shown, params: dict[str, Any] | None) -> dict[str, Any]:
        return {
            "object": shown.new, "oldObject": shown.old, "request": request_data(request, shown), "authorizer": None,
            "namespaceObject": self._namespace_object(request), "params": params,
        }  # fmt: skip

    def _namespace_object(self, request: AdmissionRequest) -> dict[str, Any] | None:
        if not request.info.namespaced or not request.namespace:
            return None
        entry = self._context.store.latest("namespaces", ("", request.namespace))
        if entry is None:
            return None
        value: dict[str, Any] = entry.decode()
        return {**value, "metadata": {name: one for name, one in value["metadata"].items() if name != "managedFields"}}

    def _versions(self, info: ResourceInfo) -> tuple[ResourceInfo, ...]:
        return self._context.resources.versions(info.resource)

    def _labels_of(self, namespace: str) -> dict[str, str] | None:
        entry = self._context.store.latest("namespaces", ("", namespace))
        return None if entry is None else dict(entry.labels or {})


def _denials(question: _Question, failed: list[dict[str, Any]]) -> list[_Denial]:
    """What follows from a policy's verdict; `failed` gets what the audit log is to have."""
    policy, binding = question.policy, question.binding
    verdict, actions = evaluate(policy, question.values), binding.spec.validation_actions
    for key, value in verdict.annotations.items():
        annotate(key, value)
    for failure in verdict.failures:
        if "Warn" in actions:
            place = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
            warn(f"Validation failed for {place}: {failure.message}")
        if "Audit" in actions:
            failed.append(
                {
                    "message": failure.message, "policy": policy.name, "binding": binding.name,
                    "expressionIndex": failure.index, "validationActions": actions,
                }
            )  # fmt: skip
    return [_Denial(policy, binding, failure) for failure in verdict.failures] if "Deny" in actions else []


def _misconfigured(policy: Policy, binding: Binding | None, why: str) -> list[_Denial]:
    if policy.ignores_failures:
        return []
    what = "policy" if binding is None else "binding"
    return [_Denial(policy, binding, Failure(f"failed to configure {what}: {why}"))]


def _refusal(request: AdmissionRequest, denial: _Denial) -> ApiError:
    error = status.forbidden(request.info, request.name, why=denial.message, causes=[{"message": denial.message}])
    reason = denial.failure.reason
    return ApiError(error.message, code=_CODES.get(reason, 422), reason=reason, details=error.details)

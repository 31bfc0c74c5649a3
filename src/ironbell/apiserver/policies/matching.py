"""Matching of policies: those for a request, with their parameters, and the values that their expressions see.

Source: kubernetes/apiserver: pkg/admission/plugin/policy/generic/policy_dispatcher.go (CollectParams),
policy_matcher.go, pkg/admission/plugin/policy/matching/matching.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

import msgspec

from ironbell.api.client import ApiError
from ironbell.apiserver.admission import AdmissionRequest
from ironbell.apiserver.context import Context
from ironbell.apiserver.policies.spec import (
    AnyPolicy,
    AnyPolicyT,
    Binding,
    MatchResources,
    ParamKind,
    ParamRef,
    Policies,
)
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.verbs.bodies import shown_object as shown_entry
from ironbell.apiserver.webhooks.matching import (
    is_exempt,
    names_version,
    namespace_matches,
    object_matches,
    rule_fits,
)
from ironbell.apiserver.webhooks.review import Shown, request_data
from ironbell.base.errors import IronbellError, Retry


class ConfigurationError(IronbellError):
    """A policy or a binding cannot be put into force for a request."""

    reason, retry = "PolicyMisconfigured", Retry.NEVER


class Invocation(msgspec.Struct, Generic[AnyPolicyT], frozen=True, eq=False):
    """A policy that is to be evaluated for a request."""

    policy: AnyPolicyT
    binding: Binding
    info: ResourceInfo
    """The version of the resource that the policy sees."""
    params: dict[str, Any] | None


class Misconfigured(msgspec.Struct, frozen=True, eq=False):
    """A policy that cannot be evaluated."""

    policy: AnyPolicy
    binding: Binding | None
    """The binding; None if the problem concerns all bindings."""
    detail: str

    @property
    def message(self) -> str:
        return f"failed to configure {'policy' if self.binding is None else 'binding'}: {self.detail}"


class Matcher:
    """Finds the policies for a server's requests."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def concerns(self, policies: Policies[AnyPolicyT], info: ResourceInfo) -> bool:
        """Return whether any policy could be for a resource: called before every write, so it is cheap."""
        if not policies.all or is_exempt(info):
            return False
        versions = self._versions(info)
        return any(
            names_version(rule, version)
            for policy, _ in policies.all
            if policy.spec.match_constraints is not None
            for rule in policy.spec.match_constraints.resource_rules or ()
            for version in versions
        )

    async def invocations(
        self, policies: Policies[AnyPolicyT], request: AdmissionRequest
    ) -> tuple[list[Invocation[AnyPolicyT]], list[Misconfigured]]:
        """The policies to evaluate for a request, in order, and those that cannot be evaluated."""
        invocations: list[Invocation[AnyPolicyT]] = []
        faults: list[Misconfigured] = []
        for policy, bindings in policies.all:
            constraints = policy.spec.match_constraints
            if constraints is None or not constraints.resource_rules:
                continue
            try:
                info = self._matching(constraints, request)
            except ApiError as error:
                faults.append(Misconfigured(policy, None, error.message))
                continue
            if info is not None:
                await self._bound(policy, bindings, info, request, invocations, faults)
        return invocations, faults

    async def _bound(
        self,
        policy: AnyPolicyT,
        bindings: Sequence[Binding],
        info: ResourceInfo,
        request: AdmissionRequest,
        invocations: list[Invocation[AnyPolicyT]],
        faults: list[Misconfigured],
    ) -> None:
        for binding in bindings:
            try:
                if binding.spec.match_resources and self._matching(binding.spec.match_resources, request) is None:
                    continue
                params = await self._params(policy.spec.param_kind, binding.spec.param_ref, request)
            except (ApiError, ConfigurationError) as error:
                faults.append(Misconfigured(policy, binding, error.message))
                continue
            invocations += [Invocation(policy, binding, info, param) for param in params]

    def _matching(self, constraints: MatchResources, request: AdmissionRequest) -> ResourceInfo | None:
        """The version in which a policy sees a request; None if the policy is not for it."""
        if not namespace_matches(constraints.namespace_selector, request, self._labels_of):
            return None
        if not object_matches(constraints.object_selector, request):
            return None
        for rule in constraints.exclude_resource_rules or ():
            if self._fitting(rule, constraints, request) is not None:
                return None
        if not constraints.resource_rules:
            # a policy has rules; a binding without any matches what its policy does
            return request.info
        matches = (self._fitting(rule, constraints, request) for rule in constraints.resource_rules)
        return next((info for info in matches if info is not None), None)

    def _fitting(self, rule: Any, constraints: MatchResources, request: AdmissionRequest) -> ResourceInfo | None:
        if rule.resource_names and request.name not in rule.resource_names:
            return None
        candidates = [request.info]
        if constraints.match_policy == "Equivalent":
            candidates += [version for version in self._versions(request.info) if version is not request.info]
        return next(
            (version for version in candidates if names_version(rule, version) and rule_fits(rule, request, version)),
            None,
        )

    async def _params(
        self, kind: ParamKind | None, ref: ParamRef | None, request: AdmissionRequest
    ) -> list[dict[str, Any] | None]:
        """The parameters, one evaluation for each; a single None where none are used.

        Raises:
            ConfigurationError: no parameters exist, and the binding requires them.
        """
        if kind is None or ref is None:
            return [None]
        group, _, version = kind.api_version.rpartition("/")
        info = self._context.resources.by_kind(group, version, kind.kind)
        if info is None:
            raise ConfigurationError(f"paramKind kind `{group}/{version}, Kind={kind.kind}` not known")
        namespace = self._namespace(info, ref, request)
        objects = await self._param_objects(info, ref, namespace)
        if not objects and ref.parameter_not_found_action == "Deny":
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return list(objects)

    def _namespace(self, info: ResourceInfo, ref: ParamRef, request: AdmissionRequest) -> str:
        if not info.namespaced:
            if ref.namespace:
                raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
            return ""
        namespace = ref.namespace or request.namespace
        if not namespace:
            detail = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise ConfigurationError(detail)
        return namespace

    async def _param_objects(self, info: ResourceInfo, ref: ParamRef, namespace: str) -> list[dict[str, Any]]:
        store = self._context.store
        if ref.name:
            entry = store.latest(info.store_key, (namespace, ref.name))
            entries = [entry] if entry is not None else []
        else:
            selector = ref.selector
            entries = [
                stored
                for stored in store.objects(info.store_key).entries()
                if stored.namespace == namespace and (selector is None or selector.matches(stored.labels or {}))
            ]
        return [await shown_entry(info, entry) for entry in entries]

    def values(self, request: AdmissionRequest, shown: Shown, params: dict[str, Any] | None) -> dict[str, Any]:
        """The values in expressions about a request."""
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
        return {
            **value,
            "metadata": {name: content for name, content in value["metadata"].items() if name != "managedFields"},
        }

    def _versions(self, info: ResourceInfo) -> tuple[ResourceInfo, ...]:
        return self._context.resources.versions(info.resource)

    def _labels_of(self, namespace: str) -> dict[str, str] | None:
        entry = self._context.store.latest("namespaces", ("", namespace))
        return None if entry is None else dict(entry.labels or {})

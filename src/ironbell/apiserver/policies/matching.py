"""Which policies are for a request, with which parameters, and what their expressions get to see.

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
from ironbell.apiserver.verbs.bodies import shown as shown_entry
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
    """A policy that is to be asked about a request."""

    policy: AnyPolicyT
    binding: Binding
    info: ResourceInfo
    """The version that it gets to see."""
    params: dict[str, Any] | None


class Misconfigured(msgspec.Struct, frozen=True, eq=False):
    """A policy that cannot be asked."""

    policy: AnyPolicy
    binding: Binding | None
    """None where it is not for one binding only."""
    why: str

    @property
    def message(self) -> str:
        return f"failed to configure {'policy' if self.binding is None else 'binding'}: {self.why}"


class Matcher:
    """Finds what is to be asked about a server's requests."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def concerns(self, policies: Policies[AnyPolicyT], info: ResourceInfo) -> bool:
        """Whether any policy could be for a resource: asked before every write, so it is cheap."""
        if not policies.all or is_exempt(info):
            return False
        versions = self._versions(info)
        return any(
            names_version(rule, one)
            for policy, _ in policies.all
            if policy.spec.match_constraints is not None
            for rule in policy.spec.match_constraints.resource_rules or ()
            for one in versions
        )

    async def invocations(
        self, policies: Policies[AnyPolicyT], request: AdmissionRequest
    ) -> tuple[list[Invocation[AnyPolicyT]], list[Misconfigured]]:
        """What is to be asked about a request, in order, and what cannot be asked."""
        found: list[Invocation[AnyPolicyT]] = []
        faults: list[Misconfigured] = []
        for policy, bindings in policies.all:
            wanted = policy.spec.match_constraints
            if wanted is None or not wanted.resource_rules:
                continue
            try:
                info = self._matching(wanted, request)
            except ApiError as error:
                faults.append(Misconfigured(policy, None, error.message))
                continue
            if info is not None:
                await self._bound(policy, bindings, info, request, found, faults)
        return found, faults

    async def _bound(
        self,
        policy: AnyPolicyT,
        bindings: Sequence[Binding],
        info: ResourceInfo,
        request: AdmissionRequest,
        found: list[Invocation[AnyPolicyT]],
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
            found += [Invocation(policy, binding, info, one) for one in params]

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

    def values(self, request: AdmissionRequest, shown: Shown, params: dict[str, Any] | None) -> dict[str, Any]:
        """What expressions know of a request."""
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

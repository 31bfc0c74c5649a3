"""Mutating policies as an admission plugin: the changes to a request's object in order, and rejections.

Source: kubernetes/apiserver: pkg/admission/plugin/policy/mutating/dispatcher.go, reinvocationcontext.go,
pkg/admission/plugin/policy/generic/policy_dispatcher.go (rejections).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ironbell.api.client import ApiError
from ironbell.apiserver import status
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.context import Context
from ironbell.apiserver.policies.evaluate import unmet_conditions, with_variables
from ironbell.apiserver.policies.matching import Invocation, Matcher
from ironbell.apiserver.policies.mutations import MUTATING, MutatingPolicy, MutationError, mutated
from ironbell.apiserver.policies.spec import AnyPolicy, Binding, Policies
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.verbs.bodies import converted
from ironbell.apiserver.webhooks.review import Shown, shown_as
from ironbell.codec import effort
from ironbell.codec.cel.costs.meter import OBJECT_BUDGET, budgeted

ALLOWANCE_S = 1.0
"""Limit of processor time, for all expressions about one request: they are evaluated on the event loop."""
Object = dict[str, Any]
_Key = tuple[str, str, str, str]
"""Key of an invocation: the names of the policy, its binding and its parameters, with their namespace."""


@dataclass(slots=True)
class _FirstRound:
    """Policies of a request's first round that may run again."""

    reinvocable: set[_Key] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Fault:
    policy: AnyPolicy
    binding: Binding | None
    detail: str
    reason: str = ""

    @property
    def message(self) -> str:
        if self.binding is None:
            return f'policy "{self.policy.name}" denied request: {self.detail}'
        return f"policy '{self.policy.name}' with binding '{self.binding.name}' denied request: {self.detail}"


class MutatingPolicies:
    """The mutating policies of a server."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._matcher = Matcher(context)
        self._policies = Policies(MUTATING)

    def start(self) -> None:
        """Follow the policies, and take part in admission."""
        self._policies.follow(self._context.store)
        self._context.admission.mutating(self._concerns, self.mutate)

    def _concerns(self, info: ResourceInfo) -> bool:
        return self._matcher.concerns(self._policies, info)

    async def mutate(self, request: AdmissionRequest) -> Object | None:
        """The object after all policies in force; None if none changed it. Deletions have no object to change.

        Raises:
            ApiError: a policy fails, or cannot be evaluated, and its failures are not ignored; or the object is no
                longer valid for its kind.
        """
        if request.operation is Operation.DELETE:
            return None
        original = request.new
        invocations, misconfigured = await self._matcher.invocations(self._policies, request)
        faults = [_Fault(invocation.policy, invocation.binding, invocation.message) for invocation in misconfigured]
        allowance_s = ALLOWANCE_S
        for invocation in invocations:
            shown = await shown_as(invocation.info, request)
            with effort.limited(allowance_s):
                changed = self._mutated_by(invocation, request, shown, faults)
                allowance_s = effort.left()
            if changed is not None and changed != shown.new:
                request = replace(request, new=await converted(request.info, changed, request.info.api_version))
        rejections = [fault for fault in faults if not fault.policy.ignores_failures]
        if rejections:
            raise _rejection(request, rejections)
        return None if request.new is original else request.new

    def _mutated_by(
        self, invocation: Invocation[MutatingPolicy], request: AdmissionRequest, shown: Shown, faults: list[_Fault]
    ) -> Object | None:
        """The object after one policy, in the version that the policy sees; `faults` gets the failures."""
        policy, rounds = invocation.policy, request.rounds
        first_round: _FirstRound = rounds.kept(self, _FirstRound)
        values = self._matcher.values(request, shown, invocation.params)
        unmet = unmet_conditions(policy, with_variables(policy, values))
        if unmet is not None:
            faults += [_Fault(policy, invocation.binding, failure.message, "Invalid") for failure in unmet.failures]
            return shown.new
        key = _key(invocation)
        if request.new is None or (rounds.is_second and key not in first_round.reinvocable):
            return shown.new
        for mutation, expression in policy.mutations:
            try:
                with budgeted(OBJECT_BUDGET):
                    value = mutated(mutation, expression, with_variables(policy, values), invocation.info)
            except MutationError as error:
                faults.append(_Fault(policy, invocation.binding, error.message, "Invalid"))
                continue
            rounds.needs_second_round = True
            values["object"] = value
            values["request"] = {**values["request"], "object": value}
        if policy.reinvocable:
            first_round.reinvocable.add(key)
        changed: Object | None = values["object"]
        return changed


def _key(invocation: Invocation[MutatingPolicy]) -> _Key:
    meta = (invocation.params or {}).get("metadata") or {}
    return invocation.policy.name, invocation.binding.name, meta.get("namespace", ""), meta.get("name", "")


def _rejection(request: AdmissionRequest, faults: list[_Fault]) -> ApiError:
    causes = [{"message": fault.message} for fault in faults]
    error = status.forbidden(request.info, request.name, detail=faults[0].message, causes=causes)
    return ApiError(faults[0].message, code=error.code, reason=faults[0].reason or error.reason, details=error.details)

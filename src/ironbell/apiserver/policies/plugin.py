"""Validating policies as an admission plugin: their evaluation for a request, and rejections.

Source: kubernetes/apiserver: pkg/admission/plugin/policy/validating/dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ironbell.api.client import ApiError
from ironbell.apiserver import status
from ironbell.apiserver.admission import AdmissionRequest
from ironbell.apiserver.context import Context
from ironbell.apiserver.policies.evaluate import Evaluation, Failure, evaluate
from ironbell.apiserver.policies.matching import Matcher, Misconfigured
from ironbell.apiserver.policies.spec import VALIDATING, Binding, Policies, Policy
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.threads import evaluated
from ironbell.apiserver.warnings import annotate, warn
from ironbell.apiserver.webhooks.review import shown_as
from ironbell.codec import effort

ALLOWANCE_S = 10.0
"""Limit of processor time, for all expressions about one request, where kube-apiserver's budgets are too wide."""
_FAILURES = "validation.policy.admission.k8s.io/validation_failure"
_CODES = {"Forbidden": 403, "RequestEntityTooLarge": 413}


class _Call(msgspec.Struct, frozen=True):
    policy: Policy
    binding: Binding
    values: dict[str, Any]


class _Denial(msgspec.Struct, frozen=True):
    policy: str
    binding: Binding | None
    failure: Failure

    @property
    def message(self) -> str:
        bound = f" with binding '{self.binding.name}'" if self.binding is not None else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{bound} denied request: {self.failure.message}"


class AdmissionPolicies:
    """The validating policies of a server."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._matcher = Matcher(context)
        self._policies = Policies(VALIDATING)

    def start(self) -> None:
        """Follow the policies, and take part in admission."""
        self._policies.follow(self._context.store)
        self._context.admission.validating(self._concerns, self.review)

    def _concerns(self, info: ResourceInfo) -> bool:
        return self._matcher.concerns(self._policies, info)

    async def review(self, request: AdmissionRequest) -> None:
        """Evaluate all policies in force.

        Raises:
            ApiError: a policy denies the request, or cannot be evaluated and does not ignore failures; the first of
                several.
        """
        invocations, faults = await self._matcher.invocations(self._policies, request)
        denials = [denial for fault in faults if (denial := _misconfigured(fault)) is not None]
        pending = [
            _Call(
                invocation.policy,
                invocation.binding,
                self._matcher.values(request, await shown_as(invocation.info, request), invocation.params),
            )
            for invocation in invocations
        ]
        failed: list[dict[str, Any]] = []
        if pending:
            results = await evaluated(lambda: _evaluate_all(pending))
            for call, result in zip(pending, results, strict=True):
                denials += _denials(call, result, failed)
        if failed:
            annotate(_FAILURES, msgspec.json.encode(failed).decode())
        if denials:
            raise _rejection(request, denials[0])


def _evaluate_all(calls: Sequence[_Call]) -> list[Evaluation]:
    with effort.limited(ALLOWANCE_S):
        return [evaluate(call.policy, call.values) for call in calls]


def _denials(call: _Call, result: Evaluation, failed: list[dict[str, Any]]) -> list[_Denial]:
    """The denials that follow from an evaluation; `failed` gets the failures for the audit log."""
    policy, binding = call.policy, call.binding
    actions = binding.spec.validation_actions
    for key, value in result.annotations.items():
        annotate(key, value)
    for failure in result.failures:
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
    return [_Denial(policy.name, binding, failure) for failure in result.failures] if "Deny" in actions else []


def _misconfigured(fault: Misconfigured) -> _Denial | None:
    if fault.policy.ignores_failures:
        return None
    return _Denial(fault.policy.name, fault.binding, Failure(fault.message))


def _rejection(request: AdmissionRequest, denial: _Denial) -> ApiError:
    error = status.forbidden(request.info, request.name, detail=denial.message, causes=[{"message": denial.message}])
    reason = denial.failure.reason
    return ApiError(error.message, code=_CODES.get(reason, 422), reason=reason, details=error.details)

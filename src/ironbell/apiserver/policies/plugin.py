"""Validating policies as an admission plugin: which are asked about a request, and what follows.

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
from ironbell.apiserver.notes import annotate
from ironbell.apiserver.policies.evaluate import Failure, Verdict, evaluate
from ironbell.apiserver.policies.matching import Matcher, Misconfigured
from ironbell.apiserver.policies.spec import VALIDATING, Binding, Policies, Policy
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.threads import evaluated
from ironbell.apiserver.warnings import warn
from ironbell.apiserver.webhooks.review import shown_as
from ironbell.codec import effort

ALLOWANCE_S = 10.0
"""Of processor time, for all expressions about one request: it holds where kube-apiserver's budgets say too little."""
_FAILURES = "validation.policy.admission.k8s.io/validation_failure"
_CODES = {"Forbidden": 403, "RequestEntityTooLarge": 413}


class _Question(msgspec.Struct, frozen=True):
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
        """Ask all policies in force.

        Raises:
            ApiError: one denies the request, or cannot be asked and must be; of several the first.
        """
        found, faults = await self._matcher.invocations(self._policies, request)
        denials = [denial for fault in faults if (denial := _misconfigured(fault)) is not None]
        questions = [
            _Question(
                one.policy, one.binding, self._matcher.values(request, await shown_as(one.info, request), one.params)
            )
            for one in found
        ]
        failed: list[dict[str, Any]] = []
        if questions:
            verdicts = await evaluated(lambda: _verdicts(questions))
            for question, verdict in zip(questions, verdicts, strict=True):
                denials += _denials(question, verdict, failed)
        if failed:
            annotate(_FAILURES, msgspec.json.encode(failed).decode())
        if denials:
            raise _refusal(request, denials[0])


def _verdicts(questions: Sequence[_Question]) -> list[Verdict]:
    with effort.limited(ALLOWANCE_S):
        return [evaluate(question.policy, question.values) for question in questions]


def _denials(question: _Question, verdict: Verdict, failed: list[dict[str, Any]]) -> list[_Denial]:
    """What follows from a policy's verdict; `failed` gets what the audit log is to have."""
    policy, binding = question.policy, question.binding
    actions = binding.spec.validation_actions
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
    return [_Denial(policy.name, binding, failure) for failure in verdict.failures] if "Deny" in actions else []


def _misconfigured(fault: Misconfigured) -> _Denial | None:
    if fault.policy.ignores_failures:
        return None
    return _Denial(fault.policy.name, fault.binding, Failure(fault.message))


def _refusal(request: AdmissionRequest, denial: _Denial) -> ApiError:
    error = status.forbidden(request.info, request.name, why=denial.message, causes=[{"message": denial.message}])
    reason = denial.failure.reason
    return ApiError(error.message, code=_CODES.get(reason, 422), reason=reason, details=error.details)

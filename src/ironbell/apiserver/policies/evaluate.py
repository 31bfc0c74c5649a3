"""Evaluation of a policy for one request and one set of parameters: pure decisions over values.

Source: kubernetes/apiserver: pkg/admission/plugin/policy/validating/validator.go,
pkg/admission/plugin/cel/composition.go (variables).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ironbell.apiserver.policies.spec import AnyPolicy, Check, Expression, Policy
from ironbell.base.errors import IronbellError
from ironbell.codec.cel.costs.meter import CONDITIONS_BUDGET, OBJECT_BUDGET, OutOfBudget, budgeted

MAX_MESSAGE_BYTES = 5 * 1024

Values = Mapping[str, Any]


class Failure(msgspec.Struct, frozen=True):
    """A validation that does not hold."""

    message: str
    reason: str = "Invalid"
    index: int = 0
    """Index of the policy's expression."""


class Evaluation(msgspec.Struct, frozen=True):
    """Result of a policy's evaluation."""

    failures: tuple[Failure, ...] = ()
    annotations: dict[str, str] = {}
    """Annotations for the audit log."""


class Variables(dict[str, Any]):
    """The variables of a policy: each is evaluated when it is first used, and then kept."""

    def __init__(self, expressions: Mapping[str, Expression], values: dict[str, Any]) -> None:
        super().__init__()
        self._expressions = expressions
        self._values = values

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._expressions[name](self._values)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - it would ask itself


def evaluate(policy: Policy, given: Values) -> Evaluation:
    """Evaluate a policy with `given`: object, oldObject, request, params and so on."""
    values = with_variables(policy, given)
    unmet = unmet_conditions(policy, values)
    if unmet is not None:
        return unmet
    failures = [*_failures(policy, values)]
    annotations = _annotations(policy, values, failures)
    return Evaluation(tuple(failures), annotations)


def with_variables(policy: AnyPolicy, given: Values) -> dict[str, Any]:
    """The names in a policy's expressions: those given, and the policy's variables."""
    values = dict(given)
    values["variables"] = Variables(policy.variables, values)
    return values


def unmet_conditions(policy: AnyPolicy, values: Values) -> Evaluation | None:
    """The result if a match condition does not hold or cannot be evaluated; None if all hold."""
    faults: list[str] = []
    with budgeted(CONDITIONS_BUDGET):
        for given, condition in policy.conditions:
            try:
                if condition(values) is not True:
                    return Evaluation()
            except OutOfBudget as error:
                return Evaluation() if policy.ignores_failures else Evaluation((Failure(error.message),))
            except IronbellError as error:
                faults.append(f"expression '{given.expression}' resulted in error: {error.message}")
    if faults:
        detail = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        return Evaluation() if policy.ignores_failures else Evaluation((Failure(detail),))
    return None


def _failures(policy: Policy, values: Values) -> Iterator[Failure]:
    """The validations that do not hold. Messages are composed within the budget that the validations left."""
    exceeded = ""
    messages: list[str] = []
    with budgeted(OBJECT_BUDGET):
        try:
            outcomes = [_outcome(check, values) for check in policy.checks]
        except OutOfBudget as error:
            if not policy.ignores_failures:
                yield Failure(error.message)
            return
        try:
            messages = [_composed(check, values) for check in policy.checks]
        except OutOfBudget as error:
            exceeded = f"failed messageExpression: {error.message}"
    for index, (check, outcome) in enumerate(zip(policy.checks, outcomes, strict=True)):
        fault = outcome if isinstance(outcome, str) else exceeded
        if fault:
            if not policy.ignores_failures:
                yield Failure(fault, index=index)
        elif outcome is not True:
            validation = check.validation
            message = messages[index] or validation.message.strip()
            message = message or f"failed expression: {validation.expression.strip()}"
            yield Failure(message, validation.reason or "Invalid", index)


def _outcome(check: Check, values: Values) -> bool | str:
    """Return whether a validation holds, or why it cannot be evaluated."""
    try:
        return check.holds(values) is True
    except OutOfBudget:
        raise
    except IronbellError as error:
        return f"expression '{check.validation.expression}' resulted in error: {error.message}"


def _composed(check: Check, values: Values) -> str:
    """The message of an expression; empty if it fails, or its result is not a message."""
    if check.message is None:
        return ""
    try:
        result = check.message(values)
    except OutOfBudget:
        raise
    except IronbellError:
        return ""
    message = result.strip() if isinstance(result, str) else ""
    return "" if "\n" in message or len(message.encode()) > MAX_MESSAGE_BYTES else message


def _annotations(policy: Policy, values: Values, failures: list[Failure]) -> dict[str, str]:
    """Annotations for the audit log; a failed evaluation is a failure."""
    annotations: dict[str, str] = {}
    with budgeted(OBJECT_BUDGET):
        for key, expression in policy.annotations:
            try:
                value = expression(values)
            except OutOfBudget as error:
                failures[:] = [] if policy.ignores_failures else [Failure(error.message)]
                return {}
            except IronbellError as error:
                if not policy.ignores_failures:
                    failures.append(Failure(f"audit annotation '{key}' resulted in error: {error.message}"))
                continue
            if isinstance(value, str):
                annotations[f"{policy.name}/{key}"] = value
    return annotations

"""What a policy says of one request with one set of parameters: pure decisions over values.

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
    """Something that does not hold."""

    message: str
    reason: str = "Invalid"
    index: int = 0
    """Which of the policy's expressions it is."""


class Verdict(msgspec.Struct, frozen=True):
    """What a policy says."""

    failures: tuple[Failure, ...] = ()
    annotations: dict[str, str] = {}
    """For the audit log."""


class Variables(dict[str, Any]):
    """The variables of a policy: each is evaluated when it is first used, and then kept."""

    def __init__(self, expressions: Mapping[str, Expression], values: dict[str, Any]) -> None:
        super().__init__()
        self._expressions = expressions
        self._values = values

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __missing__(self, name: str) -> Any:
        found = self[name] = self._expressions[name](self._values)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - it would ask itself


def evaluate(policy: Policy, given: Values) -> Verdict:
    """The verdict over `given`: object, oldObject, request, params and so on."""
    values = with_variables(policy, given)
    unmet = unmet_conditions(policy, values)
    if unmet is not None:
        return unmet
    failures = [*_failures(policy, values)]
    annotations = _annotations(policy, values, failures)
    return Verdict(tuple(failures), annotations)


def with_variables(policy: AnyPolicy, given: Values) -> dict[str, Any]:
    """What a policy's expressions know: what is given, and the policy's variables."""
    values = dict(given)
    values["variables"] = Variables(policy.variables, values)
    return values


def unmet_conditions(policy: AnyPolicy, values: Values) -> Verdict | None:
    """The verdict where a match condition does not hold, or cannot be asked; None where all hold."""
    faults: list[str] = []
    with budgeted(CONDITIONS_BUDGET):
        for given, condition in policy.conditions:
            try:
                if condition(values) is not True:
                    return Verdict()
            except OutOfBudget as error:
                return Verdict() if policy.ignores_failures else Verdict((Failure(error.message),))
            except IronbellError as error:
                faults.append(f"expression '{given.expression}' resulted in error: {error.message}")
    if faults:
        why = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        return Verdict() if policy.ignores_failures else Verdict((Failure(why),))
    return None


def _failures(policy: Policy, values: Values) -> Iterator[Failure]:
    """What of a policy does not hold. Messages are composed with what the validations left of their budget."""
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
    """Whether a validation holds, or why it cannot be evaluated."""
    try:
        return check.holds(values) is True
    except OutOfBudget:
        raise
    except IronbellError as error:
        return f"expression '{check.validation.expression}' resulted in error: {error.message}"


def _composed(check: Check, values: Values) -> str:
    """The message that an expression gives; empty if it fails, or gives something that is no message."""
    if check.message is None:
        return ""
    try:
        found = check.message(values)
    except OutOfBudget:
        raise
    except IronbellError:
        return ""
    message = found.strip() if isinstance(found, str) else ""
    return "" if "\n" in message or len(message.encode()) > MAX_MESSAGE_BYTES else message


def _annotations(policy: Policy, values: Values, failures: list[Failure]) -> dict[str, str]:
    """Notes for the audit log; one that cannot be made is a failure."""
    found: dict[str, str] = {}
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
                found[f"{policy.name}/{key}"] = value
    return found

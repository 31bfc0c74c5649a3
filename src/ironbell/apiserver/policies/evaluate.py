"""What a policy says of one request with one set of parameters: pure decisions over values.

Source: kubernetes/apiserver: pkg/admission/plugin/policy/validating/validator.go,
pkg/admission/plugin/cel/composition.go (variables).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ironbell.apiserver.policies.spec import AnyPolicy, Check, Expression, Policy
from ironbell.base.errors import IronbellError

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
    failures = [found for index, check in enumerate(policy.checks) if (found := _failure(policy, check, index, values))]
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
    for given, condition in policy.conditions:
        try:
            if condition(values) is not True:
                return Verdict()
        except IronbellError as error:
            faults.append(f"expression '{given.expression}' resulted in error: {error.message}")
    if faults:
        why = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        return Verdict() if policy.ignores_failures else Verdict((Failure(why),))
    return None


def _failure(policy: Policy, check: Check, index: int, values: Values) -> Failure | None:
    validation = check.validation
    try:
        if check.holds(values) is True:
            return None
    except IronbellError as error:
        if policy.ignores_failures:
            return None
        return Failure(f"expression '{validation.expression}' resulted in error: {error.message}", index=index)
    message = _composed(check, values) or validation.message.strip()
    return Failure(
        message or f"failed expression: {validation.expression.strip()}", validation.reason or "Invalid", index
    )


def _composed(check: Check, values: Values) -> str:
    """The message that an expression gives; empty if it fails, or gives something that is no message."""
    if check.message is None:
        return ""
    try:
        found = check.message(values)
    except IronbellError:
        return ""
    message = found.strip() if isinstance(found, str) else ""
    return "" if "\n" in message or len(message.encode()) > MAX_MESSAGE_BYTES else message


def _annotations(policy: Policy, values: Values, failures: list[Failure]) -> dict[str, str]:
    """Notes for the audit log; one that cannot be made is a failure."""
    found: dict[str, str] = {}
    for key, expression in policy.annotations:
        try:
            value = expression(values)
        except IronbellError as error:
            if not policy.ignores_failures:
                failures.append(Failure(f"audit annotation '{key}' resulted in error: {error.message}"))
            continue
        if isinstance(value, str):
            found[f"{policy.name}/{key}"] = value
    return found

"""Validation rules (`x-kubernetes-validations`), evaluated once the structure is valid.

A callable compiles each rule once, in the language of `codec.cel`. Without one, rules are not evaluated. Their cost is
taken from the budget around them (`codec.cel.costs.meter`).

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema/cel/validation.go (order, messages, what a value is
compared with on update).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from ironbell.apiserver.fielderrors import (
    FieldError,
    MapKey,
    Path,
    duplicate,
    forbidden,
    invalid,
    quoted,
    render,
    required,
)
from ironbell.apiserver.warnings import warn
from ironbell.base.errors import IronbellError
from ironbell.codec import effort
from ironbell.codec.cel.costs.meter import OBJECT_BUDGET, CallLimitExceeded, OutOfBudget, budgeted, left
from ironbell.codec.cel.errors import NoOverloadError
from ironbell.codec.effort import TooMuchEffort

Rule = Callable[[Any, Any], Any]
"""A compiled expression over (self, oldSelf); oldSelf is None where there is no old value."""


MAX_MESSAGE_BYTES = 5 * 1024
"""Limit of a message that an expression returns."""
EXHAUSTED = "validation failed due to running out of cost budget, no further validation rules will be run"
ALLOWANCE_S = 10.0
"""Limit of processor time, for all rules about one object, where kube-apiserver's budget is too wide."""
_FAILURES = (IronbellError, ArithmeticError, LookupError, TypeError, ValueError)


class _Exhausted(Exception):  # noqa: N818 - what happened
    """The budget is exhausted: no further rule may be evaluated for an object. The error was reported."""


class CompileRule(Protocol):
    """Compiles an expression for values of a schema; with `optional_old`, oldSelf is an optional value.

    `gives` is the type that the expression must have.

    A rule that cannot be evaluated raises an error with the cause.
    """

    def __call__(
        self, rule: str, schema: Mapping[str, Any], *, optional_old: bool = False, gives: str = "bool"
    ) -> Rule: ...


CheckRules = Callable[[Any, Any, Path, list[FieldError]], None]

_OMITTED_WORDS = {"FieldValueDuplicate": "Duplicate value"}
_OLD_SELF = re.compile(r"\boldSelf\b")


class _Prepared(msgspec.Struct, frozen=True):
    evaluate: Rule
    text: str
    message: str
    message_rule: Rule | None
    message_text: str
    reason: str
    field_path: str
    type: str
    needs_old: bool
    uses_old: bool
    mentions_old: bool
    """Whether the rule or its message uses the old value. An unused old value may be one that is no longer allowed."""
    ratchets: bool


def compile_rules(
    schema: Mapping[str, Any], compile_rule: CompileRule | None, *, ratchets: bool = True
) -> CheckRules | None:
    """A closure that evaluates all rules of a schema's tree; None where there are none.

    With `ratchets`, a value that breaks a rule is tolerated if it was stored already.
    """
    if compile_rule is None:
        return None
    rules = schema.get("x-kubernetes-validations", ())
    own = [_prepare(rule, schema, compile_rule, ratchets=ratchets) for rule in rules]
    nested = _compile_nested(schema, compile_rule, ratchets=ratchets)
    if not own and nested is None:
        return None

    def check(value: Any, old: Any, path: Path, errors: list[FieldError]) -> None:
        if value is None:
            return
        if own and left() <= 0:
            errors.append(invalid(render(path) or "<nil>", own[0].type, EXHAUSTED))
            raise _Exhausted
        for rule in own:
            _check_rule(rule, value, old, path, errors)
        if nested is not None:
            nested(value, old, path, errors)

    return check


def check_rules(check: CheckRules, value: Any, old: Any, errors: list[FieldError]) -> None:
    """Add the errors of an object, with kube-apiserver's budget for all its rules."""
    try:
        with effort.limited(ALLOWANCE_S), budgeted(OBJECT_BUDGET):
            check(value, old, None, errors)
    except _Exhausted:
        pass  # reported already
    except TooMuchEffort:
        errors.append(invalid("", "object", EXHAUSTED))


def _prepare(
    rule: Mapping[str, Any], schema: Mapping[str, Any], compile_rule: CompileRule, *, ratchets: bool
) -> _Prepared:
    text = rule["rule"].strip()
    expression = rule.get("messageExpression", "")
    expression = expression if expression.strip() else ""
    optional = bool(rule.get("optionalOldSelf"))
    return _Prepared(
        evaluate=compile_rule(text, schema, optional_old=optional),
        text=text,
        message=rule.get("message", "").strip(),
        message_rule=compile_rule(expression, schema, optional_old=optional, gives="string") if expression else None,
        message_text=expression,
        reason=rule.get("reason", "FieldValueInvalid"),
        field_path=rule.get("fieldPath", ""),
        type=schema.get("type", ""),
        needs_old=bool(_OLD_SELF.search(text)) and not optional,
        uses_old=bool(_OLD_SELF.search(text)),
        mentions_old=bool(_OLD_SELF.search(f"{text} {expression}")),
        ratchets=ratchets,
    )


def _check_rule(rule: _Prepared, value: Any, old: Any, path: Path, errors: list[FieldError]) -> None:
    if rule.needs_old and old is None:
        return
    where = render(path) + rule.field_path
    where = where.removeprefix(".") or "<nil>"
    old_value = old if rule.mentions_old else None
    place, description = render(path) or "<nil>", rule.message or rule.text
    try:
        if rule.evaluate(value, old_value):
            return
    except OutOfBudget as error:
        errors.append(invalid(place, rule.type, EXHAUSTED))
        raise _Exhausted from error
    except CallLimitExceeded as error:
        detail = (
            f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {description}"
        )
        errors.append(invalid(place, rule.type, detail))
        raise _Exhausted from error
    except TooMuchEffort:
        raise
    except _FAILURES as error:
        detail = f"{error} evaluating rule: {description}"
        if isinstance(error, NoOverloadError):
            detail = f"'{error}': call arguments did not match a supported operator, function or macro signature for "
            detail += f"rule: {description}"
        errors.append(invalid(place, rule.type, detail))
        return
    is_tolerated = rule.ratchets and not rule.uses_old and old is not None and value == old
    try:
        fault = _fault(rule.reason, where, value, _message(rule, value, old_value))
    except _Exhausted as error:
        # A message that exceeds the budget ends the evaluation, even where the error would be tolerated.
        fault = invalid(where, rule.type, str(error))
        _report(fault, errors, is_tolerated=is_tolerated)
        raise
    _report(fault, errors, is_tolerated=is_tolerated)


def _report(fault: FieldError, errors: list[FieldError], *, is_tolerated: bool) -> None:
    """Report an error; one that was stored already is tolerated, with a warning."""
    if is_tolerated:
        warn(str(fault))
    else:
        errors.append(fault)


def _message(rule: _Prepared, value: Any, old_value: Any) -> str:
    """The message about a value that breaks a rule.

    Raises:
        _Exhausted: the expression of the message exceeds the budget.
    """
    if rule.message_rule is not None:
        try:
            composed = rule.message_rule(value, old_value)
        except OutOfBudget as error:
            cause = "messageExpression evaluation failed due to running out of cost budget"
            raise _Exhausted(f"{cause}, no further validation rules will be run") from error
        except CallLimitExceeded as error:
            cause = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
            raise _Exhausted(f"{cause}: {quoted(rule.message_text)}") from error
        except TooMuchEffort:
            raise
        except _FAILURES:
            composed = ""  # as without an expression
        text = composed.strip() if isinstance(composed, str) else ""
        if text and "\n" not in text and len(text.encode()) <= MAX_MESSAGE_BYTES:
            return text
    return rule.message or f"failed rule: {rule.text}"


def _fault(reason: str, where: str, value: Any, message: str) -> FieldError:
    if reason == "FieldValueForbidden":
        return forbidden(where, message)
    if reason == "FieldValueRequired":
        return required(where, message)
    if isinstance(value, dict | list):
        return FieldError(reason, where, f"{_OMITTED_WORDS.get(reason, 'Invalid value')}: {message}")
    if reason == "FieldValueDuplicate":
        return duplicate(where, value)
    return invalid(where, value, message)


def _compile_nested(schema: Mapping[str, Any], compile_rule: CompileRule, *, ratchets: bool) -> CheckRules | None:
    items = schema.get("items")
    if isinstance(items, Mapping):
        return _over_items(compile_rules(items, compile_rule, ratchets=ratchets), _item_keys(schema))
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        return _over_values(compile_rules(additional, compile_rule, ratchets=ratchets))
    children = {
        name: check
        for name, sub in schema.get("properties", {}).items()
        if (check := compile_rules(sub, compile_rule, ratchets=ratchets)) is not None
    }
    return _over_properties(children) if children else None


def _over_properties(children: dict[str, CheckRules]) -> CheckRules:
    def check(value: Any, old: Any, path: Path, errors: list[FieldError]) -> None:
        if not isinstance(value, dict):
            return
        old_fields = old if isinstance(old, dict) else {}
        for name, child in children.items():
            if name in value:
                child(value[name], old_fields.get(name), (path, name), errors)

    return check


def _over_values(child: CheckRules | None) -> CheckRules | None:
    if child is None:
        return None

    def check(value: Any, old: Any, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, dict):
            old_values = old if isinstance(old, dict) else {}
            for key, sub in value.items():
                child(sub, old_values.get(key), (path, MapKey(key)), errors)

    return check


def _item_keys(schema: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(schema["x-kubernetes-list-map-keys"]) if schema.get("x-kubernetes-list-type") == "map" else ()


def _over_items(child: CheckRules | None, keys: tuple[str, ...]) -> CheckRules | None:
    if child is None:
        return None

    def mark(item: Any) -> tuple[Any, ...]:
        return tuple(item.get(key) for key in keys) if isinstance(item, dict) else ()

    def check(value: Any, old: Any, path: Path, errors: list[FieldError]) -> None:
        if not isinstance(value, list):
            return
        # Only items of maps can be matched with the old list.
        old_items = {mark(item): item for item in old} if keys and isinstance(old, list) else {}
        for index, item in enumerate(value):
            child(item, old_items.get(mark(item)), (path, index), errors)

    return check

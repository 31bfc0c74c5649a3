"""Validation rules (`x-kubernetes-validations`), asked once the structure is sound.

The language itself is not here: a callable compiles each rule once. Without one, rules are not asked.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema/cel/validation.go (order, messages, what a value is
compared with on update).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from ironbell.apiserver.fielderrors import FieldError, duplicate, forbidden, invalid, required
from ironbell.apiserver.schema.paths import MapKey, Path, render
from ironbell.apiserver.warnings import warn
from ironbell.base.errors import IronbellError
from ironbell.codec.effort import TooMuchEffort

Rule = Callable[[Any, Any], Any]
"""A compiled expression over (self, oldSelf); oldSelf is None where there is no old value."""


class CompileRule(Protocol):
    """Compiles an expression for values of a schema; with `optional_old`, oldSelf is an optional value.

    `gives` is the type that the expression must have.

    The rule raises an error whose text says what failed when it cannot be evaluated.
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
    reason: str
    field_path: str
    type: str
    needs_old: bool
    uses_old: bool
    mentions_old: bool
    """In the rule or in its message. An old value that nobody asks for may be one that is not allowed any more."""
    ratchets: bool


def compile_rules(
    schema: Mapping[str, Any], compile_rule: CompileRule | None, *, ratchets: bool = True
) -> CheckRules | None:
    """A closure that asks all rules of a schema's tree; None where there are none.

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
        for rule in own:
            _ask(rule, value, old, path, errors)
        if nested is not None:
            nested(value, old, path, errors)

    return check


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
        reason=rule.get("reason", "FieldValueInvalid"),
        field_path=rule.get("fieldPath", ""),
        type=schema.get("type", ""),
        needs_old=bool(_OLD_SELF.search(text)) and not optional,
        uses_old=bool(_OLD_SELF.search(text)),
        mentions_old=bool(_OLD_SELF.search(f"{text} {expression}")),
        ratchets=ratchets,
    )


def _ask(rule: _Prepared, value: Any, old: Any, path: Path, errors: list[FieldError]) -> None:
    if rule.needs_old and old is None:
        return
    where = render(path) + rule.field_path
    where = where.removeprefix(".") or "<nil>"
    before = old if rule.mentions_old else None
    try:
        if rule.evaluate(value, before):
            return
        message = rule.message or f"failed rule: {rule.text}"
        if rule.message_rule is not None:
            composed = rule.message_rule(value, before)
            message = composed if isinstance(composed, str) and composed.strip() else message
    except TooMuchEffort:
        raise
    except (IronbellError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        told = rule.message or rule.text
        detail = f"{error} evaluating rule: {told}"
        if str(error).startswith("no such overload"):
            detail = f"'{error}': call arguments did not match a supported operator, function or macro signature for "
            detail += f"rule: {told}"
        errors.append(invalid(render(path) or "<nil>", rule.type, detail))
        return
    fault = _fault(rule.reason, where, value, message)
    if rule.ratchets and not rule.uses_old and old is not None and value == old:
        # What was stored already is tolerated, and told.
        warn(str(fault))
    else:
        errors.append(fault)


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
        before = old if isinstance(old, dict) else {}
        for name, child in children.items():
            if name in value:
                child(value[name], before.get(name), (path, name), errors)

    return check


def _over_values(child: CheckRules | None) -> CheckRules | None:
    if child is None:
        return None

    def check(value: Any, old: Any, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, sub in value.items():
                child(sub, before.get(key), (path, MapKey(key)), errors)

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
        # Only items of maps can be found again in the old list.
        before = {mark(item): item for item in old} if keys and isinstance(old, list) else {}
        for index, item in enumerate(value):
            child(item, before.get(mark(item)), (path, index), errors)

    return check

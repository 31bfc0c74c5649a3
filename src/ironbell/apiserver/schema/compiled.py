"""Compiled schemas: the steps of a write, in this order: prune, default, validate.

Compiling happens once per resource version (at open, or when a CRD is committed); the result is kept in closures, so
that a write touches only the values that the schema restricts.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema (pruning, defaulting, listtype, cel).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from ironbell.apiserver.fielderrors import FieldError, invalid
from ironbell.apiserver.schema.defaults import Default, compile_defaults
from ironbell.apiserver.schema.prune import Prune, compile_prune
from ironbell.apiserver.schema.ratchet import intolerable
from ironbell.apiserver.schema.rules import EXHAUSTED, CheckRules, CompileRule, check_rules, compile_rules
from ironbell.apiserver.schema.validate import Check, compile_check
from ironbell.codec import effort
from ironbell.codec.effort import TooMuchEffort

Decode = Callable[[Any, str, str], str]
"""Returns the first type error of a value as text, or empty; takes the struct's name and the field's path."""

ALLOWANCE_S = 0.5
"""Limit of processor time, for all patterns of one object's schema."""
_BLOCKING = frozenset({
    "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid",
})  # fmt: skip
"""Kinds of errors after which rules cannot be evaluated."""
_RULES_SKIPPED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_OF_PARTS = frozenset({"type", "description", "properties", "required", "x-kubernetes-validations"})
"""Keywords of a whole object's schema that allow its parts to be checked one by one."""
ROOT_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


class CompiledSchema(msgspec.Struct, frozen=True):
    """The closures of one schema; a missing one has nothing to do."""

    _prune: Prune | None
    _default: Default | None
    _check: Check | None
    _rules: CheckRules | None
    _decode: Decode | None = None
    _ratchet: Mapping[str, Any] | None = None
    """The schema, if faults that an object had already are tolerated."""
    _needed: frozenset[str] = frozenset()
    _check_parts: Check | None = None
    """Like `_check`, for an object with all required fields, and only for its changed parts; None if the schema
    restricts the whole object, too.
    """

    def misfit(self, value: dict[str, Any]) -> str:
        """Return why an object cannot be decoded as its kind, or empty; only built-in kinds are typed so."""
        return self._decode(value, "", "") if self._decode is not None else ""

    @property
    def has_defaults(self) -> bool:
        return self._default is not None

    def prune(self, value: dict[str, Any]) -> list[str]:
        """Drop unknown fields, in place, and return their paths."""
        dropped: list[str] = []
        if self._prune is not None:
            self._prune(value, None, dropped)
        return dropped

    def default(self, value: dict[str, Any]) -> None:
        """Fill in defaults, in place."""
        if self._default is not None:
            self._default(value)

    def validate(self, value: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
        """Errors of an object, without those that `old` had already; rules are evaluated if its structure is valid."""
        errors: list[FieldError] = []
        try:
            with effort.limited(ALLOWANCE_S):
                if self._check is not None:
                    if old is None or self._ratchet is None or self._check_parts is None or self._needed - value.keys():
                        self._check(value, None, errors)
                    else:
                        self._check_parts(_changed(value, old), None, errors)
                    if errors and old is not None and self._ratchet is not None:
                        errors = intolerable(errors, self._ratchet, value, old)
        except TooMuchEffort:
            errors.append(invalid("", "object", EXHAUSTED))
            return errors
        if self._rules is not None:
            if any(error.kind in _BLOCKING for error in errors):
                errors.append(invalid("<nil>", None, _RULES_SKIPPED))
            else:
                check_rules(self._rules, value, old, errors)
        return errors


def _changed(value: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """The changed parts: errors in others would be tolerated, so they are not checked. Status and spec are written
    separately, and each is most of an object.
    """
    return {
        name: part
        for name, part in value.items()
        if not (name in old and type(part) is type(old[name]) and part == old[name])
    }


def _check_of_parts(schema: Mapping[str, Any]) -> Check | None:
    if schema.keys() - _OF_PARTS:
        return None
    return compile_check({name: value for name, value in schema.items() if name != "required"})


def compile_schema(
    schema: Mapping[str, Any], *, compile_rule: CompileRule | None = None, ratchets: bool = True
) -> CompiledSchema:
    """Compile the schema of a whole object; type and object metadata are kept whatever the schema has for them.

    With `ratchets`, faults that an object had already are tolerated.
    """
    body = dict(schema)
    properties = {name: sub for name, sub in schema.get("properties", {}).items() if name not in ROOT_FIELDS}
    open_root = {**body, "properties": properties}
    return CompiledSchema(
        _prune=compile_prune(open_root, keep=ROOT_FIELDS),
        _default=compile_defaults(open_root),
        _check=compile_check(body),
        _rules=compile_rules(body, compile_rule, ratchets=ratchets),
        _ratchet=body if ratchets else None,
        _needed=frozenset(body.get("required", ())),
        _check_parts=_check_of_parts(body),
    )


class Shape:
    """A schema as plain data, and compiled."""

    def __init__(
        self, load: Callable[[], dict[str, Any]], prepare: Callable[[dict[str, Any]], CompiledSchema] = compile_schema
    ) -> None:
        self._load = load
        self._prepare = prepare

    @cached_property
    def schema(self) -> dict[str, Any]:
        """OpenAPI v3 schema with all references resolved."""
        return self._load()

    @cached_property
    def compiled(self) -> CompiledSchema:
        """The compiled schema."""
        return self._prepare(self.schema)


def plain_shape(schema: dict[str, Any]) -> Shape:
    """The shape of a schema that is in memory."""
    return Shape(lambda: schema)

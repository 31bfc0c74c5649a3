"""A schema made ready: what a write goes through, in this order: prune, default, validate.

Compiling happens once per resource version (at open, or when a CRD is committed); what is compiled is kept in
closures, so that a write touches only what the schema says something about.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema (pruning, defaulting, listtype, cel).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ironbell.apiserver.fielderrors import FieldError, invalid
from ironbell.apiserver.schema.defaults import Default, compile_defaults
from ironbell.apiserver.schema.prune import Prune, compile_prune
from ironbell.apiserver.schema.ratchet import intolerable
from ironbell.apiserver.schema.rules import EXHAUSTED, CheckRules, CompileRule, ask_rules, compile_rules
from ironbell.apiserver.schema.validate import Check, compile_check
from ironbell.codec import effort
from ironbell.codec.effort import TooMuchEffort

Decode = Callable[[Any, str, str], str]
"""Gives the first misfit of a value as text, or nothing; takes the struct's name and the field's path."""

ALLOWANCE_S = 0.5
"""Of processor time, for all patterns that one object is checked with."""
_BLOCKING = frozenset({
    "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid",
})  # fmt: skip
"""Faults after which rules cannot be asked."""
_NOT_ASKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_OF_PARTS = frozenset({"type", "description", "properties", "required", "x-kubernetes-validations"})
"""What a schema of a whole object may have for its parts to be checked one by one."""
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
    """As `_check`, for an object that has all that is needed, without those of its parts that did not change; None
    where the schema says more of the whole than what parts it has."""

    def misfit(self, value: dict[str, Any]) -> str:
        """Why an object cannot be decoded as its kind, or empty; only built-in kinds are typed so."""
        return self._decode(value, "", "") if self._decode is not None else ""

    @property
    def has_defaults(self) -> bool:
        return self._default is not None

    def prune(self, value: dict[str, Any]) -> list[str]:
        """Drop what the schema does not know, in place, and give the paths dropped."""
        dropped: list[str] = []
        if self._prune is not None:
            self._prune(value, None, dropped)
        return dropped

    def default(self, value: dict[str, Any]) -> None:
        """Fill in defaults, in place."""
        if self._default is not None:
            self._default(value)

    def validate(self, value: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
        """Faults of an object, without those that `old` had already; rules are asked unless its structure forbids."""
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
                errors.append(invalid("<nil>", None, _NOT_ASKED))
            else:
                ask_rules(self._rules, value, old, errors)
        return errors


def _changed(value: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """The parts that are not as they were: faults in others would be tolerated, so nobody looks for them. Status and
    spec are written apart, and each is most of an object."""
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
    """Compile the schema of a whole object; type and object metadata are kept whatever it says about them.

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

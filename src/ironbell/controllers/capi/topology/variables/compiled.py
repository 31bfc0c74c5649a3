"""Schemas of a ClusterClass's variables, compiled by the embedded API's own machinery.

Controllers do not import that machinery; they receive these schemas.

Source: kubernetes-sigs/cluster-api: internal/topology/variables (schema.go, clusterclass_variable_validation.go).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from ironbell.apiserver.crds.schemas import schema_faults
from ironbell.apiserver.fielderrors import FieldError
from ironbell.apiserver.schema.compiled import CompiledSchema, compile_schema
from ironbell.base.errors import IronbellError
from ironbell.codec.cel import compile_rule
from ironbell.contract.admission import FieldProblem
from ironbell.controllers.capi.topology.variables.values import UNSET, ValueSchema
from ironbell.kube.decision import Fields

_VALUE = "variableValue"
_PLACE = re.compile(rf'"?{_VALUE}[^ ]* in body ')
"""Location inside the text of a problem, which the path already contains."""
_CLASS_ONLY_WORDS = ("x-metadata",)
_TOTAL = ("estimated rule cost total", "estimated rule & messageExpression cost total")
"""Texts about the total cost of rules, of definitions and of classes."""


class VariableSchemas:
    """Satisfies `Schemas`."""

    def compiled(self, schema: Fields) -> ValueSchema:
        return _compiled(msgspec.json.encode(schema))

    def problems(self, schema: Fields, path: str) -> list[FieldProblem]:
        inner = f"{path}.properties[{_VALUE}]"
        faults = schema_faults(_wrapped(_structural(schema)), path, compile_rule=compile_rule)
        return [
            FieldProblem(fault.field.replace(inner, path, 1), fault.kind, fault.body.replace(*_TOTAL))
            for fault in faults
            if not fault.field.endswith(".uniqueItems")  # allowed in classes, unlike in definitions
        ]


class _Value:
    """Satisfies `ValueSchema`."""

    def __init__(self, schema: Fields) -> None:
        self._schema = _structural(schema)
        # in this order: a rule may fail because of a problem of the structure
        self._compiled: CompiledSchema = compile_schema(_wrapped(self._schema), ratchets=False)
        self._rules: CompiledSchema = compile_schema(_wrapped(self._schema), compile_rule=compile_rule, ratchets=False)

    def default(self, value: Any) -> Any:
        holder: dict[str, Any] = {} if value is UNSET else {_VALUE: _copy(value)}
        self._compiled.default(holder)
        return holder.get(_VALUE, UNSET)

    def problems(self, value: Any, old: Any, path: str) -> list[FieldProblem]:
        holder = {_VALUE: _copy(value)}
        if errors := self._compiled.validate(holder):
            return [_placed(error, path) for error in errors]
        unknown = [field.removeprefix(f"{_VALUE}.") for field in self._compiled.prune(holder)]
        if not unknown:
            # the old value is used even if it has problems, since rules may compare with it
            old_holder = None if old is UNSET or old is None else {_VALUE: old}
            return [_placed(error, path) for error in self._rules.validate(holder, old_holder)]
        detail = f'failed validation: "{",".join(unknown)}" field(s) are not specified in the variable schema'
        shown = msgspec.json.encode(msgspec.json.encode(value).decode()).decode()
        return [FieldProblem(path.removesuffix(".value"), "FieldValueInvalid", f"Invalid value: {shown}: {detail}")]


@lru_cache(maxsize=4096)
def _compiled(schema: bytes) -> _Value | _Broken:
    try:
        return _Value(msgspec.json.decode(schema))
    except (IronbellError, ValueError, TypeError, LookupError, RecursionError) as error:
        return _Broken(str(error))


class _Broken:
    """A schema that cannot be used. Satisfies `ValueSchema`."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def default(self, value: Any) -> Any:
        return value

    def problems(self, value: Any, old: Any, path: str) -> list[FieldProblem]:
        detail = f"Internal error: the schema in the ClusterClass cannot be used: {self._reason}"
        return [FieldProblem(path, "InternalError", detail)]


def _structural(schema: Any) -> Any:
    """A schema without the words that only classes have."""
    if not isinstance(schema, Mapping):
        return schema
    kept = {name: value for name, value in schema.items() if name not in _CLASS_ONLY_WORDS}
    for name in ("items", "additionalProperties", "not"):
        if name in kept:
            kept[name] = _structural(kept[name])
    for name in ("allOf", "anyOf", "oneOf"):
        if isinstance(kept.get(name), list):
            kept[name] = [_structural(part) for part in kept[name]]
    if isinstance(kept.get("properties"), Mapping):
        kept["properties"] = {name: _structural(part) for name, part in kept["properties"].items()}
    return kept


def _wrapped(schema: Fields) -> Fields:
    return {"type": "object", "properties": {_VALUE: schema}}


def _placed(error: FieldError, path: str) -> FieldProblem:
    where = error.field
    where = path + where.removeprefix(_VALUE) if where.startswith(_VALUE) else path
    return FieldProblem(where, error.kind, _PLACE.sub("", error.body).replace(_VALUE, path))


def _copy(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))

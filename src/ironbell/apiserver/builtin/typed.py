"""The schema of a built-in kind made ready.

Differs from a custom resource's in what its owner, a Go struct, would do: values that do not fit are refused as
undecodable, zero values vanish, and what a schema requires is left to the kind's own rules.
"""

from __future__ import annotations

from typing import Any

from ironbell.apiserver.builtin.decode import compile_decode
from ironbell.apiserver.builtin.normal import compile_normal
from ironbell.apiserver.fielderrors import FieldError
from ironbell.apiserver.schema.compiled import ROOT_FIELDS, CompiledSchema
from ironbell.apiserver.schema.defaults import compile_defaults
from ironbell.apiserver.schema.paths import Path
from ironbell.apiserver.schema.prune import compile_prune


def compile_typed(schema: dict[str, Any]) -> CompiledSchema:
    """Compile the schema of a built-in kind."""
    properties = {name: sub for name, sub in schema.get("properties", {}).items() if name not in ROOT_FIELDS}
    body = {**schema, "properties": properties}
    decode, normalise, default = compile_decode(schema), compile_normal(body), compile_defaults(body)

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        fault = decode(value, "", "")
        if fault:
            errors.append(FieldError("FieldValueTypeInvalid", "", fault))

    def prepare(value: Any) -> None:
        if normalise is not None:
            normalise(value)
        if default is not None:
            default(value)

    return CompiledSchema(compile_prune(body, keep=ROOT_FIELDS), prepare, check, None)

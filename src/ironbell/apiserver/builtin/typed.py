"""Compilation of a built-in kind's schema.

It differs from a custom resource's as a Go struct does: values of the wrong type are rejected as undecodable, zero
values vanish, and the server's defaults are code.
"""

from __future__ import annotations

from typing import Any

from ironbell.apiserver.builtin.decode import compile_decode
from ironbell.apiserver.builtin.normal import compile_normal
from ironbell.apiserver.builtin.required import compile_required
from ironbell.apiserver.schema.compiled import ROOT_FIELDS, CompiledSchema
from ironbell.apiserver.schema.prune import compile_prune


def compile_typed(schema: dict[str, Any]) -> CompiledSchema:
    """Compile the schema of a built-in kind."""
    properties = {name: sub for name, sub in schema.get("properties", {}).items() if name not in ROOT_FIELDS}
    body = {**schema, "properties": properties}
    return CompiledSchema(
        _prune=compile_prune(body, keep=ROOT_FIELDS, is_typed=True),
        _default=compile_normal(body),
        _check=compile_required(body),
        _rules=None,
        _decode=compile_decode(schema),
    )

"""The schema of one resource version, read and compiled when it is first needed.

Most served kinds are never used: a server starts quickly and stays small only if it does not compile their schemas.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ironbell.apiserver.schema.compiled import CompiledSchema, compile_schema


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

"""Types of expressions and of schemas, and names of fields in expressions.

Source: google/cel-spec: doc/langdef.md, "Gradual Type Checking"; kubernetes/apiserver: pkg/cel/common/schemas.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_ESCAPES = {"__dot__": ".", "__dash__": "-", "__slash__": "/", "__underscores__": "__"}
_KEYWORDS = {
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
    "let", "loop", "package", "namespace", "return", "var", "void", "while",
}  # fmt: skip


def field_names(field: str) -> tuple[str, ...]:
    """The names that a selector may mean: as written, and unescaped by Kubernetes' rule for CEL property names."""
    plain = field
    if field.startswith("__") and field.endswith("__") and field[2:-2] in _KEYWORDS:
        plain = field[2:-2]
    for escape, text in _ESCAPES.items():
        plain = plain.replace(escape, text)
    return (field,) if plain == field else (field, plain)


@dataclass(frozen=True, slots=True)
class Type:
    """A type; lists, maps and optional values have parameters, objects have fields."""

    name: str
    of: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = field(default=None, compare=False)
    schema: int = 0
    """Identity of an object type."""

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.of))})" if self.of else self.name


DYN, BOOL, INT, UINT, DOUBLE = Type("dyn"), Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null")
TIMESTAMP, DURATION, TYPE = Type("timestamp"), Type("duration"), Type("type")
QUANTITY, IP, CIDR, URL = Type("quantity"), Type("ip"), Type("cidr"), Type("url")
_FORMATS = {"date-time": TIMESTAMP, "date": TIMESTAMP, "duration": DURATION, "byte": BYTES}
_META = Type("object", fields={"name": STRING, "generateName": STRING}, schema=-1)
RESOURCE = {"apiVersion": STRING, "kind": STRING, "metadata": _META}
TYPE_NAMES = {
    "bool": "bool", "int": "int", "uint": "uint", "double": "double", "string": "string", "bytes": "bytes",
    "list": "list", "map": "map", "null_type": "null_type", "type": "type",
}  # fmt: skip
"""Names that stand for types, with the name of a value's type when rules are evaluated."""


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(item: Type) -> Type:
    return Type("optional_type", (item,))


def declared(schema: Mapping[str, Any]) -> Type | None:
    """The type of a schema's values; None where they cannot be looked into."""
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    match schema.get("type"):
        case "array":
            item = declared(schema["items"]) if isinstance(schema.get("items"), Mapping) else None
            return list_of(item) if item is not None else None
        case "object":
            return _object(schema)
        case "string":
            return _FORMATS.get(schema.get("format", ""), STRING)
        case "boolean":
            return BOOL
        case "integer":
            return INT
        case "number":
            return DOUBLE
    return None


def _object(schema: Mapping[str, Any]) -> Type | None:
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        value = declared(additional)
        return map_of(STRING, value) if value is not None else None
    properties = schema.get("properties") or {}
    if not properties and schema.get("x-kubernetes-preserve-unknown-fields") and not _is_resource(schema):
        return None
    fields = {name: field_type for name, sub in properties.items() if (field_type := declared(sub)) is not None}
    if _is_resource(schema):
        fields |= RESOURCE
    return Type("object", fields=fields, schema=id(schema))


def _is_resource(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def fits(actual: Type, expected: Type) -> bool:
    """Return whether a value of one type may stand in place of the other, as far as types can decide."""
    if "dyn" in (actual.name, expected.name):
        return True
    if actual.name != expected.name or len(actual.of) != len(expected.of):
        return False
    if actual.name == "object":
        return actual.schema == expected.schema
    return all(fits(a, b) for a, b in zip(actual.of, expected.of, strict=True))

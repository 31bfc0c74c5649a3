"""Names of fields in expressions, where a property's name is not an identifier or is a word of the language.

Source: kubernetes/apiserver: pkg/cel/escaping.go.
"""

from __future__ import annotations

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

"""Warnings to the client, in the `Warning` header.

Source: RFC 7234 section 5.5; kubernetes/apiserver: pkg/warning, pkg/endpoints/filters/warning.go.
"""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 20


def headers(texts: Iterable[str]) -> list[tuple[str, str]]:
    """One header for each text, up to a limit."""
    return [("Warning", f"299 - {_quoted(text)}") for text in list(texts)[:_MOST]]


def _quoted(text: str) -> str:
    printable = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

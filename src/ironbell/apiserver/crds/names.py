"""Names of a definition: what they may be, and what follows from them.

Source: kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, invalid, required
from ironbell.apiserver.metadata import label_1035_fault


def names_faults(names: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Faults of the names of a kind."""
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"{path}.{field}")
    for field in ("plural", "singular"):
        name = names.get(field)
        if name and (fault := label_1035_fault(name)):
            yield invalid(f"{path}.{field}", name, fault)
    for field in ("kind", "listKind"):
        name = names.get(field)
        if name and (fault := label_1035_fault(name.lower())):
            yield invalid(f"{path}.{field}", name, f"may have mixed case, but should otherwise match: {fault}")
    yield from _word_faults(names, path, "shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    yield from _word_faults(names, path, "categories")


def _word_faults(names: dict[str, Any], path: str, field: str) -> Iterator[FieldError]:
    for index, word in enumerate(names.get(field) or ()):
        if fault := label_1035_fault(word):
            yield invalid(f"{path}.{field}[{index}]", word, fault)

"""Names of a definition: what they may be, and what follows from them.

Source: kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, invalid, required

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_DNS_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def label_fault(name: str) -> str:
    """Why a name is no DNS-1035 label, or empty."""
    if len(name) > 63:
        return "must be no more than 63 bytes"
    return "" if _DNS_1035.fullmatch(name) else _DNS_1035_TEXT


def names_faults(names: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Faults of the names of a kind."""
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"{path}.{field}")
    for field in ("plural", "singular"):
        name = names.get(field)
        if name and (fault := label_fault(name)):
            yield invalid(f"{path}.{field}", name, fault)
    for field in ("kind", "listKind"):
        name = names.get(field)
        if name and (fault := label_fault(name.lower())):
            yield invalid(f"{path}.{field}", name, f"may have mixed case, but should otherwise match: {fault}")
    yield from _word_faults(names, path, "shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    yield from _word_faults(names, path, "categories")


def _word_faults(names: dict[str, Any], path: str, field: str) -> Iterator[FieldError]:
    for index, word in enumerate(names.get(field) or ()):
        if fault := label_fault(word):
            yield invalid(f"{path}.{field}[{index}]", word, fault)

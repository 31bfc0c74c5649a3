"""Plurals of the names of kinds, for messages. What a kind's objects are called in the API its definition says."""

from __future__ import annotations

import re
from typing import Final

_ES: Final = re.compile(r"(s|x|z|ch|sh)$")
_IES: Final = re.compile(r"[^aeiou]y$")


def plural_of(kind: str) -> str:
    """`Machine` to `Machines`, `Policy` to `Policies`, `Class` to `Classes`."""
    if _ES.search(kind):
        return f"{kind}es"
    if _IES.search(kind):
        return f"{kind[:-1]}ies"
    return f"{kind}s"

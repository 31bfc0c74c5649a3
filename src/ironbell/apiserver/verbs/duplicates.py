"""Fields that a JSON text has twice: decoders keep the last and say nothing.

Source: kubernetes-sigs/json: internal/golang/encoding/json/kubernetes_patch.go (paths of duplicate fields).
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_MEMBER = re.compile(rb'"\s*:')


class _Members(list[tuple[str, Any]]):
    """The members of an object, duplicates among them."""


def duplicate_fields(body: bytes, value: dict[str, Any]) -> list[str]:
    """Paths of the fields that `body` has more than once; `value` is what it decodes to."""
    # What was lost in decoding is missing when it is written again; looking for it is slow and seldom needed.
    if len(_MEMBER.findall(body)) == len(_MEMBER.findall(msgspec.json.encode(value))):
        return []
    found: list[str] = []
    _walk(json.loads(body, object_pairs_hook=_Members), "", found)
    return found


def _walk(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Members):
        seen: set[str] = set()
        for name, sub in value:
            where = f"{path}.{name}" if path else name
            if name in seen and where not in found:
                found.append(where)
            seen.add(name)
            _walk(sub, where, found)
    elif isinstance(value, list):
        for index, sub in enumerate(value):
            _walk(sub, f"{path}[{index}]", found)

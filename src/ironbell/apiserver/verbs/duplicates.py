"""Fields that a JSON text has twice: decoders keep the last and say nothing.

Source: kubernetes-sigs/json: internal/golang/encoding/json/kubernetes_patch.go (paths of duplicate fields).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

_MEMBER = re.compile(rb'"\s*:')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def duplicate_fields(body: bytes, value: dict[str, Any]) -> list[str]:
    """Paths of the fields that `body` has more than once; `value` is what it decodes to."""
    # What was lost in decoding is missing when it is written again; looking for it is slow and seldom needed.
    if len(_MEMBER.findall(body)) == len(_MEMBER.findall(msgspec.json.encode(value))):
        return []
    found: list[str] = []
    tokens = (match[0] for match in _TOKEN.finditer(body))
    _walk(next(tokens), tokens, "", found)
    return found


def _walk(token: bytes, tokens: Iterator[bytes], path: str, found: list[str]) -> None:
    """Go through one value; the text is known to be JSON."""
    if token == b"{":
        seen: set[str] = set()
        while (token := next(tokens)) != b"}":
            if token == b",":
                continue
            name = msgspec.json.decode(token, type=str)
            where = f"{path}.{name}" if path else name
            if name in seen and where not in found:
                found.append(where)
            seen.add(name)
            next(tokens)  # the colon
            _walk(next(tokens), tokens, where, found)
    elif token == b"[":
        index = 0
        while (token := next(tokens)) != b"]":
            if token == b",":
                index += 1
            else:
                _walk(token, tokens, f"{path}[{index}]", found)

"""Fields that a JSON text has twice: decoders keep the last and say nothing.

Source: kubernetes-sigs/json: internal/golang/encoding/json/kubernetes_patch.go (paths of duplicate fields).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

_MEMBER = re.compile(rb'"\s*:')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class TextFaults(msgspec.Struct, frozen=True):
    """What a text has twice, and where in the text each field is."""

    duplicates: dict[str, int] = {}
    """Paths of the fields that are there more than once, with the position of the second one."""
    positions: dict[str, int] = {}
    """Paths of all fields with their positions; empty without duplicates."""

    def with_unknown(self, unknown: Sequence[str], *, in_text_order: bool) -> list[str]:
        """All faults of the text, as messages: duplicates before unknown fields, or each in its place."""
        found = [(position, f'duplicate field "{path}"') for path, position in self.duplicates.items()]
        last = len(self.positions)
        found += [(self.positions.get(path, last), f'unknown field "{path}"') for path in unknown]
        if in_text_order and self.duplicates:
            found.sort(key=lambda fault: fault[0])
        return [message for _, message in found]


NO_FAULTS = TextFaults()


def text_faults(body: bytes, value: dict[str, Any]) -> TextFaults:
    """The fields that `body` has more than once; `value` is what it decodes to."""
    # What was lost in decoding is missing when it is written again; looking for it is slow and seldom needed.
    if len(_MEMBER.findall(body)) == len(_MEMBER.findall(msgspec.json.encode(value))):
        return NO_FAULTS
    found = TextFaults({}, {})
    tokens = (match[0] for match in _TOKEN.finditer(body))
    _walk(next(tokens), tokens, "", found)
    return found


def _walk(token: bytes, tokens: Iterator[bytes], path: str, found: TextFaults) -> None:
    """Go through one value; the text is known to be JSON."""
    if token == b"{":
        seen: set[str] = set()
        while (token := next(tokens)) != b"}":
            if token == b",":
                continue
            name = msgspec.json.decode(token, type=str)
            where = f"{path}.{name}" if path else name
            position = len(found.positions) + len(found.duplicates)
            if name in seen:
                found.duplicates.setdefault(where, position)
            else:
                found.positions.setdefault(where, position)
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

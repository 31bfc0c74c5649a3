"""Fields that a JSON text has twice: decoders keep the last and say nothing.

Source: kubernetes-sigs/json: internal/golang/encoding/json/kubernetes_patch.go (paths of duplicate fields).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ironbell.apiserver import status

_SET_VALUE = re.compile(r"\[(\d+)\]\.value\.(.+)")
_MEMBER = re.compile(rb'"\s*:')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class TextFaults(msgspec.Struct, frozen=True):
    """What a text has twice, and where in the text each field is."""

    duplicates: dict[str, int] = {}
    """Paths of the fields that are there more than once, with the position of the second one."""
    positions: dict[str, int] = {}
    """Paths of all fields with their positions; empty without duplicates."""
    lines: tuple[str, ...] = ()
    """The same as readers of YAML say it, line by line."""
    patched: tuple[str, ...] = ()
    """The same of a JSON patch, as messages."""

    def with_unknown(self, unknown: Sequence[str], *, in_text_order: bool) -> list[str]:
        """All faults of the text, as messages: duplicates before unknown fields, or each in its place.

        Whoever goes through a text in its order does not look into unknown fields, nor for a second one of them.
        """
        if in_text_order and self.duplicates:
            gone = set(unknown)
            found = [
                (position, f'duplicate field "{path}"')
                for path, position in self.duplicates.items()
                if path not in gone
            ]
            found += [(self.positions.get(path, 0), f'unknown field "{path}"') for path in unknown]
            return [message for _, message in sorted(found, key=lambda fault: fault[0])]
        twice = [f'duplicate field "{path}"' for path in self.duplicates]
        return [*self.lines, *self.patched, *twice, *(f'unknown field "{path}"' for path in unknown)]

    def as_refusal(self, found: Sequence[str]) -> str:
        """What strict validation says of messages of `with_unknown`: lines of YAML are one of its faults."""
        if not self.lines:
            return status.not_strict(found)
        listed = "\n".join(("yaml: unmarshal errors:", *(f"  {line}" for line in self.lines)))
        return status.not_strict([listed, *found[len(self.lines) :]])


NO_FAULTS = TextFaults()


def text_faults(body: bytes, value: Any) -> TextFaults:
    """The fields that `body` has more than once; `value` is what it decodes to."""
    # What was lost in decoding is missing when it is written again; looking for it is slow and seldom needed.
    if len(_MEMBER.findall(body)) == len(_MEMBER.findall(msgspec.json.encode(value))):
        return NO_FAULTS
    found = TextFaults({}, {})
    tokens = (match[0] for match in _TOKEN.finditer(body))
    _walk(next(tokens), tokens, "", found)
    return found


def json_patch_faults(body: bytes, operations: list[Any]) -> TextFaults:
    """What a JSON patch has twice, in itself and in the values that it sets."""
    found = text_faults(body, operations)
    values: dict[str, int] = {}
    for path in found.duplicates:
        match = _SET_VALUE.fullmatch(path)
        operation = operations[int(match[1])] if match else None
        if match and isinstance(operation, dict) and operation.get("op") in ("add", "replace"):
            place = str(operation.get("path", "")).strip("/").replace("/", ".")
            values[f"{place}.{match[2]}"] = 0
    return TextFaults(values, patched=tuple(f'json patch duplicate field "{path}"' for path in found.duplicates))


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

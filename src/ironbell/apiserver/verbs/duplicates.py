"""Duplicate fields in a JSON text: decoders silently keep the last one.

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
    """Duplicate fields of a text, and the position of each field."""

    duplicates: dict[str, int] = {}
    """Paths of the duplicate fields, with the position of the second one."""
    positions: dict[str, int] = {}
    """Paths of all fields with their positions; empty without duplicates."""
    lines: tuple[str, ...] = ()
    """The duplicate fields as YAML readers report them, line by line."""
    patched: tuple[str, ...] = ()
    """The duplicate fields of a JSON patch, as messages."""

    def with_unknown(self, unknown: Sequence[str], *, in_text_order: bool) -> list[str]:
        """All problems of the text, as messages: duplicates before unknown fields, or in the order of the text.

        In the order of the text, unknown fields are not searched for duplicates, and are reported once.
        """
        if in_text_order and self.duplicates:
            unknown_paths = set(unknown)
            problems = [
                (position, f'duplicate field "{path}"')
                for path, position in self.duplicates.items()
                if path not in unknown_paths
            ]
            problems += [(self.positions.get(path, 0), f'unknown field "{path}"') for path in unknown]
            return [message for _, message in sorted(problems, key=lambda fault: fault[0])]
        twice = [f'duplicate field "{path}"' for path in self.duplicates]
        return [*self.lines, *self.patched, *twice, *(f'unknown field "{path}"' for path in unknown)]

    def error_message(self, problems: Sequence[str]) -> str:
        """The message of strict validation about problems of `with_unknown`; lines of YAML are one problem."""
        if not self.lines:
            return status.not_strict(problems)
        listed = "\n".join(("yaml: unmarshal errors:", *(f"  {line}" for line in self.lines)))
        return status.not_strict([listed, *problems[len(self.lines) :]])


NO_FAULTS = TextFaults()


def text_faults(body: bytes, value: Any) -> TextFaults:
    """The duplicate fields of `body`; `value` is what it decodes to."""
    # A value without losses encodes to the same length; the search for duplicates is slow and seldom needed.
    if len(_MEMBER.findall(body)) == len(_MEMBER.findall(msgspec.json.encode(value))):
        return NO_FAULTS
    problems = TextFaults({}, {})
    tokens = (match[0] for match in _TOKEN.finditer(body))
    _walk(next(tokens), tokens, "", problems)
    return problems


def json_patch_faults(body: bytes, operations: list[Any]) -> TextFaults:
    """The duplicate fields of a JSON patch, in itself and in the values that it sets."""
    problems = text_faults(body, operations)
    values: dict[str, int] = {}
    for path in problems.duplicates:
        match = _SET_VALUE.fullmatch(path)
        operation = operations[int(match[1])] if match else None
        if match and isinstance(operation, dict) and operation.get("op") in ("add", "replace"):
            place = str(operation.get("path", "")).strip("/").replace("/", ".")
            values[f"{place}.{match[2]}"] = 0
    return TextFaults(values, patched=tuple(f'json patch duplicate field "{path}"' for path in problems.duplicates))


def _walk(token: bytes, tokens: Iterator[bytes], path: str, problems: TextFaults) -> None:
    """Walk through one value; the text is known to be JSON."""
    if token == b"{":
        seen: set[str] = set()
        while (token := next(tokens)) != b"}":
            if token == b",":
                continue
            name = msgspec.json.decode(token, type=str)
            where = f"{path}.{name}" if path else name
            position = len(problems.positions) + len(problems.duplicates)
            if name in seen:
                problems.duplicates.setdefault(where, position)
            else:
                problems.positions.setdefault(where, position)
            seen.add(name)
            next(tokens)  # the colon
            _walk(next(tokens), tokens, where, problems)
    elif token == b"[":
        index = 0
        while (token := next(tokens)) != b"]":
            if token == b",":
                index += 1
            else:
                _walk(token, tokens, f"{path}[{index}]", problems)

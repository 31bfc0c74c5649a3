"""Hashes that are stored in labels and names, and therefore never change.

Source: kubernetes-sigs/cluster-api: util/labels/format/helpers.go; Go: hash/fnv (FNV-1a, 32 bits).
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from typing import Any, Final

import msgspec

_OFFSET: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def fnv32a(data: bytes) -> int:
    """FNV-1a with 32 bits."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & 0xFFFFFFFF
    return value


def label_value(text: str) -> str:
    """A name as the value of a label: itself where it can be one, else its hash."""
    if _LABEL_VALUE.fullmatch(text):
        return text
    digest = urlsafe_b64encode(fnv32a(text.encode()).to_bytes(4, "big")).decode().rstrip("=")
    return f"hash_{digest}_z"


def stable_hash(value: Any) -> int:
    """Hash of plain data or structs: equal for equal data, whatever the order of their fields."""
    return fnv32a(msgspec.json.encode(value, order="deterministic"))

"""Randomness, injected: names, tokens, jitter.

Generated values are stored before they are used (docs/architecture.md, "A reconciler"), so a generator is only ever
called from an effect, never from a decision.
"""

from __future__ import annotations

import os
import random
import secrets
import threading
from typing import Protocol

# Kubernetes' alphabet for generated names: no vowels, no look-alikes (k8s.io/apimachinery: pkg/util/rand).
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_IDENTIFIER = 16
_READ_AHEAD = 4096
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Randomness(Protocol):
    """A source of random bytes and fractions."""

    def token_bytes(self, size: int) -> bytes: ...

    def fraction(self) -> float:
        """A float in [0, 1)."""
        ...


class SystemRandomness:
    """The operating system's generator. Bytes of identifiers are read ahead, because a call of the kernel takes as long
    as the rest of a uid; those of secrets, which are longer, are not."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ahead = memoryview(b"")
        self._process = 0

    def token_bytes(self, size: int) -> bytes:
        if size > _LONGEST_IDENTIFIER:
            return secrets.token_bytes(size)
        with self._lock:
            if len(self._ahead) < size or self._process != os.getpid():  # a forked process must not use the same bytes
                self._ahead, self._process = memoryview(secrets.token_bytes(_READ_AHEAD)), os.getpid()
            taken, self._ahead = self._ahead[:size], self._ahead[size:]
        return taken.tobytes()

    def fraction(self) -> float:
        return random.random()  # noqa: S311 - jitter only


class SeededRandomness:
    """A reproducible generator for tests and replay; never for secrets."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def token_bytes(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def fraction(self) -> float:
        return self._random.random()


def name_suffix(source: Randomness, length: int = 5) -> str:
    """A suffix as `metadata.generateName` gets it."""
    return "".join(NAME_ALPHABET[byte % len(NAME_ALPHABET)] for byte in source.token_bytes(length))


def uuid4(source: Randomness) -> str:
    """A random UUID (RFC 9562, section 5.4) in its text form."""
    raw = bytearray(source.token_bytes(16))
    raw[6] = (raw[6] & 0x0F) | 0x40
    raw[8] = (raw[8] & 0x3F) | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def ulid(milliseconds: int, source: Randomness) -> str:
    """A ULID: 48 bits of Unix time in milliseconds, 80 random bits, 26 Crockford base-32 digits."""
    value = (milliseconds & ((1 << 48) - 1)) << 80 | int.from_bytes(source.token_bytes(10), "big")
    return "".join(_CROCKFORD[(value >> shift) & 31] for shift in range(125, -5, -5))

"""Names with a suffix that looks random and is not: the same seed gives the same name.

A decision is pure, and one that is taken again after a crash must name the object that was already made. A seed holds
what makes the object this one and no other: the owner's uid, and a number or hash that is stored with the owner and
grows with every object made.

Source: kubernetes/apiserver: pkg/storage/names/generate.go; kubernetes/apimachinery: pkg/util/rand/rand.go (alphabet).
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no digits that look like letters, so that no words come out."""
SUFFIX_LENGTH: Final = 5
MAX_NAME: Final = 63


def suffix(*seed: str | int, length: int = SUFFIX_LENGTH) -> str:
    """Characters that follow from the seed."""
    number = int.from_bytes(sha256("\0".join(map(str, seed)).encode()).digest(), "big")
    characters = []
    for _ in range(length):
        number, position = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[position])
    return "".join(characters)


def generated_name(base: str, *seed: str | int) -> str:
    """A base (which usually ends in a dash), cut if need be, and a suffix; at most 63 characters."""
    return base[: MAX_NAME - SUFFIX_LENGTH] + suffix(*seed)

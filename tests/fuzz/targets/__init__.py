"""The targets by name. Each module has `one(data)`, which raises where something is wrong, and says what is fuzzed."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

NAMES = ("dhcp", "tftp", "grpc_frames", "cloud_init", "redfish", "inventory", "templates")


class Target(Protocol):
    """What a module of this folder has."""

    INSTRUMENTED: tuple[str, ...]
    """Packages and modules whose branches guide the fuzzer."""
    WORDS: tuple[bytes, ...]
    """What it puts into inputs now and then."""
    LONGEST: int
    """Bytes of an input."""
    SEEDS: tuple[bytes, ...]
    """Inputs that it begins with, beside the corpus."""

    def one(self, data: bytes) -> None:
        """Feed one input; raises whatever is wrong."""
        ...


def load(name: str) -> Target:
    """The target of this name."""
    return cast(Target, importlib.import_module(f"{__name__}.{name}"))

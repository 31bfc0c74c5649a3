"""The oracle: a small Go program that asks rules exactly as kube-apiserver does.

It is built once per content of its sources and kept in the user's cache; without a Go toolchain, or without its
modules, the tests that ask it are skipped and say why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from support.programs.oracles import go_oracle


class Answer(msgspec.Struct, rename="camel"):
    """What Go says of the rules of a schema, and of values."""

    compile: list[str] = []
    costs: list[int] = []
    """Estimates of the rules."""
    message_costs: list[int] = []
    values: list[list[dict[str, str]]] | None = None
    actual: list[list[int]] | None = None
    """What each rule costs for each value."""
    broken: str = ""


Oracle = Callable[[Sequence[dict[str, Any]]], list[Answer]]


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Ask the real libraries; one answer per case, in order."""
    return go_oracle("cel", Answer)

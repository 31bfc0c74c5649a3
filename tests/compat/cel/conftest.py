"""The oracle: a small Go program that asks rules exactly as kube-apiserver does.

It is built once per content of its sources and kept in the user's cache; without a Go toolchain, or without its
modules, the tests that ask it are skipped and say why.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.skips import missing_program


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
    try:
        binary = build_program("cel")
    except CannotBuild as error:
        missing_program(f"Go oracle: {error}")

    def ask(cases: Sequence[dict[str, Any]]) -> list[Answer]:
        lines = b"\n".join(msgspec.json.encode(case) for case in cases) + b"\n"
        done = subprocess.run([str(binary)], input=lines, capture_output=True, timeout=300)
        answers = [msgspec.json.decode(line, type=Answer) for line in done.stdout.splitlines()]
        assert len(answers) == len(cases), f"Go died at {cases[len(answers)]}: {done.stderr[:300]!r}"
        return answers

    return ask

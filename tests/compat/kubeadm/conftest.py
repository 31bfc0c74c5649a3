"""The oracle: a small Go program around Cluster API's own packages for bootstrap data."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.skips import missing_program


@dataclass(frozen=True)
class Answer:
    """What upstream renders, or why it does not."""

    data: str
    warnings: str
    error: str


Oracle = Callable[[Sequence[dict[str, Any]]], list[Answer]]


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Ask upstream's packages; one answer per request, in order."""
    try:
        binary = build_program("bootstrapdata")
    except CannotBuild as error:
        missing_program(f"Go oracle: {error}")

    def ask(requests: Sequence[dict[str, Any]]) -> list[Answer]:
        lines = b"\n".join(msgspec.json.encode(request) for request in requests) + b"\n"
        done = subprocess.run([str(binary)], input=lines, capture_output=True, timeout=300)
        answers = [msgspec.json.decode(line, type=Answer) for line in done.stdout.splitlines()]
        assert len(answers) == len(requests), f"Go died at {requests[len(answers)]}: {done.stderr[:2000]!r}"
        return answers

    return ask

"""The oracle: a small Go program around Cluster API's own packages for conditions and versions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.skips import missing_program

Oracle = Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Ask upstream's packages; one answer per request, in order."""
    try:
        binary = build_program("conditions")
    except CannotBuild as error:
        missing_program(f"Go oracle: {error}")

    def ask(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        lines = b"\n".join(msgspec.json.encode(request) for request in requests) + b"\n"
        done = subprocess.run([str(binary)], input=lines, capture_output=True, timeout=300)
        answers = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(requests), f"Go died at {requests[len(answers)]}: {done.stderr[:2000]!r}"
        return answers

    return ask

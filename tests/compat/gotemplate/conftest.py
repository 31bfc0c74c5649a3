"""The oracle: a small Go program around the real text/template, sprig and YAML libraries.

It is built once per content of its sources and kept in the user's cache; without a Go toolchain, or without its
modules, the tests that ask it are skipped and say why.
"""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.skips import missing_program

_ADDRESS = re.compile(rb"0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class Answer:
    """What Go did: its output, or the stage at which it failed."""

    output: bytes | None
    stage: str
    error: str

    @property
    def comparable(self) -> bytes | None:
        """The output with pointers' addresses made equal."""
        return None if self.output is None else _ADDRESS.sub(b"ADDRESS", self.output)


Oracle = Callable[[Sequence[dict[str, Any]]], list[Answer]]


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Ask the real libraries; one answer per case, in order."""
    try:
        binary = build_program("gotemplate")
    except CannotBuild as error:
        missing_program(f"Go oracle: {error}")

    def ask(cases: Sequence[dict[str, Any]]) -> list[Answer]:
        lines = b"\n".join(msgspec.json.encode(case) for case in cases) + b"\n"
        done = subprocess.run([str(binary)], input=lines, capture_output=True, timeout=300)
        answers = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(cases), f"Go died at {cases[len(answers)]}: {done.stderr[:300]!r}"
        return [
            Answer(
                base64.b64decode(answer["out"] or "") if answer["ok"] else None,
                answer.get("stage", ""),
                answer.get("error", ""),
            )
            for answer in answers
        ]

    return ask

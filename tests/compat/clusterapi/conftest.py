"""The oracle: a small Go program around Cluster API's own conversion functions."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import msgspec
import pytest

from support.capi.conversionoracle import Answer, Oracle, Question
from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.skips import missing_program


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Ask upstream's functions; one answer per question, in order."""
    try:
        binary = build_program("capiconversion")
    except CannotBuild as error:
        missing_program(f"Go oracle: {error}")

    def ask(questions: Sequence[Question]) -> list[Answer]:
        if not questions:
            return []
        lines = b"\n".join(msgspec.json.encode(question) for question in questions) + b"\n"
        done = subprocess.run([str(binary)], input=lines, capture_output=True, timeout=300)
        answers = [msgspec.json.decode(line, type=Answer) for line in done.stdout.splitlines()]
        assert len(answers) == len(questions), f"Go died at {questions[len(answers)]}: {done.stderr[:2000]!r}"
        return answers

    return ask

"""Small Go programs around upstream's own packages, which answer questions: a line of JSON each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.skips import missing_program

AnswerT = TypeVar("AnswerT")


def go_oracle(program: str, answers_as: type[AnswerT]) -> Callable[[Sequence[Any]], list[AnswerT]]:
    """What asks a program of the catalog: one answer per question, in order. The test is skipped if it cannot be
    built."""
    try:
        binary = build_program(program)
    except CannotBuild as error:
        missing_program(f"Go oracle: {error}")

    def ask(questions: Sequence[Any]) -> list[AnswerT]:
        if not questions:
            return []
        lines = b"\n".join(msgspec.json.encode(question) for question in questions) + b"\n"
        done = subprocess.run([str(binary)], input=lines, capture_output=True, timeout=300)
        answers = [msgspec.json.decode(line, type=answers_as) for line in done.stdout.splitlines()]
        assert len(answers) == len(questions), f"Go died at {questions[len(answers)]}: {done.stderr[:2000]!r}"
        return answers

    return ask

"""The oracle: a small Go program around the real text/template, sprig and YAML libraries.

It is built once per content of its sources and kept in the user's cache; without a Go toolchain, or without its
modules, the tests that ask it are skipped and say why.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from support.programs.oracles import go_oracle

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
    ask_go = go_oracle("gotemplate", dict[str, Any])

    def ask(cases: Sequence[dict[str, Any]]) -> list[Answer]:
        return [
            Answer(
                base64.b64decode(answer["out"] or "") if answer["ok"] else None,
                answer.get("stage", ""),
                answer.get("error", ""),
            )
            for answer in ask_go(cases)
        ]

    return ask

"""The committed inputs: one text file for each target, an input in each line, written as Python writes bytes."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"


def read(name: str) -> list[bytes]:
    """The inputs of a target; none where there is no file."""
    path = FOLDER / f"{name}.txt"
    if not path.exists():
        return []
    return [ast.literal_eval(line) for line in path.read_text("ascii").splitlines() if line]


def write(name: str, inputs: Iterable[bytes]) -> Path:
    """Replace the inputs of a target."""
    path = FOLDER / f"{name}.txt"
    path.write_text("".join(f"{data!r}\n" for data in sorted(inputs, key=lambda one: (len(one), one))), "ascii")
    return path

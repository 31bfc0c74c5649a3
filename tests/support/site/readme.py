"""The shell examples of a page, as a reader pastes them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[list[str]]:
    """The commands of each block; one that goes on over several lines is one."""
    found = (block.replace("\\\n", " ").splitlines() for block in _BLOCK.findall(page.read_text()))
    return [[line for line in lines if line.strip()] for lines in found]

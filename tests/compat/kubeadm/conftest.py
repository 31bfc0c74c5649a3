"""The oracle: a small Go program around Cluster API's own packages for bootstrap data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from support.programs.oracles import go_oracle


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
    return go_oracle("bootstrapdata", Answer)

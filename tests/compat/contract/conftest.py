"""The oracle: a small Go program around Cluster API's own packages for conditions and versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from support.programs.oracles import go_oracle

Oracle = Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Ask upstream's packages; one answer per request, in order."""
    return go_oracle("conditions", dict[str, Any])

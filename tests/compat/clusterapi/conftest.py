"""The oracle: a small Go program around Cluster API's own conversion functions."""

from __future__ import annotations

import pytest

from support.capi.conversionoracle import Answer, Oracle
from support.programs.oracles import go_oracle


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Ask upstream's functions; one answer per question, in order."""
    return go_oracle("capiconversion", Answer)

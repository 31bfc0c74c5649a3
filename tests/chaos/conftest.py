"""One site for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.faultlab import FaultLab, fault_lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    """A running site on a network of its own, with machines made of namespaces."""
    with fault_lab(tmp_path_factory.mktemp("lab")) as made:
        yield made

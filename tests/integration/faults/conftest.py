"""One site for the tests of a module: the embedded API's, and in soak a real API server's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.lab.cluster import cluster_lab
from support.lab.faults import FaultLab, fault_lab


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.soak)])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    """A running site on a network of its own, with machines made of namespaces."""
    folder = tmp_path_factory.mktemp("lab")
    if request.param == "embedded":
        with fault_lab(folder) as made:
            yield made
    else:
        with cluster_lab(folder, request.getfixturevalue("on_cluster")) as made:
            yield made

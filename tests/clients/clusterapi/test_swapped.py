"""Each of Cluster API's three managers, upstream's or ours, in any mixture: on simulated machines a cluster comes up,
and goes away again. Ours of a component that is upstream's is left out, with its kinds and their admission."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from support.capi.mixtures import Site, mixture
from support.capi.site import cluster_documents
from support.programs.gobuild import CannotBuild
from support.skips import missing_program

MIXTURES = ["".join(letters) for letters in product("UO", repeat=3)]
"""Core, bootstrap, control plane: `U` is upstream's, `O` is ours."""
QUICK = {"UOO"}
"""Upstream's managers look for a new cluster every 30 seconds: one mixture is what there is time for."""


@pytest.fixture(params=[pytest.param(one, marks=() if one in QUICK else pytest.mark.soak) for one in MIXTURES])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    try:
        with mixture(request.param, tmp_path) as made:
            yield made
    except CannotBuild as error:
        missing_program(f"Cluster API managers: {error}")


def test_a_cluster_comes_up_and_goes(site: Site) -> None:
    site.apply(cluster_documents(control_planes=1, workers=2, vm="0s"))
    site.runs(3)
    site.gone()

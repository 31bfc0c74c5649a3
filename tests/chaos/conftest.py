"""One site for the tests of a module."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.api.histories import checker
from support.lab.faults import FaultLab, fault_lab
from support.programs.gobuild import CannotBuild
from support.skips import missing_program


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    """A running site on a network of its own, with machines made of namespaces."""
    with fault_lab(tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture(scope="session")
def history_checker() -> Path:
    """The program that holds histories against the API's promises."""
    try:
        return checker()
    except CannotBuild as error:
        missing_program(f"checker of histories: {error}")


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    """Chance: the same each time where a change is judged, and another in soak; the seed is printed if a test fails."""
    seed = random.SystemRandom().getrandbits(32) if request.node.get_closest_marker("soak") else 1
    print(f"seed {seed}")
    return random.Random(seed)

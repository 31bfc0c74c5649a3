"""Random walks over what people do with clusters on few servers, through real processes; see `support.lives.walk`.

`make test` has two short walks, which together do everything that a walk can, through `ironbell up`; `make soak` has
thirty longer ones, also with a kube-apiserver.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from support.lives.processes import LONG, SHORT, SHORT_S, SHORT_SEEDS, SHORT_STEPS, Walked, walk
from support.lives.rigs import RIGS
from support.programs.gobuild import CannotBuild
from support.programs.kubectl import NoKubectl, find_kubectl
from support.skips import missing_program

_ASKED: Final = {"create", "create again", "scale", "upgrade", "replace", "delete"}
EVERYTHING: Final = _ASKED | {"kill up", "kill wire", "stop", "start", "settle", "lack"}
SLOWER: Final = 3
SOAK_SEEDS: Final = range(30)


@pytest.fixture(scope="module")
def walked() -> dict[int, Walked]:
    """The short walks that have been walked, by seed."""
    return {}


@pytest.fixture(autouse=True)
def _kubectl() -> None:
    try:
        find_kubectl()
    except NoKubectl as error:
        missing_program(error)


@pytest.mark.parametrize("seed", SHORT_SEEDS)
def test_a_short_walk_ends_as_asked(
    seed: int, tmp_path: Path, walked: dict[int, Walked], print_figures: Callable[[str], None]
) -> None:
    done = walk(seed, tmp_path / "site", RIGS["embedded"], steps=SHORT_STEPS, pace=SHORT)
    walked[seed] = done
    print_figures(str(done))
    assert not done.failure, done.failure
    assert done.took_s < SLOWER * SHORT_S


def test_short_walks_do_everything(walked: dict[int, Walked], tmp_path: Path) -> None:
    for seed in set(SHORT_SEEDS) - walked.keys():  # which this run does not have
        walked[seed] = walk(seed, tmp_path / f"site-{seed}", RIGS["embedded"], steps=SHORT_STEPS, pace=SHORT)
    assert {word for one in walked.values() for word in one.done} == EVERYTHING


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
@pytest.mark.parametrize("form", sorted(RIGS))
def test_a_walk_ends_as_asked(form: str, seed: int, tmp_path: Path, print_figures: Callable[[str], None]) -> None:
    try:
        done = walk(seed, tmp_path / "site", RIGS[form], pace=LONG)
    except CannotBuild as error:
        missing_program(f"real Kubernetes: {error}")
    print_figures(f"{form}: {done}")
    assert not done.failure, done.failure
    shutil.rmtree(tmp_path, ignore_errors=True)  # sixty of them would be kept

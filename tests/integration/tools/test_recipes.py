"""The recipes of docs/contributing hold: each, followed in a copy, touches the files that its page lists, and works."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from support.recipes import Recipe, copy_repository, follow, listed_on, read_recipe, run, touched

NAMES = ("driver", "field", "action", "route", "page", "benchmark")
_PLACEHOLDER = re.compile(r"(?<![A-Za-z])[A-Z][A-Z_]+(?![a-z])")


@pytest.fixture(params=NAMES)
def followed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Recipe, Path]:
    recipe, copy = read_recipe(request.param), copy_repository(tmp_path)
    follow(request.param, recipe, copy)
    return recipe, copy


def test_a_recipe_touches_what_its_page_lists_and_works(followed: tuple[Recipe, Path]) -> None:
    recipe, copy = followed
    files = touched(copy)
    assert set(recipe.generated) <= set(files)
    by_hand = sorted(set(files) - set(recipe.generated))
    patterns = [_PLACEHOLDER.sub("*", path) for path in listed_on(recipe.page)]
    unlisted = [path for path in by_hand if not any(fnmatchcase(path, pattern) for pattern in patterns)]
    assert unlisted == [], f"{recipe.page} does not list them"
    assert len(by_hand) == len(patterns), f"{recipe.page} lists {patterns}, and following it touches {by_hand}"
    if recipe.tests:
        run(copy, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *recipe.tests)


def test_the_example_of_a_benchmark_prints_its_ratio(tmp_path: Path) -> None:
    copy = copy_repository(tmp_path)
    follow("benchmark", read_recipe("benchmark"), copy)
    output = run(copy, "bench/checksums.py", "--megabytes", "4", "--rounds", "1")
    assert re.search(r"^ratio +\d+\.\d\d x sha256sum$", output, re.MULTILINE)

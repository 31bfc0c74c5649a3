"""Fixtures shared by all tests; each subject has its own module in `support`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Machines that run tests are busy: how long an example takes says nothing. Where a change is judged, the same examples
# are tried each time, so that a change is judged by what it changed; `--hypothesis-profile=desk` and soak try new ones.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("judged", settings.get_profile("desk"), derandomize=True)
settings.load_profile("judged")

sys.path.insert(0, str(Path(__file__).parent))
# what the tests share asserts too: it shall say what it saw
pytest.register_assert_rewrite("support")

pytest_plugins = [
    "support.cluster",
    "support.embeddedcluster",
    "support.installation",
    "support.kubectl",
    "support.pythonclients",
    "support.realcluster",
    "support.components",
    "support.lanes",
    "support.progress",
    "support.skips",
]

LONG = ("soak", "kubeadm")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--part 1/2` runs every second module, for another process that runs the others at the same time."""
    parser.addoption("--part", help="run one of several parts of the modules, as 1/2", metavar="PART/PARTS")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long tests out unless `-m` or a test's own name requests them: a folder's tests are to end soon."""
    if part := config.getoption("--part"):
        _keep_part(config, items, *map(int, part.split("/")))
    if config.getoption("-m") or any("::" in argument for argument in config.args):
        return
    long = [item for item in items if any(item.get_closest_marker(mark) for mark in LONG)]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def _keep_part(config: pytest.Config, items: list[pytest.Item], part: int, parts: int) -> None:
    order = {path: index for index, path in enumerate(sorted({item.path for item in items}))}
    others = [item for item in items if order[item.path] % parts != part - 1]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if order[item.path] % parts == part - 1]

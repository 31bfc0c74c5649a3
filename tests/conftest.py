"""Fixtures shared by all tests; each subject has its own module in `support`."""

from __future__ import annotations

import signal
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
    "support.api.cluster",
    "support.site.embeddedcluster",
    "support.servers.installation",
    "support.programs.kubectl",
    "support.programs.pythonclients",
    "support.api.realcluster",
    "support.site.components",
    "support.lanes",
    "support.progress",
    "support.resume",
    "support.skips",
]

LONG = ("soak", "kubeadm")

# A shell lets what it runs in the background ignore Ctrl-C; so would the processes that tests interrupt, for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long tests out unless `-m` or a test's own name requests them: a folder's tests are to end soon."""
    if config.getoption("-m") or any("::" in argument for argument in config.args):
        return
    long = [item for item in items if any(item.get_closest_marker(mark) for mark in LONG)]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]

"""The agent imports only what the in-memory OS has."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import packages_distributions

from ironbell.agent.builtins import MODULES
from ironbell.osie.contents import AGENT_DISTRIBUTIONS

LOAD = """
import importlib, sys
for name in {absent!r}:
    sys.modules[name] = None
for name in {modules!r}:
    importlib.import_module(name)
"""


def test_agent_and_actions_need_no_other_distributions() -> None:
    modules = ["ironbell.agent.__main__", *(f"ironbell.agent.actions.{name}" for name in sorted(set(MODULES.values())))]
    there = {name.lower() for name in AGENT_DISTRIBUTIONS} | {"ironbell"}
    absent = [top for top, owners in packages_distributions().items() if not there & {name.lower() for name in owners}]
    assert "yaml" in absent
    done = subprocess.run(
        [sys.executable, "-c", LOAD.format(absent=absent, modules=modules)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

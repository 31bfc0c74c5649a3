"""What a run of several processes prints while it lasts: a line for each module that has ended, and for each failure.

pytest's own dots say no names there, and what a test prints on its terminal is lost.
"""

from __future__ import annotations

import textwrap
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

_FIGURES: Final = "figures"
_CAUSE: Final = 400
"""Characters of a failure that are printed at once."""


@pytest.fixture
def print_figures(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Print what a test has measured, though it passes, in a line of the run's output."""
    return lambda text: request.node.user_properties.append((_FIGURES, text))


class Figures:
    """Prints figures as soon as their test has ended."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, value in report.user_properties:
                if name == _FIGURES:
                    self._terminal.write_line(str(value))


class Progress:
    """Prints modules and failures instead of dots."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal
        self._count = self._ended = 0
        self._left: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()
        self._outcomes: dict[str, Counter[str]] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Count what is to be run; all processes have collected the same."""
        self._count = len(ids)
        self._left = Counter(map(_module, ids))

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Any:
        """The category of an outcome, without its letter and word: nothing is printed for it."""
        category, *_ = yield
        if isinstance(report, pytest.TestReport) and category:
            self._outcomes.setdefault(_module(report.nodeid), Counter())[category] += 1
        return category, "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count, and print what is complete."""
        module = _module(report.nodeid)
        self._seconds[module] += report.duration
        if report.failed:
            where = "" if report.when == "call" else f", in its {report.when}"
            self._terminal.write_line(f"FAILED {report.nodeid}{where}: {_cause(report)}", red=True)
        if report.when == "teardown":
            self._ended += 1
            self._left[module] -= 1
            if not self._left[module]:
                self._terminal.write_line(self._line(module))

    def _line(self, module: str) -> str:
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self._outcomes.pop(module, Counter()).items()))
        share = 100 * self._ended // max(self._count, 1)
        return f"{time.strftime('%H:%M:%S')} {share:3}%  {module}: {outcomes} in {self._seconds[module]:.1f} s"


def _cause(report: pytest.TestReport) -> str:
    """Where and why a test has failed, in a line; the whole report is printed when the run has ended."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = f"{crash.path}:{crash.lineno}: {crash.message}" if crash else str(report.longrepr)
    return textwrap.shorten(text, _CAUSE)


def _module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Print in the process that has the terminal."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(Figures(terminal))
    if config.getoption("numprocesses", None) and config.get_verbosity() == 0:
        config.pluginmanager.register(Progress(terminal))

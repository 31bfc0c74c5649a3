"""A long run that was interrupted continues: what has passed on the same commit is not run again.

`--resume FILE` keeps the names of tests that have passed. The file belongs to one commit: for another commit, or with
uncommitted changes, a run starts from the beginning. A run that has passed as a whole removes the file.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

_OPTION: Final = "--resume"
_UNKNOWN: Final = "unknown"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addoption(_OPTION, metavar="FILE", help="do not run again what FILE says has passed on this commit")


def commit_of(folder: Path) -> str:
    """The commit that is checked out in a folder; `unknown` with uncommitted changes or outside a repository."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True)
    changes = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"], cwd=folder, capture_output=True, text=True
    )
    return _UNKNOWN if head.returncode or changes.returncode or changes.stdout.strip() else head.stdout.strip()


def read_passed(file: Path, commit: str) -> frozenset[str]:
    """The tests that have passed on a commit; none where the file is of another commit."""
    lines = file.read_text().splitlines() if file.exists() else []
    return frozenset(lines[1:]) if lines and lines[0] == commit != _UNKNOWN else frozenset()


class Resume:
    """Leaves out what has passed, and records what passes. Only the process that has the terminal records."""

    def __init__(self, file: Path, commit: str, records: bool) -> None:
        self._file = file
        self._passed = read_passed(file, commit)
        self._failed: set[str] = set()
        self._records = records
        if records and not self._passed:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{commit}\n")

    def pytest_report_header(self) -> str:
        """Say where the record is."""
        return f"resume: {len(self._passed)} tests passed earlier on this commit and are not run again ({self._file})"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect what has passed."""
        passed = [item for item in items if item.nodeid in self._passed]
        if passed:
            config.hook.pytest_deselected(items=passed)
            items[:] = [item for item in items if item.nodeid not in self._passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a test once its teardown has ended, unless a phase of it failed or was skipped."""
        if not report.passed:
            self._failed.add(report.nodeid)
        elif report.when == "teardown" and self._records and report.nodeid not in self._failed:
            with self._file.open("a") as file:
                file.write(f"{report.nodeid}\n")

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Forget the record of a run that has passed, so that the next run is a whole one."""
        if self._records and exitstatus == pytest.ExitCode.OK:
            self._file.unlink(missing_ok=True)


def pytest_configure(config: pytest.Config) -> None:
    """Resume only where a file is given."""
    if file := config.getoption(_OPTION):
        path = config.rootpath / file
        config.pluginmanager.register(
            Resume(path, commit_of(config.rootpath), records=not hasattr(config, "workerinput"))
        )

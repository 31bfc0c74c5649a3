"""A long run that was interrupted continues: what has passed is not run again.

`--resume FILE` keeps the names of tests that have passed, each with a digest of what is committed, but for the modules
of other tests: one that has failed can be corrected, and the others have still passed. With uncommitted changes, a run
starts from the beginning. A run that has passed as a whole removes the file.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

_OPTION: Final = "--resume"
_MODULE: Final = re.compile(r"tests/.*/test_[^/]*\.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addoption(_OPTION, metavar="FILE", help="do not run again what FILE records as passed on the same files")


@dataclass(frozen=True)
class Committed:
    """What is committed."""

    others: str
    """A digest of all files but modules of tests; empty with uncommitted changes, or outside a repository."""
    modules: Mapping[str, str]
    """Blobs of the modules of tests, by path."""

    def key(self, nodeid: str) -> str:
        """What a test has passed on; empty where that is unknown."""
        module = self.modules.get(nodeid.partition("::")[0])
        return hashlib.sha256(f"{self.others} {module}".encode()).hexdigest() if self.others and module else ""


def committed(folder: Path) -> Committed:
    """What is checked out in a folder, its root."""
    files, changes = (
        subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)
        for words in (("ls-tree", "-r", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
    )
    if files.returncode or changes.returncode or changes.stdout.strip():
        return Committed("", {})
    lines = [line.partition("\t") for line in files.stdout.splitlines()]
    modules = {path: what for what, _, path in lines if _MODULE.fullmatch(path)}
    others = [f"{what} {path}" for what, _, path in lines if path not in modules]
    return Committed(hashlib.sha256("\n".join(others).encode()).hexdigest(), modules)


def read_passed(file: Path, on: Committed) -> frozenset[str]:
    """The tests that have passed on what is committed."""
    lines = [line.partition(" ") for line in file.read_text().splitlines()] if file.exists() else []
    return frozenset(nodeid for key, _, nodeid in lines if key and key == on.key(nodeid))


class Resume:
    """Leaves out what has passed, and records what passes. Only the process that has the terminal records."""

    def __init__(self, file: Path, on: Committed, records: bool) -> None:
        self._file, self._on = file, on
        self._passed = read_passed(file, on)
        self._failed: set[str] = set()
        self._records = records
        if records:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{on.key(nodeid)} {nodeid}\n" for nodeid in sorted(self._passed)))

    def pytest_report_header(self) -> str:
        """Say where the record is."""
        return (
            f"resume: {len(self._passed)} tests passed earlier on the same files and are not run again ({self._file})"
        )

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
            return
        has_ended = report.when == "teardown" and report.nodeid not in self._failed
        if self._records and has_ended and (key := self._on.key(report.nodeid)):
            with self._file.open("a") as file:
                file.write(f"{key} {report.nodeid}\n")

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Forget the record of a run that has passed, so that the next run is a whole one."""
        if self._records and exitstatus == pytest.ExitCode.OK:
            self._file.unlink(missing_ok=True)


def pytest_configure(config: pytest.Config) -> None:
    """Resume only where a file is given."""
    if file := config.getoption(_OPTION):
        path = config.rootpath / file
        config.pluginmanager.register(
            Resume(path, committed(config.rootpath), records=not hasattr(config, "workerinput"))
        )

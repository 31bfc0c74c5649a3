"""Why tests are skipped: each reason begins with a category, and a run ends with a table of what was skipped and why.

With `REQUIRE=all` in the environment, as CI has it, a run in which something was skipped fails, unless what is missing
is upstream's text: that is not in this repository, and the same tests run on texts of ours (tests/facts). Tests of
another tier, which `make test` does not select, are not skipped.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from typing import NoReturn

import pytest

PROGRAM = "missing program"
PERMISSION = "missing permission"
UPSTREAMS_TEXT = "upstream's text"
CATEGORIES = (PROGRAM, PERMISSION, UPSTREAMS_TEXT)
OTHER = "no category"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason=f"{PERMISSION}: root")


def needs_program(*names: str) -> pytest.MarkDecorator:
    """A mark for tests that run these programs."""
    missing = _missing(names)
    return pytest.mark.skipif(bool(missing), reason=f"{PROGRAM}: {missing}")


def require_program(*names: str) -> str:
    """The path of the first of these programs; the test or fixture is skipped where one of them is not installed."""
    if missing := _missing(names):
        missing_program(missing)
    return shutil.which(names[0]) or ""


def require_root() -> None:
    """Skip the test or fixture unless this is root."""
    if os.geteuid() != 0:
        missing_permission("root")


def missing_program(reason: object) -> NoReturn:
    """Skip for a program that is not installed, and cannot be built or downloaded."""
    pytest.skip(f"{PROGRAM}: {reason}")


def missing_permission(reason: object) -> NoReturn:
    """Skip for something that this user, this container or this kernel may not do."""
    pytest.skip(f"{PERMISSION}: {reason}")


def category(reason: str) -> str:
    """The category that a reason begins with."""
    return next((name for name in CATEGORIES if reason.startswith(f"{name}: ")), OTHER)


def table(reasons: Counter[str]) -> list[str]:
    """The lines of the summary: per category how many, below it each reason with its count."""
    lines = []
    for name in (*CATEGORIES, OTHER):
        of_category = {reason: count for reason, count in reasons.items() if category(reason) == name}
        if of_category:
            lines.append(f"{sum(of_category.values()):5}  {name}")
            lines += [
                f"{count:10}  {' '.join(reason.removeprefix(f'{name}: ').split())[:150]}"
                for reason, count in sorted(of_category.items(), key=lambda item: (-item[1], item[0]))
            ]
    return lines


def unacceptable(reasons: Counter[str], environment: str | None) -> int:
    """How many of the skips make a run fail whose REQUIRE is this."""
    if environment != "all":
        return 0
    return sum(count for reason, count in reasons.items() if category(reason) != UPSTREAMS_TEXT)


def _missing(names: tuple[str, ...]) -> str:
    return ", ".join(name for name in names if shutil.which(name) is None)


def _reasons(config: pytest.Config) -> Counter[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter is not None else []
    texts = (report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr) for report in reports)
    return Counter(text.removeprefix("Skipped: ") for text in texts)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a misspelled REQUIRE, which would require nothing."""
    if (value := os.environ.get("REQUIRE")) not in (None, "", "all"):
        raise pytest.UsageError(f"REQUIRE is {value!r}: the one value that it can have is `all`")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let the run fail if it skipped what it may not skip."""
    if unacceptable(_reasons(session.config), os.environ.get("REQUIRE")) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    if not (reasons := _reasons(config)):
        return
    terminalreporter.section("what was skipped, and why")
    for line in table(reasons):
        terminalreporter.write_line(line)
    if count := unacceptable(reasons, os.environ.get("REQUIRE")):
        terminalreporter.write_line(
            f"REQUIRE=all: {count} of these are failures. Install what is missing (`make packages`), or run as root.",
            red=True,
        )

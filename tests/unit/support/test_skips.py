"""What a run reports of what it skipped, and when that makes it fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.skips import table, unacceptable

TESTS = Path(__file__).parents[2]
PROGRAM = """
import pytest
from support.skips import missing_permission, needs_program, require_program

@pytest.mark.parametrize("number", range(3))
@needs_program("no-such-program")
def test_marked(number): ...

def test_within():
    require_program("sh", "no-such-program")

def test_permission():
    missing_permission("loop devices: none here")
"""
TEXT = """
import pytest
from support.skips import UPSTREAMS_TEXT

@pytest.mark.skip(reason=f"{UPSTREAMS_TEXT}: it is not here")
def test_text(): ...

def test_other(): ...
"""
BARE = """
import pytest

def test_without_a_category():
    pytest.skip("later")
"""


def run(folder: Path, text: str, require: str | None) -> tuple[int, str]:
    (folder / "test_it.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "REQUIRE"}
    environment |= {"PYTHONPATH": str(TESTS)} | ({} if require is None else {"REQUIRE": require})
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, f"--rootdir={folder}", "-p", "support.skips"]
    done = subprocess.run([*command, folder], env=environment, cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_a_missing_program_is_counted_and_fails_only_where_all_is_required(tmp_path: Path) -> None:
    status, out = run(tmp_path, PROGRAM, None)
    lines = [line.split() for line in out.splitlines()]
    assert status == 0, out
    assert ["4", "missing", "program"] in lines
    assert ["4", "no-such-program"] in lines
    assert ["1", "missing", "permission"] in lines
    assert ["1", "loop", "devices:", "none", "here"] in lines
    status, out = run(tmp_path, PROGRAM, "all")
    assert status == 1
    assert "5 of these are failures" in out


def test_upstreams_text_may_be_missing(tmp_path: Path) -> None:
    status, out = run(tmp_path, TEXT, "all")
    assert status == 0, out
    assert "1  upstream's text" in out
    assert "are failures" not in out


def test_a_reason_without_a_category_fails_too(tmp_path: Path) -> None:
    assert run(tmp_path, BARE, "all")[0] == 1


def test_a_misspelled_requirement_is_refused(tmp_path: Path) -> None:
    status, out = run(tmp_path, TEXT, "al")
    assert status == 4
    assert "REQUIRE is 'al': the one value that it can have is `all`" in out


@pytest.mark.parametrize(("environment", "count"), [(None, 0), ("", 0), ("all", 3)])
def test_what_is_unacceptable(environment: str | None, count: int) -> None:
    reasons = Counter({"missing program: a": 2, "upstream's text: b": 4, "because": 1})
    assert unacceptable(reasons, environment) == count


def test_the_table_is_grouped_by_category_and_begins_with_what_is_most_frequent() -> None:
    reasons = Counter({"missing program: a": 1, "missing program: b\nc": 2, "because": 1})
    assert [line.split() for line in table(reasons)] == [
        ["3", "missing", "program"],
        ["2", "b", "c"],
        ["1", "a"],
        ["1", "no", "category"],
        ["1", "because"],
    ]

"""A run that was interrupted continues on the same files, and starts from the beginning on others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
IT = "tests/unit/test_it.py"
MODULE = """
import os, pytest

def record(name):
    with open(os.environ["RECORD"], "a") as file:
        print(name, file=file)

def test_first(): record("first")
def test_second():
    record("second")
    if os.environ["SECOND"] == "dies": os._exit(3)
    assert os.environ["SECOND"] == "passes"
def test_third():
    record("third")
@pytest.fixture
def broken():
    yield
    assert os.environ["SECOND"] == "passes"
def test_fourth(broken): record("fourth")
"""


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    module = tmp_path / IT
    module.parent.mkdir(parents=True)
    module.write_text(MODULE)
    (tmp_path / "product.py").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def run(folder: Path, second: str, *options: str) -> tuple[int, list[str], str]:
    """The run's status, which tests were run, and its output."""
    record = folder / "record"
    record.write_text("")
    kept = {name: value for name, value in os.environ.items() if name not in {"REQUIRE", "PYTEST_XDIST_WORKER"}}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, f"--rootdir={folder}", "-p", "support.resume",
         "--resume", "build/passed", *options, IT],
        env=kept | {"PYTHONPATH": str(TESTS), "RECORD": str(record), "SECOND": second},
        cwd=folder, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, record.read_text().split(), done.stdout + done.stderr


@pytest.mark.parametrize("options", [(), ("--numprocesses", "2")], ids=["one process", "two processes"])
def test_what_failed_or_was_not_reached_is_run_again(folder: Path, options: tuple[str, ...]) -> None:
    status, names, out = run(folder, "fails", *options)
    assert (status, sorted(names)) == (1, ["first", "fourth", "second", "third"]), out
    status, names, out = run(folder, "passes", *options)
    assert (status, sorted(names)) == (0, ["fourth", "second"]), out
    assert "2 tests passed earlier on the same files" in out
    assert not (folder / "build/passed").exists()


def test_a_run_whose_process_died_continues(folder: Path) -> None:
    status, names, out = run(folder, "dies")
    assert (status, names) == (3, ["first", "second"]), out
    status, names, out = run(folder, "passes")
    assert (status, names) == (0, ["second", "third", "fourth"]), out


def commit(folder: Path, name: str) -> None:
    path = folder / name
    path.write_text((path.read_text() if path.exists() else "") + "\n")
    git(folder, "add", name)
    git(folder, "commit", "-qm", name)


@pytest.mark.parametrize("name", [IT, "product.py", "tests/conftest.py"])
def test_other_files_start_from_the_beginning(folder: Path, name: str) -> None:
    run(folder, "fails")
    commit(folder, name)
    assert run(folder, "fails")[1] == ["first", "second", "third", "fourth"]


def test_what_passed_stays_passed_where_only_the_module_of_another_test_differs(folder: Path) -> None:
    run(folder, "fails")
    commit(folder, "tests/unit/test_other.py")
    assert run(folder, "fails")[1] == ["second", "fourth"]


def test_uncommitted_changes_start_from_the_beginning(folder: Path) -> None:
    run(folder, "fails")
    (folder / IT).write_text(MODULE + "\n")
    assert run(folder, "fails")[1] == ["first", "second", "third", "fourth"]
    assert run(folder, "fails")[1] == ["first", "second", "third", "fourth"]

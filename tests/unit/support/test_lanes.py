"""A run of two processes: what is not run beside what, and what the run prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.lanes import ALONE, GROUPS, group_of

TESTS = Path(__file__).parents[2]
RECORD = """
import os, time
from pathlib import Path

def record(name, seconds=0.0):
    began = time.monotonic()
    time.sleep(seconds)
    with Path(os.environ["RECORD"]).open("a") as file:
        print(name, os.environ["PYTEST_XDIST_WORKER"], began, time.monotonic(), file=file)
"""
MODULES = {
    "tests/e2e/test_first.py": "def test_it(): record('lab')",
    "tests/chaos/test_bmc_faults.py": "def test_it(): record('lab', 0.5)",
    "tests/integration/faults/test_floods.py": "def test_one(): record('alone')\ndef test_two(): record('alone')",
    "tests/unit/test_quick.py": "def test_it(print_figures):\n    record('quick')\n    print_figures('7 of 7')",
    "tests/unit/test_slow.py": "def test_it(): record('slow', 1.0)",
}


def run(folder: Path, modules: dict[str, str], **environment: str) -> tuple[int, str, list[list[str]]]:
    """Its status, its output, and what was recorded: name, process, begin and end of each test."""
    record = folder / "record"
    record.touch()
    for name, text in modules.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(RECORD + text)
    kept = {name: value for name, value in os.environ.items() if name not in {"REQUIRE", "PYTEST_XDIST_WORKER"}}
    kept |= {"PYTHONPATH": str(TESTS), "RECORD": str(record)} | environment
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, f"--rootdir={folder}", "--import-mode=importlib"]
    plugins = [word for name in ("lanes", "progress", "skips") for word in ("-p", f"support.{name}")]
    done = subprocess.run(
        [*command, *plugins, "-ra", "--numprocesses", "2", "--max-worker-restart", "0", *sorted(modules)],
        env=kept, cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr, [line.split() for line in record.read_text().splitlines()]


def test_every_group_names_what_is_there() -> None:
    paths = [path for group in GROUPS for path in group.paths]
    assert [path for path in paths if not (TESTS.parent / path).exists()] == []
    assert len(set(paths)) == len(paths)
    assert [path for path in paths if path.endswith("/") != (TESTS.parent / path).is_dir()] == []


def test_a_module_of_no_group_is_one_by_itself() -> None:
    assert group_of("tests/e2e/test_install.py::test_it[a::b]") == "labs"
    assert group_of("tests/integration/faults/test_floods.py::test_it") == ALONE
    assert group_of("tests/unit/base/test_clock.py::TestIt::test_it") == "tests/unit/base/test_clock.py"


def test_long_walks_are_spread_over_three_groups() -> None:
    walk = "tests/integration/lives/test_walks.py::test_a_walk_ends_as_asked"
    assert len({group_of(f"{walk}[embedded-{seed}]") for seed in range(30)}) == 1
    real = [group_of(f"{walk}[real-{seed}]") for seed in range(30)]
    assert {real.count(group) for group in real} == {15}
    assert group_of("tests/integration/lives/test_walks.py::test_it") == "tests/integration/lives/test_walks.py"


def test_groups_are_kept_apart_and_the_run_is_told_as_it_goes(tmp_path: Path) -> None:
    skipping = "import pytest\ndef test_it(): pytest.skip('missing program: no-such-program')"
    modules = MODULES | {f"tests/unit/test_{name}.py": skipping for name in "abc"}
    status, out, recorded = run(tmp_path, modules)
    assert status == 0, out
    assert len(recorded) == 6
    assert len({process for name, process, *_ in recorded if name == "lab"}) == 1
    lines = out.splitlines()
    assert "7 of 7" in lines
    assert any("100%  tests/integration/faults/test_floods.py: 2 passed in " in line for line in lines), out
    assert sum(": 1 passed in " in line for line in lines) == 4, out
    assert ["3", "no-such-program"] in [line.split() for line in lines]


def test_what_is_run_alone_waits_until_the_other_process_has_ended(tmp_path: Path) -> None:
    names = [name for name in MODULES if group_of(name) == ALONE or "slow" in name]
    status, out, recorded = run(tmp_path, {name: MODULES[name] for name in names})
    assert status == 0, out
    assert [name for name, *_ in recorded] == ["slow", "alone", "alone"]
    assert min(float(begin) for _, _, begin, _ in recorded[1:]) > float(recorded[0][3])


def test_a_failure_is_printed_at_once_and_in_full_at_the_end(tmp_path: Path) -> None:
    """Also that of a test whose process dies; the run ends then."""
    failing = "def test_it():\n    print('its own words')\n    assert 'left' == 'right'"
    dying = "def test_it(): os._exit(3)"
    status, out, _ = run(tmp_path, {"tests/unit/test_a.py": failing, "tests/unit/test_b.py": dying})
    assert status not in {0, 5}, out
    first, _, rest = out.partition("FAILURES")
    told = next(line for line in first.splitlines() if line.startswith("FAILED tests/unit/test_a.py::test_it: "))
    assert "test_a.py:" in told.partition(": ")[2]
    assert "assert 'left' == 'right'" in told
    assert "tests/unit/test_a.py: 1 failed in " in first
    assert "assert 'left' == 'right'" in rest
    assert "its own words" in rest
    assert "crashed while running 'tests/unit/test_b.py::test_it'" in rest


def test_a_skip_of_either_process_fails_the_run_where_all_is_required(tmp_path: Path) -> None:
    skipping = "import pytest\ndef test_it(): pytest.skip('missing program: no-such-program')"
    status, out, _ = run(tmp_path, {f"tests/unit/test_{name}.py": skipping for name in "ab"}, REQUIRE="all")
    assert status == 1, out
    assert "REQUIRE=all: 2 of these are failures" in out

"""What the README shows to paste: targets, files and options that exist, and agree with the guide to a first cluster.

`tests/integration/app/test_readme.py` runs the blocks that need no server.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

from support.site.readme import ROOT, blocks

GUIDE = ROOT / "docs" / "guide" / "first-cluster.md"


def _commands(page: Path) -> list[list[str]]:
    return [shlex.split(line, comments=True) for block in blocks(page) for line in block]


def test_every_target_of_make_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {word for words in _commands(ROOT / "README.md") if words[0] == "make" for word in words[1:]}
    assert {"demo", "setup", "packages"} <= named
    assert {word for word in named if "=" not in word} - targets == set()


def test_every_file_exists_or_is_said_to_be_the_users_own() -> None:
    named = [
        words[place + 1]
        for words in _commands(ROOT / "README.md")
        for place, word in enumerate(words)
        if word in ("-f", "--from")
    ]
    sentence = re.search(r"^(`.*`) are your own:", (ROOT / "README.md").read_text(), re.MULTILINE)
    own = set(re.findall(r"`([^`]+)`", sentence[1])) if sentence else set()
    assert len(named) == 4
    assert [file for file in named if not (ROOT / file).is_file() and file not in own] == []


def test_the_way_to_a_first_cluster_has_the_same_folders_and_interface_as_its_guide() -> None:
    def served(page: Path) -> list[str]:
        return next(words for words in _commands(page) if words[:3] == ["sudo", ".venv/bin/ironbell", "up"])

    readme, guide = served(ROOT / "README.md"), served(GUIDE)
    assert readme == guide[: len(readme)]
    assert "(docs/guide/first-cluster.md)" in (ROOT / "README.md").read_text()


def test_set_up_ends_with_what_to_type_next_each_time(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "setup.sh").write_text('#!/bin/sh\nmkdir -p "$1"\n')
    (tmp_path / "tools" / "setup.sh").chmod(0o755)
    for name in ("constraints.txt", "pyproject.toml"):
        (tmp_path / name).touch()

    def make(*goals: str) -> list[str]:
        command = ["make", "--no-print-directory", "-C", str(tmp_path), *goals]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    first = make("setup")
    assert first[1] == f'  export PATH="{tmp_path}/.venv/bin:$PATH"'
    assert [line.split("#")[0].strip() for line in first[2:]] == ["ironbell --help", "make demo"]
    assert make("setup") == first

"""Each target with its committed corpus, and in soak a short search from it; in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = ("dhcp", "tftp", "grpc_frames", "cloud_init", "redfish", "inventory", "templates")


def _fuzz(*arguments: str, timeout_s: float | None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    return subprocess.run(
        command, cwd=ROOT, timeout=timeout_s, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_finds_nothing(target: str) -> None:
    ended = _fuzz(target, "--replay", timeout_s=600)
    assert ended.returncode == 0, ended.stdout
    assert "nothing is wrong" in ended.stdout


@pytest.mark.soak
@pytest.mark.parametrize("target", TARGETS)
def test_a_short_search_finds_nothing(target: str) -> None:
    """Two minutes of new inputs; `make fuzz` searches until nothing new is reached, which takes hours."""
    ended = _fuzz(target, "--inputs", "1", "--minutes", "2", "--unchanged", "0", timeout_s=1800)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout

"""Each target with its committed corpus, and in soak for as long as it takes; in processes of their own."""

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
def test_a_long_search_finds_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """A million inputs and a quarter of an hour for each target, and a hundred thousand inputs without a new branch."""
    with capfd.disabled():
        ended = subprocess.run([sys.executable, "-m", "tests.fuzz", "all"], cwd=ROOT)
    assert ended.returncode == 0

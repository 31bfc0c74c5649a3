"""Which labs run: a dead one is found by its lock."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ironbell.lab.network import LabNetworkError
from ironbell.lab.presence import present

OURS, THEIRS = "ironbell-test-0000", "ironbell-test-0001"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def die_present(network: str, folder: Path) -> None:
    """As a process that is killed while it is present."""
    if (pid := os.fork()) == 0:
        with present(network, folder=folder):
            os._exit(0)
    os.waitpid(pid, 0)


def test_a_lab_is_present_until_it_ends(tmp_path: Path) -> None:
    with present(OURS, folder=tmp_path):
        assert names(tmp_path) == {f"{OURS}.lock"}
        with pytest.raises(LabNetworkError, match="runs already"), present(OURS, folder=tmp_path):
            pass
        with present(THEIRS, folder=tmp_path):
            assert names(tmp_path) == {f"{OURS}.lock", f"{THEIRS}.lock"}
    assert names(tmp_path) == set()


def test_a_killed_lab_is_forgotten_by_the_next(tmp_path: Path) -> None:
    die_present(THEIRS, tmp_path)
    assert names(tmp_path) == {f"{THEIRS}.lock"}
    with present(OURS, folder=tmp_path):
        assert names(tmp_path) == {f"{OURS}.lock"}


def test_a_killed_lab_starts_again(tmp_path: Path) -> None:
    die_present(OURS, tmp_path)
    with present(OURS, folder=tmp_path):
        assert names(tmp_path) == {f"{OURS}.lock"}


def test_a_lab_that_is_stopped_is_forgotten(tmp_path: Path) -> None:
    with pytest.raises(asyncio.CancelledError), present(OURS, folder=tmp_path):
        raise asyncio.CancelledError
    assert names(tmp_path) == set()


def test_a_lab_that_fails_is_forgotten_by_the_next(tmp_path: Path) -> None:
    """It may not have removed its network, for example because the disk was full."""
    with pytest.raises(OSError, match="No space"), present(THEIRS, folder=tmp_path):
        raise OSError("No space left on device")
    assert names(tmp_path) == {f"{THEIRS}.lock"}
    with present(OURS, folder=tmp_path):
        assert names(tmp_path) == {f"{OURS}.lock"}

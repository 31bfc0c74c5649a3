"""The manager and the embedded API on virtual time: a seed gives the same run again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from support.lab import replayed


def test_a_seed_gives_the_same_writes_again_and_hours_pass_in_seconds() -> None:
    began_s = time.monotonic()
    first = replayed.replay(7)
    assert time.monotonic() - began_s < 20
    assert len(first) > 100
    assert float(first[-1].split()[0]) > (replayed.HOURS - 1) * 3600
    assert replayed.replay(7) == first
    assert replayed.replay(8) != first


def test_another_process_writes_the_same_whatever_its_hashing_of_text() -> None:
    program = Path(replayed.__file__)

    def lines(hash_seed: str) -> str:
        surroundings = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, str(program), "3"], capture_output=True, text=True, env=surroundings, timeout=60
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    assert lines("1") == lines("2")

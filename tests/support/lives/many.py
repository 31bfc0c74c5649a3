"""Many lives at once, each in a process of its own. Apart from the tests: a new process can import no test."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context

import pytest
import structlog

from support.lives.life import Life

HASH_SEED = "0"


def live(seed: int, changes: int) -> str:
    """Live one life; what went wrong in it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        Life(seed, changes).run()
    except AssertionError as error:
        return str(error)
    return ""


def lives(monkeypatch: pytest.MonkeyPatch, seeds: int, changes: int) -> None:
    """Live all of them, on all processors; each as its seed gives it, in whatever process."""
    monkeypatch.setenv("PYTHONHASHSEED", HASH_SEED)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        failures = [failure for failure in pool.map(live, range(seeds), repeat(changes)) if failure]
    assert not failures, "\n\n".join(failures)

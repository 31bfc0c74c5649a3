"""Many seeds of clusters that come and go on simulated servers, each in a process of its own. Apart from the tests: a
new process can import no test.

As a program:
`python -m support.fleet.seeds SEEDS [--lives N] [--servers N] [--clusters N] [--hours N] [--processes N]`,
where SEEDS is such as `7`, `0-49` or `3,10-12`. It tells of each seed as it ends.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import get_args

import structlog

from ironbell.base.memory import tune_gc
from ironbell.lab.fleet.faults import Fault
from support.fleet.churn import Churn
from support.fleet.watch import ChurnError

HASH_SEED = "0"
"""For Python's hashes of text: with others the same seed is another life."""


@dataclass(frozen=True)
class Plan:
    """How long each seed is, and on what."""

    lives: int
    servers: int
    clusters: int
    hours: int = 0


@dataclass(frozen=True)
class Lived:
    """How a seed ended."""

    seed: int
    failure: str
    counts: dict[str, int]
    took_s: float
    """Of a processor."""
    story: Sequence[str] = field(repr=False)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        return f"seed {self.seed} {'failed' if self.failure else 'passed'} in {self.took_s:.0f} s: {counts}"


def seeds_of(text: str) -> list[int]:
    """Which seeds a text such as `3,10-12` means.

    Raises:
        ValueError: it means none.
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        found += range(int(first), int(last) + 1) if dash else [int(first)]
    return found


def live(seed: int, plan: Plan) -> Lived:
    """Live one seed."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    tune_gc()
    began_s = time.process_time()
    churn = Churn(seed, plan.lives, plan.servers, plan.clusters, plan.hours)
    failure = ""
    try:
        churn.run()
    except ChurnError as error:
        failure = str(error)
    return Lived(seed, failure, dict(churn.counts), time.process_time() - began_s, churn.told)


def lived(seeds: Sequence[int], plan: Plan, processes: int | None = None) -> Iterator[Lived]:
    """Live all of them, on all processors; each as it ends. PYTHONHASHSEED must be `HASH_SEED`.

    Each in a process of its own: what one leaves in memory must not make the next another life.
    """
    context = get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context, max_tasks_per_child=1) as pool:
        for done in as_completed([pool.submit(live, seed, plan) for seed in seeds]):
            yield done.result()


def require(done: Sequence[Lived], plan: Plan) -> None:
    """That none failed, that they were as long as planned, and that everything went wrong that can.

    Raises:
        ChurnError: it is not so.
    """
    failures = [one.failure for one in done if one.failure]
    if failures:
        raise ChurnError("\n\n".join(failures))
    counts: Counter[str] = Counter()
    for one in done:
        counts.update(one.counts)
        short = [
            f"{name} {one.counts.get(name, 0)} of {least}"
            for name, least in (("lives", plan.lives), ("hours", plan.hours), ("clusters", plan.clusters))
            if one.counts.get(name, 0) < least
        ]
        if short:
            raise ChurnError(f"seed {one.seed} was not as long as planned: {', '.join(short)}")
    never = [name for name in (*get_args(Fault), "crashes", "power cuts", "held") if not counts[name]]
    if never:
        raise ChurnError(f"never in these seeds: {', '.join(never)}")


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m support.fleet.seeds")
    parser.add_argument("seeds", type=seeds_of)
    for name, value in (("lives", 500), ("servers", 300), ("clusters", 20), ("hours", 0), ("processes", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    os.environ["PYTHONHASHSEED"] = HASH_SEED
    failed = False
    for one in lived(given.seeds, Plan(given.lives, given.servers, given.clusters, given.hours), given.processes):
        print(one, flush=True)
        if one.failure:
            failed = True
            print("\n".join([*one.story, one.failure]), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    _main()
